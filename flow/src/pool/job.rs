//! One job of the pool, seen from its submitter, and what can become of it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The pool takes no more jobs now. Each submitter waits for its job, so this means more submitters than planned.
    #[error(
        "the compute pool already holds {queue} waiting jobs; raise its queue or run fewer sessions (resource_exhausted)"
    )]
    Full {
        /// How many may wait.
        queue: usize,
    },
    /// The pool has been shut down; the job did not run.
    #[error("the compute pool has been shut down before the job ran")]
    Closed,
    /// The job panicked. The pool goes on.
    #[error("the job panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// Worker threads cannot run on the processors asked for.
    #[error("cannot bind compute threads to the processors {cpus}: {message}")]
    Bind {
        /// Which.
        cpus: String,
        /// What the operating system said.
        message: String,
    },
    /// A worker thread could not be started.
    #[error("cannot start a compute thread: {message}; lower the number of threads or raise the process limit")]
    Spawn {
        /// What the operating system said.
        message: String,
    },
}

/// The pending result of a job ([`super::Pool::run`]).
///
/// Cancel safe: it can be polled again after any interruption. Dropping it takes the job out of the queue if it has not
/// started; a started one runs to its end and its result is discarded.
#[must_use = "dropping it cancels the job"]
pub struct Running<R> {
    state: State<R>,
    cancel: Option<Box<dyn FnOnce() + Send>>,
}

enum State<R> {
    Refused(PoolError),
    Waiting(oneshot::Receiver<Result<R, PoolError>>),
    Done,
}

impl<R> Running<R> {
    pub(super) fn refused(e: PoolError) -> Self {
        Self { state: State::Refused(e), cancel: None }
    }
    pub(super) fn waiting(rx: oneshot::Receiver<Result<R, PoolError>>, cancel: impl FnOnce() + Send + 'static) -> Self {
        Self { state: State::Waiting(rx), cancel: Some(Box::new(cancel)) }
    }
}

impl<R> Unpin for Running<R> {}

impl<R> Future for Running<R> {
    type Output = Result<R, PoolError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match &mut self.state {
            State::Waiting(rx) => std::task::ready!(Pin::new(rx).poll(cx)).unwrap_or(Err(PoolError::Closed)),
            State::Refused(e) => Err(e.clone()),
            State::Done => Err(PoolError::Closed),
        };
        self.state = State::Done;
        self.cancel = None;
        Poll::Ready(result)
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        self.state = State::Done; // closes the receiver first, so that a job that is just being picked skips itself
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

/// How a job ended, for the pool's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Ran,
    Skipped,
    Panicked,
}

/// A job as the pool holds it. Dropped unrun, it resolves its [`Running`] with [`PoolError::Closed`].
pub(super) type Job = Box<dyn FnOnce() -> Ended + Send>;

/// Makes a job whose result goes to the receiver.
pub(super) fn job<R: Send + 'static>(
    f: impl FnOnce() -> R + Send + 'static,
) -> (Job, oneshot::Receiver<Result<R, PoolError>>) {
    let (tx, rx) = oneshot::channel();
    let run = move || {
        if tx.is_closed() {
            return Ended::Skipped;
        }
        let (result, ended) = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(r) => (Ok(r), Ended::Ran),
            Err(p) => (Err(PoolError::Panicked { message: message(p) }), Ended::Panicked),
        };
        // A result that nobody wants is dropped here.
        drop(tx.send(result));
        ended
    };
    (Box::new(run), rx)
}

/// The text of a panic.
pub(crate) fn message(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(s), _) => (*s).to_owned(),
        (_, Some(s)) => s.clone(),
        _ => "a value that is not text".to_owned(),
    };
    quietly(move || drop(payload));
    text
}

/// Runs foreign code whose panic nobody can be told of (a destructor).
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(p) = catch_unwind(AssertUnwindSafe(f)) {
        std::mem::forget(p); // its own destructor may panic too
    }
}
