//! The running counters of a session's lanes, and the edges that a fence sweeps.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::edge::Edge;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Mutex};
use crate::{Epoch, Epochs, Lane, MAX_LANES};

/// One session's lanes.
pub(crate) struct Lanes {
    cells: Vec<Arc<LaneCell>>,
}

/// One lane: its epoch, its edges, and who waits for its next fence.
pub(crate) struct LaneCell {
    epoch: AtomicU32,
    edges: Mutex<Vec<std::sync::Weak<Edge>>>,
    waiting: Mutex<Vec<Waker>>,
}

impl LaneCell {
    fn new() -> Self {
        Self { epoch: AtomicU32::new(0), edges: Mutex::new(Vec::new()), waiting: Mutex::new(Vec::new()) }
    }
    /// The lane's epoch. Whoever must decide about a chunk reads it under that chunk's edge lock.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
    /// Raises the epoch to at least `to`, then sweeps every edge of the lane and wakes who waits. The counter moves
    /// first: a chunk pushed before the sweep is swept, one pushed after sees the new epoch.
    pub(crate) fn raise(&self, to: Epoch) {
        if self.epoch.fetch_max(to.0, Ordering::AcqRel) >= to.0 {
            return;
        }
        self.sweep();
    }
    /// Waits until the lane is past `seen`.
    pub(crate) async fn fenced(&self, seen: Epoch) -> Epoch {
        poll_fn(|cx| {
            let e = self.epoch();
            if e > seen {
                return Poll::Ready(e);
            }
            {
                let mut w = self.waiting.lock();
                w.retain(|o| !o.will_wake(cx.waker()));
                w.push(cx.waker().clone());
            }
            // A fence between the first look and the entry in the list has not seen us: look again.
            let e = self.epoch();
            if e > seen { Poll::Ready(e) } else { Poll::Pending }
        })
        .await
    }
    fn next(&self) -> Epoch {
        let e = Epoch(self.epoch.fetch_add(1, Ordering::AcqRel) + 1);
        self.sweep();
        e
    }
    fn sweep(&self) {
        for edge in self.edges.lock().iter() {
            if let Some(edge) = edge.upgrade() {
                edge.sweep();
            }
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { cells: (0..MAX_LANES).map(|_| Arc::new(LaneCell::new())).collect() }
    }
    pub(crate) fn cell(&self, lane: Lane) -> &Arc<LaneCell> {
        &self.cells[lane.index()]
    }
    /// The current epochs: what an input that arrives now is stamped with.
    pub(crate) fn epochs(&self) -> Epochs {
        (0..MAX_LANES).filter_map(Lane::new).fold(Epochs::FIRST, |e, l| e.with(l, self.cell(l).epoch()))
    }
    pub(crate) fn attach(&self, lane: Lane, edge: &std::sync::Arc<Edge>) {
        self.cell(lane).edges.lock().push(std::sync::Arc::downgrade(edge));
    }
    /// Raises `lane` by one and kills, at once, all that is older on every edge of it. `main` is never fenced: there
    /// the epoch stays.
    pub(crate) fn fence(&self, lane: Lane) -> Epoch {
        if lane == Lane::MAIN { self.cell(lane).epoch() } else { self.cell(lane).next() }
    }
    /// Waits until `lane` is past `seen`.
    pub(crate) async fn fenced(&self, lane: Lane, seen: Epoch) -> Epoch {
        self.cell(lane).fenced(seen).await
    }
}
