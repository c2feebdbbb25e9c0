//! What is measured about a node. Single atomic additions, no lock; cheap steps are timed one in [`SAMPLE`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::error::ErrorKind;
use crate::node::{Budget, StepWatch};

/// Of cheap steps, one in so many is timed, and counts for all of them. A prime, so that it does not always meet the
/// same phase of a periodic stream (every eighth chunk fills a window, say).
pub(crate) const SAMPLE: u64 = 17;

/// Buckets of the latency histogram: powers of two from 1 ms, the last one open.
const BUCKETS: usize = 16;

#[derive(Default)]
pub(crate) struct NodeProbe {
    steps: AtomicU64,
    busy_ns: AtomicU64,
    busy_max_ns: AtomicU64,
    faults: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    restarts: AtomicU64,
    over_budget: AtomicU64,
    latency: [AtomicU64; BUCKETS],
    /// Pieces of heavy work that are being done or wait for their turn.
    working: AtomicU64,
    /// Only if the node has a `step-budget`.
    watch: Option<StepWatch>,
}

/// Heavy work is being done, or waits for its turn. Dropped, it is over.
pub(crate) struct Working(Arc<NodeProbe>);
impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Relaxed);
    }
}

/// One node's figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct NodeStats {
    /// The node's name.
    pub name: String,
    /// Steps taken (chunks handled, units of a shared stage).
    pub steps: u64,
    /// Time inside steps; of cheap ones, extrapolated from one in seventeen.
    pub busy: Duration,
    /// The longest step that was timed.
    pub longest: Duration,
    /// Errors, panics and timeouts together: each ended its session, or it was made anew.
    pub faults: u64,
    /// By a panic.
    pub panics: u64,
    /// By giving nothing within an edge's deadline.
    pub timeouts: u64,
    /// How often it was made anew after a fault, in the same session.
    pub restarts: u64,
    /// Steps that took longer than its `step-budget`.
    pub over_budget: u64,
    /// Outputs by time since the input they answer arrived: counts for up to 1 ms, 2 ms, 4 ms, ... and the rest.
    pub latency: Vec<u64>,
}

impl NodeProbe {
    /// The probe of a node, with the `step-budget` that it may have.
    pub(crate) fn new(budget: Option<Arc<Budget>>) -> Self {
        Self { watch: budget.map(StepWatch::new), ..Self::default() }
    }
    /// What watches the time of its steps.
    pub(crate) fn watch(&self) -> Option<&StepWatch> {
        self.watch.as_ref()
    }
    /// A unit of a shared stage was done: the stage reports a long one itself.
    pub(crate) fn unit(&self, took: Duration) {
        self.busy(took);
        if self.watch.as_ref().is_some_and(|w| w.exceeds(took)) {
            self.over_budget();
        }
    }
    /// Counts one step; true if it should be timed.
    pub(crate) fn step(&self) -> bool {
        let n = self.steps.load(Relaxed);
        // One writer at a time: a node's steps are taken one after another.
        self.steps.store(n + 1, Relaxed);
        n.is_multiple_of(SAMPLE)
    }
    /// True for the outputs whose latency is read: those of timed steps.
    pub(crate) fn due(&self) -> bool {
        self.steps.load(Relaxed) % SAMPLE == 1
    }
    /// A timed cheap step: counts for all those not timed.
    pub(crate) fn sampled(&self, took: Duration) {
        let ns = took.as_nanos() as u64;
        self.busy_ns.fetch_add(ns.saturating_mul(SAMPLE), Relaxed);
        self.busy_max_ns.fetch_max(ns, Relaxed);
    }
    /// Says that heavy work is being done or waits for its turn.
    pub(crate) fn work(self: &Arc<Self>) -> Working {
        self.working.fetch_add(1, Relaxed);
        Working(self.clone())
    }
    /// True while heavy work is being done or waits for its turn.
    pub(crate) fn works(&self) -> bool {
        self.working.load(Relaxed) > 0
    }
    /// A timed heavy step.
    pub(crate) fn busy(&self, took: Duration) {
        let ns = took.as_nanos() as u64;
        self.busy_ns.fetch_add(ns, Relaxed);
        self.busy_max_ns.fetch_max(ns, Relaxed);
    }
    pub(crate) fn fault(&self, kind: ErrorKind) {
        self.faults.fetch_add(1, Relaxed);
        match kind {
            ErrorKind::Panic => drop(self.panics.fetch_add(1, Relaxed)),
            ErrorKind::InputTimeout => drop(self.timeouts.fetch_add(1, Relaxed)),
            _ => {}
        }
    }
    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }
    /// A step took longer than its budget.
    pub(crate) fn over_budget(&self) {
        self.over_budget.fetch_add(1, Relaxed);
    }
    /// An output left, so long after the input that it answers arrived.
    pub(crate) fn latency(&self, since_origin: Duration) {
        let ms = since_origin.as_millis() as u64;
        let bucket = (u64::BITS - ms.leading_zeros()) as usize;
        self.latency[bucket.min(BUCKETS - 1)].fetch_add(1, Relaxed);
    }
    pub(crate) fn stats(&self, name: &str) -> NodeStats {
        NodeStats {
            name: name.to_owned(),
            steps: self.steps.load(Relaxed),
            busy: Duration::from_nanos(self.busy_ns.load(Relaxed)),
            longest: Duration::from_nanos(self.busy_max_ns.load(Relaxed)),
            // The parts first, so that they are never more than the sum.
            panics: self.panics.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
            faults: self.faults.load(Relaxed),
            restarts: self.restarts.load(Relaxed),
            over_budget: self.over_budget.load(Relaxed),
            latency: self.latency.iter().map(|b| b.load(Relaxed)).collect(),
        }
    }
}
