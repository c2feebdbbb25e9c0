//! A graph that is ready: its models loaded, its sessions waiting to be opened.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::EngineShared;
use crate::edge::EdgeSpec;
use crate::metrics::GraphTotals;
use crate::node::{Admission, Body, BodyKind, Budget, BuildCx, BuildError};
use crate::pool::{Pool, PoolConfig, affinity};
use crate::probe::NodeProbe;
use crate::session::{OpenError, Session};
use crate::{Place, Plan, PlanNode, Policy};

/// A graph that is ready for sessions. Cheap to clone.
#[derive(Clone)]
pub struct Graph(pub(crate) Arc<GraphShared>);

pub(crate) struct GraphShared {
    pub engine: Arc<EngineShared>,
    pub plan: Plan,
    pub bodies: Vec<Body>,
    pub edges: Vec<EdgeSpec>,
    /// Per node, the pool that its heavy work runs on.
    pub pools: Vec<Pool>,
    /// Per node, its `step-budget`.
    pub budgets: Vec<Option<Arc<Budget>>>,
    /// What the shared stages that have a budget run now.
    stage_watches: Vec<Arc<NodeProbe>>,
    /// Per node, the node that runs after it on the same task.
    fused: Vec<Option<usize>>,
    /// Per node, the first of its chain.
    heads: Vec<usize>,
    /// Per node, how many streams it works on at once, if that is limited.
    pub admissions: Vec<Option<Arc<Admission>>>,
    admission: Arc<Semaphore>,
    /// What its sessions have counted.
    pub(crate) totals: GraphTotals,
}

/// The nodes of a graph that could not be built.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct StartError {
    /// `graph/node` and the reason, per node.
    pub nodes: Vec<(String, BuildError)>,
}

impl StartError {
    fn text(&self) -> String {
        self.nodes.iter().map(|(n, e)| format!("{n}: {e}")).collect::<Vec<_>>().join("\n")
    }
}

impl Graph {
    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }
    /// Opens a session.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is left behind.
    pub fn open(&self) -> Result<Session, OpenError> {
        let opened = self.admit();
        if let Err(e) = &opened {
            self.0.totals.rejected(e.code());
            self.0.engine.note();
        }
        opened
    }
    fn admit(&self) -> Result<Session, OpenError> {
        let g = &self.0;
        let Ok(admitted) = g.admission.clone().try_acquire_owned() else {
            return Err(OpenError::Full { graph: g.plan.name.clone(), limit: g.plan.session.max_sessions });
        };
        let id = g.engine.next_session();
        crate::session::open(g, id, g.engine.seed, admitted)
    }
    /// Figures of the shared stages, by node name.
    pub fn stages(&self) -> Vec<(String, crate::shared::StageStats)> {
        let pairs = self.0.plan.nodes.iter().zip(&self.0.bodies);
        pairs
            .filter_map(|(n, b)| if let BodyKind::Started(s) = &b.0 { Some((n.name.clone(), s.stats())) } else { None })
            .collect()
    }
}

impl GraphShared {
    /// True if node `i` runs on the task of the node before it.
    pub(crate) fn fused_into(&self, i: usize) -> bool {
        self.fused.contains(&Some(i))
    }
    /// Reports units of its stages that have been running for too long.
    pub(crate) fn look(&self, now: crate::Mono) {
        self.stage_watches.iter().filter_map(|p| p.watch()).for_each(|w| w.look(now));
    }
    /// The node on whose task node `i` runs.
    pub(crate) fn head(&self, i: usize) -> usize {
        self.heads[i]
    }
    /// The nodes that run on the task of node `head`, itself first.
    pub(crate) fn chain(&self, head: usize) -> Vec<usize> {
        std::iter::successors(Some(head), |n| self.fused[*n]).collect()
    }
}

pub(crate) async fn start(engine: Arc<EngineShared>, plan: Plan) -> Result<Graph, StartError> {
    let mut failed = Vec::new();
    let mut pools = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        pools.push(pool_of(&engine, node).unwrap_or_else(|e| {
            failed.push((format!("{}/{}", plan.name, node.name), e));
            engine.pool.clone()
        }));
    }
    if !failed.is_empty() {
        return Err(StartError { nodes: failed });
    }
    // All at once: a graph is ready when its slowest model is.
    let builds = plan.nodes.iter().zip(&pools).map(|(node, pool)| {
        let path = format!("{}/{}", plan.name, node.name);
        let cx = BuildCx {
            path: path.clone(),
            folder: plan.folder.clone(),
            offline: engine.offline,
            seed: engine.seed,
            threads: node.threads.unwrap_or(1),
            slots: node.slots.unwrap_or(plan.session.max_sessions),
            chunk: node.chunk.clone(),
            chunked: plan.chunked,
            env: node.env.iter().cloned().collect(),
        };
        let configured = node.configured.clone();
        let engine = &engine;
        let (limit, pinned) = (node.init_timeout, is_pinned(node));
        async move {
            // Where its threads are bound it is built as well, so that its memory is near them, and threads that it starts
            // are bound with it.
            let build = async {
                let build = move || configured.build(&cx);
                if pinned { engine.spawner.on(pool, build).await } else { engine.spawner.blocking(build).await }
            };
            (path, limit, engine.clock.timeout(limit, build).await)
        }
    });
    let built = futures_util::future::join_all(builds).await;
    let mut bodies = Vec::with_capacity(plan.nodes.len());
    for (path, limit, result) in built {
        match result {
            Some(Ok(Ok(body))) => bodies.push(body),
            Some(Ok(Err(e))) => failed.push((path, e)),
            Some(Err(panic)) => failed.push((path, BuildError::new(format!("panicked while it was built: {panic}")))),
            None => {
                let text = format!("not built within {limit:?}; raise `init-timeout` if it needs longer");
                failed.push((path, BuildError::new(text)));
            }
        }
    }
    if !failed.is_empty() {
        return Err(StartError { nodes: failed });
    }
    if let Some(limits) = plan.scheduler {
        engine.pool.set_limits(limits);
        pools.iter().for_each(|p| p.set_limits(limits));
    }
    let budget = |n: &PlanNode, limit| {
        Arc::new(Budget::new(format!("{}/{}", plan.name, n.name), limit, n.place == Place::Task, engine.clock.clone()))
    };
    let budgets: Vec<Option<Arc<Budget>>> =
        plan.nodes.iter().map(|n| n.step_budget.map(|limit| budget(n, limit))).collect();
    let mut stage_watches = Vec::new();
    let bodies = bodies.into_iter().enumerate().map(|(i, b)| {
        let watch = budgets[i].clone().filter(|_| plan.nodes[i].place == Place::Shared);
        let watch = watch.map(|b| Arc::new(NodeProbe::new(Some(b))));
        stage_watches.extend(watch.clone());
        start_stage(&engine, &plan, i, &pools[i], b, watch)
    });
    let bodies: Vec<Body> = bodies.collect();
    let fused = if engine.fuse { fuse(&plan, &bodies) } else { vec![None; plan.nodes.len()] };
    let edges: Vec<EdgeSpec> = plan.edges.iter().map(|e| spec(&plan, &bodies, e)).collect();
    let admission = Arc::new(Semaphore::new(plan.session.max_sessions.clamp(1, Semaphore::MAX_PERMITS)));
    let admissions = plan.nodes.iter().map(|n| n.active_streams.map(|most| Arc::new(Admission::new(most)))).collect();
    let totals = GraphTotals::new(plan.edges.len(), plan.nodes.len());
    let graph = GraphShared {
        engine,
        plan,
        bodies,
        edges,
        pools,
        budgets,
        stage_watches,
        heads: heads(&fused),
        fused,
        admissions,
        admission,
        totals,
    };
    let graph = Arc::new(graph);
    graph.engine.watch_graph(&graph);
    Ok(Graph(graph))
}

/// Gives a shared stage its slots and its pool; any other body stays as it is.
fn start_stage(
    engine: &EngineShared,
    plan: &Plan,
    node: usize,
    pool: &Pool,
    body: Body,
    watch: Option<Arc<NodeProbe>>,
) -> Body {
    let BodyKind::Stage(mut config, make) = body.0 else { return body };
    config.slots = plan.nodes[node].slots.unwrap_or(plan.session.max_sessions).max(1);
    let clock = engine.clock.clone();
    Body(BodyKind::Started(make(config, pool.clone(), Arc::new(move || clock.now()), watch)))
}

/// True if the graph file says where the node's compute threads run.
fn is_pinned(node: &PlanNode) -> bool {
    node.numa.is_some() || !node.cpus.is_empty()
}

/// The pool that the node's heavy work runs on: the engine's, or one of its own.
fn pool_of(engine: &Arc<EngineShared>, node: &PlanNode) -> Result<Pool, BuildError> {
    let pinned = is_pinned(node);
    let cpus = if pinned {
        affinity::resolve(&node.cpus, node.numa).map_err(|e| BuildError::new(e.to_string()))?
    } else {
        Vec::new()
    };
    let own = pinned || node.place == Place::Thread || node.threads.is_some();
    // A simulated world has no threads.
    if !own || engine.pool.stats().threads == 0 {
        return Ok(engine.pool.clone());
    }
    let threads = match node.place {
        Place::Thread => node.threads.unwrap_or(1),
        _ => node.threads.unwrap_or(cpus.len()),
    };
    let config = PoolConfig { threads, cpus, name: node.name.clone(), ..PoolConfig::default() };
    let clock = engine.clock.clone();
    Pool::new(&config, Arc::new(move || clock.now())).map_err(BuildError::from_error)
}

fn spec(plan: &Plan, bodies: &[Body], e: &crate::PlanEdge) -> EdgeSpec {
    let (from, to) = (&plan.nodes[e.from.0], &plan.nodes[e.to.0]);
    let end = |n: &PlanNode, port: &str| format!("{}.{port}", n.name);
    EdgeSpec {
        name: format!(
            "{}->{}",
            end(from, &from.schema.outputs[e.from.1].name),
            end(to, &to.schema.inputs[e.to.1].name)
        ),
        from: format!("{}/{}", plan.name, from.name),
        to: format!("{}/{}", plan.name, to.name),
        lane: e.lane,
        kind: e.kind.clone(),
        limit: e.limit,
        policy: e.policy,
        deadline: e.deadline,
        whole: e.whole,
        gated: to.active_streams.is_some() && matches!(bodies[e.to.0].0, BodyKind::Started(_)),
    }
}

/// Which step runs after which on one task: a step on place `task` whose only output feeds only the input of another
/// such step, over an edge that waits, on the lane of the chain's own input, so that one fence resets all of them. A
/// step that is made anew after a fault runs alone: the others must not lose their state with it.
fn fuse(plan: &Plan, bodies: &[Body]) -> Vec<Option<usize>> {
    let step = |i: usize| {
        let node = &plan.nodes[i];
        matches!(bodies[i].0, BodyKind::Step(_)) && node.place == Place::Task && node.restart.is_none()
    };
    let input = |i: usize| plan.nodes[i].inputs.first().copied().flatten();
    (0..plan.nodes.len())
        .map(|i| {
            let outs: Vec<usize> = plan.nodes[i].outputs.iter().flatten().copied().collect();
            let [e] = outs[..] else { return None };
            let edge = &plan.edges[e];
            let (next, lane) = (edge.to.0, edge.lane);
            let same = input(i).is_some_and(|e| plan.edges[e].lane == lane);
            (step(i) && step(next) && edge.policy == Policy::Wait && !edge.whole && same && next != i).then_some(next)
        })
        .collect()
}

/// The first of each node's chain.
fn heads(fused: &[Option<usize>]) -> Vec<usize> {
    let mut heads: Vec<usize> = (0..fused.len()).collect();
    for first in (0..fused.len()).filter(|i| !fused.contains(&Some(*i))) {
        std::iter::successors(Some(first), |n| fused[*n]).for_each(|n| heads[n] = first);
    }
    heads
}
