//! The receiving end of an edge.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::state::{Next, RawEvent, Terminal};
use super::{Edge, wake};
use crate::owner::{End, Owned, Owner};
use crate::{Amount, Chunk, MediaTime, Policy};

/// What [`EdgeRx::next_into`] met.
#[derive(Debug)]
pub(crate) enum Taken {
    /// A chunk, which is now in the caller's vector.
    Data,
    Fence,
    End(Terminal),
}

/// The one consumer's end. Dropped, it tells the producer that nobody reads.
pub(crate) struct EdgeRx {
    edge: Arc<Edge>,
    owner: Option<Owned>,
    /// Taken ahead, for [`EdgeRx::next_into`].
    hand: VecDeque<Chunk>,
    /// How much that may be; nothing where that would be noticed.
    ahead: Amount,
}

/// Chunks that are taken ahead, at most, and the share of the edge's window that they may hold.
const AHEAD: u64 = 7;
const SHARE: u64 = 4;

/// How much may be taken ahead of an edge: little of its window, and nothing of a small one, or where what is queued may
/// still be dropped for what is newer.
fn may_take_ahead(edge: &Edge) -> Amount {
    let limit = edge.spec.limit;
    if edge.spec.policy != Policy::Wait || limit.items / SHARE < AHEAD {
        return Amount::ZERO;
    }
    let span = MediaTime::from_ticks(limit.span.ticks() / SHARE as i64);
    Amount { items: AHEAD, bytes: limit.bytes / SHARE, span }
}

impl EdgeRx {
    /// The end of an edge; there is one at a time.
    pub(crate) fn new(edge: Arc<Edge>) -> Self {
        let ahead = may_take_ahead(&edge);
        Self { edge, owner: None, hand: VecDeque::new(), ahead }
    }
    /// The same end, taking so many chunks ahead whatever its window.
    #[cfg(all(test, omni_loom))]
    pub(crate) fn taking_ahead(mut self, items: u64) -> Self {
        self.ahead = Amount { items, ..self.edge.spec.limit };
        self
    }
    /// The same end, owned by a node that may be made anew: dropped in its poll, it is judged after it.
    pub(crate) fn owned_by(mut self, owner: &Arc<Owner>) -> Self {
        self.owner = Some(owner.own());
        // What it has in hand when it fails is lost: as little as can be.
        self.ahead = Amount::ZERO;
        self
    }
    pub(crate) fn edge(&self) -> &Arc<Edge> {
        &self.edge
    }
    /// The next event. After the terminal, `End` for ever.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(crate) async fn next(&mut self) -> RawEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }
    #[inline]
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<RawEvent> {
        self.poll_with(cx, |state, next| match next {
            Next::Fence(e) => RawEvent::Fence(e),
            Next::End(t) => RawEvent::End(t),
            Next::Data | Next::Empty => state.take().map_or(RawEvent::End(Terminal::End), RawEvent::Data),
        })
    }
    /// The next event; a chunk is put behind those of `into`, so that it is moved only once. More of what is queued may be
    /// taken ahead, for the calls that follow; use no other way of receiving beside this one.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(crate) async fn next_into(&mut self, into: &mut Vec<Chunk>) -> Taken {
        if !self.hand.is_empty() && self.take_from_hand(into) {
            return Taken::Data;
        }
        let ahead = self.ahead;
        poll_fn(|cx| {
            let hand = &mut self.hand;
            let Poll::Ready(coop) = tokio::task::coop::poll_proceed(cx) else { return Poll::Pending };
            let out = self.edge.poll_pop(cx, |state, next| match next {
                Next::Fence(_) => Taken::Fence,
                Next::End(t) => Taken::End(t),
                Next::Data | Next::Empty => {
                    into.extend(state.take());
                    if ahead.items > 0 {
                        state.take_ahead(ahead, hand);
                    }
                    Taken::Data
                }
            });
            if out.is_ready() {
                coop.made_progress();
            }
            out
        })
        .await
    }
    /// The next chunk taken ahead, unless a fence has ended what they answer: they are of one turn.
    #[inline]
    fn take_from_hand(&mut self, into: &mut Vec<Chunk>) -> bool {
        let epoch = self.edge.cell.epoch();
        if self.hand.front().is_some_and(|c| c.stamp.epochs.of(self.edge.spec.lane) >= epoch) {
            into.extend(self.hand.pop_front());
            return true;
        }
        self.edge.count_stale(self.hand.len() as u64);
        self.hand.clear();
        false
    }
    #[inline]
    fn poll_with<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&mut super::State, Next) -> R) -> Poll<R> {
        let Poll::Ready(coop) = tokio::task::coop::poll_proceed(cx) else { return Poll::Pending };
        let out = self.edge.poll_pop(cx, take);
        if out.is_ready() {
            coop.made_progress();
        }
        out
    }
    /// Waits until there is something to take, or a sender waits at the closed gate.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(crate) async fn wanted(&mut self) {
        poll_fn(|cx| self.edge.poll_wanted(cx)).await;
    }
    /// Lets chunks enter, as far as there is credit.
    pub(crate) fn open(&self) {
        let tx = {
            let mut i = self.edge.inner.lock();
            i.state.gated = false;
            i.tx.take()
        };
        wake(tx);
    }
    /// Lets nothing more enter: a sender waits, as it does without credit. What has entered stays.
    pub(crate) fn shut(&self) {
        let mut i = self.edge.inner.lock();
        i.state.gated = self.edge.spec.policy == Policy::Wait;
    }
    /// From now on credit returns only by [`EdgeRx::release`]: when the media has been played, not when it is taken.
    pub(crate) fn hold_credit(&self) {
        self.edge.inner.lock().state.manual = true;
    }
    /// Gives credit back.
    pub(crate) fn release(&self, amount: Amount) {
        let tx = {
            let mut i = self.edge.inner.lock();
            i.state.window.release(amount);
            i.tx.take()
        };
        wake(tx);
    }
    /// How many chunks a lossy policy dropped since this was last asked.
    pub(crate) fn take_missed(&self) -> u64 {
        self.edge.inner.lock().state.take_missed()
    }
}

impl EdgeRx {
    /// Tells the producer that nobody reads any more.
    pub(crate) fn abandon(&self) {
        self.edge.abandon();
    }
}

impl Drop for EdgeRx {
    fn drop(&mut self) {
        if !self.owner.as_ref().is_some_and(|o| o.note(End::Receiving, &self.edge)) {
            self.edge.abandon();
        }
    }
}
