//! The table of slots: who holds which, since which generation, with how many bytes, and who waits for one.
//!
//! A slot is held by its [`Lease`], a guard: dropping it raises the slot's generation and hands the slot to the first
//! waiter, else to the free list. A waiter that has left is passed over; a lease that was sent to one who left before
//! taking it comes back by its own drop. Waiters are served first come, first served, and an immediate lease never
//! overtakes one. All state is under one lock; there are no atomics beside it.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::StageError;
use crate::sync::{Arc, Mutex, lock};

/// A lease of a slot: the slot's index and how often it had been leased before. An answer for an older generation is
/// for a stream that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId {
    /// Which slot, below the stage's number of slots.
    pub index: usize,
    /// Rises by one each time the slot is given back.
    pub generation: u64,
}

/// Why there is no slot.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// All slots are in use (or promised to those who wait already).
    #[error(
        "all {slots} slots of the stage are in use and {waiting} sessions wait; retry later or raise `active-streams` (resource_exhausted)"
    )]
    Full {
        /// How many slots there are.
        slots: usize,
        /// How many sessions wait for one.
        waiting: usize,
    },
    /// One more stream would not fit into the memory set aside for the stage.
    #[error(
        "the stage's streams hold {in_use} bytes, one more needs {needed}, and the limit is {limit}; retry later or raise the limit (resource_exhausted)"
    )]
    Memory {
        /// What all streams hold.
        in_use: u64,
        /// What one more is declared to need.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The stage has been closed.
    #[error("the stage has been closed")]
    Closed,
    /// The stage could not make the stream's state.
    #[error("the stage cannot open a stream: {0}")]
    Open(#[source] StageError),
}

impl LeaseError {
    /// The stable code for clients: `resource_exhausted`, `closed` or `internal`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } | Self::Memory { .. } => "resource_exhausted",
            Self::Closed => "closed",
            Self::Open(_) => "internal",
        }
    }
}

/// One leased slot, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotStats {
    /// Which lease.
    pub id: SlotId,
    /// Bytes it is charged with: the declared or the measured, whichever is more.
    pub bytes: u64,
    /// The most it was charged with in this lease.
    pub peak: u64,
}

/// What the table is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLimits {
    pub slots: usize,
    pub waiters: usize,
    /// Charged for each leased slot even if less is measured.
    pub declared: u64,
    pub memory: Option<u64>,
}

/// Sums over all slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSums {
    pub leased: usize,
    pub waiting: usize,
    pub bytes: u64,
    pub bytes_peak: u64,
    pub leases: u64,
    pub refused: u64,
}

pub(crate) struct SlotTable {
    limits: SlotLimits,
    state: Mutex<State>,
}

struct State {
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    waiters: VecDeque<oneshot::Sender<Lease>>,
    closed: bool,
    sums: SlotSums,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    generation: u64,
    leased: bool,
    bytes: u64,
    peak: u64,
}

/// A held slot. Dropping it gives the slot back.
pub(crate) struct Lease {
    table: Option<Arc<SlotTable>>, // `None` once given back
    id: SlotId,
}

impl SlotTable {
    pub(crate) fn new(limits: SlotLimits) -> Arc<Self> {
        let slots = limits.slots.max(1);
        let state = State {
            slots: vec![Slot::default(); slots],
            free: (0..slots).collect(),
            waiters: VecDeque::new(),
            closed: false,
            sums: SlotSums::default(),
        };
        Arc::new(Self { limits: SlotLimits { slots, ..limits }, state: Mutex::new(state) })
    }
    /// A slot now, or none.
    pub(crate) fn lease(this: &Arc<Self>) -> Result<Lease, LeaseError> {
        let mut st = lock(&this.state);
        st.waiters.retain(|w| !w.is_closed());
        let taken = if st.waiters.is_empty() { this.take(&mut st) } else { Err(this.full(&mut st)) };
        st.sums.refused += u64::from(taken.is_err());
        taken.map(|id| Lease { table: Some(this.clone()), id })
    }
    /// A slot now, or a place in the queue for one. Dropping the receiver leaves the queue.
    pub(crate) fn enqueue(this: &Arc<Self>) -> Result<Result<Lease, oneshot::Receiver<Lease>>, LeaseError> {
        let mut st = lock(&this.state);
        st.waiters.retain(|w| !w.is_closed());
        if st.waiters.is_empty() {
            match this.take(&mut st) {
                Ok(id) => return Ok(Ok(Lease { table: Some(this.clone()), id })),
                Err(LeaseError::Full { .. }) => {}
                Err(LeaseError::Memory { .. }) if st.sums.leased > 0 => {}
                Err(e) => return Err(e), // memory that nobody holds is not waited for
            }
        }
        if st.closed {
            return Err(LeaseError::Closed);
        }
        if st.waiters.len() >= this.limits.waiters {
            st.sums.refused += 1;
            return Err(this.full(&mut st));
        }
        let (tx, rx) = oneshot::channel();
        st.waiters.push_back(tx);
        Ok(Err(rx))
    }
    /// True while the lease that `id` names has not been given back.
    pub(crate) fn is_current(&self, id: SlotId) -> bool {
        let st = lock(&self.state);
        st.slots.get(id.index).is_some_and(|s| s.leased && s.generation == id.generation)
    }
    /// Notes what the state of a lease takes now.
    pub(crate) fn measure(this: &Arc<Self>, id: SlotId, bytes: u64) {
        let shrunk = {
            let mut st = lock(&this.state);
            let charged = bytes.max(this.limits.declared);
            let Some(s) = st.slots.get_mut(id.index).filter(|s| s.leased && s.generation == id.generation) else {
                return;
            };
            let before = std::mem::replace(&mut s.bytes, charged);
            s.peak = s.peak.max(charged);
            st.charge(before, charged);
            charged < before && this.limits.memory.is_some()
        };
        if shrunk {
            Self::grant(this);
        }
    }
    /// Refuses all who wait and all who come.
    pub(crate) fn close(&self) {
        let waiters = {
            let mut st = lock(&self.state);
            st.closed = true;
            std::mem::take(&mut st.waiters)
        };
        drop(waiters);
    }
    pub(crate) fn leased(&self) -> usize {
        lock(&self.state).sums.leased
    }
    pub(crate) fn sums(&self) -> SlotSums {
        let st = lock(&self.state);
        SlotSums { waiting: st.waiters.iter().filter(|w| !w.is_closed()).count(), ..st.sums }
    }
    pub(crate) fn each(&self) -> Vec<SlotStats> {
        let st = lock(&self.state);
        let leased = st.slots.iter().enumerate().filter(|(_, s)| s.leased);
        leased
            .map(|(index, s)| SlotStats {
                id: SlotId { index, generation: s.generation },
                bytes: s.bytes,
                peak: s.peak,
            })
            .collect()
    }

    fn take(&self, st: &mut State) -> Result<SlotId, LeaseError> {
        if st.closed {
            return Err(LeaseError::Closed);
        }
        let needed = self.limits.declared;
        if let Some(limit) = self.limits.memory
            && st.sums.bytes.saturating_add(needed) > limit
        {
            return Err(LeaseError::Memory { in_use: st.sums.bytes, needed, limit });
        }
        let Some(index) = st.free.pop_front() else { return Err(self.full(st)) };
        let s = &mut st.slots[index];
        *s = Slot { leased: true, bytes: needed, peak: needed, ..*s };
        let generation = s.generation;
        st.charge(0, needed);
        st.sums.leased += 1;
        st.sums.leases += 1;
        Ok(SlotId { index, generation })
    }
    fn full(&self, st: &mut State) -> LeaseError {
        st.waiters.retain(|w| !w.is_closed());
        LeaseError::Full { slots: self.limits.slots, waiting: st.waiters.len() }
    }
    fn free(&self, id: SlotId) {
        let mut st = lock(&self.state);
        let s = &mut st.slots[id.index];
        let bytes = s.bytes;
        *s = Slot { generation: s.generation + 1, ..Slot::default() };
        st.free.push_back(id.index);
        st.charge(bytes, 0);
        st.sums.leased -= 1;
    }
    /// Gives free slots to those who wait, first come first served. Sends outside the lock, because a refused lease
    /// takes it again.
    fn grant(this: &Arc<Self>) {
        loop {
            let (waiter, id) = {
                let mut st = lock(&this.state);
                st.waiters.retain(|w| !w.is_closed());
                if st.waiters.is_empty() {
                    return;
                }
                let Ok(id) = this.take(&mut st) else { return };
                let Some(waiter) = st.waiters.pop_front() else { return };
                (waiter, id)
            };
            if let Err(lease) = waiter.send(Lease { table: Some(this.clone()), id }) {
                lease.give_back_quietly();
            }
        }
    }
}

impl State {
    fn charge(&mut self, before: u64, after: u64) {
        self.sums.bytes = self.sums.bytes.saturating_sub(before).saturating_add(after);
        self.sums.bytes_peak = self.sums.bytes_peak.max(self.sums.bytes);
    }
}

impl Lease {
    pub(crate) fn id(&self) -> SlotId {
        self.id
    }
    pub(crate) fn measure(&self, bytes: u64) {
        if let Some(table) = &self.table {
            SlotTable::measure(table, self.id, bytes);
        }
    }
    /// Back to the free list without granting: the caller is the granting loop itself.
    fn give_back_quietly(mut self) {
        if let Some(table) = self.table.take() {
            table.free(self.id);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(table) = self.table.take() {
            table.free(self.id);
            SlotTable::grant(&table);
        }
    }
}

#[cfg(all(test, omni_loom))]
mod model {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn model(f: impl Fn() + Send + Sync + 'static) {
        let mut b = loom::model::Builder::new();
        b.preemption_bound = Some(2);
        b.check(f);
    }
    fn table(slots: usize) -> Arc<SlotTable> {
        SlotTable::new(SlotLimits { slots, waiters: 4, declared: 1, memory: None })
    }
    fn wait(table: &Arc<SlotTable>) -> Lease {
        let mut rx = match SlotTable::enqueue(table).unwrap() {
            Ok(lease) => return lease,
            Err(rx) => rx,
        };
        loop {
            match rx.try_recv() {
                Ok(lease) => return lease,
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Closed) => panic!("the waiter was forgotten"),
            }
        }
    }
    fn at_rest(table: &SlotTable, leases: u64) {
        let s = table.sums();
        assert_eq!((s.leased, s.waiting, s.bytes), (0, 0, 0));
        let st = lock(&table.state);
        assert_eq!(st.free.len(), st.slots.len());
        assert_eq!(st.slots.iter().map(|s| s.generation).sum::<u64>(), s.leases);
        assert!(s.leases >= leases);
    }

    #[test]
    fn loom_a_slot_has_one_holder_at_a_time() {
        model(|| {
            let t = table(1);
            let holders = Arc::new(AtomicUsize::new(0));
            let users: Vec<_> = (0..2)
                .map(|_| {
                    let (t, holders) = (t.clone(), holders.clone());
                    thread::spawn(move || {
                        let lease = wait(&t);
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        assert!(t.is_current(lease.id()));
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lease);
                    })
                })
                .collect();
            for u in users {
                u.join().unwrap();
            }
            at_rest(&t, 2);
        });
    }
    #[test]
    fn loom_a_waiter_that_leaves_takes_nothing_with_it() {
        model(|| {
            let t = table(1);
            let lease = SlotTable::lease(&t).unwrap();
            let leaves = {
                let t = t.clone();
                thread::spawn(move || drop(SlotTable::enqueue(&t)))
            };
            let stays = {
                let t = t.clone();
                thread::spawn(move || drop(wait(&t)))
            };
            let old = lease.id();
            drop(lease);
            assert!(!t.is_current(old));
            leaves.join().unwrap();
            stays.join().unwrap();
            at_rest(&t, 2);
        });
    }
}
