//! What is counted of a session, from what it tells. No label names a session: what sums up are graphs.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Gauge, counter, gauge, histogram};

use crate::realtime::rules::overlap::Action;
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::response::Outcome;

/// The counts of one session. Its sizes leave the sums when it is dropped.
pub(super) struct Measure {
    graph: Arc<str>,
    journal: Size,
    queue: Size,
    /// When a turn was committed that has no answer yet.
    committed: Option<Duration>,
    /// The answer under way: its name, since when it is waited for, and when its newest audio left.
    answer: Option<Answer>,
}

struct Answer {
    id: Arc<str>,
    since: Duration,
    last_audio: Option<Duration>,
    /// When the user interrupted it.
    interrupted: Option<Duration>,
}

/// Bytes of one session within the sum of all.
struct Size {
    sum: Gauge,
    own: usize,
}

impl Size {
    fn set(&mut self, bytes: usize) {
        if bytes != self.own {
            self.sum.increment(bytes as f64 - self.own as f64);
            self.own = bytes;
        }
    }
}

impl Drop for Size {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Measure {
    pub(super) fn new(graph: &str) -> Self {
        let size = |sum| Size { sum, own: 0 };
        Self {
            graph: graph.into(),
            journal: size(gauge!("omni_flow_journal_bytes", "graph" => graph.to_owned())),
            queue: size(gauge!("omni_flow_output_queue_bytes", "graph" => graph.to_owned())),
            committed: None,
            answer: None,
        }
    }
    fn graph(&self) -> String {
        self.graph.to_string()
    }
    /// The session tells something.
    pub(super) fn told(&mut self, event: &ServerEvent, now: Duration) {
        match event {
            ServerEvent::Committed(_) => self.committed = Some(now),
            ServerEvent::ResponseCreated(created) => {
                let since = self.committed.take().unwrap_or(now);
                let id = created.response_id.as_str().into();
                self.answer = Some(Answer { id, since, last_audio: None, interrupted: None });
            }
            ServerEvent::ResponseDone(done) => {
                let outcome = match done.outcome {
                    Outcome::Completed | Outcome::Incomplete(_) => "completed",
                    Outcome::Cancelled(_) => "cancelled",
                    Outcome::Failed(_) => "failed",
                };
                self.turn(outcome);
                if let Some(Answer { interrupted: Some(at), last_audio, .. }) = self.answer.take() {
                    let silent = last_audio.map_or(Duration::ZERO, |last| last.saturating_sub(at));
                    histogram!("omni_flow_barge_in_to_silence_seconds", "graph" => self.graph())
                        .record(silent.as_secs_f64());
                }
            }
            ServerEvent::Listen { .. } => self.turn("listen"),
            ServerEvent::Overlap(overlap) => {
                counter!("omni_flow_overlap_decisions_total", "graph" => self.graph(), "action" => overlap.action,
                    "reason" => overlap.reason)
                .increment(1);
                if overlap.action == Action::BargeIn.name() {
                    counter!("omni_flow_barge_in_total", "graph" => self.graph(), "reason" => overlap.reason)
                        .increment(1);
                    if let Some(answer) = &mut self.answer {
                        answer.interrupted.get_or_insert(now);
                    }
                }
            }
            ServerEvent::SpeechStarted { .. } => self.heard("start"),
            ServerEvent::SpeechStopped { .. } => self.heard("stop"),
            _ => {}
        }
    }
    fn turn(&self, outcome: &'static str) {
        counter!("omni_flow_turns_total", "graph" => self.graph(), "outcome" => outcome).increment(1);
    }
    fn heard(&self, kind: &'static str) {
        counter!("omni_flow_vad_events_total", "graph" => self.graph(), "kind" => kind).increment(1);
    }
    /// Audio of a response went to the socket.
    pub(super) fn audio(&mut self, response: &str, now: Duration) {
        let graph = self.graph();
        let Some(answer) = self.answer.as_mut().filter(|a| &*a.id == response) else { return };
        if answer.last_audio.replace(now).is_none() {
            let waited = now.saturating_sub(answer.since);
            histogram!("omni_flow_response_first_audio_seconds", "graph" => graph).record(waited.as_secs_f64());
        }
    }
    /// Bytes that wait for the socket, and bytes that are kept for a client that comes back.
    pub(super) fn bytes(&mut self, (queue, journal): (usize, usize)) {
        self.queue.set(queue);
        self.journal.set(journal);
    }
    /// The queue of a reader who does not read is full.
    pub(super) fn overflow(&self) {
        counter!("omni_flow_output_overflow_total", "graph" => self.graph()).increment(1);
    }
    /// Somebody came back, or wanted to.
    pub(super) fn resumed(&self, result: &'static str) {
        counter!("omni_flow_resumes_total", "graph" => self.graph(), "result" => result).increment(1);
    }
    /// The session's nodes have let go so long after it was ended.
    pub(super) fn closed(&self, took: Duration) {
        histogram!("omni_flow_cancel_to_ack_seconds", "graph" => self.graph(), "kind" => "session")
            .record(took.as_secs_f64());
    }
}
