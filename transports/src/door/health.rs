//! Whether the nodes of a graph are alive, from what they do and not from whether this thread runs.
//!
//! A shared model that works and finishes nothing for [`STUCK`] is dead: all sessions wait for it. One in which streams failed
//! since it was last asked is degraded. Nodes of single sessions live and die with them.

use std::time::Duration;

use omni_flow::{Clock, Graph, Mono};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// No unit of work takes this long: a token, a window of audio, a sentence.
pub const STUCK: Duration = Duration::from_secs(30);

/// What one stage had done when it was last asked.
#[derive(Clone, Copy, Debug)]
struct Seen {
    batches: u64,
    failed: u64,
    /// Since when it has been working on the same.
    since: Mono,
}

/// How a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Degraded,
    Dead,
}

/// What was seen of a graph's stages.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Vec<Seen>>);

impl Health {
    /// How the graph is now: true if all of it is alive, and the body of `/health`.
    pub(super) fn look(&self, graph: &Graph, clock: &Clock) -> (bool, Value) {
        let now = clock.now();
        let stages = graph.stages();
        let mut all = self.0.lock();
        all.resize(stages.len(), Seen { batches: 0, failed: 0, since: now });
        let mut states = Map::new();
        let mut dead = Vec::new();
        let plan = graph.plan();
        states.extend(plan.nodes.iter().map(|n| (n.name.clone(), "ready".into())));
        for ((name, s), seen) in stages.into_iter().zip(all.iter_mut()) {
            match judge(seen, s.running > 0, s.batches, s.failed, now) {
                State::Ready => {}
                State::Degraded => drop(states.insert(name, "degraded".into())),
                State::Dead => {
                    states.insert(name.clone(), "dead".into());
                    dead.push(name);
                }
            }
        }
        if dead.is_empty() {
            return (true, json!({"status": "ok", "graph": plan.name, "nodes": states}));
        }
        (false, json!({"status": "unavailable", "graph": plan.name, "dead": dead, "nodes": states}))
    }
}

fn judge(seen: &mut Seen, running: bool, batches: u64, failed: u64, now: Mono) -> State {
    if !running || batches != seen.batches {
        seen.since = now;
    }
    let worse = failed > seen.failed;
    (seen.batches, seen.failed) = (batches, failed);
    match () {
        () if now.since(seen.since) >= STUCK => State::Dead,
        () if worse => State::Degraded,
        () => State::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_finishes_nothing_is_dead_and_one_that_fails_is_degraded() {
        let at = |s: u64| Mono::default().plus(Duration::from_secs(s));
        let mut seen = Seen { batches: 0, failed: 0, since: at(0) };
        let mut look = |running, batches, failed, s| judge(&mut seen, running, batches, failed, at(s));
        assert_eq!(look(false, 0, 0, 100), State::Ready, "idle for long");
        assert_eq!(look(true, 5, 0, 110), State::Ready);
        assert_eq!(look(true, 5, 0, 139), State::Ready);
        assert_eq!(look(true, 5, 0, 140), State::Dead);
        assert_eq!(look(true, 6, 0, 141), State::Ready, "it has come back");
        assert_eq!(look(true, 7, 1, 142), State::Degraded);
        assert_eq!(look(true, 8, 1, 143), State::Ready);
    }
}
