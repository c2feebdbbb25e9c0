//! The supervisor of one node: whatever happens to the node, its streams end once, and its session hears of it. A node
//! that may be made anew after a fault is, on the same edges, as long as its policy allows.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::NodeError;
use super::restart::Revival;
use crate::edge::{Edge, Terminal};
use crate::error::{ErrorKind, RunError};
use crate::owner::Owner;
use crate::pool::PoolError;
use crate::session::SessionShared;
use crate::units::Dur;

pub(crate) type NodeFuture = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send>>;

/// Runs `future` as node `index` of `session` until it ends or the session is cancelled. `outputs` are all edges that
/// the node feeds; each has its terminal when this future ends. With `revival`, a fault of the node's own restarts it.
pub(crate) fn supervise(
    session: Arc<SessionShared>,
    index: usize,
    path: String,
    owner: Arc<Owner>,
    outputs: Vec<Arc<Edge>>,
    future: NodeFuture,
    revival: Option<Revival>,
) -> impl Future<Output = ()> + Send {
    Supervised { session, index, path, owner, outputs, future: Some(future), revival, registered: None }
}

struct Supervised {
    session: Arc<SessionShared>,
    index: usize,
    path: String,
    owner: Arc<Owner>,
    outputs: Vec<Arc<Edge>>,
    future: Option<NodeFuture>,
    revival: Option<Revival>,
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
                me.owner.judge();
                return Poll::Pending;
            }
            Ok(Poll::Ready(Ok(()))) => me.close(Terminal::End, None),
            Ok(Poll::Ready(Err(e))) => {
                let (error, own) = named(e, &me.path);
                return me.fault(error, own, cx);
            }
            Err(panic) => {
                let e = RunError::new(ErrorKind::Panic, &me.path, panic_text(&*panic));
                return me.fault(e, true, cx);
            }
        }
        Poll::Ready(())
    }
}

/// A node's error under its name, and whether it is its own: not one that came in over an input, and not the engine
/// going down or full.
fn named(e: NodeError, path: &str) -> (RunError, bool) {
    match e.downcast::<RunError>() {
        Ok(e) if !e.node().is_empty() => {
            let own = e.node() == path && e.kind() != ErrorKind::Aborted;
            (*e, own)
        }
        Ok(e) => (RunError::new(e.kind(), path, e.message()), e.kind() != ErrorKind::Aborted),
        Err(e) => match e.downcast::<PoolError>().map(|e| *e) {
            Ok(PoolError::Panicked { message }) => (RunError::new(ErrorKind::Panic, path, message), true),
            Ok(e) => (RunError::with_source(ErrorKind::Node, path, e), false),
            Err(e) => (RunError::with_source(ErrorKind::Node, path, e), true),
        },
    }
}

impl Supervised {
    /// The node has failed: it is made anew, or its streams end with the error.
    fn fault(&mut self, error: RunError, own: bool, cx: &Context<'_>) -> Poll<()> {
        let error = match self.revive(error, own) {
            Ok(()) => {
                // Others run first, also if it fails again and again.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Err(error) => error,
        };
        self.close(Terminal::Error(error.clone()), Some(error));
        Poll::Ready(())
    }
    /// Makes the node anew.
    ///
    /// # Errors
    /// The error to end with, if that may not or cannot be.
    fn revive(&mut self, error: RunError, own: bool) -> Result<(), RunError> {
        let Some(mut revival) = self.revival.take().filter(|_| own && self.session.cancelled().is_none()) else {
            return Err(error);
        };
        let (now, policy) = (self.session.clock.now(), revival.rule.policy());
        if !revival.rule.allowed(now) {
            let (n, max, window) = (revival.rule.total(), policy.max, Dur(policy.window));
            return Err(error.noting(&format!("it was restarted {n} times, the last {max} of them within {window}")));
        }
        // What it held goes first: its slot of a shared stage, its permits, its ends of the edges.
        self.let_go();
        let made = match revival.hindered(&self.owner) {
            Some(why) => Err(why.to_owned()),
            None => {
                self.owner.take();
                revival.revive()
            }
        };
        let (path, session) = (&self.path, self.session.id);
        let (future, lost) = match made {
            Ok(made) => made,
            Err(why) => {
                tracing::warn!(session, node = path, "{path} cannot be made anew: {why}");
                return Err(error);
            }
        };
        let left = revival.rule.restarted(now);
        self.session.node_restarted(self.index, &error);
        tracing::warn!(
            session,
            node = path,
            lost,
            left,
            "{error}; {path} was made anew, {lost} chunks that it had in hand are lost; that may happen {left} more times \
             within {}",
            Dur(policy.window)
        );
        (self.future, self.revival) = (Some(future), Some(revival));
        Ok(())
    }
    /// Drops the node. A destructor that panics must not take the supervisor with it.
    fn let_go(&mut self) {
        if let Some(future) = self.future.take() {
            let owner = self.owner.clone();
            let _ = catch_unwind(AssertUnwindSafe(|| owner.enter(|| drop(future))));
        }
    }
    /// Ends all outputs, then lets go of the node and its inputs, then tells the session.
    fn close(&mut self, terminal: Terminal, error: Option<RunError>) {
        for edge in &self.outputs {
            edge.finish(terminal.clone());
        }
        self.let_go();
        self.owner.judge();
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
