//! `speech.confirm`: lets the transcript of a guess pass when the turn that it was guessed for has really ended.
//!
//! A transcript belongs to a turn if both begin at the same sample and the guess reaches to the turn's last speech. It
//! passes under the stamp of the turn's end, so that it carries the epochs of the turn and not those of the guess.
//!
//! Each turn that ended gets one answer, on one of two outputs: its text, or on `unheard` an empty text, the last of its
//! segment and at the turn's place, for a turn in which no word was recognised. Those are turns whose transcript is empty,
//! turns without audio, turns that were overtaken by the transcript of a later one, turns that waited behind 16 newer
//! ones, and those still waiting when no transcript can come any more.

use std::collections::VecDeque;
use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Kind, Make, MediaTime, Medium, Node, NodeError, Out, Port, Schema, Sent,
    Signal, Stamp, Terminal,
};
use serde::Deserialize;

/// The node type `speech.confirm`.
pub struct SpeechConfirm;

/// Options of `speech.confirm`: none.
#[derive(Debug, Deserialize)]
pub struct ConfirmConfig {}

impl Make for SpeechConfirm {
    const NAME: &'static str = "speech.confirm";
    type Config = ConfirmConfig;
    fn schema() -> Schema {
        Schema::new("Lets the transcript of a guessed turn end pass once the turn has really ended")
            .input(Port::new("text", Kind::of(Medium::Text), "transcripts of guesses"))
            .input(Port::new("turn", Kind::of(Medium::Signal), "`events` of `speech.turn`"))
            .output(Port::new("text", Kind::of(Medium::Text), "transcripts of turns"))
            .output(
                Port::new("unheard", Kind::of(Medium::Text), "an empty text for each turn without a word").optional(),
            )
            .example("heard: { use: speech.confirm, in: { text: asr.text, turn: turn.events } }")
    }
    fn build(_: &ConfirmConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Confirm { texts: VecDeque::new(), turns: VecDeque::new() }))
    }
}

/// Turn ends and transcripts that may wait for each other; the oldest go first.
const MOST: usize = 16;

struct Turn {
    stamp: Stamp,
    start: MediaTime,
    speech_end: MediaTime,
}

impl Turn {
    /// The stamp of what answers it.
    fn answer(&self) -> Stamp {
        let mut stamp = self.stamp.last(true);
        stamp.pts = self.start;
        stamp
    }
}

struct Confirm {
    texts: VecDeque<(Stamp, Arc<str>)>,
    turns: VecDeque<Turn>,
}

/// A turn that is done with: its stamp, and its words if it has any.
type Done = (Stamp, Option<Arc<str>>);

impl Node for Confirm {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut texts: In<Arc<str>> = cx.input("text")?;
        let mut turns: In<Signal> = cx.input("turn")?;
        let mut out = Outs { text: cx.output("text")?, unheard: cx.output("unheard")?, gone: (false, false) };
        let (mut texts_open, mut turns_open) = (true, true);
        let mut done = Vec::new();
        while turns_open || (texts_open && !self.turns.is_empty()) {
            tokio::select! {
                // A fence of the guesses is heard before the decision that came after it.
                biased;
                event = texts.next(), if texts_open => match event {
                    Event::Data(stamp, text) => self.texts.push_back((stamp, text)),
                    Event::Fence(_) => self.texts.clear(),
                    Event::End(Terminal::End) => texts_open = false,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                event = turns.next(), if turns_open => match event {
                    Event::Data(stamp, Signal::TurnEnded { start, speech_end, end, .. }) => {
                        let turn = Turn { stamp, start, speech_end };
                        if start == end {
                            done.push((turn.answer(), None));
                        } else {
                            self.turns.push_back(turn);
                        }
                    }
                    Event::Data(..) | Event::Fence(_) => {}
                    Event::End(Terminal::End) => turns_open = false,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                else => break,
            }
            while self.matched(&mut done) {}
            let old = |n: usize| n.saturating_sub(MOST);
            self.texts.drain(..old(self.texts.len()));
            let most = if texts_open { old(self.turns.len()) } else { self.turns.len() };
            done.extend(self.turns.drain(..most).map(|t| (t.answer(), None)));
            for turn in done.drain(..) {
                if out.give(turn).await == Sent::Gone {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Confirm {
    /// Finds the oldest turn whose transcript is there. True if there was one.
    fn matched(&mut self, done: &mut Vec<Done>) -> bool {
        let belongs = |turn: &Turn, s: &Stamp| s.pts == turn.start && s.pts + s.len >= turn.speech_end;
        let found = self
            .turns
            .iter()
            .enumerate()
            .find_map(|(t, turn)| self.texts.iter().position(|(s, _)| belongs(turn, s)).map(|x| (t, x)));
        let Some((t, x)) = found else { return false };
        // Turns before it got no transcript: their recognition was cut short.
        done.extend(self.turns.drain(..t).map(|turn| (turn.answer(), None)));
        if let (Some(turn), Some((_, text))) = (self.turns.pop_front(), self.texts.remove(x)) {
            done.push((turn.answer(), (!text.trim().is_empty()).then_some(text)));
        }
        true
    }
}

struct Outs {
    text: Out<Arc<str>>,
    unheard: Out<Arc<str>>,
    /// Whose reader is gone.
    gone: (bool, bool),
}

impl Outs {
    /// `Gone` once nobody reads either of them.
    async fn give(&mut self, (stamp, text): Done) -> Sent {
        match text {
            Some(text) => self.gone.0 = self.text.send(&stamp, text).await == Sent::Gone,
            None => self.gone.1 = self.unheard.send(&stamp, "".into()).await == Sent::Gone,
        }
        if self.gone.0 && (self.gone.1 || !self.unheard.connected()) { Sent::Gone } else { Sent::Queued }
    }
}
