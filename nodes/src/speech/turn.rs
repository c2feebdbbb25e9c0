//! `speech.turn`: decides when the user speaks and when a turn is over, and fences the lane of the answers.
//!
//! The moment speech begins, everything of the lane that the graph file names after `fences` is stale; what the node
//! gives from then on carries the new epoch, so the answer to it is fresh.

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Epochs, Event, Kind, Make, Medium, Node, NodeError, OptionError, Out, Pcm, Port,
    Schema, Sent, Signal, Stamp, Terminal, TurnEnd,
};

use super::rules::{RATE, TurnOptions, Windows, at, schema};
use crate::turn::{EndReason, TurnEvent, TurnRules};

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
        .output(Port::new("events", Kind::of(Medium::Signal), "speech started, speech stopped, turn ended").optional())
        .fences()
        .example("turn: { use: speech.turn, in: vad, fences: reply }")
    }
    fn refine(config: &TurnOptions, _: &mut Schema) -> Result<(), OptionError> {
        config.sure().map(drop)
    }
    fn build(config: &TurnOptions, _: &BuildCx) -> Result<Body, BuildError> {
        let rules = config.sure().map_err(BuildError::from_error)?;
        Ok(Body::node(move || Turn { rules }))
    }
}

struct Turn {
    rules: TurnRules,
}

struct Running {
    cx: Ctx,
    utterance: Out<Pcm>,
    events: Out<Signal>,
    /// What the node's own fences have made of the epochs.
    epochs: Epochs,
}

impl Node for Turn {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Pcm>("in")?;
        let (utterance, events) = (cx.output("utterance")?, cx.output("events")?);
        let mut windows = Windows::new(self.rules);
        let mut me = Running { cx, utterance, events, epochs: Epochs::FIRST };
        let mut found = Vec::new();
        let mut last = Stamp::default();
        loop {
            match input.next().await {
                Event::Data(stamp, window) => {
                    last = stamp;
                    windows.push(&window, &mut found)?;
                    if me.tell(&stamp, &mut found).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Event::Fence(_) => windows.reset(),
                Event::End(Terminal::End) => {
                    windows.end(&mut found);
                    me.tell(&last, &mut found).await;
                    return Ok(());
                }
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl Running {
    async fn tell(&mut self, stamp: &Stamp, found: &mut Vec<TurnEvent>) -> Sent {
        for event in found.drain(..) {
            let sent = match event {
                TurnEvent::SpeechStarted { continued: true, .. }
                | TurnEvent::Guess { .. }
                | TurnEvent::GuessCancelled { .. }
                | TurnEvent::TurnCleared { .. } => Sent::Queued,
                TurnEvent::SpeechStarted { start, .. } => {
                    if let Some((lane, epoch)) = self.cx.fence() {
                        self.epochs = self.epochs.with(lane, epoch);
                    }
                    self.signal(stamp, Signal::SpeechStarted { at: at(start) }).await
                }
                TurnEvent::TurnEnded { start, end, speech_end, reason, audio, .. } => {
                    let reason = match reason {
                        EndReason::Silence => TurnEnd::Silence,
                        EndReason::Longest => TurnEnd::TooLong,
                        EndReason::Commit => TurnEnd::Committed,
                        EndReason::EndOfInput => TurnEnd::InputEnded,
                    };
                    self.signal(stamp, Signal::SpeechStopped { at: at(speech_end) }).await;
                    let ended =
                        Signal::TurnEnded { start: at(start), speech_end: at(speech_end), end: at(end), reason };
                    let told = self.signal(stamp, ended).await;
                    let mut s = self.stamp(stamp).last(true);
                    (s.pts, s.len) = (at(start), at(end - start));
                    let given = self.utterance.send(&s, Pcm::mono(RATE, audio)).await;
                    if told == Sent::Gone { given } else { told }
                }
            };
            if sent == Sent::Gone && !self.utterance.connected() {
                return sent;
            }
        }
        Sent::Queued
    }
    async fn signal(&mut self, stamp: &Stamp, signal: Signal) -> Sent {
        let s = self.stamp(stamp);
        self.events.send(&s, signal).await
    }
    /// The stamp of what answers `stamp`, under the newest epochs of the fenced lane.
    fn stamp(&self, stamp: &Stamp) -> Stamp {
        let mut s = stamp.child(stamp.pts, omni_flow::MediaTime::ZERO);
        s.epochs = s.epochs.join(&self.epochs);
        s
    }
}
