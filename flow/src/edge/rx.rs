//! The receiving end of an edge.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::state::{Pop, Terminal};
use super::{Edge, wake};
use crate::{Amount, Chunk, Epoch};

/// What comes out of an edge.
#[derive(Debug)]
pub(crate) enum RawEvent {
    Data(Chunk),
    Fence(Epoch),
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
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<RawEvent> {
        let Poll::Ready(coop) = tokio::task::coop::poll_proceed(cx) else { return Poll::Pending };
        let mut dead = Vec::new();
        match self.edge.poll_pop(cx, &mut dead) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(pop) => {
                coop.made_progress();
                match pop {
                    Pop::Data(c) => Poll::Ready(RawEvent::Data(c)),
                    Pop::Fence(e) => Poll::Ready(RawEvent::Fence(e)),
                    Pop::End(t) => Poll::Ready(RawEvent::End(t)),
                    Pop::Empty => Poll::Pending,
                }
            }
        }
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
        let mut dead = Vec::new();
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
