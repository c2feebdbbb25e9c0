//! How many streams of a shared stage are worked on at once: `active-streams` in a graph file.
//!
//! Others wait in the order in which they came, and what feeds them waits at their edges.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A stream that makes no use of its place for so long gives it up and waits for another: one whose client does not
/// read, or whose producer is slow, must not stop all others.
pub(crate) const UNUSED: Duration = Duration::from_secs(5);

/// The places of one node of a graph.
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    most: usize,
    waiting: AtomicUsize,
}

/// The right to be worked on. Dropped, it goes to the stream that has waited longest.
pub(crate) struct Admitted(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Admission {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(most)), most, waiting: AtomicUsize::new(0) }
    }
    /// Waits for a place, first come first served.
    ///
    /// # Cancel safety
    /// Dropped while waiting, it leaves the queue.
    pub(crate) async fn enter(&self) -> Option<Admitted> {
        let _waits = Waits::new(&self.waiting);
        // Never closed.
        self.places.clone().acquire_owned().await.ok().map(Admitted)
    }
    pub(crate) fn most(&self) -> usize {
        self.most
    }
    /// Streams that are worked on now.
    pub(crate) fn active(&self) -> usize {
        self.most - self.places.available_permits()
    }
    /// Streams that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

struct Waits<'a>(&'a AtomicUsize);
impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}
impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
