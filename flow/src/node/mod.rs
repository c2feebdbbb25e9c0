//! Two ways to write a node, one way to run it.
//!
//! A [`Step`] maps one chunk to some, synchronously. A [`Node`] owns its loop: it waits for two things, a timer or a
//! socket; it may also be given as a stream. Either is wrapped in a [`Body`], from which each session gets its own
//! instance, and run by the same supervisor: a panic or an error ends its own session, under its own name.

mod admission;
mod any;
mod body;
mod budget;
mod ctx;
mod lead;
mod leased;
mod restart;
mod run;
mod step;
mod supervise;

pub(crate) use admission::Admission;
pub(crate) use any::AnyStep;
pub use body::{Body, BuildCx, BuildError, Env};
pub(crate) use body::{BodyKind, NodeRun};
pub(crate) use budget::{Budget, StepWatch, Watched, watched};
pub use ctx::{Ctx, PortError};
pub(crate) use ctx::{NodeShared, Ports};
pub(crate) use lead::Lead;
pub(crate) use leased::run_leased;
pub use restart::RestartPolicy;
pub(crate) use restart::{Restarts, Revival};
pub(crate) use run::{Link, run_chain, run_step_on_pool};
pub use step::{Emit, Step, StepError};
pub(crate) use supervise::{NodeFuture, panic_text, supervise};

use std::future::Future;

/// Any error of a node. A [`RunError`](crate::RunError) that came in over an input passes on unchanged, so that the
/// node at fault keeps its name; anything else is reported under this node's.
pub type NodeError = Box<dyn std::error::Error + Send + Sync>;

/// A node that owns its loop.
pub trait Node: Send + 'static {
    /// Runs until the inputs end or nobody reads the outputs. Returning ends all outputs: with `Ok`, well; with an
    /// error, with that error. Must not block its thread: heavy work goes through [`Ctx::offload`].
    ///
    /// # Cancel safety
    /// Dropped at any await when the session ends: hold nothing that must be given back by hand.
    fn run(self, cx: Ctx) -> impl Future<Output = Result<(), NodeError>> + Send;
}
