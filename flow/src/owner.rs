//! Who owns the ends of a node's edges, so that each stream ends with the right terminal.
//!
//! A node that returns has dropped its outputs just before: that is not yet a fault. So a sending end that drops while
//! its own node is being polled is only noted; the runner then ends the stream with what the node returned, or, if the
//! node goes on without that output, with `ProducerGone`. Dropped anywhere else, it is a fault at once. The receiving
//! ends of a node that may be made anew are judged in the same way: its next instance reads on.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::edge::Edge;
use crate::sync::Mutex;

#[derive(Default)]
pub(crate) struct Owner {
    any: AtomicBool,
    dropped: Mutex<Vec<(End, Arc<Edge>)>>,
    /// Ends that are still held.
    ends: AtomicUsize,
}

/// Which end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Sending,
    Receiving,
}

/// One end's bond to its owner.
pub(crate) struct Owned(Arc<Owner>);

thread_local! {
    static CURRENT: Cell<*const Owner> = const { Cell::new(std::ptr::null()) };
}

impl Owner {
    /// Runs `f` as the poll of this owner's node.
    pub(crate) fn enter<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        struct Reset(*const Owner);
        impl Drop for Reset {
            fn drop(&mut self) {
                CURRENT.with(|c| c.set(self.0));
            }
        }
        let _reset = Reset(CURRENT.with(|c| c.replace(Arc::as_ptr(self))));
        f()
    }
    /// One more end of this owner's node.
    pub(crate) fn own(self: &Arc<Self>) -> Owned {
        self.ends.fetch_add(1, Ordering::AcqRel);
        Owned(self.clone())
    }
    /// How many ends are still held, by the node or by what it has left them to.
    pub(crate) fn ends(&self) -> usize {
        self.ends.load(Ordering::Acquire)
    }
    /// The edges whose ends were dropped since this was last asked.
    pub(crate) fn take(&self) -> Vec<(End, Arc<Edge>)> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.dropped.lock())
    }
    /// Ends for good what the node dropped and goes on without.
    pub(crate) fn judge(&self) {
        for (end, edge) in self.take() {
            match end {
                End::Sending => edge.producer_gone(),
                End::Receiving => edge.abandon(),
            }
        }
    }
}

impl Owned {
    /// Notes that this end of `edge` was dropped; false if its node is not being polled here.
    pub(crate) fn note(&self, end: End, edge: &Arc<Edge>) -> bool {
        if CURRENT.with(Cell::get) != Arc::as_ptr(&self.0) {
            return false;
        }
        self.0.dropped.lock().push((end, edge.clone()));
        self.0.any.store(true, Ordering::Release);
        true
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.ends.fetch_sub(1, Ordering::AcqRel);
    }
}
