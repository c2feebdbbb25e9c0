//! Since when each node has had something to do and nothing has come of it: what tells a producer that hangs from one
//! that has nothing to say.
//!
//! A node that waits for its own inputs, or takes from them, is well, however long it gives nothing. One that has taken
//! what there was and comes back for no more is at work, and one without inputs is always. Pure: it is told what is.

use std::time::Duration;

use crate::Mono;

/// What was last seen of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    taken: u64,
    since: Option<Mono>,
}

/// What was last seen of all nodes of a session.
#[derive(Debug, Default)]
pub(crate) struct Progress(Vec<Seen>);

impl Progress {
    /// A look at node `node` at `now`: whether it waits for something to do, and how much it ever took.
    pub(crate) fn look(&mut self, node: usize, now: Mono, waits: bool, taken: u64) {
        if self.0.len() <= node {
            self.0.resize(node + 1, Seen::default());
        }
        let seen = &mut self.0[node];
        if waits || taken != seen.taken || seen.since.is_none() {
            *seen = Seen { taken, since: Some(now) };
        }
    }
    /// How long nothing has come of what the node has to do.
    pub(crate) fn stuck(&self, node: usize, now: Mono) -> Duration {
        self.0.get(node).and_then(|s| s.since).map_or(Duration::ZERO, |t| now.since(t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_comes_to_nothing_counts() {
        let at = |s: u64| Mono(s * 1_000_000_000);
        let stuck = |p: &Progress, s| p.stuck(1, at(s)).as_secs();
        let mut p = Progress::default();
        p.look(1, at(10), false, 0);
        assert_eq!((stuck(&p, 10), stuck(&p, 40)), (0, 30));
        p.look(1, at(40), false, 1);
        assert_eq!(stuck(&p, 41), 1, "it took something");
        p.look(1, at(50), true, 1);
        p.look(1, at(60), false, 1);
        assert_eq!(stuck(&p, 60), 10, "it waited for something to do");
        p.look(1, at(70), false, 1);
        assert_eq!((stuck(&p, 70), p.stuck(0, at(70)).as_secs(), p.stuck(9, at(70)).as_secs()), (20, 0, 0));
    }
}
