//! The receiving half of a remote edge.

use std::collections::VecDeque;

use super::Frame;
use crate::error::{ErrorKind, RunError};
use crate::{Amount, Chunk, Epoch, Lane, Terminal};

/// What a [`Receiver`] gives next.
#[derive(Clone, Debug)]
pub enum Received {
    /// A chunk.
    Data(Chunk),
    /// The lane was fenced. Comes before any newer chunk.
    Fence(Epoch),
    /// The stream is over: the last event, and the only one of its kind.
    End(Terminal),
}

/// The receiver's state: what has arrived, in which epoch, and how much more it allows.
///
/// It holds at most one window of data: a peer that sends more than it was allowed breaks the stream, not the memory.
#[derive(Debug)]
pub struct Receiver {
    lane: Lane,
    /// Names the stream in errors: `graph/node` of the producer.
    from: String,
    limit: Amount,
    epoch: Epoch,
    /// The newest fence that was given out.
    told: Epoch,
    /// The number of the next chunk of this epoch.
    next: u64,
    /// Amount received and amount let go of within this epoch.
    received: Amount,
    released: Amount,
    granted: Amount,
    queue: VecDeque<Chunk>,
    /// Epoch and count of the last data, and how the stream ends.
    end: Option<(Epoch, u64, Terminal)>,
    /// A fault of the link: comes after what arrived before it.
    fault: Option<RunError>,
    done: bool,
    fence_to_send: Option<Epoch>,
    /// Chunks that came twice.
    repeated: u64,
    /// Chunks of old epochs that came after their fence.
    stale: u64,
}

impl Receiver {
    /// The half of an edge on `lane` with the same `limit` as the sender's; `from` names the producer in errors.
    pub fn new(lane: Lane, limit: Amount, epoch: Epoch, from: impl Into<String>) -> Self {
        let limit = crate::Window::new(limit).limit();
        Self {
            lane,
            from: from.into(),
            limit,
            epoch,
            told: epoch,
            next: 0,
            received: Amount::ZERO,
            released: Amount::ZERO,
            granted: limit,
            queue: VecDeque::new(),
            end: None,
            fault: None,
            done: false,
            fence_to_send: None,
            repeated: 0,
            stale: 0,
        }
    }
    /// The newest epoch known here.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
    /// Chunks that came twice and were dropped.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }
    /// Chunks that came after the fence of their epoch and were dropped.
    pub fn stale(&self) -> u64 {
        self.stale
    }
    /// The link's own fault, if there is one.
    pub fn fault(&self) -> Option<&RunError> {
        self.fault.as_ref()
    }
    /// True once the terminal was given out.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Takes in a frame of the sender. A peer that breaks the protocol ends the stream with an error; there is nothing
    /// for the caller to do.
    pub fn on(&mut self, frame: Frame) {
        if self.done || self.fault.is_some() {
            return;
        }
        match frame {
            Frame::Data { epoch, seq, chunk } => self.data(epoch, seq, chunk),
            Frame::Fence { epoch } => drop(self.raise(epoch)),
            Frame::End { epoch, count, terminal } => {
                self.raise(epoch);
                // Repeated: the first one counts.
                if self.end.is_none() {
                    self.end = Some((epoch, count, terminal));
                }
            }
            f @ (Frame::Limit { .. } | Frame::Stop) => {
                self.fail(ErrorKind::Protocol, format!("sent a {} frame against its own direction", f.name()));
            }
        }
    }
    fn data(&mut self, epoch: Epoch, seq: u64, chunk: Chunk) {
        if chunk.stamp.epochs.of(self.lane) != epoch {
            self.fail(ErrorKind::Protocol, format!("sent a chunk of another epoch than its frame's, {epoch}"));
            return;
        }
        self.raise(epoch);
        if epoch < self.epoch {
            self.stale += 1;
        } else if seq < self.next {
            self.repeated += 1;
        } else if seq > self.next {
            self.fail(ErrorKind::SequenceGap, format!("chunk {} of epoch {epoch} is missing: {seq} came", self.next));
        } else if self.end.as_ref().is_some_and(|(e, n, _)| *e < epoch || *e == epoch && seq >= *n) {
            self.fail(ErrorKind::Protocol, format!("sent chunk {seq} of epoch {epoch} after its end"));
        } else {
            let amount = chunk.amount();
            let under_way = self.received.minus(self.released);
            if under_way.items > 0 && !under_way.plus(amount).fits(self.limit) {
                self.fail(ErrorKind::Protocol, format!("sent {amount:?} on {under_way:?} of {:?}", self.limit));
                return;
            }
            self.next += 1;
            self.received = self.received.plus(amount);
            self.queue.push_back(chunk);
        }
    }
    /// The lane is at `epoch` here: what is older is void, and the sender is told.
    pub fn fence(&mut self, epoch: Epoch) {
        if self.raise(epoch) && !self.done {
            self.fence_to_send = Some(epoch);
        }
    }
    fn raise(&mut self, epoch: Epoch) -> bool {
        if epoch <= self.epoch {
            return false;
        }
        self.epoch = epoch;
        self.stale += self.queue.len() as u64;
        self.queue.clear();
        self.next = 0;
        self.received = Amount::ZERO;
        self.released = Amount::ZERO;
        self.granted = self.limit;
        true
    }
    /// The link broke. What has arrived is still given out, then this error, unless the stream has ended.
    pub fn lost(&mut self, reason: &str) {
        if self.terminal_due().is_none() {
            self.fail(ErrorKind::PeerLost, format!("was lost: {reason}"));
        }
    }
    fn fail(&mut self, kind: ErrorKind, text: String) {
        self.fault.get_or_insert_with(|| RunError::new(kind, &self.from, text));
    }
    fn terminal_due(&self) -> Option<&Terminal> {
        let (epoch, count, t) = self.end.as_ref()?;
        // A fence after the end has cut what was missing.
        (*epoch < self.epoch || self.next >= *count).then_some(t)
    }

    /// What comes next, if anything: a fence before newer data, a chunk, or after all of them the terminal, once.
    pub fn poll(&mut self) -> Option<Received> {
        let next = self.peek()?;
        match next {
            Received::Data(_) => drop(self.queue.pop_front()),
            Received::Fence(e) => self.told = e,
            Received::End(_) => self.done = true,
        }
        Some(next)
    }
    /// What [`Receiver::poll`] would give.
    pub fn peek(&self) -> Option<Received> {
        if self.done {
            return None;
        }
        if self.epoch > self.told {
            return Some(Received::Fence(self.epoch));
        }
        if let Some(c) = self.queue.front() {
            return Some(Received::Data(c.clone()));
        }
        if let Some(e) = &self.fault {
            return Some(Received::End(Terminal::Error(e.clone())));
        }
        self.terminal_due().map(|t| Received::End(t.clone()))
    }
    /// The consumer let go of `amount` in all, of the chunks given out in this epoch. Totals may be repeated; none makes
    /// the credit smaller.
    pub fn released(&mut self, total: Amount) {
        self.released = self.released.max(total);
    }
    /// The next control frame to send: a fence, or a larger limit. A limit is worth a frame once half the window is free
    /// again in some unit, or all of it.
    pub fn control(&mut self) -> Option<Frame> {
        if let Some(epoch) = self.fence_to_send.take() {
            return Some(Frame::Fence { epoch });
        }
        let allowed = self.limit.plus(self.released);
        let news = allowed.minus(self.granted);
        let idle = self.released.items >= self.received.items;
        let half = news.items * 2 >= self.limit.items
            || news.bytes * 2 >= self.limit.bytes
            || news.span.ticks().saturating_mul(2) >= self.limit.span.ticks();
        if news == Amount::ZERO || self.done || !(half || idle) {
            return None;
        }
        self.granted = allowed;
        Some(Frame::Limit { epoch: self.epoch, allowed })
    }
}
