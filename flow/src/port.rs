//! The typed ends of edges, as nodes and embedders hold them.

use std::marker::PhantomData;
use std::task::{Context, Poll};

use crate::edge::{EdgeRx, EdgeTx, RawEvent, RawPermit, Stop, Terminal};
use crate::error::RunError;
use crate::{Amount, Chunk, Epoch, Item, Kind, Stamp};

/// What an input gives next.
#[derive(Debug)]
pub enum Event<T> {
    /// A value and where it belongs.
    Data(Stamp, T),
    /// The input's lane was fenced: what came before is over. Comes before any newer value.
    Fence(Epoch),
    /// The stream is over, well or not. The last event; asked again, it is `End` for ever.
    End(Terminal),
}

/// What became of a value that was sent. None of them is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Queued,
    /// A fence has ended what it answers; it was dropped.
    Stale,
    /// Nobody reads any more; it was dropped. A node whose outputs are all gone should return.
    Gone,
}

/// The receiving end of an edge, for values of type `T` (or [`Payload`](crate::Payload) for any).
pub struct In<T> {
    rx: EdgeRx,
    failed: Option<RunError>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Item> In<T> {
    pub(crate) fn new(rx: EdgeRx) -> Self {
        Self { rx, failed: None, kind: PhantomData }
    }
    /// The next event.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost: the next call gives what this one would have.
    pub async fn next(&mut self) -> Event<T> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
    /// The next event, if there is one. Registers the task otherwise.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event<T>> {
        if let Some(e) = &self.failed {
            return Poll::Ready(Event::End(Terminal::Error(e.clone())));
        }
        let Poll::Ready(event) = self.rx.poll_next(cx) else { return Poll::Pending };
        Poll::Ready(match event {
            RawEvent::Data(c) => match self.open(c) {
                Ok((stamp, value)) => Event::Data(stamp, value),
                Err(e) => {
                    // One terminal, and it is this: the producer is told that nobody reads.
                    self.rx.abandon();
                    self.failed = Some(e.clone());
                    Event::End(Terminal::Error(e))
                }
            },
            RawEvent::Fence(e) => Event::Fence(e),
            RawEvent::End(t) => Event::End(t),
        })
    }
    /// What flows here, as the graph file's check agreed it.
    pub fn kind(&self) -> &Kind {
        &self.rx.edge().spec.kind
    }
    /// The lane of what flows here: that of the node it comes from.
    pub fn lane(&self) -> crate::Lane {
        self.rx.edge().spec.lane
    }
    /// From now on taking a value does not return its credit: [`In::release`] does, when the media has been played.
    pub fn hold_credit(&self) {
        self.rx.hold_credit();
    }
    /// Returns the credit of values taken since [`In::hold_credit`].
    pub fn release(&self, amount: Amount) {
        self.rx.release(amount);
    }
    /// How many values a lossy policy dropped on this edge since this was last asked: the size of the gap before the
    /// next value.
    pub fn take_missed(&self) -> u64 {
        self.rx.take_missed()
    }

    pub(crate) fn edge(&self) -> &std::sync::Arc<crate::edge::Edge> {
        self.rx.edge()
    }
    fn open(&self, c: Chunk) -> Result<(Stamp, T), RunError> {
        let edge = self.rx.edge();
        if let Some(e) = edge.mismatch(&c.payload) {
            return Err(e);
        }
        T::from_payload(c.payload).map(|v| (c.stamp, v)).map_err(|p| edge.wrong_type(&p, T::MEDIUM))
    }
}

/// The sending end of an output: one edge, or several where several inputs are fed from it.
///
/// Dropped without [`Out::end`] by a node that goes on, it is an error at the receivers at once; a node that returns
/// ends all its outputs with what it returned.
pub struct Out<T> {
    branches: Vec<EdgeTx>,
    kind: PhantomData<fn(T)>,
}

/// Room for one value on an output. Dropped, it gives the room back.
pub struct Permit<T> {
    branches: Vec<RawPermit>,
    stamp: Stamp,
    open: bool,
    kind: PhantomData<fn(T)>,
}

impl<T: Item> Out<T> {
    pub(crate) fn new(branches: Vec<EdgeTx>) -> Self {
        Self { branches, kind: PhantomData }
    }
    /// True if some input is fed from here.
    pub fn connected(&self) -> bool {
        !self.branches.is_empty()
    }
    /// Sends `value` to every input that is fed from here, waiting for credit; each branch waits or drops by its own
    /// policy. An output that feeds nothing takes everything.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the value may have reached some branches and not others; with one branch, it was not
    /// sent. Reserve first where that matters.
    pub async fn send(&mut self, stamp: &Stamp, value: T) -> Sent {
        self.send_chunk(Chunk { stamp: *stamp, payload: value.into_payload() }).await
    }
    pub(crate) async fn send_chunk(&mut self, chunk: Chunk) -> Sent {
        let Some((last, rest)) = self.branches.split_last() else { return Sent::Queued };
        let mut got = Joined::default();
        for tx in rest {
            got.add(tx.send(chunk.clone()).await);
        }
        got.add(last.send(chunk).await);
        got.sent()
    }
    /// Sends the last of `chunks` without waiting, if it can: an output with one branch that has room, or with none.
    #[inline]
    pub(crate) fn try_send_last(&mut self, chunks: &mut Vec<Chunk>) -> Option<Sent> {
        match &self.branches[..] {
            [] => {
                chunks.pop();
                Some(Sent::Queued)
            }
            [tx] => match tx.try_send_last(chunks) {
                Ok(sent) => sent.then_some(Sent::Queued),
                Err(Stop::Stale) => Some(Sent::Stale),
                Err(Stop::Gone) => Some(Sent::Gone),
            },
            _ => None,
        }
    }
    /// Waits for room for one value that answers `stamp` and is expected to be of about `amount`, before it is made.
    ///
    /// # Errors
    /// [`Sent::Stale`] or [`Sent::Gone`] when there is no point in making it.
    ///
    /// # Cancel safety
    /// Dropped while waiting, no credit is held.
    pub async fn reserve(&mut self, stamp: &Stamp, amount: Amount) -> Result<Permit<T>, Sent> {
        let mut branches = Vec::with_capacity(self.branches.len());
        let mut got = Joined::default();
        for tx in &self.branches {
            match tx.reserve(stamp, amount).await {
                Ok(p) => branches.push(p),
                Err(stop) => got.add(Err(stop)),
            }
        }
        if branches.is_empty() && !self.branches.is_empty() {
            return Err(got.sent());
        }
        Ok(Permit { open: !branches.is_empty(), branches, stamp: *stamp, kind: PhantomData })
    }
    /// The one edge that it feeds.
    ///
    /// # Errors
    /// How many there are, if it is not one; they end as a dropped output does.
    pub(crate) fn into_single(mut self) -> Result<EdgeTx, usize> {
        match self.branches.len() {
            1 => self.branches.pop().ok_or(0),
            n => Err(n),
        }
    }
    /// Ends the stream: all was sent.
    pub fn end(self) {
        for tx in &self.branches {
            tx.finish(Terminal::End);
        }
    }
    /// Ends the stream with an error.
    pub fn fail(self, error: &RunError) {
        for tx in &self.branches {
            tx.finish(Terminal::Error(error.clone()));
        }
    }
}

impl<T: Item> Permit<T> {
    /// Sends `value` into the room, without waiting. Its stamp may differ from the one reserved under in all but lane
    /// epochs.
    pub fn send(self, stamp: &Stamp, value: T) -> Sent {
        if !self.open {
            return Sent::Queued;
        }
        let chunk = Chunk { stamp: *stamp, payload: value.into_payload() };
        let mut got = Joined::default();
        for p in self.branches {
            got.add(p.send(chunk.clone()));
        }
        got.sent()
    }
    /// The stamp that the room was reserved under.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }
}

/// One result of several branches: sent if any took it; gone only if all are.
#[derive(Default)]
struct Joined {
    queued: bool,
    stale: bool,
}
impl Joined {
    fn add(&mut self, r: Result<(), Stop>) {
        match r {
            Ok(()) => self.queued = true,
            Err(Stop::Stale) => self.stale = true,
            Err(Stop::Gone) => {}
        }
    }
    fn sent(&self) -> Sent {
        if self.queued {
            Sent::Queued
        } else if self.stale {
            Sent::Stale
        } else {
            Sent::Gone
        }
    }
}
