//! The receiving end of an edge.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::state::{Dead, Next, RawEvent, Terminal};
use super::{Edge, wake};
use crate::{Amount, Chunk};

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
}

impl EdgeRx {
    pub(super) fn new(edge: Arc<Edge>) -> Self {
        Self { edge }
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
    /// The next event; a chunk is put behind those of `into`, so that it is moved only once.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(crate) async fn next_into(&mut self, into: &mut Vec<Chunk>) -> Taken {
        poll_fn(|cx| {
            self.poll_with(cx, |state, next| match next {
                Next::Fence(_) => Taken::Fence,
                Next::End(t) => Taken::End(t),
                Next::Data | Next::Empty => {
                    into.extend(state.take());
                    Taken::Data
                }
            })
        })
        .await
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
        let mut dead = Dead::new();
        let tx = {
            let mut i = self.edge.inner.lock();
            i.state.abandon(&mut dead);
            i.waiting = None;
            i.unblock(&self.edge.clock);
            i.tx.take()
        };
        wake(tx);
    }
}

impl Drop for EdgeRx {
    fn drop(&mut self) {
        self.abandon();
    }
}
