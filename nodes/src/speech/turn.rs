//! `speech.turn`: decides when the user speaks and when a turn is over, and fences the lane of the answers.
//!
//! The moment speech begins, everything of the lane that the graph file names after `fences` is stale; what the node
//! gives from then on carries the new epoch, so the answer to it is fresh.
//!
//! A window that is the last of a segment is a client's commit: it ends the turn, and exactly one `TurnEnded` with the
//! reason `Committed` tells it, with an empty range and no utterance if there was nothing to end. On `control` a client
//! sends, ahead of the audio that it means, named signals with JSON: `turn.config` (`at`, `mode` of `vad` or `manual`,
//! `threshold`, `prefix_padding_ms`, `silence_duration_ms`, `min_speech_duration_ms`, `interrupt`; what is left out is as
//! the graph file says) and `turn.clear` (`at`). `at` is a sample of the input; without it, it is the next one. They act
//! as the audio from there on arrives. A clear is told as the named event `turn.cleared`: `at`, and `start` if a turn had
//! begun, which then has no `TurnEnded`.

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Epochs, Event, Kind, Make, MediaTime, Medium, Node, NodeError, OptionError, Out,
    Pcm, Port, Schema, Sent, Signal, Stamp, Terminal, TurnEnd,
};
use serde_json::json;

use super::rules::{RATE, TurnOptions, Windows, at, schema};
use crate::turn::{EndReason, TurnConfig, TurnEvent};
use crate::util::select::{Either, either};

/// The node type `speech.turn`.
pub struct SpeechTurn;

impl Make for SpeechTurn {
    const NAME: &'static str = "speech.turn";
    type Config = TurnOptions;
    fn schema() -> Schema {
        schema(
            "Turn detection: gives each utterance when it is over, tells when speech starts and stops, fences answers",
        )
        .output(Port::new("utterance", Kind::mono(RATE), "each whole utterance, prefix padding included").optional())
        .output(
            Port::new("events", Kind::of(Medium::Signal), "speech started, speech stopped, turn ended, turn.cleared")
                .optional(),
        )
        .fences()
        .example("turn: { use: speech.turn, in: vad, fences: reply }")
    }
    fn refine(config: &TurnOptions, _: &mut Schema) -> Result<(), OptionError> {
        config.sure().map(drop)
    }
    fn build(config: &TurnOptions, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.sure().map_err(BuildError::from_error)?;
        Ok(Body::node(move || Turn { config }))
    }
}

struct Turn {
    config: TurnConfig,
}

struct Running {
    cx: Ctx,
    utterance: Out<Pcm>,
    events: Out<Signal>,
    /// What the node's own fences have made of the epochs.
    epochs: Epochs,
    /// The start of a turn was told, and its end was not.
    speaking: bool,
}

impl Node for Turn {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Pcm>("in")?;
        let mut control = cx.optional_input::<Signal>("control");
        let (utterance, events) = (cx.output("utterance")?, cx.output("events")?);
        let mut windows = Windows::new(self.config)?;
        let mut me = Running { cx, utterance, events, epochs: Epochs::FIRST, speaking: false };
        let mut found = Vec::new();
        let mut last = Stamp::default();
        loop {
            match either(&mut control, &mut input).await? {
                Either::Control(signal) => windows.control(&signal, me.cx.path()),
                Either::Media(Event::Data(stamp, window)) => {
                    last = stamp;
                    windows.push(&stamp, &window, &mut found);
                    if me.tell(&stamp, &mut found).await? == Sent::Gone {
                        return Ok(());
                    }
                }
                Either::Media(Event::Fence(_)) => windows.reset(),
                Either::Media(Event::End(Terminal::End)) => {
                    windows.end(&mut found);
                    me.tell(&last, &mut found).await?;
                    return Ok(());
                }
                Either::Media(Event::End(Terminal::Error(e))) => return Err(e.into()),
            }
        }
    }
}

impl Running {
    async fn tell(&mut self, stamp: &Stamp, found: &mut Vec<TurnEvent>) -> Result<Sent, NodeError> {
        for event in found.drain(..) {
            let sent = match event {
                TurnEvent::Guess { .. } | TurnEvent::GuessCancelled { .. } => Sent::Queued,
                TurnEvent::SpeechStarted { continued: true, .. } => {
                    self.speaking = true;
                    Sent::Queued
                }
                TurnEvent::SpeechStarted { start, interrupt, .. } => {
                    self.speaking = true;
                    if let Some((lane, epoch)) = interrupt.then(|| self.cx.fence()).flatten() {
                        self.epochs = self.epochs.with(lane, epoch);
                    }
                    self.signal(stamp, Signal::SpeechStarted { at: at(start) }).await
                }
                TurnEvent::TurnCleared { at, start } => {
                    self.speaking = false;
                    self.signal(stamp, Signal::named("turn.cleared", &json!({ "at": at, "start": start }))?).await
                }
                TurnEvent::TurnEnded { start, end, speech_end, reason, audio, .. } => {
                    let reason = match reason {
                        EndReason::Silence => TurnEnd::Silence,
                        EndReason::Longest => TurnEnd::TooLong,
                        EndReason::Commit => TurnEnd::Committed,
                        EndReason::EndOfInput => TurnEnd::InputEnded,
                    };
                    let (start, speech_end, end) = (at(start), at(speech_end), at(end));
                    if std::mem::take(&mut self.speaking) {
                        self.signal(stamp, Signal::SpeechStopped { at: speech_end }).await;
                    }
                    let told = self.signal(stamp, Signal::TurnEnded { start, speech_end, end, reason }).await;
                    if audio.is_empty() {
                        told
                    } else {
                        let mut s = self.stamp(stamp).last(true);
                        (s.pts, s.len) = (start, end - start);
                        let given = self.utterance.send(&s, Pcm::mono(RATE, audio)).await;
                        if told == Sent::Gone { given } else { told }
                    }
                }
            };
            if sent == Sent::Gone && !self.utterance.connected() {
                return Ok(sent);
            }
        }
        Ok(Sent::Queued)
    }
    async fn signal(&mut self, stamp: &Stamp, signal: Signal) -> Sent {
        let s = self.stamp(stamp);
        self.events.send(&s, signal).await
    }
    /// The stamp of what answers `stamp`, under the newest epochs of the fenced lane.
    fn stamp(&self, stamp: &Stamp) -> Stamp {
        let mut s = stamp.child(stamp.pts, MediaTime::ZERO);
        s.epochs = s.epochs.join(&self.epochs);
        s
    }
}
