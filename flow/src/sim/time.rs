//! Virtual time: a number and the timers that wait for it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

use crate::Mono;

/// The clock of a [`Sim`](super::Sim).
#[derive(Default)]
pub struct SimTime(Mutex<Timers>);

#[derive(Default)]
struct Timers {
    now: Mono,
    next: u64,
    /// By due time, then by age.
    waiting: BTreeMap<(Mono, u64), Waker>,
}

impl SimTime {
    /// The reading.
    pub fn now(&self) -> Mono {
        self.lock().now
    }
    /// Waits until the reading is at least `at`.
    pub(crate) async fn sleep_until(&self, at: Mono) {
        let mut guard = Waiting { time: self, key: None };
        poll_fn(move |cx| {
            let mut t = guard.time.lock();
            if let Some(k) = guard.key.take() {
                t.waiting.remove(&k);
            }
            if t.now >= at {
                return Poll::Ready(());
            }
            let k = (at, t.next);
            t.next += 1;
            t.waiting.insert(k, cx.waker().clone());
            guard.key = Some(k);
            Poll::Pending
        })
        .await;
    }
    /// Jumps to the earliest timer and wakes all that are due; false if there is none.
    pub(crate) fn advance(&self) -> bool {
        let mut t = self.lock();
        let Some((&(at, _), _)) = t.waiting.first_key_value() else { return false };
        t.now = t.now.max(at);
        let mut due = Vec::new();
        while let Some((&k, _)) = t.waiting.first_key_value() {
            if k.0 > t.now {
                break;
            }
            due.extend(t.waiting.remove(&k));
        }
        drop(t);
        due.into_iter().for_each(Waker::wake);
        true
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, Timers> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Takes its timer away when the sleeper is dropped.
struct Waiting<'a> {
    time: &'a SimTime,
    key: Option<(Mono, u64)>,
}
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(k) = self.key {
            self.time.lock().waiting.remove(&k);
        }
    }
}
