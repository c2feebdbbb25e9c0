//! The pool itself: threads that sleep until there is work, or none at all for simulation.
//!
//! A job panic is caught and given to the submitter. Threads never spin. `shutdown` joins them; dropping the last
//! handle only tells them to stop, so that it never blocks an async worker.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::affinity::{bind, list};
use super::job::{Ended, Job, job};
use super::{Limits, Now, Order, PoolError, Priority, Running, Ticket, physical_cores};
use crate::sync::{Condvar, Mutex, lock, wait};

/// How a pool is made.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Worker threads, at least 1. Default: [`physical_cores`].
    pub threads: usize,
    /// Jobs that may wait at once. Default 4096: a guard, not a tuning knob, because every submitter holds at most one.
    pub queue: usize,
    /// When age overrules class.
    pub limits: Limits,
    /// Threads are named `NAME-0`, `NAME-1`, ...
    pub name: String,
    /// Processors that the threads are bound to, by the numbers of the operating system, each below 1024; empty =
    /// wherever it runs them. On Linux only.
    pub cpus: Vec<usize>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            threads: physical_cores(),
            queue: 4096,
            limits: Limits::default(),
            name: "omni-pool".to_owned(),
            cpus: Vec::new(),
        }
    }
}

/// What a pool has done and is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Worker threads; 0 if jobs run on callers.
    pub threads: usize,
    /// Jobs that wait.
    pub queued: usize,
    /// The most that ever waited.
    pub queued_peak: usize,
    /// Jobs that run now.
    pub running: usize,
    /// Jobs that ran to their end, panicked ones included.
    pub done: u64,
    /// Jobs whose submitter left before they started.
    pub skipped: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// Jobs refused because too many waited.
    pub refused: u64,
    /// Time that jobs took, summed over threads.
    pub busy: Duration,
}

/// A bounded compute pool. Clones share it; it stops when the last is dropped.
#[derive(Clone)]
pub struct Pool {
    owner: Arc<Owner>,
}

struct Owner {
    core: Arc<Core>,
    threads: Mutex<VecDeque<JoinHandle<()>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Threads(usize),
    Inline,
    Manual,
}

struct Core {
    mode: Mode,
    queue: usize,
    now: Now,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    order: Order<Job>,
    closed: bool,
    draining: bool,
    longest: Duration,
    stats: PoolStats,
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`PoolError::Spawn`] if the operating system refuses a thread, [`PoolError::Bind`] if it does not let one run on
    /// the processors asked for; those already started stop.
    pub fn new(config: &PoolConfig, now: Now) -> Result<Self, PoolError> {
        let count = config.threads.max(1);
        let pool = Self::make(Mode::Threads(count), config, now);
        let (tell, told) = std::sync::mpsc::channel();
        for i in 0..count {
            let (core, cpus, tell) = (pool.owner.core.clone(), config.cpus.clone(), tell.clone());
            let work = move || {
                let bound = if cpus.is_empty() { Ok(()) } else { bind(&cpus) };
                let run = bound.is_ok();
                // Nobody hears it if another thread could not be started.
                drop(tell.send(bound));
                drop(tell);
                if run {
                    core.work();
                }
            };
            match std::thread::Builder::new().name(format!("{}-{i}", config.name)).spawn(work) {
                Ok(t) => lock(&pool.owner.threads).push_back(t),
                Err(e) => return Err(PoolError::Spawn { message: e.to_string() }),
            }
        }
        drop(tell);
        if !config.cpus.is_empty() {
            let failed = told.iter().take(count).find_map(Result::err);
            if let Some(e) = failed {
                return Err(PoolError::Bind { cpus: list(&config.cpus), message: e.to_string() });
            }
        }
        Ok(pool)
    }
    /// From now on age overrules class as `limits` say.
    pub fn set_limits(&self, limits: Limits) {
        lock(&self.owner.core.state).order.set_limits(limits);
    }
    /// A pool without threads: a job runs on its submitter before [`Pool::run`] returns, or, when submitted from within
    /// a job, right after that job. For deterministic simulation.
    pub fn inline(now: Now) -> Self {
        Self::make(Mode::Inline, &PoolConfig::default(), now)
    }
    /// A pool without threads whose jobs run only when [`Pool::turn`] is called: the simulation decides when.
    pub fn manual(now: Now) -> Self {
        Self::make(Mode::Manual, &PoolConfig::default(), now)
    }
    fn make(mode: Mode, config: &PoolConfig, now: Now) -> Self {
        let threads = if let Mode::Threads(n) = mode { n } else { 0 };
        let state = State {
            order: Order::new(config.limits),
            closed: false,
            draining: false,
            longest: Duration::ZERO,
            stats: PoolStats { threads, ..PoolStats::default() },
        };
        let core = Core { mode, queue: config.queue.max(1), now, state: Mutex::new(state), wake: Condvar::new() };
        Self { owner: Arc::new(Owner { core: Arc::new(core), threads: Mutex::new(VecDeque::new()) }) }
    }

    /// Queues `f`. It runs once, on one thread, when no waiting job goes before it; see [`Order`].
    ///
    /// Await the result before submitting more for the same stream: that keeps the queue as short as there are streams.
    ///
    /// # Errors
    /// The result is [`PoolError::Full`] or [`PoolError::Closed`] if the pool takes no job, and
    /// [`PoolError::Panicked`] if `f` panics.
    pub fn run<R: Send + 'static>(&self, priority: Priority, f: impl FnOnce() -> R + Send + 'static) -> Running<R> {
        let (job, rx) = job(f);
        match self.owner.core.submit(priority, job, self.owner.core.queue) {
            Ok(ticket) => {
                let core = Arc::downgrade(&self.owner.core);
                Running::waiting(rx, move || {
                    if let Some(core) = core.upgrade() {
                        core.withdraw(ticket);
                    }
                })
            }
            Err(e) => Running::refused(e),
        }
    }
    /// Queues a job of a submitter that is bounded by itself (a shared stage by its slots), so the cap does not apply.
    pub(crate) fn spawn(&self, priority: Priority, f: impl FnOnce() + Send + 'static) -> Result<(), PoolError> {
        let run = move || {
            f();
            Ended::Ran
        };
        self.owner.core.submit(priority, Box::new(run), usize::MAX).map(|_| ())
    }
    /// Runs the next job of a pool without threads on the caller; false if none waits or the pool has threads.
    pub fn turn(&self) -> bool {
        !matches!(self.owner.core.mode, Mode::Threads(_)) && self.owner.core.turn()
    }
    /// True if jobs run on their submitters ([`Pool::inline`]).
    pub fn is_inline(&self) -> bool {
        self.owner.core.mode == Mode::Inline
    }
    /// What it has done and is doing.
    pub fn stats(&self) -> PoolStats {
        let st = lock(&self.owner.core.state);
        PoolStats { queued: st.order.len(), ..st.stats }
    }
    /// Refuses new jobs, drops the waiting ones (their submitters get [`PoolError::Closed`]), lets running ones end and
    /// joins the threads. Blocks for as long as a running job takes. A job that calls it waits for all threads but its
    /// own.
    pub fn shutdown(&self) {
        self.owner.core.close();
        let me = std::thread::current().id();
        loop {
            let Some(t) = lock(&self.owner.threads).pop_front() else { return };
            if t.thread().id() != me {
                drop(t.join()); // a worker catches all panics of jobs
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Core {
    fn submit(&self, priority: Priority, job: Job, cap: usize) -> Result<Ticket, PoolError> {
        let ticket = {
            let mut st = lock(&self.state);
            if st.closed {
                return Err(PoolError::Closed);
            }
            if st.order.len() >= cap {
                st.stats.refused += 1;
                return Err(PoolError::Full { queue: cap });
            }
            let ticket = st.order.push(priority, job);
            st.stats.queued_peak = st.stats.queued_peak.max(st.order.len());
            ticket
        };
        match self.mode {
            Mode::Threads(_) => self.wake.notify_one(),
            Mode::Inline => self.drain(),
            Mode::Manual => {}
        }
        Ok(ticket)
    }
    fn withdraw(&self, ticket: Ticket) {
        let job = {
            let mut st = lock(&self.state);
            let job = st.order.remove(ticket);
            st.stats.skipped += u64::from(job.is_some());
            job
        };
        super::quietly(move || drop(job));
    }
    fn close(&self) {
        let jobs = {
            let mut st = lock(&self.state);
            st.closed = true;
            st.order.drain()
        };
        self.wake.notify_all();
        for job in jobs {
            super::quietly(move || drop(job));
        }
    }
    /// The life of a worker thread.
    fn work(&self) {
        loop {
            let job = {
                let mut st = lock(&self.state);
                loop {
                    if let Some(job) = self.pick(&mut st) {
                        break job;
                    }
                    if st.closed {
                        return;
                    }
                    st = wait(&self.wake, st);
                }
            };
            self.perform(job);
        }
    }
    fn turn(&self) -> bool {
        let job = self.pick(&mut lock(&self.state));
        job.map(|j| self.perform(j)).is_some()
    }
    /// Runs all that waits, unless somebody up the stack or on another thread is doing so already.
    fn drain(&self) {
        if std::mem::replace(&mut lock(&self.state).draining, true) {
            return;
        }
        loop {
            let job = {
                let mut st = lock(&self.state);
                let job = self.pick(&mut st);
                st.draining = job.is_some();
                job
            };
            let Some(job) = job else { return };
            self.perform(job);
        }
    }
    fn pick(&self, st: &mut State) -> Option<Job> {
        let job = st.order.pick((self.now)())?;
        st.stats.running += 1;
        Some(job)
    }
    fn perform(&self, job: Job) {
        let started = (self.now)();
        let ended = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|p| {
            super::message(p);
            Ended::Panicked
        });
        let took = (self.now)().since(started);
        let mut st = lock(&self.state);
        st.stats.running -= 1;
        st.stats.busy = st.stats.busy.saturating_add(took);
        st.stats.done += u64::from(ended != Ended::Skipped);
        st.stats.skipped += u64::from(ended == Ended::Skipped);
        st.stats.panicked += u64::from(ended == Ended::Panicked);
        // What starts now may keep others waiting for as long as the longest of the last jobs.
        st.longest = took.max(st.longest - st.longest / 16);
        let guard = st.longest;
        st.order.set_guard(guard);
    }
}
