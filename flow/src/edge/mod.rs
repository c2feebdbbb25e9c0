//! An edge: the one kind of connection between nodes.
//!
//! Bounded by items, bytes and media time; exactly one producer and one consumer; FIFO; exactly one terminal. A fence of
//! its lane kills what is stale in it at once, returns the credit and wakes a blocked sender. All waiting lives here;
//! all deciding in `state`.

#[cfg(all(test, not(omni_loom)))]
pub(crate) mod conformance;
mod gather;
#[cfg(all(test, omni_loom))]
mod model;
mod rx;
mod state;
mod stats;
#[cfg(all(test, not(omni_loom)))]
mod tests;
mod tx;

pub(crate) use rx::{EdgeRx, Taken};
pub(crate) use state::RawEvent;
pub use state::Terminal;
pub use stats::{EdgeCounts, EdgeStats};
pub(crate) use tx::{EdgeTx, RawPermit, Stop};

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{ErrorKind, RunError};
use crate::lanes::{LaneCell, Lanes};
use crate::sync::Mutex;
use crate::{Amount, Chunk, Clock, Kind, Lane, Medium, Mono, Payload, Policy, Stamp};
use state::{Dead, Next, State};
use stats::Passed;

/// What an edge is made from.
#[derive(Clone, Debug)]
pub(crate) struct EdgeSpec {
    /// `node.port->node.port`
    pub name: String,
    /// `graph/node` of the producer.
    pub from: String,
    /// `graph/node` of the consumer.
    pub to: String,
    pub lane: Lane,
    pub kind: Kind,
    pub limit: Amount,
    pub policy: Policy,
    pub deadline: Option<Duration>,
    /// Segments are handed on whole.
    pub whole: bool,
    /// Nothing enters until the consumer asks for it ([`EdgeRx::open`]).
    pub gated: bool,
}

/// The shared middle of an edge.
pub(crate) struct Edge {
    pub(crate) spec: EdgeSpec,
    cell: crate::sync::Arc<LaneCell>,
    clock: Clock,
    /// What went through it within one task.
    passed: Passed,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    tx: Option<Waker>,
    rx: Option<Waker>,
    /// Since when the producer waits for credit.
    blocked: Option<Mono>,
    /// Since when the consumer waits for a chunk.
    waiting: Option<Mono>,
    /// The producer wants to know of every chunk that the consumer lets go of.
    watched: bool,
    /// What the edge itself found wrong.
    fault: Option<ErrorKind>,
}

/// One look at an edge.
pub(crate) struct Look {
    /// How long its consumer has been waiting for a chunk by now.
    pub waited: Option<Duration>,
    /// Its consumer has taken what there was and not come back for more.
    pub at_work: bool,
    /// All that the consumer has let go of.
    pub taken: u64,
    /// How long the producer has been waiting for credit by now.
    pub blocked: Option<Duration>,
    /// Rises with every chunk that enters and with every one that is let go of.
    pub moved: u64,
}

impl Edge {
    /// An edge on its lane, with its two ends.
    pub(crate) fn open(spec: EdgeSpec, lanes: &Lanes, clock: &Clock) -> (EdgeTx, EdgeRx) {
        let cell = lanes.cell(spec.lane).clone();
        let mut state = State::new(spec.lane, spec.limit, spec.policy, cell.epoch());
        if spec.whole {
            state.gather();
        }
        // A lossy edge never makes its sender wait.
        state.gated = spec.gated && spec.policy == Policy::Wait;
        let inner = Inner { state, tx: None, rx: None, blocked: None, waiting: None, watched: false, fault: None };
        let lane = spec.lane;
        let edge = std::sync::Arc::new(Self {
            spec,
            cell,
            clock: clock.clone(),
            passed: Passed::default(),
            inner: Mutex::new(inner),
        });
        lanes.attach(lane, &edge);
        (EdgeTx::new(edge.clone()), EdgeRx::new(edge))
    }

    /// A chunk from elsewhere may bring news of a fence: the lane's epoch is the largest ever seen.
    #[inline]
    fn news(&self, stamp: &Stamp) {
        let newest = stamp.epochs.of(self.spec.lane);
        if newest > self.cell.epoch() {
            self.cell.raise(newest);
        }
    }

    /// Drops what the lane's epoch made worthless and wakes both ends.
    pub(crate) fn sweep(&self) {
        let mut dead = Dead::new();
        let (tx, rx) = {
            let mut i = self.inner.lock();
            i.state.sweep(self.cell.epoch(), &mut dead);
            i.unblock(&self.clock);
            (i.tx.take(), i.rx.take())
        };
        wake(tx);
        wake(rx);
    }

    /// Ends the stream from outside either end (a failed node, a deadline). True if this was the terminal.
    pub(crate) fn finish(&self, terminal: Terminal) -> bool {
        let (did, tx, rx) = {
            let mut i = self.inner.lock();
            // Nobody waits for credit on a stream that is over.
            i.unblock(&self.clock);
            (i.state.finish(terminal), i.tx.take(), i.rx.take())
        };
        wake(tx);
        wake(rx);
        did
    }

    /// Ends the stream because its producer went away without doing so.
    pub(crate) fn producer_gone(&self) {
        let text = format!("went away without ending the edge {}", self.spec.name);
        self.break_off(RunError::new(ErrorKind::ProducerGone, &self.spec.from, text));
    }

    /// Ends the stream with an error of the edge itself. True if this was the terminal.
    pub(crate) fn break_off(&self, error: RunError) -> bool {
        let kind = error.kind();
        let did = self.finish(Terminal::Error(error));
        if did {
            self.note_fault(kind);
        }
        did
    }
    fn note_fault(&self, kind: ErrorKind) {
        self.inner.lock().fault.get_or_insert(kind);
    }

    /// What the watchdog sees of the edge, in one look.
    pub(crate) fn look(&self, now: Mono) -> Look {
        let i = self.inner.lock();
        let chunks = self.passed.added_to(i.state.counts).chunks;
        let taken = i.state.released().items;
        Look {
            waited: i.waiting.map(|t| now.since(t)),
            at_work: i.waiting.is_none() && i.state.depth() == 0 && taken > 0 && !i.state.closed(),
            taken,
            blocked: i.blocked.map(|t| now.since(t)),
            moved: chunks.wrapping_add(taken),
        }
    }
    /// Ends the stream because its consumer has waited past the deadline. True if this was the terminal.
    pub(crate) fn expire(&self, deadline: Duration) -> bool {
        let text = format!("gave nothing for {deadline:?}, the deadline of the edge {}", self.spec.name);
        self.break_off(RunError::new(ErrorKind::InputTimeout, &self.spec.from, text))
    }

    pub(crate) fn cell(&self) -> &crate::sync::Arc<LaneCell> {
        &self.cell
    }
    /// All that the consumer, fences and policies have let go of since the edge opened.
    pub(crate) fn released(&self) -> Amount {
        self.inner.lock().state.released()
    }
    /// Nobody reads any more: what is queued dies, and the producer hears of it.
    pub(crate) fn abandon(&self) {
        let mut dead = Dead::new();
        let tx = {
            let mut i = self.inner.lock();
            i.state.abandon(&mut dead);
            i.waiting = None;
            i.unblock(&self.clock);
            i.tx.take()
        };
        wake(tx);
    }
    /// The consumer is gone and another one comes: credit that was held is back. How many chunks were in its hands.
    pub(crate) fn reopen(&self) -> u64 {
        let (lost, tx) = {
            let mut i = self.inner.lock();
            (i.state.reopen(), i.tx.take())
        };
        wake(tx);
        lost
    }
    /// True if the consumer was given an error as the terminal.
    pub(crate) fn broke(&self) -> bool {
        self.inner.lock().state.broke()
    }
    /// True once the consumer has gone.
    pub(crate) fn abandoned(&self) -> bool {
        self.inner.lock().state.abandoned()
    }

    /// What the edge holds and has counted.
    pub(crate) fn stats(&self, now: Mono) -> EdgeStats {
        let i = self.inner.lock();
        EdgeStats {
            name: self.spec.name.clone(),
            counts: self.passed.added_to(i.state.counts),
            depth: i.state.depth() as u64,
            queued: i.state.queued(),
            used: i.state.window.used(),
            limit: i.state.window.limit(),
            oldest: i.state.front().map(|c| now.since(c.stamp.origin)),
            blocked_for: i.blocked.map(|t| now.since(t)),
            waiting_for: i.waiting.map(|t| now.since(t)),
            ended: i.state.has_terminal(),
            fault: i.fault,
        }
    }

    /// The rules of this edge for chunks that pass between two steps of one task: stale ones die, all are counted and
    /// numbered. Nothing is queued, so nothing needs credit. Only the task that runs the steps may call it.
    #[inline]
    pub(crate) fn pass_fused(&self, chunks: &mut Vec<Chunk>) {
        if chunks.is_empty() {
            return;
        }
        let (epoch, lane, before) = (self.cell.epoch(), self.spec.lane, chunks.len());
        if chunks.iter().any(|c| c.stamp.epochs.of(lane) < epoch) {
            chunks.retain(|c| c.stamp.epochs.of(lane) >= epoch);
            self.passed.stale(before - chunks.len());
        }
        self.passed.number(chunks);
    }

    /// Looks at what comes next and takes it, or has the task woken when there is something.
    #[inline]
    fn poll_pop<R>(&self, cx: &mut Context<'_>, take: impl FnOnce(&mut State, Next) -> R) -> Poll<R> {
        let mut dead = Dead::new();
        let mut guard = self.inner.lock();
        let i = &mut *guard;
        let settled = i.state.settle();
        let next = i.state.next(self.cell.epoch(), &mut dead);
        if let Next::Empty = next {
            if i.waiting.is_none() {
                i.waiting = Some(self.clock.coarse());
            }
            keep(&mut i.rx, cx);
            // A sweep, or what was done with chunks taken ahead, may have made room.
            let tx = if dead.is_empty() && !settled { None } else { i.tx.take() };
            drop(guard);
            wake(tx);
            return Poll::Pending;
        }
        let out = take(&mut i.state, next);
        i.waiting = None;
        let tx = if i.blocked.is_some() || std::mem::take(&mut i.watched) { i.tx.take() } else { None };
        drop(guard);
        wake(tx);
        Poll::Ready(out)
    }

    /// Counts chunks that died in the consumer's hands.
    #[cold]
    fn count_stale(&self, chunks: u64) {
        self.inner.lock().state.counts.stale += chunks;
    }

    /// Looks whether the consumer has a reason to open its gate, or has its task woken when it has.
    fn poll_wanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut dead = Dead::new();
        let mut guard = self.inner.lock();
        let i = &mut *guard;
        i.state.sweep(self.cell.epoch(), &mut dead);
        if i.state.has_news(self.cell.epoch()) || i.blocked.is_some() {
            i.waiting = None;
            return Poll::Ready(());
        }
        if i.waiting.is_none() {
            i.waiting = Some(self.clock.coarse());
        }
        keep(&mut i.rx, cx);
        Poll::Pending
    }

    /// The error of a payload that is not what the edge agreed on.
    pub(crate) fn mismatch(&self, p: &Payload) -> Option<RunError> {
        let k = &self.spec.kind;
        let wrong = match (k.medium, p) {
            (Medium::Any, _) => return None,
            (Medium::Audio, Payload::Audio(a)) => {
                if k.rate.is_none_or(|r| r == a.rate())
                    && k.channels.is_none_or(|c| c == a.channels())
                    && k.sample.is_none_or(|s| s == a.sample())
                {
                    return None;
                }
                let got =
                    Kind { rate: Some(a.rate()), channels: Some(a.channels()), sample: Some(a.sample()), ..k.clone() };
                got.to_string()
            }
            (Medium::Packet, Payload::Packet(x)) => {
                if k.codec.as_deref().is_none_or(|c| c == &*x.codec) {
                    return None;
                }
                format!("packet {}", x.codec)
            }
            (Medium::Video | Medium::Image, Payload::Video(_)) => return None,
            (m, p) if m == p.medium() => return None,
            (_, p) => p.medium().name().to_owned(),
        };
        self.note_fault(ErrorKind::Format);
        let text = format!("gave {wrong} on the edge {}, which agreed on {k}", self.spec.name);
        Some(RunError::new(ErrorKind::Format, &self.spec.from, text))
    }

    /// The error of a payload whose Rust type the consumer does not take.
    pub(crate) fn wrong_type(&self, p: &Payload, takes: Medium) -> RunError {
        self.note_fault(ErrorKind::Format);
        let text = format!("gave {} to {}, which takes {}", p.medium().name(), self.spec.to, takes.name());
        RunError::new(ErrorKind::Format, &self.spec.from, text)
    }
}

impl Inner {
    fn unblock(&mut self, clock: &Clock) {
        if let Some(t) = self.blocked.take() {
            self.state.counts.blocked += clock.coarse().since(t);
        }
    }
}

fn keep(slot: &mut Option<Waker>, cx: &Context<'_>) {
    if !slot.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
        *slot = Some(cx.waker().clone());
    }
}
fn wake(w: Option<Waker>) {
    if let Some(w) = w {
        w.wake();
    }
}
