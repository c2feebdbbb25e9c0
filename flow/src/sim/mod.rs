//! A deterministic world: one thread, virtual time, and a seed that picks which ready task runs next.
//!
//! The same seed gives the same interleaving. Used by the engine's own property tests and open to users for theirs.
//! Time moves only when nothing is ready; when nothing is ready and no timer is set, [`Sim::run`] says so instead of
//! hanging.

mod time;

pub use time::SimTime;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::Clock;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A seeded scheduler with virtual time.
pub struct Sim {
    shared: Arc<Shared>,
    rng: u64,
    tasks: BTreeMap<u64, Task>,
    polls: u64,
}

/// Spawns tasks into a running [`Sim`].
#[derive(Clone)]
pub struct SimHandle(Arc<Shared>);

struct Shared {
    time: Arc<SimTime>,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    next: u64,
    new: Vec<(u64, Task)>,
    ready: Vec<u64>,
}

/// Nothing can run any more although the main future has not ended: somebody waits for what never comes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("deadlock under seed {seed}: {tasks} tasks wait, no timer is set, after {polls} polls")]
pub struct Deadlock {
    /// The seed that shows it.
    pub seed: u64,
    /// Tasks that wait.
    pub tasks: usize,
    /// Polls until then.
    pub polls: u64,
}

impl SimHandle {
    /// Adds a task.
    pub fn spawn(&self, f: impl Future<Output = ()> + Send + 'static) {
        let mut inbox = lock(&self.0.inbox);
        let id = inbox.next;
        inbox.next += 1;
        inbox.new.push((id, Box::pin(f)));
        inbox.ready.push(id);
    }
    /// The world's clock.
    pub fn clock(&self) -> Clock {
        Clock::sim(self.0.time.clone())
    }
}

impl Sim {
    /// A world whose choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let shared = Arc::new(Shared { time: Arc::default(), inbox: Mutex::default() });
        // SplitMix64 needs no warm-up; the constant keeps seed 0 from being special.
        Self { shared, rng: seed ^ 0x9E37_79B9_7F4A_7C15, tasks: BTreeMap::new(), polls: 0 }
    }
    /// A handle to spawn with and to read the clock.
    pub fn handle(&self) -> SimHandle {
        SimHandle(self.shared.clone())
    }

    /// Runs until `main` ends, whatever else is still there.
    ///
    /// # Errors
    /// [`Deadlock`] if nothing can run any more before that.
    pub fn run<F, T>(&mut self, main: F) -> Result<T, Deadlock>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let seed = self.rng ^ 0x9E37_79B9_7F4A_7C15;
        let slot: Arc<Mutex<Option<T>>> = Arc::default();
        let out = slot.clone();
        self.handle().spawn(async move {
            let value = main.await;
            *lock(&out) = Some(value);
        });
        loop {
            if let Some(value) = lock(&slot).take() {
                return Ok(value);
            }
            if !self.turn() && !self.shared.time.advance() {
                return Err(Deadlock { seed, tasks: self.tasks.len(), polls: self.polls });
            }
        }
    }

    /// Polls one ready task, chosen by the seed; false if none is ready.
    fn turn(&mut self) -> bool {
        let id = {
            let mut inbox = lock(&self.shared.inbox);
            self.tasks.extend(inbox.new.drain(..));
            if inbox.ready.is_empty() {
                return false;
            }
            let n = inbox.ready.len() as u64;
            let pick = (next(&mut self.rng) % n) as usize;
            inbox.ready.swap_remove(pick)
        };
        let Some(task) = self.tasks.get_mut(&id) else { return true };
        let waker = Waker::from(Arc::new(Ready { id, shared: self.shared.clone() }));
        self.polls += 1;
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        if done {
            self.tasks.remove(&id);
        }
        true
    }
}

struct Ready {
    id: u64,
    shared: Arc<Shared>,
}
impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        let mut inbox = lock(&self.shared.inbox);
        if !inbox.ready.contains(&self.id) {
            inbox.ready.push(self.id);
        }
    }
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn trace(seed: u64) -> Vec<u32> {
        let mut sim = Sim::new(seed);
        let h = sim.handle();
        let log: Arc<Mutex<Vec<u32>>> = Arc::default();
        let l = log.clone();
        sim.run(async move {
            let clock = h.clock();
            for i in 0..5u32 {
                let (l, c) = (l.clone(), clock.clone());
                h.spawn(async move {
                    for k in 0..3 {
                        l.lock().unwrap().push(i * 10 + k);
                        c.sleep(Duration::from_millis(u64::from(k))).await;
                    }
                });
            }
            clock.sleep(Duration::from_secs(1)).await;
        })
        .unwrap();

        log.lock().unwrap().clone()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(trace(7), trace(7));
        assert!((0..20).any(|s| trace(s) != trace(7)), "other seeds give other schedules");
        assert_eq!(trace(3).len(), 15);
    }
    #[test]
    fn waiting_for_ever_is_reported() {
        let e = Sim::new(1).run(std::future::pending::<()>()).unwrap_err();
        assert_eq!((e.seed, e.tasks), (1, 1));
    }
}
