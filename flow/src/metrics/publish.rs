//! Writes one graph's figures to the recorder.

use metrics::{counter, gauge};

use super::families::{CLOSED, DROPPED, FAULTS, REJECTED};
use super::graph::{EDGE_ERRORS, Sums};
use super::snapshot::{Collected, EdgeSnapshot, collect};
use crate::engine::GraphShared;
use crate::node::BodyKind;
use crate::{Medium, Mono, Policy};

/// Publishes all figures of `graph`. Looks at each live session once; never waits.
pub(crate) fn publish(graph: &GraphShared, now: Mono) {
    let Collected { open, closing, sums, edges: at, .. } = collect(graph, now);
    edges(graph, &sums, &at);
    nodes(graph, &sums);
    let name = || graph.plan.name.clone();
    gauge!("omni_flow_sessions", "graph" => name(), "state" => "open").set(open as f64);
    gauge!("omni_flow_sessions", "graph" => name(), "state" => "closing").set(closing as f64);
    gauge!("omni_flow_sessions_limit", "graph" => name()).set(graph.plan.session.max_sessions as f64);
    for (reason, n) in CLOSED.iter().zip(sums.closed) {
        counter!("omni_flow_sessions_closed_total", "graph" => name(), "reason" => *reason).absolute(n);
    }
    for (code, n) in REJECTED.iter().zip(sums.rejected) {
        counter!("omni_flow_sessions_rejected_total", "graph" => name(), "code" => *code).absolute(n);
    }
}

fn edges(graph: &GraphShared, sums: &Sums, at: &[EdgeSnapshot]) {
    for ((spec, sum), now) in graph.edges.iter().zip(&sums.edges).zip(at) {
        let labels = || [("graph", graph.plan.name.clone()), ("edge", spec.name.clone())];
        let (l, c) = (labels(), &sum.counts);
        let media = matches!(spec.kind.medium, Medium::Audio | Medium::Video);
        gauge!("omni_flow_edge_depth", &l).set(now.depth as f64);
        gauge!("omni_flow_edge_depth_bytes", &l).set(now.queued.bytes as f64);
        if media {
            gauge!("omni_flow_edge_media_seconds", &l).set(now.queued.span.as_secs_f64());
        }
        for (bound, value) in [("items", now.used_items), ("bytes", now.used_bytes), ("media", now.used_media)] {
            if bound != "media" || media {
                let [g, e] = labels();
                gauge!("omni_flow_edge_credit_used_ratio", &[g, e, ("bound", bound.to_owned())]).set(value);
            }
        }
        // Only once it had a value does it need to lose it.
        if now.oldest.is_some() || c.chunks > 0 {
            gauge!("omni_flow_edge_oldest_seconds", &l).set(now.oldest.map_or(f64::NAN, |t| t.as_secs_f64()));
        }
        gauge!("omni_flow_edge_blocked_seconds_total", &l).set(c.blocked.as_secs_f64());
        counter!("omni_flow_edge_chunks_total", &l).absolute(c.chunks);
        counter!("omni_flow_edge_bytes_total", &l).absolute(c.bytes);
        // Both lossy policies drop what is oldest.
        debug_assert!(c.policy == 0 || spec.policy != Policy::Wait);
        for (reason, n) in DROPPED.iter().zip([c.stale, c.policy, 0, 0, c.closed, c.lost]) {
            let [g, e] = labels();
            counter!("omni_flow_edge_dropped_total", &[g, e, ("reason", (*reason).to_owned())]).absolute(n);
        }
        for (kind, n) in EDGE_ERRORS.iter().zip(sum.errors) {
            let [g, e] = labels();
            counter!("omni_flow_edge_errors_total", &[g, e, ("code", kind.code().to_owned())]).absolute(n);
        }
    }
}

fn nodes(graph: &GraphShared, sums: &Sums) {
    let parts = graph.plan.nodes.iter().zip(&sums.nodes).zip(&graph.bodies).zip(&graph.admissions);
    for (((node, sum), body), admission) in parts {
        if node.schema.client.is_some() {
            continue;
        }
        let labels = || [("graph", graph.plan.name.clone()), ("node", node.name.clone())];
        let [g, n] = labels();
        gauge!("omni_flow_node_busy_seconds_total", &[g, n, ("replica", "0".to_owned())]).set(sum.busy.as_secs_f64());
        for (kind, count) in FAULTS.iter().zip(sum.faults) {
            let [g, n] = labels();
            counter!("omni_flow_node_faults_total", &[g, n, ("kind", (*kind).to_owned())]).absolute(count);
        }
        counter!("omni_flow_node_restarts_total", &labels()).absolute(sum.restarts);
        counter!("omni_flow_node_over_budget_total", &labels()).absolute(sum.over_budget);
        if let BodyKind::Started(stage) = &body.0 {
            let s = stage.stats();
            for (state, count) in [("used", s.leased), ("free", s.slots.saturating_sub(s.leased))] {
                let [g, n] = labels();
                gauge!("omni_flow_slots", &[g, n, ("state", state.to_owned())]).set(count as f64);
            }
            let (inflight, queued) = admission.as_ref().map_or((s.leased, 0), |a| (a.active(), a.waiting()));
            let [g, n] = labels();
            gauge!("omni_flow_node_inflight", &[g, n]).set(inflight as f64);
            let [g, n] = labels();
            gauge!("omni_flow_node_waiting", &[g, n]).set((s.waiting + queued) as f64);
        }
    }
}
