//! What `speech.turn` and `speech.guess` have in common: their options, how a window goes into the machine, and what a
//! client may tell them on `control`. The type of `speech.turn` does not declare `speculate-after`, so that a graph file
//! cannot set it there.

use omni_flow::units::Dur;
use omni_flow::{Kind, MediaTime, Medium, Opt, OptionError, Pcm, Port, Schema, Signal, Stamp};
use serde::Deserialize;

use crate::turn::{Change, TurnConfig, TurnConfigError, TurnEvent, TurnMachine, TurnMode};

pub(super) const RATE: u32 = 16_000;

/// Options of turn detection; the defaults are those of the sessions' contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TurnOptions {
    threshold: Option<f32>,
    prefix_padding: Option<Dur>,
    silence_duration: Option<Dur>,
    min_speech_duration: Option<Dur>,
    max_utterance: Option<Dur>,
    speculate_after: Option<Dur>,
}

impl TurnOptions {
    /// The settings of `speech.turn`, which gives no guesses: none is made, and no audio copied for one.
    pub(super) fn sure(&self) -> Result<TurnConfig, OptionError> {
        self.config(0)
    }
    /// The settings of `speech.guess`.
    pub(super) fn guessing(&self) -> Result<TurnConfig, OptionError> {
        self.config(TurnConfig::default().speculate_after_ms)
    }
    /// `speculate` is the silence before a guess, ms, where the options do not say; 0 = never.
    fn config(&self, speculate: u32) -> Result<TurnConfig, OptionError> {
        let d = TurnConfig::default();
        let ms = |given: Option<Dur>, default: u32| {
            given.map_or(default, |g| g.0.as_millis().min(u128::from(u32::MAX)) as u32)
        };
        let config = TurnConfig {
            threshold: self.threshold.unwrap_or(d.threshold),
            prefix_padding_ms: ms(self.prefix_padding, d.prefix_padding_ms),
            silence_duration_ms: ms(self.silence_duration, d.silence_duration_ms),
            min_speech_duration_ms: ms(self.min_speech_duration, d.min_speech_duration_ms),
            max_utterance_s: self.max_utterance.map_or(d.max_utterance_s, |g| g.0.as_secs_f32()),
            speculate_after_ms: ms(self.speculate_after, speculate),
            ..d
        };
        let checked = config.rules().map(|_| config);
        checked.map_err(|e| {
            let option = match e.param() {
                "threshold" => "threshold",
                "max_utterance_s" => "max-utterance",
                "prefix_padding_ms" => "prefix-padding",
                "silence_duration_ms" => "silence-duration",
                "min_speech_duration_ms" => "min-speech-duration",
                _ => "speculate-after",
            };
            OptionError::new(option, e.to_string(), "the defaults suit a conversation")
        })
    }
}

/// What `turn.config` carries on `control`. What it does not name is as the graph file says; `mode` is then `vad`, and
/// `interrupt` true.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    at: Option<u64>,
    mode: TurnMode,
    threshold: Option<f32>,
    prefix_padding_ms: Option<u32>,
    silence_duration_ms: Option<u32>,
    min_speech_duration_ms: Option<u32>,
    interrupt: Option<bool>,
}

impl Settings {
    fn over(&self, base: &TurnConfig) -> TurnConfig {
        TurnConfig {
            mode: self.mode,
            interrupt: self.interrupt.unwrap_or(base.interrupt),
            threshold: self.threshold.unwrap_or(base.threshold),
            prefix_padding_ms: self.prefix_padding_ms.unwrap_or(base.prefix_padding_ms),
            silence_duration_ms: self.silence_duration_ms.unwrap_or(base.silence_duration_ms),
            min_speech_duration_ms: self.min_speech_duration_ms.unwrap_or(base.min_speech_duration_ms),
            ..*base
        }
    }
}

/// What `turn.clear` carries.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Clear {
    at: Option<u64>,
}

/// The inputs and the options of both.
pub(super) fn schema(about: &str) -> Schema {
    Schema::new(about)
        .input(Port::new(
            "in",
            Kind::mono(RATE),
            "windows with their speech probability, as `speech.vad` gives them; a last one ends the turn",
        ))
        .input(
            Port::new(
                "control",
                Kind::of(Medium::Signal),
                "from a client: `turn.config` changes the rules, `turn.clear` drops what was said, both from `at` (a sample) on",
            )
            .optional(),
        )
        .option(Opt::new(
            "threshold",
            "number",
            "0.5",
            "speech probability from which a window is speech, above 0.15 up to 1",
        ))
        .option(Opt::new("prefix-padding", "duration", "300ms", "audio kept before the first window of speech"))
        .option(Opt::new("silence-duration", "duration", "500ms", "silence that ends a turn"))
        .option(Opt::new("min-speech-duration", "duration", "96ms", "unbroken speech that begins a turn"))
        .option(Opt::new(
            "max-utterance",
            "duration",
            "30s",
            "longest utterance; then it is given as it stands and a new one begins",
        ))
}

/// The option that only `speech.guess` has.
pub(super) fn speculate_after() -> Opt {
    Opt::new("speculate-after", "duration", "160ms", "silence after which the utterance so far is given; 0ms = never")
}

pub(super) fn at(sample: u64) -> MediaTime {
    MediaTime::from_samples(sample, RATE)
}

/// The machine, and the settings that the graph file gives it.
pub(super) struct Windows {
    machine: TurnMachine,
    base: TurnConfig,
}

impl Windows {
    /// # Errors
    /// [`TurnConfigError`] if the settings are out of range.
    pub(super) fn new(base: TurnConfig) -> Result<Self, TurnConfigError> {
        Ok(Self { machine: TurnMachine::new(base.rules()?), base })
    }
    /// Takes a window; the last of a segment is a client's commit.
    pub(super) fn push(&mut self, stamp: &Stamp, window: &Pcm, out: &mut Vec<TurnEvent>) {
        // Audio that no detector has looked at is not speech.
        self.machine.window(&window.f32(), window.voice().unwrap_or(0.0), out);
        if stamp.last {
            self.machine.commit(out);
        }
    }
    /// Takes what a client says. What cannot be understood, or is out of range, changes nothing, and `node` warns of it;
    /// signals of other names are for others.
    pub(super) fn control(&mut self, signal: &Signal, node: &str) {
        let noted = if let Some(read) = signal.read::<Settings>("turn.config") {
            read.map_err(|e| e.to_string()).and_then(|s| {
                let rules = s.over(&self.base).rules().map_err(|e| e.to_string())?;
                self.note(s.at, Change::Rules(rules))
            })
        } else if let Some(read) = signal.read::<Clear>("turn.clear") {
            read.map_err(|e| e.to_string()).and_then(|c| self.note(c.at, Change::Clear))
        } else {
            return;
        };
        if let Err(why) = noted {
            tracing::warn!(node, why, "a control signal is refused, and all stays as it was");
        }
    }
    fn note(&mut self, at: Option<u64>, change: Change) -> Result<(), String> {
        self.machine.change(at.unwrap_or(self.machine.clock()), change).map_err(|e| e.to_string())
    }
    pub(super) fn end(&mut self, out: &mut Vec<TurnEvent>) {
        self.machine.end(None, out);
    }
    /// A new stream, under the rules of this moment.
    pub(super) fn reset(&mut self) {
        self.machine = TurnMachine::new(self.machine.rules());
    }
}
