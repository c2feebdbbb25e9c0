//! When a batch starts and who is in it: a pure machine, without threads and without a clock.
//!
//! A batch starts as soon as it is full, or everybody who could join is there, or its longest ready member has waited
//! for `max_wait`, or waiting longer would make a listener run dry. Who is in it is decided when it starts, by
//! [`Order`]: a batch is one pick, and every member is chosen as the next pick would be.

use std::time::Duration;

use crate::Mono;
use crate::pool::{Limits, Order, Priority, Ticket};

/// Requests that wait for a batch.
#[derive(Debug)]
pub struct Batcher<T> {
    order: Order<T>,
    max_batch: usize,
    max_wait: Duration,
    expired: Option<Ticket>,
}

/// What a [`Batcher`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing waits.
    Idle,
    /// A batch starts at this time if nobody comes before.
    At(Mono),
    /// A batch can start.
    Now,
}

impl<T> Batcher<T> {
    /// Batches of at most `max_batch` (at least 1) members, the first of which waits at most `max_wait`.
    pub fn new(max_batch: usize, max_wait: Duration, limits: Limits) -> Self {
        Self { order: Order::new(limits), max_batch: max_batch.max(1), max_wait, expired: None }
    }
    /// Sets how long one batch takes, so that nobody runs dry behind it ([`Order::set_guard`]).
    pub fn set_guard(&mut self, guard: Duration) {
        self.order.set_guard(guard);
    }
    /// Adds a request.
    pub fn push(&mut self, priority: Priority, value: T) -> Ticket {
        self.order.push(priority, value)
    }
    /// Takes a request back; `None` if it is in a batch already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.order.remove(ticket)
    }
    /// Says that this request, and all before it, have waited long enough, whatever `now` will be given.
    pub fn expire(&mut self, ticket: Ticket) {
        self.expired = self.expired.max(Some(ticket));
    }
    /// May a batch start? `others` streams do not wait here but could come soon.
    pub fn readiness(&self, now: Mono, others: usize) -> Readiness {
        let (Some(oldest), Some(since)) = (self.order.oldest(), self.order.longest_ready()) else {
            return Readiness::Idle;
        };
        let full = self.order.len() >= self.max_batch || others == 0;
        let start = since.plus(self.max_wait);
        let start = self.order.earliest_deadline().map_or(start, |dry| start.min(dry));
        if full || self.max_wait.is_zero() || self.expired >= Some(oldest) || start <= now {
            return Readiness::Now;
        }
        Readiness::At(start)
    }
    /// Takes the members of the batch that starts now.
    pub fn take(&mut self, now: Mono) -> Vec<T> {
        self.order.pick_many(now, self.max_batch)
    }
    /// The priority of the most urgent request.
    pub fn best(&self) -> Option<Priority> {
        self.order.best()
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// Takes all, in order of arrival.
    pub fn drain(&mut self) -> Vec<T> {
        self.order.drain()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(n: u64) -> Mono {
        Mono(n * 1_000_000)
    }
    fn batcher(max_batch: usize, wait: u64) -> Batcher<u32> {
        Batcher::new(max_batch, Duration::from_millis(wait), Limits::default())
    }

    #[test]
    fn starts_when_full_or_complete_or_late() {
        let mut b = batcher(3, 10);
        assert_eq!(b.readiness(ms(0), 5), Readiness::Idle);
        let first = b.push(Priority::background(ms(1)), 1);
        assert_eq!(b.readiness(ms(1), 5), Readiness::At(ms(11)));
        assert_eq!(b.readiness(ms(1), 0), Readiness::Now, "nobody else could come");
        assert_eq!(b.readiness(ms(11), 5), Readiness::Now, "waited long enough");
        b.push(Priority::background(ms(2)), 2);
        assert_eq!(b.readiness(ms(2), 4), Readiness::At(ms(11)));
        b.expire(first);
        assert_eq!(b.readiness(ms(2), 4), Readiness::Now, "a timer has fired");
        b.push(Priority::background(ms(2)), 3);
        b.push(Priority::background(ms(2)), 4);
        assert_eq!(b.readiness(ms(2), 2), Readiness::Now, "full");
        assert_eq!(b.take(ms(2)), [1, 2, 3]);
        assert_eq!(b.readiness(ms(2), 5), Readiness::At(ms(12)), "the timer was for others");
    }
    #[test]
    fn does_not_wait_for_company_while_a_listener_runs_dry() {
        let mut b = batcher(8, 50);
        b.push(Priority::playing(ms(20), ms(0)), 1);
        assert_eq!(b.readiness(ms(5), 3), Readiness::At(ms(20)));
        assert_eq!(b.readiness(ms(20), 3), Readiness::Now);
    }
    #[test]
    fn the_most_urgent_are_in_the_batch() {
        let mut b = batcher(2, 0);
        b.push(Priority::background(ms(0)), 1);
        b.push(Priority::playing(ms(500), ms(0)), 2);
        b.push(Priority::first(0, ms(1)), 3);
        assert_eq!(b.take(ms(1)), [3, 2]);
        assert_eq!(b.take(ms(1)), [1]);
        assert!(b.take(ms(1)).is_empty());
    }

    proptest! {
        /// Against the rules in plain form: sizes, starts and times over random arrivals.
        #[test]
        fn does_what_the_naive_model_does(
            ops in prop::collection::vec((0u8..5, 0u64..20, 0usize..4, proptest::option::of(0u64..40)), 1..100),
            max_batch in 1usize..5,
            wait in 0u64..30,
        ) {
            let mut real = Batcher::new(max_batch, Duration::from_millis(wait), Limits::default());
            let mut list: Vec<(Ticket, Mono, Option<Mono>)> = Vec::new();
            let (mut now, mut expired, mut last) = (ms(0), None, None);
            for (what, n, others, deadline) in ops {
                match what {
                    0 | 1 => {
                        let p = deadline.map_or(Priority::background(now), |d| {
                            Priority::playing(now.plus(Duration::from_millis(d)), now)
                        });
                        let t = real.push(p, list.len());
                        last = Some(t);
                        list.push((t, now, p.deadline));
                    }
                    2 => now = now.plus(Duration::from_millis(n)),
                    3 => if let Some(t) = last.filter(|_| n == 0) {
                        real.expire(t);
                        expired = Some(t);
                    },
                    _ => {
                        let want = if list.is_empty() {
                            Readiness::Idle
                        } else {
                            let starts = list.iter().map(|e| e.1.plus(Duration::from_millis(wait)));
                            let start = starts.chain(list.iter().filter_map(|e| e.2)).min().unwrap();
                            let force = list.iter().any(|e| Some(e.0) <= expired);
                            if list.len() >= max_batch || others == 0 || wait == 0 || force || start <= now {
                                Readiness::Now
                            } else {
                                Readiness::At(start)
                            }
                        };
                        prop_assert_eq!(real.readiness(now, others), want);
                        if want == Readiness::Now {
                            let before = list.len();
                            let n = real.take(now).len();
                            prop_assert_eq!(n, before.min(max_batch));
                            // Who it was is the order's business; ask it who is left.
                            list.retain(|e| real.order.contains(e.0));
                            prop_assert_eq!(list.len(), before - n);
                        }
                    }
                }
            }
        }
    }
}
