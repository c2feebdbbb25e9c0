//! `speech.guess`: gives an utterance before it is sure that it is over, so that recognition can begin in the silence.
//!
//! It decides by the same rules as `speech.turn` on the same windows. Its lane is the one it fences: if the speaker goes
//! on, the fence undoes all that was begun. `speech.confirm` lets the transcript of the guess that held pass. What a client
//! commits, and what it says on `control`, means here what it means there: feed both from the same `session.in`, with `at`.

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Epochs, Event, Kind, Make, Node, NodeError, OptionError, Out, Pcm, Port, Schema,
    Sent, Signal, Stamp, Terminal,
};

use super::rules::{RATE, TurnOptions, Windows, at, schema, speculate_after};
use crate::turn::{TurnConfig, TurnEvent};
use crate::util::select::{Either, either};

/// The node type `speech.guess`.
pub struct SpeechGuess;

impl Make for SpeechGuess {
    const NAME: &'static str = "speech.guess";
    type Config = TurnOptions;
    fn schema() -> Schema {
        schema("Speculative turn ends: gives the utterance after a short silence, and takes it back if the speaker goes on")
            .output(Port::new("utterance", Kind::mono(RATE), "utterances that are probably over"))
            .option(speculate_after())
            .fences()
            .example("guess: { use: speech.guess, in: vad, lane: guess, fences: guess }")
    }
    fn refine(config: &TurnOptions, _: &mut Schema) -> Result<(), OptionError> {
        config.guessing().map(drop)
    }
    fn build(config: &TurnOptions, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.guessing().map_err(BuildError::from_error)?;
        Ok(Body::node(move || Guess { config }))
    }
}

struct Guess {
    config: TurnConfig,
}

impl Node for Guess {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Pcm>("in")?;
        let mut control = cx.optional_input::<Signal>("control");
        let mut out = cx.output::<Pcm>("utterance")?;
        let mut windows = Windows::new(self.config)?;
        let mut epochs = Epochs::FIRST;
        let mut found = Vec::new();
        let mut last = Stamp::default();
        loop {
            let ended = match either(&mut control, &mut input).await? {
                Either::Control(signal) => {
                    windows.control(&signal, cx.path());
                    continue;
                }
                Either::Media(Event::Data(stamp, window)) => {
                    last = stamp;
                    windows.push(&stamp, &window, &mut found);
                    false
                }
                Either::Media(Event::Fence(_)) => {
                    windows.reset();
                    continue;
                }
                Either::Media(Event::End(Terminal::End)) => {
                    windows.end(&mut found);
                    true
                }
                Either::Media(Event::End(Terminal::Error(e))) => return Err(e.into()),
            };
            for event in found.drain(..) {
                let sent = match event {
                    TurnEvent::Guess { start, end, audio, .. }
                    | TurnEvent::TurnEnded { start, end, audio, guess: None, .. }
                        if !audio.is_empty() =>
                    {
                        give(&mut out, &last, &epochs, start, end, audio).await
                    }
                    TurnEvent::GuessCancelled { .. } => {
                        if let Some((lane, epoch)) = cx.fence() {
                            epochs = epochs.with(lane, epoch);
                        }
                        Sent::Queued
                    }
                    _ => Sent::Queued,
                };
                if sent == Sent::Gone {
                    return Ok(());
                }
            }
            if ended {
                return Ok(());
            }
        }
    }
}

async fn give(out: &mut Out<Pcm>, stamp: &Stamp, epochs: &Epochs, start: u64, end: u64, audio: Vec<f32>) -> Sent {
    let mut s = stamp.child(at(start), at(end - start)).last(true);
    s.epochs = s.epochs.join(epochs);
    out.send(&s, Pcm::mono(RATE, audio)).await
}
