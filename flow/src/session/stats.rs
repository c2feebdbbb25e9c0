//! A session's figures at one moment.

use crate::edge::EdgeStats;
use crate::probe::NodeStats;

/// Depth, credit, blocking, drops and ages of every edge, and times of every node, of one session.
#[derive(Clone, Debug)]
pub struct SessionStats {
    /// The session's number, unique in its engine.
    pub id: u64,
    /// Its edges, in the plan's order.
    pub edges: Vec<EdgeStats>,
    /// Its nodes, in the plan's order.
    pub nodes: Vec<NodeStats>,
}
