//! A plan as data and as a table: what `check` prints.

use serde::Serialize;

use super::{EdgeClass, Memory, Mode, Plan, Policy};
use crate::units::{Dur, Size};
use crate::{Amount, MediaTime};

/// A plan as data for machines.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// The graph's name.
    pub graph: String,
    /// The plan hash, 16 hexadecimal digits.
    pub hash: String,
    /// `turn` or `duplex`.
    pub mode: &'static str,
    /// Sessions at once.
    pub max_sessions: usize,
    /// Lanes, `main` first.
    pub lanes: Vec<String>,
    /// Nodes, in file order.
    pub nodes: Vec<DescribedNode>,
    /// Edges, in the order of their consumers.
    pub edges: Vec<DescribedEdge>,
    /// Sum of the budgets of main memory, in bytes.
    pub host_memory: u64,
    /// Sum of the budgets of device memory, in bytes.
    pub device_memory: u64,
    /// Most bytes that all edges of one session can hold; an edge without a bound in bytes is not counted.
    pub window_bytes: u64,
}

/// One node of a described plan.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedNode {
    /// Its name.
    pub name: String,
    /// Its type.
    pub r#use: String,
    /// Where it runs.
    pub place: &'static str,
    /// The lane of its outputs.
    pub lane: String,
    /// The lane that it fences.
    pub fences: Option<String>,
    /// Longest path from any source.
    pub depth: usize,
    /// Streams at once, if it is shared and says so.
    pub slots: Option<usize>,
    /// Processors that its compute threads are bound to, as a list such as `0-3,8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The NUMA node that its compute threads are bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa: Option<usize>,
    /// How often it may be made anew after a fault, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// The longest that a step may take unreported, as it would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_budget: Option<String>,
    /// Budget of main memory, in bytes.
    pub host_memory: u64,
    /// Budget of device memory, in bytes.
    pub device_memory: u64,
    /// Its inputs with their kinds.
    pub inputs: Vec<String>,
    /// Its outputs with their kinds.
    pub outputs: Vec<String>,
}

/// One edge of a described plan.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedEdge {
    /// `node.port` of the producer.
    pub from: String,
    /// `node.port` of the consumer.
    pub to: String,
    /// What flows.
    pub kind: String,
    /// The producer's lane.
    pub lane: String,
    /// Bounds, as they would be written.
    pub window: String,
    /// What a full edge does.
    pub policy: &'static str,
    /// Its scheduling class.
    pub class: &'static str,
    /// Longest wait, as it would be written, or `off`.
    pub deadline: String,
    /// What carries it.
    pub via: &'static str,
    /// True if it goes into a feedback port.
    pub feedback: bool,
    /// What the producer's chunk policy means for a listener, if it has one.
    pub continuity: Option<String>,
}

impl Plan {
    /// The plan as data.
    pub fn describe(&self) -> Described {
        let lane = |l: crate::Lane| self.lanes.get(l.index()).cloned().unwrap_or_default();
        let ports = |ports: &[crate::Port]| ports.iter().map(|p| format!("{}: {}", p.name, p.kind)).collect();
        let nodes: Vec<DescribedNode> = self
            .nodes
            .iter()
            .map(|n| DescribedNode {
                name: n.name.clone(),
                r#use: n.kind.clone(),
                place: n.place.name(),
                lane: lane(n.lane),
                fences: n.fences.map(lane),
                depth: n.depth,
                slots: n.slots,
                cpus: (!n.cpus.is_empty()).then(|| crate::pool::affinity::list(&n.cpus)),
                numa: n.numa,
                restart: n.restart.map(|r| format!("at most {} within {}", r.max, Dur(r.window))),
                step_budget: n.step_budget.map(|d| Dur(d).to_string()),
                host_memory: n.memory.host,
                device_memory: n.memory.device,
                inputs: ports(&n.schema.inputs),
                outputs: ports(&n.schema.outputs),
            })
            .collect();
        let edges = self.edges.iter().map(|e| self.edge(e, lane(e.lane))).collect();
        let sum = |of: fn(&Memory) -> u64| self.nodes.iter().fold(0u64, |a, n| a.saturating_add(of(&n.memory)));
        let bounded = self.edges.iter().map(|e| e.limit.bytes).filter(|b| *b != u64::MAX);
        Described {
            graph: self.name.clone(),
            hash: format!("{:016x}", self.hash),
            mode: if self.session.mode == Mode::Duplex { "duplex" } else { "turn" },
            max_sessions: self.session.max_sessions,
            lanes: self.lanes.clone(),
            nodes,
            edges,
            host_memory: sum(|m| m.host),
            device_memory: sum(|m| m.device),
            window_bytes: bounded.fold(0u64, u64::saturating_add),
        }
    }
    /// `node.port` of an output.
    pub fn output_name(&self, at: (usize, usize)) -> String {
        format!("{}.{}", self.nodes[at.0].name, self.nodes[at.0].schema.outputs[at.1].name)
    }
    /// `node.port` of an input.
    pub fn input_name(&self, at: (usize, usize)) -> String {
        format!("{}.{}", self.nodes[at.0].name, self.nodes[at.0].schema.inputs[at.1].name)
    }
    fn edge(&self, e: &super::PlanEdge, lane: String) -> DescribedEdge {
        DescribedEdge {
            from: self.output_name(e.from),
            to: self.input_name(e.to),
            kind: e.kind.to_string(),
            lane,
            window: window(e.limit),
            policy: match e.policy {
                Policy::Wait => "wait",
                Policy::DropOldest => "drop-oldest",
                Policy::Latest => "latest",
            },
            class: match e.class {
                EdgeClass::Realtime => "realtime",
                EdgeClass::Normal => "normal",
                EdgeClass::Background => "background",
            },
            deadline: e.deadline.map_or("off".to_owned(), |d| Dur(d).to_string()),
            via: "memory",
            feedback: e.feedback,
            continuity: self.continuity(e.from),
        }
    }
    fn continuity(&self, (node, port): (usize, usize)) -> Option<String> {
        let (node, port) = (&self.nodes[node], &self.nodes[node].schema.outputs[port].name);
        node.chunks.iter().find(|(p, _)| p == port).map(|(_, text)| text.clone())
    }
}

fn window(a: Amount) -> String {
    let mut parts = Vec::new();
    if a.items != u64::MAX {
        parts.push(format!("{} items", a.items));
    }
    if a.bytes != u64::MAX {
        parts.push(Size(a.bytes).to_string());
    }
    if a.span != MediaTime::from_ticks(i64::MAX) {
        parts.push(Dur(a.span.to_duration()).to_string());
    }
    parts.join(", ")
}

impl std::fmt::Display for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "graph {}  mode {}  sessions {}  plan {}", self.graph, self.mode, self.max_sessions, self.hash)?;
        let mut nodes = vec![["node", "use", "place", "lane", "depth", "memory"].map(str::to_owned)];
        for n in &self.nodes {
            let lane = n.fences.as_ref().map_or(n.lane.clone(), |x| format!("{} (fences {x})", n.lane));
            let slots = n.slots.map_or(String::new(), |s| format!(" x{s}"));
            nodes.push([
                n.name.clone(),
                n.r#use.clone(),
                format!("{}{slots}", n.place),
                lane,
                n.depth.to_string(),
                memory(n.host_memory, n.device_memory),
            ]);
        }
        table(f, &nodes)?;
        for n in &self.nodes {
            n.keys(f)?;
        }
        let mut edges = vec![["edge", "", "kind", "window", "policy", "via"].map(str::to_owned)];
        for e in &self.edges {
            let to = if e.feedback { format!("-> {} (feedback)", e.to) } else { format!("-> {}", e.to) };
            edges.push([e.from.clone(), to, e.kind.clone(), e.window.clone(), e.policy.to_owned(), e.via.to_owned()]);
        }
        table(f, &edges)?;
        let chunked = self.edges.iter().filter_map(|e| Some((e, e.continuity.as_ref()?)));
        for (i, (e, text)) in chunked.enumerate() {
            let head = if i == 0 { "\nchunks\n" } else { "" };
            writeln!(f, "{head}{} -> {}: {text}", e.from, e.to)?;
        }
        let all = memory(self.host_memory, self.device_memory);
        writeln!(f, "\nmemory budgets: {all}; edges of one session: at most {}", Size(self.window_bytes))
    }
}

impl DescribedNode {
    /// One line of what it says beside the columns, if anything.
    fn keys(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [
            self.cpus.as_ref().map(|c| format!("bound to processors {c}")),
            self.numa.map(|n| format!("bound to NUMA node {n}")),
            self.restart.as_ref().map(|r| format!("made anew after a fault, {r}")),
            self.step_budget.as_ref().map(|b| format!("steps above {b} are reported")),
        ];
        let said: Vec<String> = all.into_iter().flatten().collect();
        if said.is_empty() { Ok(()) } else { writeln!(f, "{}: {}", self.name, said.join("; ")) }
    }
}

fn memory(host: u64, device: u64) -> String {
    match (host, device) {
        (0, 0) => "-".to_owned(),
        (h, 0) => Size(h).to_string(),
        (0, d) => format!("{} device", Size(d)),
        (h, d) => format!("{} + {} device", Size(h), Size(d)),
    }
}

fn table<const N: usize>(f: &mut std::fmt::Formatter<'_>, rows: &[[String; N]]) -> std::fmt::Result {
    writeln!(f)?;
    let wide: [usize; N] = std::array::from_fn(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0));
    for row in rows {
        let mut line = String::new();
        for (cell, w) in row.iter().zip(wide) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', w + 2 - cell.chars().count()));
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plan").field(&self.describe()).finish()
    }
}

impl std::fmt::Debug for super::PlanNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanNode")
            .field("name", &self.name)
            .field("use", &self.kind)
            .field("place", &self.place)
            .finish()
    }
}
