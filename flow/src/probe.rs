//! What is measured about a node. Single atomic additions, no lock; cheap steps are timed one in [`SAMPLE`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::error::ErrorKind;

/// Of cheap steps, one in so many is timed, and counts for all of them. A prime, so that it does not always meet the
/// same phase of a periodic stream (every eighth chunk fills a window, say).
pub(crate) const SAMPLE: u64 = 17;

/// Buckets of the latency histogram: powers of two from 1 ms, the last one open.
const BUCKETS: usize = 16;

#[derive(Default, Debug)]
pub(crate) struct NodeProbe {
    steps: AtomicU64,
    busy_ns: AtomicU64,
    busy_max_ns: AtomicU64,
    faults: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    latency: [AtomicU64; BUCKETS],
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
    /// Streams that it broke: errors, panics and timeouts together.
    pub faults: u64,
    /// By a panic.
    pub panics: u64,
    /// By giving nothing within an edge's deadline.
    pub timeouts: u64,
    /// Outputs by time since the input they answer arrived: counts for up to 1 ms, 2 ms, 4 ms, ... and the rest.
    pub latency: Vec<u64>,
}

impl NodeProbe {
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
            latency: self.latency.iter().map(|b| b.load(Relaxed)).collect(),
        }
    }
}
