//! `speech.confirm`: lets the transcript of a guess pass when the turn that it was guessed for has really ended.
//!
//! A transcript belongs to a turn if both begin at the same sample and the guess reaches to the turn's last speech. It
//! passes under the stamp of the turn's end, so that it carries the epochs of the turn and not those of the guess. An
//! empty transcript (nothing was said) ends here.

use std::collections::VecDeque;
use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Kind, Make, MediaTime, Medium, Node, NodeError, Port, Schema, Sent,
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

struct Confirm {
    texts: VecDeque<(Stamp, Arc<str>)>,
    turns: VecDeque<Turn>,
}

impl Node for Confirm {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut texts: In<Arc<str>> = cx.input("text")?;
        let mut turns: In<Signal> = cx.input("turn")?;
        let mut out = cx.output::<Arc<str>>("text")?;
        let (mut texts_open, mut turns_open) = (true, true);
        while (texts_open || !self.texts.is_empty()) && (turns_open || !self.turns.is_empty()) {
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
                    Event::Data(stamp, Signal::TurnEnded { start, speech_end, .. }) => {
                        self.turns.push_back(Turn { stamp, start, speech_end });
                    }
                    Event::Data(..) | Event::Fence(_) => {}
                    Event::End(Terminal::End) => turns_open = false,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                else => break,
            }
            while let Some((stamp, text)) = self.matched() {
                if !text.trim().is_empty() && out.send(&stamp, text).await == Sent::Gone {
                    return Ok(());
                }
            }
            let old = |n: usize| n.saturating_sub(MOST);
            self.texts.drain(..old(self.texts.len()));
            self.turns.drain(..old(self.turns.len()));
            if !texts_open && !turns_open {
                break;
            }
        }
        Ok(())
    }
}

impl Confirm {
    /// The oldest turn whose transcript is there.
    fn matched(&mut self) -> Option<(Stamp, Arc<str>)> {
        let belongs = |turn: &Turn, s: &Stamp| s.pts == turn.start && s.pts + s.len >= turn.speech_end;
        let (t, x) = self
            .turns
            .iter()
            .enumerate()
            .find_map(|(t, turn)| self.texts.iter().position(|(s, _)| belongs(turn, s)).map(|x| (t, x)))?;
        let turn = self.turns.remove(t)?;
        // Turns before it got no transcript: their recognition was cut short.
        self.turns.drain(..t);
        let (_, text) = self.texts.remove(x)?;
        let mut stamp = turn.stamp.last(true);
        stamp.pts = turn.start;
        Some((stamp, text))
    }
}
