//! A graph at one moment, all its sessions together: what is published, and what [`Graph::snapshot`] gives.
//!
//! Made only when somebody asks: it costs a lock per edge of each live session, and the data path knows nothing of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::graph::Sums;
use crate::edge::{EdgeCounts, EdgeStats};
use crate::engine::{Graph, GraphShared};
use crate::session::SessionShared;
use crate::{Amount, Mono};

/// A graph at one moment, all its sessions together. Totals count from the start of the graph and never fall.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSnapshot {
    /// When it was taken, on the engine's clock.
    pub at: Mono,
    /// Sessions that run.
    pub open: usize,
    /// Sessions that were told to end and still hold something.
    pub closing: usize,
    /// Sessions that have ended.
    pub closed: u64,
    /// Sessions that were refused.
    pub rejected: u64,
    /// Per lane, in the plan's order, how often it was fenced.
    pub fences: Vec<u64>,
    /// Its edges, in the plan's order.
    pub edges: Vec<EdgeSnapshot>,
    /// Its nodes, in the plan's order.
    pub nodes: Vec<NodeSnapshot>,
}

/// One edge of a [`GraphSnapshot`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeSnapshot {
    /// Totals. High-water marks are not summed: they are those of the session that came highest.
    pub counts: EdgeCounts,
    /// Chunks queued now.
    pub depth: u64,
    /// What is queued now.
    pub queued: Amount,
    /// Share of the bound in items that is in use, of the session that uses most; 0 to 1.
    pub used_items: f64,
    /// The same of the bound in bytes.
    pub used_bytes: f64,
    /// The same of the bound in media time.
    pub used_media: f64,
    /// Sessions whose producer waits for credit now.
    pub blocked: usize,
    /// Age of the oldest queued chunk, since its input entered the graph; `None` when all are empty.
    pub oldest: Option<Duration>,
}

impl EdgeSnapshot {
    /// How full it is: the bound that is nearest to its end, 0 to 1.
    pub fn fill(&self) -> f64 {
        self.used_items.max(self.used_bytes).max(self.used_media)
    }
    fn add(&mut self, e: &EdgeStats) {
        let ratio = |used: u64, limit: u64| (used as f64 / limit.max(1) as f64).min(1.0);
        self.depth += e.depth;
        self.queued = self.queued.plus(e.queued);
        self.used_items = self.used_items.max(ratio(e.used.items, e.limit.items));
        self.used_bytes = self.used_bytes.max(ratio(e.used.bytes, e.limit.bytes));
        let ticks = |t: crate::MediaTime| t.ticks().max(0) as u64;
        self.used_media = self.used_media.max(ratio(ticks(e.used.span), ticks(e.limit.span)));
        self.blocked += usize::from(e.blocked_for.is_some());
        self.oldest = self.oldest.max(e.oldest);
    }
}

/// One node of a [`GraphSnapshot`]: totals of all its instances. Of a shared stage, see [`Graph::stages`] too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSnapshot {
    /// Steps taken (chunks handled, units of a shared stage).
    pub steps: u64,
    /// Time inside steps.
    pub busy: Duration,
    /// Errors, panics and timeouts together.
    pub faults: u64,
    /// How often one was made anew after a fault, in the same session.
    pub restarts: u64,
    /// Steps that took longer than its `step-budget`.
    pub over_budget: u64,
    /// Instances that do heavy work now, or wait for their turn on the compute pool.
    pub working: usize,
}

/// The same before it is told to anybody.
pub(super) struct Collected {
    pub open: usize,
    pub closing: usize,
    pub sums: Sums,
    /// Without counts: they are in `sums`.
    pub edges: Vec<EdgeSnapshot>,
    pub working: Vec<usize>,
}

/// Looks at each live session once; never waits.
pub(super) fn collect(graph: &GraphShared, now: Mono) -> Collected {
    let (sessions, mut sums) = {
        let mut state = graph.totals.state.lock();
        state.live.retain(|s| s.strong_count() > 0);
        let live: Vec<Arc<SessionShared>> = state.live.iter().filter_map(Weak::upgrade).collect();
        (live, state.past.clone())
    };
    let mut edges = vec![EdgeSnapshot::default(); graph.edges.len()];
    let mut working = vec![0; graph.plan.nodes.len()];
    let (mut open, mut closing) = (0, 0);
    for s in &sessions {
        if !s.ended() {
            *(if s.cancelled().is_some() { &mut closing } else { &mut open }) += 1;
        }
        sums.add_fences(&s.lanes.epochs());
        for (i, edge) in s.edges.iter().enumerate() {
            let stats = edge.stats(now);
            sums.add_edge(i, &stats);
            edges[i].add(&stats);
        }
        for (i, (probe, node)) in s.probes.iter().zip(&graph.plan.nodes).enumerate() {
            sums.add_node(i, &probe.stats(&node.name));
            working[i] += usize::from(probe.works());
        }
    }
    // Dropped outside the lock: the last holder of a session adds its figures to the totals.
    drop(sessions);
    let mut state = graph.totals.state.lock();
    sums.at_least(&state.told);
    state.told = sums.clone();
    drop(state);
    Collected { open, closing, sums, edges, working }
}

impl Graph {
    /// All its figures now, summed over the sessions that live and those that have ended. Costs a lock per edge of each
    /// live session, and nothing when it is not called.
    pub fn snapshot(&self) -> GraphSnapshot {
        let at = self.0.engine.clock.now();
        let all = collect(&self.0, at);
        let edges = all.edges.into_iter().zip(&all.sums.edges).map(|(e, sum)| EdgeSnapshot { counts: sum.counts, ..e });
        let nodes = all.working.into_iter().zip(&all.sums.nodes).map(|(working, sum)| NodeSnapshot {
            steps: sum.steps,
            busy: sum.busy,
            faults: sum.faults.iter().sum(),
            restarts: sum.restarts,
            over_budget: sum.over_budget,
            working,
        });
        GraphSnapshot {
            at,
            open: all.open,
            closing: all.closing,
            closed: all.sums.closed.iter().sum(),
            rejected: all.sums.rejected.iter().sum(),
            fences: all.sums.fences[..self.0.plan.lanes.len()].to_vec(),
            edges: edges.collect(),
            nodes: nodes.collect(),
        }
    }
}
