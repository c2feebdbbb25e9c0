//! `util.gate`: passes chunks while it is open and drops them while it is closed.
//!
//! Signals on `control` open and close it, by their names: `speech-started`, `speech-stopped`, `turn-ended`, `played`,
//! `gap`, or the name of an application's own signal. A signal that is there acts before the next chunk does.

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Kind, Make, Medium, Node, NodeError, Opt, OptionError, Payload, Port,
    Schema, Sent, Signal, Terminal,
};
use serde::Deserialize;

use super::any;
use super::select::{Either, either};

/// The node type.
pub struct Gate;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct GateConfig {
    open: bool,
    open_on: Vec<String>,
    close_on: Vec<String>,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self { open: true, open_on: vec!["open".into()], close_on: vec!["close".into()] }
    }
}

/// The name of a signal in options.
pub(crate) fn name_of(signal: &Signal) -> &str {
    match signal {
        Signal::SpeechStarted { .. } => "speech-started",
        Signal::SpeechStopped { .. } => "speech-stopped",
        Signal::TurnEnded { .. } => "turn-ended",
        Signal::Played { .. } => "played",
        Signal::Gap { .. } => "gap",
        Signal::Named { name, .. } => name,
        _ => "",
    }
}

struct Gating(GateConfig);

impl Node for Gating {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self(config) = self;
        let mut input = cx.input::<Payload>("in")?;
        let mut control = cx.optional_input::<Signal>("control");
        let mut out = cx.output("out")?;
        let (mut open, mut dropped) = (config.open, 0u64);
        loop {
            match either(&mut control, &mut input).await? {
                Either::Control(signal) => {
                    let name = name_of(&signal);
                    let has = |list: &[String]| list.iter().any(|n| n == name);
                    open = (open || has(&config.open_on)) && !has(&config.close_on);
                }
                Either::Media(Event::Data(stamp, payload)) if open => {
                    if out.send(&stamp, payload).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Either::Media(Event::Data(..)) => dropped += 1,
                Either::Media(Event::Fence(_)) => {}
                Either::Media(Event::End(Terminal::End)) => {
                    tracing::debug!(node = cx.path(), dropped, "chunks that met a closed gate");
                    return Ok(());
                }
                Either::Media(Event::End(Terminal::Error(e))) => return Err(e.into()),
            }
        }
    }
}

impl Make for Gate {
    const NAME: &'static str = "util.gate";
    type Config = GateConfig;
    fn schema() -> Schema {
        Schema::new("Passes chunks while it is open and drops them while it is closed")
            .input(Port::new("in", any(), "anything"))
            .input(Port::new("control", Kind::of(Medium::Signal), "signals that open and close").optional())
            .output(Port::new("out", any(), "the same, while open").like("in"))
            .option(Opt::new("open", "yes/no", "true", "whether it is open at the start"))
            .option(Opt::new("open-on", "list", "[open]", "names of the signals that open it"))
            .option(Opt::new("close-on", "list", "[close]", "names of the signals that close it"))
            .example("mute: { use: util.gate, close-on: [speech-started], in: { in: music, control: vad.events } }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        if let Some(both) = config.open_on.iter().find(|n| config.close_on.contains(n)) {
            return Err(OptionError::new(
                "close-on",
                format!("has `{both}`, as `open-on` has"),
                "keep it in one of the two",
            ));
        }
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || Gating(config.clone())))
    }
}
