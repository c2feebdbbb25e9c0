//! Turns of the user: committed, perhaps waiting for their words, then answered or not.

use crate::realtime::rules::pending::{Bytes, Commit};
use crate::realtime::wire::client::response::ResponseOptions;
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::response::ListenReason;

use super::{Effect, Session};

/// One turn between its commit and its answer.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) item_id: String,
    /// Where the graph says that it began, samples; `None` until it has.
    pub(super) start: Option<u64>,
    /// Its length, ms.
    pub(super) duration_ms: u64,
    /// It is to be answered.
    pub(super) wanted: bool,
    pub(super) options: Option<ResponseOptions>,
    /// It was committed while an answer ran, and stands behind it.
    pub(super) deferred: bool,
    /// Its words are still to come.
    pub(super) unheard: bool,
    /// Its item has been told of as done.
    pub(super) shown: bool,
    /// Nothing was understood in it.
    pub(super) wordless: bool,
    /// Its place among pending commits, which it keeps until its answer has ended, and the input that it holds.
    pub(super) held: (Option<Commit>, Option<Bytes>),
}

impl Session {
    /// The graph has begun a turn at `start` for a commit of the client: it belongs to the oldest that has no start.
    pub(super) fn turn_begun(&mut self, start: u64) {
        if let Some(turn) = self.turns.iter_mut().find(|t| t.start.is_none()) {
            turn.start = Some(start);
        }
    }
    /// What was said in the turn that began at `start`.
    pub(super) fn transcript(&mut self, start: u64, text: &str) {
        let Some(at) = self.turns.iter().position(|t| t.unheard && t.start == Some(start)) else { return };
        // Turns before it will get no words any more: their recognition was cut short.
        for i in 0..at {
            if self.turns[i].unheard {
                self.heard(i, "");
            }
        }
        self.heard(at, text);
        self.advance();
    }
    fn heard(&mut self, at: usize, text: &str) {
        let turn = &mut self.turns[at];
        (turn.unheard, turn.wordless) = (false, text.trim().is_empty());
        let (item_id, duration_ms, shown) = (turn.item_id.clone(), turn.duration_ms, turn.shown);
        if !text.trim().is_empty() {
            self.items.transcribe(&item_id, text);
            self.tell(ServerEvent::TranscriptionCompleted {
                item_id: item_id.clone(),
                content_index: 0,
                transcript: text.to_owned(),
                duration_ms,
            });
        }
        if !shown {
            self.item_done(&item_id);
        }
    }
    /// Begins the next answer, if one is due.
    pub(super) fn advance(&mut self) {
        while self.response.is_none() && self.state == super::SessionState::Open {
            if self.turns.front().is_none_or(|t| t.unheard) {
                return;
            }
            let Some(turn) = self.turns.pop_front() else { return };
            if turn.deferred {
                self.items.freeze();
            }
            if turn.wordless {
                if turn.wanted {
                    self.tell(ServerEvent::Listen {
                        session_id: self.id.to_string(),
                        epoch: self.epoch,
                        response_id: None,
                        reason: ListenReason::SilenceOrNoise,
                    });
                    self.settle();
                }
            } else if turn.wanted && self.capabilities.native() {
                self.await_answer(turn.options.unwrap_or_default(), turn.held.0);
            } else if turn.wanted {
                self.respond(turn.options.unwrap_or_default(), turn.held.0);
            } else {
                self.unanswered_turn = true;
            }
        }
    }
    pub(super) fn tell(&mut self, event: ServerEvent) {
        self.out.push(Effect::Tell(event));
    }
    pub(super) fn tell_all(&mut self, events: Vec<ServerEvent>) {
        self.out.extend(events.into_iter().map(Effect::Tell));
    }
}
