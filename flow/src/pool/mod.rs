//! A bounded compute pool, apart from the async workers, and the order in which everything heavy runs.
//!
//! The [`Pool`] runs closures on as many threads as the machine has physical cores. What runs next is decided by
//! [`Order`], a pure machine that shared stages use as well: the first chunk of an answer, then the session whose
//! listener runs dry first, then background; age raises a waiting entry over all of them.
//! The pool does not preempt: a job that has started runs to its end. It promises no order between jobs that run on
//! different threads at once.

pub(crate) mod affinity;
mod cores;
mod job;
mod order;
mod priority;
mod workers;

pub use cores::physical_cores;
pub use job::{PoolError, Running};
pub(crate) use job::{message, quietly};
pub use order::{Order, Ticket};
pub use priority::{Class, Limits, Priority};
pub use workers::{Pool, PoolConfig, PoolStats};

use crate::Mono;

/// How the pool and the shared stages read the engine's clock.
pub type Now = std::sync::Arc<dyn Fn() -> Mono + Send + Sync>;

#[cfg(all(test, not(omni_loom)))]
mod tests;
