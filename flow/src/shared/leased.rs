//! A session's place in a shared stage.
//!
//! The session feeds input, asks for one unit at a time and sends on what comes out. It holds the stream's state
//! between units. Dropping it at any point is safe: a queued unit is withdrawn at once, a running one ends and then
//! lets go of the slot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;

use super::queue::{Answer, Held, Inner, Reply, Request};
use super::{SlotId, Stage, StageError};
use crate::Stamp;
use crate::pool::{PoolError, Priority, Ticket, message, quietly};
use crate::sync::atomic::{AtomicBool, Ordering};

/// What one unit brought.
#[derive(Debug)]
pub struct Advance<T> {
    /// Outputs, in order.
    pub outputs: Vec<(Stamp, T)>,
    /// True if another unit would do something now, without more input.
    pub more: bool,
    /// Time that the unit took: its share of its batch's.
    pub took: Duration,
}

/// A leased slot, seen from its session. See the [module](super).
pub struct Leased<S: Stage> {
    inner: Arc<Inner<S>>,
    id: SlotId,
    held: Option<Held<S>>,
    pending: Option<Pending<S>>,
    fenced: bool, // a fence has come and has not reached the state yet
}

struct Pending<S: Stage> {
    ticket: Ticket,
    priority: Priority,
    reply: oneshot::Receiver<Reply<S>>,
    unwanted: Arc<AtomicBool>,
    pumped: bool,
}

impl<S: Stage> Leased<S> {
    pub(super) fn new(inner: Arc<Inner<S>>, held: Held<S>) -> Self {
        Self { inner, id: held.id(), held: Some(held), pending: None, fenced: false }
    }
    /// Which lease.
    pub fn id(&self) -> SlotId {
        self.id
    }
    /// Gives one input to the stream. True if a unit would do something now.
    ///
    /// # Errors
    /// [`StageError::Busy`] while a unit is asked for; any error of the stage, and then the stream is over.
    pub fn input(&mut self, stamp: &Stamp, input: S::In) -> Result<bool, StageError> {
        self.with(|stage, slot| stage.accept(slot, stamp, input))
    }
    /// Says that no input follows. True if units are needed to flush what is held.
    ///
    /// # Errors
    /// As [`Leased::input`].
    pub fn end(&mut self) -> Result<bool, StageError> {
        self.with(|stage, slot| stage.end(slot))
    }
    /// True if a unit would do something now.
    ///
    /// # Errors
    /// As [`Leased::input`].
    pub fn ready(&mut self) -> Result<bool, StageError> {
        self.with(|_, _| Ok(()))
    }
    /// True while a unit that was asked for has not come back: the next call must be [`Leased::advance`] or
    /// [`Leased::fence`].
    pub fn is_busy(&self) -> bool {
        self.pending.is_some()
    }
    /// Forgets the stream so far. A queued unit is withdrawn, a running one is waited for and its outputs are dropped.
    ///
    /// # Errors
    /// Any error of the stage; then the stream is over.
    ///
    /// # Cancel safety
    /// Once polled, no output from before it comes out, however the call ends; dropped while waiting, the next call
    /// finishes it.
    pub async fn fence(&mut self) -> Result<(), StageError> {
        self.fenced = true;
        self.settle().await
    }
    /// Runs one unit and gives what it brought. Call it when the output has room and there is something to do
    /// ([`Leased::input`], [`Advance::more`]); a unit with nothing to do is the stage's to tolerate.
    ///
    /// # Errors
    /// Any error of the stage or the pool; then the stream is over.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the unit goes on, and the next call waits for the same unit; nothing that it brings is lost.
    pub async fn advance(&mut self, priority: Priority) -> Result<Advance<S::Out>, StageError> {
        if self.fenced {
            self.settle().await?;
            if !self.ready()? {
                return Ok(Advance { outputs: Vec::new(), more: false, took: Duration::ZERO });
            }
        }
        if self.pending.is_none() {
            let held = self.held.take().ok_or(StageError::Ended)?;
            let (tx, reply) = oneshot::channel();
            let unwanted = Arc::new(AtomicBool::new(false));
            let request = Request { held, reply: tx, unwanted: unwanted.clone() };
            let ticket = self.inner.request(priority, request);
            self.pending = Some(Pending { ticket, priority, reply, unwanted, pumped: false });
            if self.inner.pool.is_inline() {
                yield_once().await; // others who are ready may ask too, so that order and batches mean something
            }
        }
        let Answer { held, outputs, ready, took } = self.reply().await?;
        self.held = Some(held);
        Ok(Advance { outputs, more: ready, took })
    }

    /// Gives the slot back and waits until the stage has let go of it: at once, or when the running unit ends. For an
    /// abort that must know.
    ///
    /// # Cancel safety
    /// Dropping the future half-way is dropping the lease: the slot returns a little later by itself.
    pub async fn close(mut self) {
        let Some(p) = &self.pending else { return };
        p.unwanted.store(true, Ordering::Relaxed);
        if let Some(request) = self.inner.withdraw(p.ticket) {
            drop(request);
        } else {
            let last = self.reply().await;
            quietly(move || drop(last));
        }
    }

    /// Brings the state home, drops what it brought, applies the fence.
    async fn settle(&mut self) -> Result<(), StageError> {
        if let Some(p) = &self.pending {
            p.unwanted.store(true, Ordering::Relaxed);
            if let Some(request) = self.inner.withdraw(p.ticket) {
                self.pending = None;
                self.held = Some(request.held);
            } else {
                let answer = self.reply().await?;
                self.held = Some(answer.held);
                let outputs = answer.outputs;
                quietly(move || drop(outputs));
            }
        }
        self.with(|stage, slot| {
            stage.fence(slot);
            Ok(())
        })?;
        self.fenced = false;
        Ok(())
    }
    /// Waits for the unit that is on its way; after it, none is.
    async fn reply(&mut self) -> Reply<S> {
        let Some(p) = &mut self.pending else { return Err(StageError::Ended) };
        if !std::mem::replace(&mut p.pumped, true) {
            self.inner.pump(Some(p.priority));
        }
        let closed = || Err(StageError::Pool(PoolError::Closed));
        let wait = self.inner.config.max_wait;
        let mut early = None;
        if !wait.is_zero() {
            tokio::select! {
                biased;
                r = &mut p.reply => early = Some(r),
                () = tokio::time::sleep(wait) => self.inner.expire(p.ticket),
            }
        }
        let reply = match early {
            Some(r) => r,
            None => (&mut p.reply).await,
        };
        self.pending = None;
        reply.unwrap_or_else(|_| closed())
    }
    /// Runs cheap code of the stage on the state that is here. An error or a panic costs the state.
    fn with(&mut self, f: impl FnOnce(&S, &mut S::Slot) -> Result<(), StageError>) -> Result<bool, StageError> {
        if self.pending.is_some() {
            return Err(StageError::Busy);
        }
        let Some(mut held) = self.held.take() else { return Err(StageError::Ended) };
        let stage = &self.inner.stage;
        let done = catch_unwind(AssertUnwindSafe(|| {
            f(stage, held.slot())?;
            held.measure(stage);
            Ok(held.ready(stage))
        }));
        match done {
            Ok(Ok(ready)) => {
                self.held = Some(held);
                Ok(ready)
            }
            Ok(Err(e)) => Err(e),
            Err(p) => Err(StageError::Panicked { message: message(p) }),
        }
    }
}

impl<S: Stage> Drop for Leased<S> {
    fn drop(&mut self) {
        if let Some(mut p) = self.pending.take() {
            p.unwanted.store(true, Ordering::Relaxed);
            p.reply.close(); // a batch that is just being put together passes it over
            drop(self.inner.withdraw(p.ticket));
        }
    }
}

/// Lets other tasks run once.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
