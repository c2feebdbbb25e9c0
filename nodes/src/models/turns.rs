//! `chat.turns`: the conversation before a model that takes whole prompts (`model.chat` with `prompts: true`).
//!
//! By itself it keeps the history: each text that was heard is answered, under the stamp of that text, with the prompt of
//! the whole conversation, and an answer that a fence interrupts is kept as far as it was heard ([`Turns`] says how). The
//! next text waits until the answer before it is whole or interrupted. A client that owns its conversation sends whole
//! prompts (`chat.prompt`) instead, which pass as they are; from the first one on, or from a signal `chat.own`, what is
//! heard is no longer answered here.

use std::sync::Arc;

use omni_flow::{
    Amount, Body, BuildCx, BuildError, Ctx, Epoch, Event, In, Kind, Lane, Make, MediaTime, Medium, Node, NodeError,
    Opt, OptionError, Pcm, Port, Schema, Sent, Signal, Stamp, Terminal,
};
use serde::Deserialize;

use super::chat::{Example, beginning};
use crate::chat::{Prompt, turns::Turns};

/// The node type `chat.turns`.
pub struct ChatTurns;

/// Options of `chat.turns`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TurnsConfig {
    #[serde(default)]
    system: String,
    #[serde(default)]
    examples: Vec<Example>,
    #[serde(default = "max_turns")]
    max_turns: usize,
}

fn max_turns() -> usize {
    64
}

/// The signal with which a client takes the conversation over before its first prompt.
const OWN: &str = "chat.own";

impl Make for ChatTurns {
    const NAME: &'static str = "chat.turns";
    type Config = TurnsConfig;
    fn schema() -> Schema {
        let signal = Kind::of(Medium::Signal);
        Schema::new("The conversation before a language model: whole prompts out of what was heard, or of a client that owns it")
            .input(Port::new("heard", Kind::of(Medium::Text), "what the user said, one whole turn per chunk").optional())
            .input(
                Port::new("ask", signal.clone(), "whole prompts of a client (`chat.prompt`), or `chat.own` before the first")
                    .optional(),
            )
            .input(Port::new("said", Kind::of(Medium::Text), "the answer as it is given out, or cut into sentences").feedback())
            .input(
                Port::new(
                    "spoken",
                    Kind::of(Medium::Audio),
                    "audio of the answer, a segment for each piece of `said`: then an interrupted answer is cut exactly",
                )
                .feedback(),
            )
            .input(Port::new("played", signal.clone(), "`played` of `speech.playout`").feedback())
            .output(Port::new("prompt", signal, "prompts, for `model.chat` with `prompts: true`"))
            .option(Opt::new("system", "text", "\"\"", "the system message of the conversation kept here"))
            .option(Opt::new("examples", "list", "[]", "exchanges that show how to answer: `{ user: ..., assistant: ... }`"))
            .option(Opt::new("max-turns", "integer", "64", "most turns kept; the oldest go first"))
            .example("turns: { use: chat.turns, in: { heard: heard, said: llm.text, played: playout.played } }")
    }
    fn refine(config: &TurnsConfig, _: &mut Schema) -> Result<(), OptionError> {
        if config.max_turns == 0 {
            return Err(OptionError::new("max-turns", "is 0", "the newest turn is always there: use 1 or more"));
        }
        Ok(())
    }
    fn build(config: &TurnsConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let (fixed, max_turns) = (beginning(&config.system, &config.examples), config.max_turns);
        Ok(Body::node(move || TurnsNode { fixed: fixed.clone(), max_turns }))
    }
}

struct TurnsNode {
    fixed: Vec<crate::chat::Message>,
    max_turns: usize,
}

/// The answer's ways back.
struct Back {
    said: Option<In<Arc<str>>>,
    spoken: Option<In<Pcm>>,
    played: Option<In<Signal>>,
    /// The lane of answers, and its newest fence.
    lane: Lane,
    fenced: Epoch,
}

impl Node for TurnsNode {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let (mut heard, mut ask) = (cx.optional_input::<Arc<str>>("heard"), cx.optional_input::<Signal>("ask"));
        let said = cx.optional_input::<Arc<str>>("said");
        let lane = said.as_ref().map_or(Lane::MAIN, In::lane);
        let (spoken, played) = (cx.optional_input("spoken"), cx.optional_input("played"));
        let mut back = Back { said, spoken, played, lane, fenced: Epoch::default() };
        let mut out = cx.output::<Signal>("prompt")?;
        let mut turns = Turns::new(self.fixed, self.max_turns, back.spoken.is_some(), back.played.is_some());
        let mut owned = false;
        // Heard, and not asked yet; and a prompt on its way.
        let mut waiting: Option<(Stamp, Arc<str>)> = None;
        let mut ready: Option<(Stamp, Signal)> = None;
        while waiting.is_some() || ready.is_some() || heard.is_some() || ask.is_some() {
            let due = waiting.is_some() && ready.is_none() && !(back.said.is_some() && turns.answering());
            let (stamp, amount) = ready.as_ref().map_or((Stamp::default(), Amount::ZERO), |(stamp, signal)| {
                (*stamp, Amount::one(signal.bytes() as u64, MediaTime::ZERO))
            });
            tokio::select! {
                // What became of an answer is known before the next prompt is made.
                biased;
                done = back.next(&mut turns) => done?,
                () = std::future::ready(()), if due => {
                    let Some((stamp, text)) = waiting.take() else { continue };
                    let messages = turns.asked(text.trim());
                    if stamp.epochs.of(back.lane) < back.fenced {
                        // The person has spoken again: nothing would be heard of an answer.
                        turns.interrupted();
                        continue;
                    }
                    let signal = Signal::Named { name: Prompt::NAME.into(), data: Prompt::new(messages).to_json().into() };
                    ready = Some((stamp, signal));
                }
                room = out.reserve(&stamp, amount), if ready.is_some() => {
                    let Some((stamp, signal)) = ready.take() else { continue };
                    let sent = match room {
                        Ok(permit) => permit.send(&stamp.child(stamp.pts, MediaTime::ZERO).last(true), signal),
                        Err(sent) => sent,
                    };
                    if sent == Sent::Gone {
                        return Ok(());
                    }
                }
                event = next(&mut ask), if ready.is_none() => if let Some((stamp, signal)) = data(event, &mut ask)?
                    && let Signal::Named { name, .. } = &signal
                {
                    owned |= matches!(&**name, Prompt::NAME | OWN);
                    if **name == *Prompt::NAME {
                        ready = Some((stamp, signal));
                    }
                    if owned {
                        waiting = None;
                    }
                },
                event = next(&mut heard), if waiting.is_none() => {
                    let text = data(event, &mut heard)?.filter(|(_, text)| !owned && !text.trim().is_empty());
                    waiting = text;
                }
            }
        }
        Ok(())
    }
}

impl Back {
    /// Takes the next of what comes back.
    async fn next(&mut self, turns: &mut Turns) -> Result<(), NodeError> {
        tokio::select! {
            biased;
            event = next(&mut self.played) => {
                if let Some((_, Signal::Played { until })) = data(event, &mut self.played)? {
                    turns.played(until);
                }
            }
            event = next(&mut self.spoken) => {
                if let Some((stamp, pcm)) = data(event, &mut self.spoken)? {
                    turns.spoken(MediaTime::from_samples(pcm.frames() as u64, pcm.rate()), stamp.last);
                }
            }
            event = next(&mut self.said) => match event {
                Event::Fence(epoch) => {
                    self.fenced = self.fenced.max(epoch);
                    turns.interrupted();
                }
                event => if let Some((stamp, text)) = data(event, &mut self.said)? {
                    turns.said(&text, stamp.last);
                },
            },
        }
        Ok(())
    }
}

/// The next event of an input that may not be there, or has ended.
async fn next<T: omni_flow::Item>(input: &mut Option<In<T>>) -> Event<T> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

/// The value of an event; an input that has ended goes.
fn data<T: omni_flow::Item>(event: Event<T>, input: &mut Option<In<T>>) -> Result<Option<(Stamp, T)>, NodeError> {
    match event {
        Event::Data(stamp, value) => Ok(Some((stamp, value))),
        Event::Fence(_) => Ok(None),
        Event::End(Terminal::End) => {
            *input = None;
            Ok(None)
        }
        Event::End(Terminal::Error(e)) => Err(e.into()),
    }
}
