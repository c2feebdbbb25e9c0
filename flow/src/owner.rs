//! Who owns the sending ends of a node's outputs, so that each ends with the right terminal.
//!
//! A node that returns has dropped its outputs just before: that is not yet a fault. So a sending end that drops while
//! its own node is being polled is only noted; the runner then ends the stream with what the node returned, or, if the
//! node goes on without that output, with `ProducerGone`. Dropped anywhere else, it is a fault at once.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::edge::Edge;
use crate::sync::Mutex;

#[derive(Default)]
pub(crate) struct Owner {
    any: AtomicBool,
    dropped: Mutex<Vec<Arc<Edge>>>,
}

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
    /// Notes that a sending end of this node was dropped; false if its node is not being polled here.
    pub(crate) fn note(self: &Arc<Self>, edge: &Arc<Edge>) -> bool {
        if CURRENT.with(Cell::get) != Arc::as_ptr(self) {
            return false;
        }
        self.dropped.lock().push(edge.clone());
        self.any.store(true, Ordering::Release);
        true
    }
    /// The edges whose sending ends were dropped since this was last asked.
    pub(crate) fn take(&self) -> Vec<Arc<Edge>> {
        if !self.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.dropped.lock())
    }
}
