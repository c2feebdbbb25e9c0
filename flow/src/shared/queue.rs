//! The queue of units of one stage, and the jobs it puts on the pool.
//!
//! Each request puts a job of its own priority on the pool. A job is not bound to its request: when it starts, it takes
//! whichever batch is most urgent then, or nothing if `concurrency` batches run. When a batch ends and requests wait,
//! a new job follows. So while a request can run, a job is on its way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::slots::{Lease, SlotLimits, SlotTable};
use super::{Batch, Batcher, Member, Readiness, SlotId, Stage, StageConfig, StageError, StageStats};
use crate::node::Watched;
use crate::pool::{Now, Pool, Priority, Ticket, message, quietly};
use crate::probe::NodeProbe;
use crate::sync::{self, Mutex, atomic::AtomicBool, lock};
use crate::{Emit, Mono, Stamp};

/// A stream's state together with its lease. Dropped anywhere, it first lets go of the state and then of the slot.
pub(super) struct Held<S: Stage> {
    slot: Option<S::Slot>, // `None` only while it is dropped
    lease: Lease,
}

impl<S: Stage> Held<S> {
    pub(super) fn new(slot: S::Slot, lease: Lease) -> Self {
        Self { slot: Some(slot), lease }
    }
    pub(super) fn id(&self) -> SlotId {
        self.lease.id()
    }
    pub(super) fn slot(&mut self) -> &mut S::Slot {
        self.slot.as_mut().expect("the state is there until the drop")
    }
    pub(super) fn measure(&self, stage: &S) {
        if let Some(slot) = &self.slot {
            self.lease.measure(stage.slot_bytes(slot));
        }
    }
    pub(super) fn ready(&self, stage: &S) -> bool {
        self.slot.as_ref().is_some_and(|s| stage.ready(s))
    }
}

impl<S: Stage> Drop for Held<S> {
    fn drop(&mut self) {
        let slot = self.slot.take();
        quietly(move || drop(slot));
    }
}

/// One unit that a session asks for.
pub(super) struct Request<S: Stage> {
    pub(super) held: Held<S>,
    pub(super) reply: oneshot::Sender<Reply<S>>,
    pub(super) unwanted: Arc<AtomicBool>,
}

/// What became of it. Without `Ok` the state is gone.
pub(super) type Reply<S> = Result<Answer<S>, StageError>;

/// A unit's result: the state comes home with the outputs.
pub(super) struct Answer<S: Stage> {
    pub(super) held: Held<S>,
    pub(super) outputs: Vec<(Stamp, <S as Stage>::Out)>,
    pub(super) ready: bool,
    pub(super) took: Duration,
}

pub(super) struct Inner<S: Stage> {
    pub(super) stage: S,
    pub(super) config: StageConfig,
    pub(super) pool: Pool,
    now: Now,
    /// Reports units that take too long.
    watch: Option<Arc<NodeProbe>>,
    pub(super) slots: sync::Arc<SlotTable>,
    queue: Mutex<Queue<S>>,
}

struct Queue<S: Stage> {
    batcher: Batcher<Request<S>>,
    running: usize,
    in_batches: usize, // units in running batches
    jobs: usize,       // on the pool, not started
    typical: Duration,
    stats: StageStats,
}

impl<S: Stage> Inner<S> {
    pub(super) fn new(stage: S, config: StageConfig, pool: Pool, now: Now, watch: Option<Arc<NodeProbe>>) -> Self {
        let slots = SlotTable::new(SlotLimits {
            slots: config.slots,
            waiters: config.waiters,
            declared: config.slot_bytes,
            memory: config.memory,
        });
        let batcher = Batcher::new(config.max_batch, config.max_wait, config.limits);
        let (running, in_batches, jobs, typical) = (0, 0, 0, Duration::ZERO);
        let queue = Mutex::new(Queue { batcher, running, in_batches, jobs, typical, stats: StageStats::default() });
        Self { stage, config, pool, now, watch, slots, queue }
    }
    pub(super) fn stats(&self) -> StageStats {
        let s = self.slots.sums();
        let q = lock(&self.queue);
        StageStats {
            slots: self.config.slots.max(1),
            leased: s.leased,
            waiting: s.waiting,
            leases: s.leases,
            refused: s.refused,
            bytes: s.bytes,
            bytes_peak: s.bytes_peak,
            queued: q.batcher.len(),
            running: q.running,
            ..q.stats
        }
    }
    /// Queues a unit. It starts only after a call of [`Inner::pump`].
    pub(super) fn request(&self, priority: Priority, request: Request<S>) -> Ticket {
        lock(&self.queue).batcher.push(priority, request)
    }
    /// Takes a unit back that has not started; its state comes with it.
    pub(super) fn withdraw(&self, ticket: Ticket) -> Option<Request<S>> {
        lock(&self.queue).batcher.remove(ticket)
    }
    /// The timer of a request has fired.
    pub(super) fn expire(self: &Arc<Self>, ticket: Ticket) {
        lock(&self.queue).batcher.expire(ticket);
        self.pump(None);
    }
    /// Puts a job on the pool if a batch can start: of `priority`, or of the most urgent request's.
    pub(super) fn pump(self: &Arc<Self>, priority: Option<Priority>) {
        let priority = {
            let mut q = lock(&self.queue);
            if self.readiness(&q, (self.now)()) != Readiness::Now {
                return;
            }
            // Each stream adds one job per request and each batch one at its end; most find nothing and vanish.
            if q.jobs >= 2 * self.config.slots.max(1) {
                return;
            }
            let Some(best) = q.batcher.best() else { return };
            q.jobs += 1;
            priority.filter(|_| self.config.max_wait.is_zero()).unwrap_or(best)
        };
        let job = QueuedJob { inner: self.clone(), started: false };
        // A refused job is dropped, and its drop tells those who wait.
        drop(self.pool.spawn(priority, move || job.start()));
    }
    fn readiness(&self, q: &Queue<S>, now: Mono) -> Readiness {
        let leased = if self.config.max_wait.is_zero() { 0 } else { self.slots.leased() };
        q.batcher.readiness(now, leased.saturating_sub(q.batcher.len() + q.in_batches))
    }
    fn start(self: &Arc<Self>) {
        let (batch, more) = {
            let mut q = lock(&self.queue);
            q.jobs -= 1;
            let now = (self.now)();
            if q.running >= self.config.concurrency.max(1) || self.readiness(&q, now) != Readiness::Now {
                return;
            }
            q.running += 1;
            let batch = q.batcher.take(now);
            q.in_batches += batch.len();
            (batch, q.running < self.config.concurrency && q.jobs == 0)
        };
        if more {
            self.pump(None);
        }
        let started = (self.now)();
        let size = batch.len();
        let done = self.perform(batch);
        let took = (self.now)().since(started);
        {
            let mut q = lock(&self.queue);
            q.running -= 1;
            q.in_batches -= size;
            q.typical = if q.typical.is_zero() { took } else { (q.typical * 7 + took) / 8 };
            let guard = q.typical * 2;
            q.batcher.set_guard(guard);
            let s = &mut q.stats;
            s.batches += u64::from(done.units > 0);
            s.units += done.units as u64;
            s.largest_batch = s.largest_batch.max(done.units);
            s.unwanted += done.unwanted;
            s.failed += done.failed;
            s.panicked += done.panicked;
            s.busy = s.busy.saturating_add(took);
        }
        self.pump(None);
    }
    fn perform(&self, batch: Vec<Request<S>>) -> Done {
        let mut done = Done::default();
        let mut replies = Vec::with_capacity(batch.len());
        let mut members = Vec::with_capacity(batch.len());
        for r in batch {
            if r.reply.is_closed() {
                done.unwanted += 1;
                continue; // the session left; its state is dropped here
            }
            replies.push(r.reply);
            members.push(Member { held: r.held, out: Emit::default(), failed: None, unwanted: r.unwanted });
        }
        done.units = members.len();
        if members.is_empty() {
            return done;
        }
        let began = (self.now)();
        let watched = self.watch.as_ref().and_then(|p| Watched::begin(p, members.len()));
        if let Err(p) = catch_unwind(AssertUnwindSafe(|| self.stage.run(&mut Batch::new(&mut members)))) {
            let message = message(p);
            for m in &mut members {
                m.fail(StageError::Panicked { message: message.clone() });
            }
        }
        drop(watched);
        let took = (self.now)().since(began) / members.len() as u32;
        for (member, reply) in members.into_iter().zip(replies) {
            let answer = self.finish(member, took);
            if let Err(e) = &answer {
                done.failed += 1;
                done.panicked += u64::from(matches!(e, StageError::Panicked { .. }));
            }
            if let Err(unwanted) = reply.send(answer) {
                done.unwanted += 1;
                quietly(move || drop(unwanted));
            }
        }
        done
    }
    /// Turns a member into what its session gets. A failed one's state and outputs are dropped before the session
    /// hears of it.
    fn finish(&self, member: Member<S>, took: Duration) -> Reply<S> {
        let Member { held, mut out, failed, .. } = member;
        let outputs: Vec<_> = out.drain().collect();
        if let Some(e) = failed {
            quietly(move || drop(outputs));
            return Err(e);
        }
        let asked = catch_unwind(AssertUnwindSafe(|| {
            held.measure(&self.stage);
            held.ready(&self.stage)
        }));
        match asked {
            Ok(ready) => Ok(Answer { held, outputs, ready, took }),
            Err(p) => Err(StageError::Panicked { message: message(p) }),
        }
    }
}

#[derive(Default)]
struct Done {
    units: usize,
    unwanted: u64,
    failed: u64,
    panicked: u64,
}

/// A job on the pool. Dropped unrun (the pool was shut down), it tells all who wait.
struct QueuedJob<S: Stage> {
    inner: Arc<Inner<S>>,
    started: bool,
}

impl<S: Stage> QueuedJob<S> {
    fn start(mut self) {
        self.started = true;
        self.inner.start();
    }
}

impl<S: Stage> Drop for QueuedJob<S> {
    fn drop(&mut self) {
        if !self.started {
            let waiting = {
                let mut q = lock(&self.inner.queue);
                q.jobs -= 1;
                q.batcher.drain()
            };
            drop(waiting);
        }
    }
}
