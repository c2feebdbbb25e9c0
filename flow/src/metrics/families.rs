//! The list of metric families: names, types, labels and meanings.

use metrics::Unit;

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl MetricType {
    /// Its name in listings and in the Prometheus text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// One metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricType,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
}

const fn family(
    name: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> Family {
    Family { name, kind, labels, meaning }
}

use MetricType::{Counter, Gauge};

/// All families that the engine publishes.
pub const LIST: &[Family] = &[
    family("omni_flow_edge_depth", Gauge, &["graph", "edge"], "chunks queued, all sessions together"),
    family("omni_flow_edge_depth_bytes", Gauge, &["graph", "edge"], "bytes queued"),
    family("omni_flow_edge_media_seconds", Gauge, &["graph", "edge"], "playable time queued; media edges only"),
    family(
        "omni_flow_edge_credit_used_ratio",
        Gauge,
        &["graph", "edge", "bound"],
        "share of the credit in use, of the session that uses most; 0 to 1",
    ),
    family("omni_flow_edge_blocked_seconds_total", Counter, &["graph", "edge"], "time producers waited for credit"),
    family("omni_flow_edge_chunks_total", Counter, &["graph", "edge"], "chunks accepted"),
    family("omni_flow_edge_bytes_total", Counter, &["graph", "edge"], "bytes accepted"),
    family("omni_flow_edge_dropped_total", Counter, &["graph", "edge", "reason"], "chunks dropped"),
    family(
        "omni_flow_edge_oldest_seconds",
        Gauge,
        &["graph", "edge"],
        "age of the oldest queued chunk; no value while empty",
    ),
    family("omni_flow_edge_errors_total", Counter, &["graph", "edge", "code"], "errors of the edge itself"),
    family("omni_flow_node_busy_seconds_total", Counter, &["graph", "node", "replica"], "time inside steps"),
    family("omni_flow_node_inflight", Gauge, &["graph", "node"], "streams that a shared stage works on"),
    family("omni_flow_node_waiting", Gauge, &["graph", "node"], "streams that wait for a shared stage"),
    family("omni_flow_node_faults_total", Counter, &["graph", "node", "kind"], "faults of the node"),
    family("omni_flow_node_restarts_total", Counter, &["graph", "node"], "times that it was made anew after a fault"),
    family(
        "omni_flow_node_over_budget_total",
        Counter,
        &["graph", "node"],
        "steps that took longer than the node's `step-budget`",
    ),
    family("omni_flow_slots", Gauge, &["graph", "node", "state"], "places of a shared stage"),
    family("omni_flow_sessions", Gauge, &["graph", "state"], "sessions there are"),
    family("omni_flow_sessions_limit", Gauge, &["graph"], "sessions there may be"),
    family("omni_flow_sessions_closed_total", Counter, &["graph", "reason"], "sessions that have ended"),
    family("omni_flow_sessions_rejected_total", Counter, &["graph", "code"], "sessions that were not admitted"),
];

/// Reasons of `omni_flow_edge_dropped_total`.
pub(super) const DROPPED: [&str; 6] =
    ["stale_epoch", "policy_oldest", "policy_newest", "duplicate", "closed", "restart"];
/// Kinds of `omni_flow_node_faults_total`.
pub(super) const FAULTS: [&str; 3] = ["panic", "error", "timeout"];
/// Reasons of `omni_flow_sessions_closed_total`. The engine itself gives `client_close` (ran dry), `disconnect` (aborted
/// or dropped), `timeout` and `engine_error`; the rest is for front doors.
pub(super) const CLOSED: [&str; 11] = [
    "client_close",
    "disconnect",
    "timeout",
    "transport_error",
    "shutdown",
    "open_abandoned",
    "session_created_undelivered",
    "engine_error",
    "output_overflow",
    "close_details_exceed_output_limit",
    "client_other",
];
/// Codes of `omni_flow_sessions_rejected_total`.
pub(super) const REJECTED: [&str; 3] = ["resource_exhausted", "closed", "internal"];

/// Tells the installed recorder what each family means. Call it after the recorder is installed.
pub fn describe_metrics() {
    for f in LIST {
        let unit = match f.name {
            n if n.contains("_seconds") => Unit::Seconds,
            n if n.contains("_bytes") => Unit::Bytes,
            _ => Unit::Count,
        };
        // Totals in seconds go through gauges: the facade's counters are whole numbers.
        if f.kind == Counter && unit != Unit::Seconds {
            metrics::describe_counter!(f.name, unit, f.meaning);
        } else {
            metrics::describe_gauge!(f.name, unit, f.meaning);
        }
    }
}
