//! One graph's totals: what its closed sessions have counted, and which sessions are still there.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::families::{CLOSED, FAULTS, REJECTED};
use crate::edge::{EdgeCounts, EdgeStats};
use crate::error::{ErrorKind, RunError};
use crate::probe::NodeStats;
use crate::session::SessionShared;
use crate::sync::Mutex;
use crate::{Epochs, Lane, MAX_LANES};

/// Errors that an edge itself can have.
pub(super) const EDGE_ERRORS: [ErrorKind; 6] = [
    ErrorKind::ProducerGone,
    ErrorKind::InputTimeout,
    ErrorKind::Format,
    ErrorKind::SequenceGap,
    ErrorKind::PeerLost,
    ErrorKind::Protocol,
];

/// Sums over sessions of one edge.
#[derive(Clone, Copy, Default)]
pub(super) struct EdgeSum {
    pub counts: EdgeCounts,
    pub errors: [u64; EDGE_ERRORS.len()],
}

/// Sums over sessions of one node.
#[derive(Clone, Copy, Default)]
pub(super) struct NodeSum {
    pub steps: u64,
    pub busy: Duration,
    pub faults: [u64; FAULTS.len()],
    pub restarts: u64,
    pub over_budget: u64,
}

/// Sums over sessions of one graph.
#[derive(Clone, Default)]
pub(super) struct Sums {
    pub edges: Vec<EdgeSum>,
    pub nodes: Vec<NodeSum>,
    pub fences: [u64; MAX_LANES],
    pub closed: [u64; CLOSED.len()],
    pub rejected: [u64; REJECTED.len()],
}

impl Sums {
    pub(super) fn add_edge(&mut self, i: usize, e: &EdgeStats) {
        let Some(sum) = self.edges.get_mut(i) else { return };
        let c = &mut sum.counts;
        c.chunks += e.counts.chunks;
        c.bytes += e.counts.bytes;
        c.stale += e.counts.stale;
        c.policy += e.counts.policy;
        c.closed += e.counts.closed;
        c.lost += e.counts.lost;
        c.depth_high = c.depth_high.max(e.counts.depth_high);
        c.bytes_high = c.bytes_high.max(e.counts.bytes_high);
        c.span_high = c.span_high.max(e.counts.span_high);
        c.blocked += e.counts.blocked + e.blocked_for.unwrap_or_default();
        if let Some(k) = e.fault.and_then(|f| EDGE_ERRORS.iter().position(|k| *k == f)) {
            sum.errors[k] += 1;
        }
    }
    pub(super) fn add_node(&mut self, i: usize, n: &NodeStats) {
        let Some(sum) = self.nodes.get_mut(i) else { return };
        sum.steps += n.steps;
        sum.busy += n.busy;
        sum.faults[0] += n.panics;
        sum.faults[1] += n.faults.saturating_sub(n.panics + n.timeouts);
        sum.faults[2] += n.timeouts;
        sum.restarts += n.restarts;
        sum.over_budget += n.over_budget;
    }
    /// An epoch is the number of fences before it.
    pub(super) fn add_fences(&mut self, epochs: &Epochs) {
        for (i, n) in self.fences.iter_mut().enumerate() {
            *n += Lane::new(i).map_or(0, |l| u64::from(epochs.of(l).0));
        }
    }
    /// No total below what was told before.
    pub(super) fn at_least(&mut self, before: &Self) {
        for (now, old) in self.edges.iter_mut().zip(&before.edges) {
            let (c, o) = (&mut now.counts, &old.counts);
            c.chunks = c.chunks.max(o.chunks);
            c.bytes = c.bytes.max(o.bytes);
            c.stale = c.stale.max(o.stale);
            c.policy = c.policy.max(o.policy);
            c.closed = c.closed.max(o.closed);
            c.lost = c.lost.max(o.lost);
            c.depth_high = c.depth_high.max(o.depth_high);
            c.bytes_high = c.bytes_high.max(o.bytes_high);
            c.span_high = c.span_high.max(o.span_high);
            c.blocked = c.blocked.max(o.blocked);
            now.errors.iter_mut().zip(old.errors).for_each(|(n, o)| *n = (*n).max(o));
        }
        for (now, old) in self.nodes.iter_mut().zip(&before.nodes) {
            now.steps = now.steps.max(old.steps);
            now.busy = now.busy.max(old.busy);
            now.restarts = now.restarts.max(old.restarts);
            now.over_budget = now.over_budget.max(old.over_budget);
            now.faults.iter_mut().zip(old.faults).for_each(|(n, o)| *n = (*n).max(o));
        }
        self.fences.iter_mut().zip(before.fences).for_each(|(n, o)| *n = (*n).max(o));
    }
}

/// What a graph keeps for its metrics.
pub(crate) struct GraphTotals {
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub live: Vec<Weak<SessionShared>>,
    pub past: Sums,
    /// What was told last: totals never go back, also while a session is on its way from live to past.
    pub told: Sums,
}

impl GraphTotals {
    pub(crate) fn new(edges: usize, nodes: usize) -> Self {
        let zero =
            Sums { edges: vec![EdgeSum::default(); edges], nodes: vec![NodeSum::default(); nodes], ..Sums::default() };
        Self { state: Mutex::new(State { live: Vec::new(), past: zero.clone(), told: zero }) }
    }
    pub(crate) fn opened(&self, session: &Arc<SessionShared>) {
        self.state.lock().live.push(Arc::downgrade(session));
    }
    pub(crate) fn rejected(&self, code: &str) {
        let i = REJECTED.iter().position(|c| *c == code).unwrap_or(REJECTED.len() - 1);
        self.state.lock().past.rejected[i] += 1;
    }
    /// All nodes of a session have ended.
    pub(crate) fn ended(&self, error: Option<&RunError>) {
        let reason = match error.map(RunError::kind) {
            None => "client_close",
            Some(ErrorKind::Aborted) => "disconnect",
            Some(ErrorKind::Stuck | ErrorKind::InputTimeout | ErrorKind::Idle) => "timeout",
            Some(_) => "engine_error",
        };
        if let Some(i) = CLOSED.iter().position(|r| *r == reason) {
            self.state.lock().past.closed[i] += 1;
        }
    }
    /// The last holder of a session has let go: its figures are final.
    pub(crate) fn gone(&self, edges: &[EdgeStats], nodes: &[NodeStats], epochs: &Epochs) {
        let mut state = self.state.lock();
        edges.iter().enumerate().for_each(|(i, e)| state.past.add_edge(i, e));
        nodes.iter().enumerate().for_each(|(i, n)| state.past.add_node(i, n));
        state.past.add_fences(epochs);
        state.live.retain(|s| s.strong_count() > 0);
    }
}
