//! What a stage sees while it works: a batch of members, one per stream.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::queue::Held;
use super::{SlotId, Stage, StageError};
use crate::pool::message;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{Emit, MediaTime, Stamp};

/// One stream in a batch: its state, and where its outputs go.
pub struct Member<S: Stage> {
    pub(super) held: Held<S>,
    pub(super) out: Emit<S::Out>,
    pub(super) failed: Option<StageError>,
    pub(super) unwanted: Arc<AtomicBool>,
}

impl<S: Stage> Member<S> {
    /// Which lease.
    pub fn id(&self) -> SlotId {
        self.held.id()
    }
    /// The stream's state.
    pub fn slot(&mut self) -> &mut S::Slot {
        self.held.slot()
    }
    /// The stream's state and its outputs, borrowed apart.
    pub fn parts(&mut self) -> (&mut S::Slot, &mut Emit<S::Out>) {
        (self.held.slot(), &mut self.out)
    }
    /// Gives one output under a stamp made from the input's ([`Stamp::child`]).
    pub fn emit(&mut self, stamp: Stamp, out: S::Out) {
        self.out.push(stamp, out);
    }
    /// Gives one output of length `len` at `pts`, with the epochs and origin of `from`.
    pub fn put(&mut self, from: &Stamp, pts: MediaTime, len: MediaTime, out: S::Out) {
        self.out.put(from, pts, len, out);
    }
    /// Ends this stream with an error. The first one counts.
    pub fn fail(&mut self, error: StageError) {
        self.failed.get_or_insert(error);
    }
    /// True if the stream has failed in this unit.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
    /// True if nobody wants this unit's result any more (fenced, or the session is gone). A long unit may ask and stop;
    /// its result is discarded anyway.
    pub fn is_unwanted(&self) -> bool {
        self.unwanted.load(Ordering::Relaxed)
    }
}

/// The streams that run together.
pub struct Batch<'a, S: Stage> {
    members: &'a mut [Member<S>],
}

impl<'a, S: Stage> Batch<'a, S> {
    pub(super) fn new(members: &'a mut [Member<S>]) -> Self {
        Self { members }
    }
    /// How many streams, failed ones included; at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.members.len()
    }
    /// The streams that have not failed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member<S>> {
        self.members.iter_mut().filter(|m| !m.has_failed())
    }
    /// Runs `f` for each stream that has not failed.
    ///
    /// # Errors
    /// None here. An error or a panic of `f` fails that stream only, with [`Member::fail`].
    pub fn each(&mut self, mut f: impl FnMut(&mut Member<S>) -> Result<(), StageError>) {
        for m in self.iter_mut() {
            match catch_unwind(AssertUnwindSafe(|| f(m))) {
                Ok(Ok(())) => {}
                Ok(Err(e)) => m.fail(e),
                Err(p) => m.fail(StageError::Panicked { message: message(p) }),
            }
        }
    }
}
