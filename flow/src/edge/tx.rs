//! The sending end of an edge.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::state::{Admit, Dead, Terminal};
use super::{Edge, keep, wake};
use crate::owner::{End, Owned, Owner};
use crate::{Amount, Chunk, Stamp};

/// Why a chunk cannot be sent. Neither is an error of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It answers something that a fence has ended.
    Stale,
    /// Nobody reads any more.
    Gone,
}

/// The one producer's end. Dropped without a terminal, it ends the stream with `ProducerGone`.
pub(crate) struct EdgeTx {
    edge: Arc<Edge>,
    owner: Option<Owned>,
}

/// Room for one chunk. Dropped, it gives the room back.
pub(crate) struct RawPermit {
    edge: Arc<Edge>,
    amount: Option<Amount>,
}

impl EdgeTx {
    /// The end of an edge; there is one at a time.
    pub(crate) fn new(edge: Arc<Edge>) -> Self {
        Self { edge, owner: None }
    }
    /// The same end, owned by a node that the engine runs.
    pub(crate) fn owned_by(mut self, owner: &Arc<Owner>) -> Self {
        self.owner = Some(owner.own());
        self
    }
    pub(crate) fn edge(&self) -> &Arc<Edge> {
        &self.edge
    }

    /// Sends without waiting; the chunk comes back if there is no room.
    pub(crate) fn try_send(&self, chunk: Chunk) -> Result<(), Result<Stop, Chunk>> {
        let mut held = Some(chunk);
        match self.enter(&mut held, Option::as_ref, Option::take, None) {
            Ok(_) => held.map_or(Ok(()), |chunk| Err(Err(chunk))),
            Err(stop) => Err(Ok(stop)),
        }
    }
    /// Sends the last chunk of `chunks` without waiting; it stays there if there is no room. True if it was sent.
    #[inline]
    pub(crate) fn try_send_last(&self, chunks: &mut Vec<Chunk>) -> Result<bool, Stop> {
        self.enter(chunks, |all| all.last(), Vec::pop, None)
    }

    /// Sends, waiting for credit.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing was sent and no credit is held.
    pub(crate) async fn send(&self, chunk: Chunk) -> Result<(), Stop> {
        let mut held = Some(chunk);
        let waits = &mut Waits { edge: &self.edge, armed: false };
        poll_fn(move |cx| {
            let Poll::Ready(coop) = tokio::task::coop::poll_proceed(cx) else { return Poll::Pending };
            match self.enter(&mut held, Option::as_ref, Option::take, Some(cx)) {
                Ok(true) => {
                    coop.made_progress();
                    Poll::Ready(Ok(()))
                }
                Ok(false) => {
                    waits.armed = true;
                    Poll::Pending
                }
                Err(stop) => Poll::Ready(Err(stop)),
            }
        })
        .await
    }

    /// Offers the chunk that `peek` shows: it is taken out and queued if there is room, which is the one move it makes
    /// here, and stays where it is if not (then the task of `cx` is woken when there is). A refused one is dropped.
    #[inline]
    fn enter<C>(
        &self,
        from: &mut C,
        peek: fn(&C) -> Option<&Chunk>,
        take: fn(&mut C) -> Option<Chunk>,
        cx: Option<&Context<'_>>,
    ) -> Result<bool, Stop> {
        let e = &*self.edge;
        let Some(chunk) = peek(from) else { return Ok(true) };
        e.news(&chunk.stamp);
        let mut dead = Dead::new();
        let mut guard = e.inner.lock();
        let i = &mut *guard;
        match i.state.admit(chunk, e.cell.epoch(), &mut dead) {
            Admit::Yes(amount) => {
                if let Some(chunk) = take(from) {
                    i.state.enqueue(chunk, amount);
                }
                i.unblock(&e.clock);
                let rx = if i.waiting.is_some() { i.rx.take() } else { None };
                drop(guard);
                wake(rx);
                Ok(true)
            }
            Admit::Full => {
                if let Some(cx) = cx {
                    if i.blocked.is_none() {
                        i.blocked = Some(e.clock.coarse());
                    }
                    keep(&mut i.tx, cx);
                }
                // A sweep on the way may have left a fence to deliver; a closed gate is opened by the consumer.
                let rx = if dead.is_empty() && !i.state.gated { None } else { i.rx.take() };
                drop(guard);
                wake(rx);
                Ok(false)
            }
            refused => {
                i.unblock(&e.clock);
                drop(guard);
                drop(take(from));
                Err(if matches!(refused, Admit::Stale) { Stop::Stale } else { Stop::Gone })
            }
        }
    }

    /// Waits for room for one chunk that answers `stamp`, of about `amount`.
    ///
    /// # Cancel safety
    /// Dropped while waiting, no credit is held.
    pub(crate) async fn reserve(&self, stamp: &Stamp, amount: Amount) -> Result<RawPermit, Stop> {
        let e = &*self.edge;
        let epoch = stamp.epochs.of(e.spec.lane);
        let waits = &mut Waits { edge: &self.edge, armed: false };
        poll_fn(move |cx| {
            let mut dead = Dead::new();
            let mut guard = e.inner.lock();
            let i = &mut *guard;
            let now = e.cell.epoch();
            let out = if epoch < now {
                Poll::Ready(Err(Stop::Stale))
            } else {
                match i.state.reserve(amount, now, &mut dead) {
                    Some(true) => Poll::Ready(Ok(RawPermit { edge: self.edge.clone(), amount: Some(amount) })),
                    Some(false) => Poll::Ready(Err(Stop::Gone)),
                    None => Poll::Pending,
                }
            };
            if out.is_pending() {
                if i.blocked.is_none() {
                    i.blocked = Some(e.clock.coarse());
                }
                waits.armed = true;
                keep(&mut i.tx, cx);
            } else {
                i.unblock(&e.clock);
            }
            let knocks = out.is_pending() && i.state.gated;
            let rx = if dead.is_empty() && !knocks { None } else { i.rx.take() };
            drop(guard);
            wake(rx);
            out
        })
        .await
    }

    /// Waits until the consumer has let go of more than `seen` in all, or is gone.
    ///
    /// # Cancel safety
    /// Dropping it only stops the wait.
    pub(crate) async fn released_past(&self, seen: Amount) {
        poll_fn(|cx| {
            let mut guard = self.edge.inner.lock();
            let i = &mut *guard;
            if i.state.abandoned() || i.state.released() != seen {
                return Poll::Ready(());
            }
            i.watched = true;
            keep(&mut i.tx, cx);
            Poll::Pending
        })
        .await;
    }

    /// Ends the stream. True if it had not ended.
    pub(crate) fn finish(&self, terminal: Terminal) -> bool {
        self.edge.finish(terminal)
    }
}

impl Drop for EdgeTx {
    fn drop(&mut self) {
        let e = &self.edge;
        if e.inner.lock().state.has_terminal() {
            return;
        }
        if self.owner.as_ref().is_some_and(|o| o.note(End::Sending, e)) {
            return;
        }
        e.producer_gone();
    }
}

/// A wait for credit. One that is given up is over: the producer is not blocked any more.
struct Waits<'a> {
    edge: &'a Edge,
    armed: bool,
}
impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.edge.inner.lock().unblock(&self.edge.clock);
        }
    }
}

impl RawPermit {
    /// Sends into the reserved room; never waits.
    pub(crate) fn send(mut self, chunk: Chunk) -> Result<(), Stop> {
        let Some(amount) = self.amount.take() else { return Err(Stop::Gone) };
        let e = &*self.edge;
        e.news(&chunk.stamp);
        let mut dead = Dead::new();
        let mut guard = e.inner.lock();
        let i = &mut *guard;
        let admit = i.state.fill(amount, chunk, e.cell.epoch(), &mut dead);
        let rx = i.rx.take();
        drop(guard);
        wake(rx);
        match admit {
            Admit::Yes(_) => Ok(()),
            Admit::Stale => Err(Stop::Stale),
            Admit::Gone | Admit::Full => Err(Stop::Gone),
        }
    }
}

impl Drop for RawPermit {
    fn drop(&mut self) {
        if let Some(amount) = self.amount.take() {
            self.edge.inner.lock().state.cancel(amount);
        }
    }
}
