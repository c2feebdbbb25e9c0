//! What makes a node anew after a fault, in the same session and on the same edges.
//!
//! [`Restarts`] is the rule, without a clock: so many within the last so long. [`Revival`] has what a new instance is
//! made from. Kept: the edges with what waits on them, their numbering, their one terminal still to come, the session.
//! Lost, and counted: the state of the old instance and the chunks that it had in hand. All credit that it held is back
//! before the new one begins.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::supervise::{NodeFuture, panic_text};
use crate::Mono;
use crate::edge::Edge;
use crate::owner::Owner;

/// How often a node may be made anew after a fault: the key `restart: { on-fault: { max, window } }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestartPolicy {
    /// Restarts within `window`, at least 1.
    pub max: usize,
    /// How long a restart counts.
    pub window: Duration,
}

/// One node's restarts so far. Pure: it is given `now`.
#[derive(Debug)]
pub(crate) struct Restarts {
    policy: RestartPolicy,
    /// Those that count, oldest first: at most `max`.
    recent: VecDeque<Mono>,
    total: u64,
}

impl Restarts {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Self { policy, recent: VecDeque::new(), total: 0 }
    }
    /// True if the node may be made anew at `now`. A restart counts as long as less than the window has passed since.
    pub(crate) fn allowed(&mut self, now: Mono) -> bool {
        while self.recent.front().is_some_and(|t| now.since(*t) >= self.policy.window) {
            self.recent.pop_front();
        }
        self.recent.len() < self.policy.max
    }
    /// The node was made anew at `now`; how often more that may happen within the window.
    pub(crate) fn restarted(&mut self, now: Mono) -> usize {
        self.recent.push_back(now);
        self.total += 1;
        self.policy.max.saturating_sub(self.recent.len())
    }
    /// Restarts in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
    pub(crate) fn policy(&self) -> RestartPolicy {
        self.policy
    }
}

/// Makes an instance of a node and sets it on its edges. The text of an error says what is missing.
pub(crate) type Remake = Box<dyn FnMut() -> Result<NodeFuture, String> + Send>;

/// What a supervisor needs to make its node anew.
pub(crate) struct Revival {
    pub(crate) rule: Restarts,
    /// The edges that feed the node.
    pub(crate) inputs: Vec<Arc<Edge>>,
    pub(crate) remake: Remake,
}

impl Revival {
    /// Why the edges cannot serve a new instance, if they cannot. The old one has been dropped.
    pub(crate) fn hindered(&self, owner: &Owner) -> Option<&'static str> {
        if self.inputs.iter().any(|e| e.broke()) {
            return Some("its input ended in error");
        }
        (owner.ends() > 0).then_some("the old instance has left an input or output to a task of its own")
    }
    /// Gives back the credit that the old instance held and makes the new one; with it, how many chunks were in hand.
    pub(crate) fn revive(&mut self) -> Result<(NodeFuture, u64), String> {
        let lost = self.inputs.iter().map(|e| e.reopen()).sum();
        match catch_unwind(AssertUnwindSafe(|| (self.remake)())) {
            Ok(made) => made.map(|future| (future, lost)),
            Err(panic) => Err(format!("panicked while it was made: {}", panic_text(&*panic))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all restarts ever.
        #[test]
        fn agrees_with_a_list(max in 1usize..5, window in 1u64..50, steps in prop::collection::vec(0u64..30, 1..100)) {
            let window = Duration::from_nanos(window);
            let mut r = Restarts::new(RestartPolicy { max, window });
            let (mut now, mut all) = (Mono(0), Vec::new());
            for step in steps {
                now = Mono(now.0 + step);
                let recent = all.iter().filter(|t| now.since(**t) < window).count();
                prop_assert_eq!(r.allowed(now), recent < max);
                if recent < max {
                    prop_assert_eq!(r.restarted(now), max - recent - 1);
                    all.push(now);
                }
                prop_assert!(r.recent.len() <= max, "memory is bounded by the policy");
                prop_assert_eq!(r.total(), all.len() as u64);
            }
        }
    }

    #[test]
    fn the_window_slides() {
        let (s, policy) = (|n: u64| Mono(n * 1_000_000_000), RestartPolicy { max: 2, window: Duration::from_secs(10) });
        let mut r = Restarts::new(policy);
        assert!(r.allowed(s(0)));
        assert_eq!(r.restarted(s(0)), 1);
        assert!(r.allowed(s(5)));
        assert_eq!(r.restarted(s(5)), 0);
        assert!(!r.allowed(s(9)), "two in the last ten seconds");
        assert!(r.allowed(s(10)), "the first counts no more");
        assert_eq!(r.restarted(s(10)), 0);
        assert!(!r.allowed(s(14)));
        assert!(r.allowed(s(15)));
        assert_eq!(r.total(), 3);
    }
}
