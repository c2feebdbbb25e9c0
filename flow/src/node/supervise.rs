//! The supervisor of one node: whatever happens to the node, its streams end once, and its session hears of it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::NodeError;
use crate::edge::{Edge, Terminal};
use crate::error::{ErrorKind, RunError};
use crate::owner::Owner;
use crate::pool::PoolError;
use crate::session::SessionShared;

type NodeFuture = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send>>;

/// Runs `future` as node `index` of `session` until it ends or the session is cancelled. `outputs` are all edges that
/// the node feeds; each has its terminal when this future ends.
pub(crate) fn supervise(
    session: Arc<SessionShared>,
    index: usize,
    path: String,
    owner: Arc<Owner>,
    outputs: Vec<Arc<Edge>>,
    future: NodeFuture,
) -> impl Future<Output = ()> + Send {
    Supervised { session, index, path, owner, outputs, future: Some(future), registered: None }
}

struct Supervised {
    session: Arc<SessionShared>,
    index: usize,
    path: String,
    owner: Arc<Owner>,
    outputs: Vec<Arc<Edge>>,
    future: Option<NodeFuture>,
    registered: Option<Waker>,
}

impl Future for Supervised {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = &mut *self;
        if !me.registered.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            me.registered = Some(cx.waker().clone());
            me.session.watch_cancel(me.index, cx.waker());
        }
        if let Some(error) = me.session.cancelled() {
            me.close(Terminal::Error(error), None);
            return Poll::Ready(());
        }
        let Some(future) = &mut me.future else { return Poll::Ready(()) };
        let owner = me.owner.clone();
        match catch_unwind(AssertUnwindSafe(|| owner.enter(|| future.as_mut().poll(cx)))) {
            Ok(Poll::Pending) => {
                for edge in me.owner.take() {
                    edge.producer_gone();
                }
                return Poll::Pending;
            }
            Ok(Poll::Ready(Ok(()))) => me.close(Terminal::End, None),
            Ok(Poll::Ready(Err(e))) => {
                let e = match e.downcast::<RunError>() {
                    Ok(e) if !e.node().is_empty() => *e,
                    Ok(e) => RunError::new(e.kind(), &me.path, e.message()),
                    Err(e) => match e.downcast::<PoolError>().map(|e| *e) {
                        Ok(PoolError::Panicked { message }) => RunError::new(ErrorKind::Panic, &me.path, message),
                        Ok(e) => RunError::with_source(ErrorKind::Node, &me.path, e),
                        Err(e) => RunError::with_source(ErrorKind::Node, &me.path, e),
                    },
                };
                me.close(Terminal::Error(e.clone()), Some(e));
            }
            Err(panic) => {
                let e = RunError::new(ErrorKind::Panic, &me.path, panic_text(&*panic));
                me.close(Terminal::Error(e.clone()), Some(e));
            }
        }
        Poll::Ready(())
    }
}

impl Supervised {
    /// Ends all outputs, then lets go of the node, then tells the session.
    fn close(&mut self, terminal: Terminal, error: Option<RunError>) {
        for edge in &self.outputs {
            edge.finish(terminal.clone());
        }
        if let Some(future) = self.future.take() {
            // A destructor that panics must not take the supervisor with it.
            let owner = self.owner.clone();
            let _ = catch_unwind(AssertUnwindSafe(|| owner.enter(|| drop(future))));
        }
        self.owner.take();
        self.session.node_ended(self.index, error);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.future.is_some() {
            // The runtime is shutting down under us.
            let e = RunError::new(ErrorKind::Aborted, &self.path, "the runtime was shut down");
            self.close(Terminal::Error(e), None);
        }
    }
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is not text".to_owned())
}
