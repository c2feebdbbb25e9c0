//! A running shared stage, seen from those who open streams.
//!
//! A lease is given at once or not at all ([`StageHandle::lease`]), or in order of arrival ([`StageHandle::admit`]).
//! The stream's state is made on the caller; a panic while it is made refuses this lease only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::queue::{Held, Inner};
use super::slots::{Lease, SlotTable};
use super::{LeaseError, Leased, SlotId, SlotStats, Stage, StageConfig, StageError, StageStats};
use crate::pool::{Now, Pool, message};
use crate::probe::NodeProbe;

/// A shared stage. Clones share it.
pub struct StageHandle<S: Stage> {
    inner: Arc<Inner<S>>,
}

impl<S: Stage> Clone for StageHandle<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<S: Stage> StageHandle<S> {
    /// Shares `stage`; its units run on `pool`.
    pub fn new(stage: S, config: StageConfig, pool: Pool, now: Now) -> Self {
        Self::watched(stage, config, pool, now, None)
    }
    /// The same; `watch` reports units that take too long.
    pub(crate) fn watched(stage: S, config: StageConfig, pool: Pool, now: Now, watch: Option<Arc<NodeProbe>>) -> Self {
        Self { inner: Arc::new(Inner::new(stage, config, pool, now, watch)) }
    }
    /// The stage itself.
    pub fn stage(&self) -> &S {
        &self.inner.stage
    }
    /// A slot now.
    ///
    /// # Errors
    /// [`LeaseError`]; it never overtakes a session that waits in [`StageHandle::admit`].
    pub fn lease(&self) -> Result<Leased<S>, LeaseError> {
        self.open(SlotTable::lease(&self.inner.slots)?)
    }
    /// A slot as soon as one is free, first come first served. It waits without bound: put a timeout around it.
    ///
    /// # Errors
    /// [`LeaseError`], `Full` only if too many wait already.
    ///
    /// # Cancel safety
    /// Dropped while waiting, it leaves the queue, and a slot that was just given goes to the next.
    pub async fn admit(&self) -> Result<Leased<S>, LeaseError> {
        let lease = match SlotTable::enqueue(&self.inner.slots)? {
            Ok(lease) => lease,
            Err(rx) => rx.await.map_err(|_| LeaseError::Closed)?,
        };
        self.open(lease)
    }
    /// True while the stream that `id` was given to is there. For a stage whose answers come from elsewhere (a device
    /// queue, another process): an answer for a lease that is not current is for nobody.
    pub fn is_current(&self, id: SlotId) -> bool {
        self.inner.slots.is_current(id)
    }
    /// Refuses new streams, also those who wait. Leased ones go on.
    pub fn close(&self) {
        self.inner.slots.close();
    }
    /// What it has done and is doing.
    pub fn stats(&self) -> StageStats {
        self.inner.stats()
    }
    /// The slots in use and what each holds.
    pub fn slots(&self) -> Vec<SlotStats> {
        self.inner.slots.each()
    }

    fn open(&self, lease: Lease) -> Result<Leased<S>, LeaseError> {
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let slot = self.inner.stage.open(lease.id())?;
            Ok((self.inner.stage.slot_bytes(&slot), slot))
        }));
        let (bytes, slot) = match opened {
            Ok(r) => r.map_err(LeaseError::Open)?,
            Err(p) => return Err(LeaseError::Open(StageError::Panicked { message: message(p) })),
        };
        lease.measure(bytes);
        Ok(Leased::new(self.inner.clone(), Held::new(slot, lease)))
    }
}
