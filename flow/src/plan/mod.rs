//! A checked graph: what runs where, over which edges, within which bounds.
//!
//! A [`Plan`] can only be had from a [`GraphFile`](crate::GraphFile) that passed every check against a
//! [`Registry`](crate::Registry), so nothing in it needs to be checked again.

mod applies;
mod check;
mod chunk;
mod cycle;
mod describe;
mod draw;
mod edge;
mod hash;
mod keys;
mod kinds;
mod node;
mod pin;
mod restart;
mod svg;

pub use check::{CheckCx, Warnings};
pub use describe::{Described, DescribedEdge, DescribedNode};
pub(crate) use keys::duration;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::node::RestartPolicy;
use crate::pool::Limits;
use crate::registry::Configured;
use crate::{Amount, Kind, Lane, Schema};

/// A checked graph.
#[derive(Clone)]
pub struct Plan {
    /// The graph's name.
    pub name: String,
    /// Folder of the graph file: relative paths start here.
    pub folder: PathBuf,
    /// Lane names; index 0 is `main`.
    pub lanes: Vec<String>,
    /// Nodes, in file order.
    pub nodes: Vec<PlanNode>,
    /// Edges, in the order of their consumers.
    pub edges: Vec<PlanEdge>,
    /// Limits of one session and of all sessions.
    pub session: SessionPlan,
    /// `scheduler`: when age overrules class on the compute pool; `None` = as the engine has it.
    pub scheduler: Option<Limits>,
    /// False: every edge carries whole segments, each as one chunk.
    pub chunked: bool,
    /// Environment of all nodes. Values are never shown.
    pub env: Vec<(String, String)>,
    /// A hash of all that two parts of one graph must agree on.
    pub hash: u64,
}

impl Plan {
    /// True if nobody waits for what node `i` makes: all its inputs are of class `background`.
    pub(crate) fn background(&self, i: usize) -> bool {
        let mut fed = self.nodes[i].inputs.iter().flatten().peekable();
        fed.peek().is_some() && fed.all(|e| self.edges[*e].class == EdgeClass::Background)
    }
    /// The node that an error names by its path, `graph/node`.
    pub(crate) fn named(&self, path: &str) -> Option<usize> {
        let name = path.strip_prefix(&*self.name)?.strip_prefix('/')?;
        self.nodes.iter().position(|n| n.name == name)
    }
}

/// One node of a plan.
#[derive(Clone)]
pub struct PlanNode {
    /// Its name in the graph.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// The lane of its outputs.
    pub lane: Lane,
    /// The lane that it fences.
    pub fences: Option<Lane>,
    /// Where it runs.
    pub place: Place,
    /// Its schema, refined by its options, with the output kinds resolved.
    pub schema: Schema,
    /// Per input port, the edge that feeds it.
    pub inputs: Vec<Option<usize>>,
    /// Per output port, the edges that it feeds.
    pub outputs: Vec<Vec<usize>>,
    /// Streams that a shared stage handles at once.
    pub slots: Option<usize>,
    /// Threads of a compute pool of its own.
    pub threads: Option<usize>,
    /// Streams that a shared stage works on at once; `None` = all.
    pub active_streams: Option<usize>,
    /// Longest time that one step may take before it is reported.
    pub step_budget: Option<Duration>,
    /// How often it may be made anew after a fault, in the same session; `None` = never.
    pub restart: Option<RestartPolicy>,
    /// Processors that its compute threads are bound to, in ascending order; empty = not said.
    pub cpus: Vec<usize>,
    /// The NUMA node whose processors its compute threads are bound to.
    pub numa: Option<usize>,
    /// Longest time that its start may take.
    pub init_timeout: Duration,
    /// False: its death degrades, does not stop, the graph. Its branch ends in its error; the session goes on.
    pub required: bool,
    /// What it may use, in bytes.
    pub memory: Memory,
    /// The key `sampling`: what a deployment chooses for a model.
    pub sampling: Option<serde_json::Value>,
    /// The key `chunk`: chunk policies, per output port or for all.
    pub chunk: Option<serde_json::Value>,
    /// Per output port with a chunk policy, what its chunks mean for a listener.
    pub chunks: Vec<(String, String)>,
    /// Environment of this node: that of the graph with its own. Values are never shown.
    pub env: Vec<(String, String)>,
    /// Longest path from any source, in edges: work nearer to the listener goes first.
    pub depth: usize,
    /// Its type with its options, ready to build.
    pub configured: Arc<dyn Configured>,
}

/// One edge of a plan.
#[derive(Clone, Debug)]
pub struct PlanEdge {
    /// Producer: node and output port.
    pub from: (usize, usize),
    /// Consumer: node and input port.
    pub to: (usize, usize),
    /// The lane of the producer's outputs.
    pub lane: Lane,
    /// What flows.
    pub kind: Kind,
    /// Bounds.
    pub limit: Amount,
    /// What a full edge does.
    pub policy: Policy,
    /// Longest wait for the next chunk of an open stream; `None` = for ever.
    pub deadline: Option<Duration>,
    /// Somebody wrote that deadline: it also counts the time in which the producer itself waits for something to do.
    pub strict: bool,
    /// Scheduling class of what crosses.
    pub class: EdgeClass,
    /// True if it closes a declared cycle.
    pub feedback: bool,
    /// True if it hands on whole segments: `chunked: false`, and the producer gives segments in parts.
    pub whole: bool,
}

/// What a full edge does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Policy {
    /// The sender waits.
    #[default]
    Wait,
    /// The oldest chunk goes, counted.
    DropOldest,
    /// Only the newest chunk is kept, the others go, counted.
    Latest,
}

/// Scheduling class that a graph file gives an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum EdgeClass {
    /// Somebody listens. Goes first over a link to another process; within one, urgency comes from the playback.
    Realtime,
    /// As usual.
    #[default]
    Normal,
    /// When nothing else wants to run: a node fed by such edges alone computes when others are idle, or after the
    /// bounded wait that keeps everything moving.
    Background,
}

/// Where a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On an async worker.
    Task,
    /// On the bounded compute pool.
    Pool,
    /// On a thread of its own.
    Thread,
    /// In a stage that sessions share.
    Shared,
}

impl Place {
    /// Its name in graph files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Pool => "pool",
            Self::Thread => "thread",
            Self::Shared => "shared",
        }
    }
}

/// A budget of memory, in bytes; 0 = not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    /// Main memory.
    pub host: u64,
    /// Memory of accelerators.
    pub device: u64,
}

/// Limits of sessions.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// `turn` or `duplex`.
    pub mode: Mode,
    /// Sessions at once.
    pub max_sessions: usize,
    /// An idle session ends after this; `None` = never.
    pub idle_ttl: Option<Duration>,
}

/// How a client talks to the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Request, then answer.
    Turn,
    /// Both at any time.
    Duplex,
}
