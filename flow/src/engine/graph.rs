//! A graph that is ready: its models loaded, its sessions waiting to be opened.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::EngineShared;
use crate::edge::EdgeSpec;
use crate::metrics::GraphTotals;
use crate::node::{Body, BodyKind, BuildCx, BuildError};
use crate::pool::{Pool, PoolConfig};
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
    /// Per node, the node that runs after it on the same task.
    fused: Vec<Option<usize>>,
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
    /// The nodes that run on the task of node `head`, itself first.
    pub(crate) fn chain(&self, head: usize) -> Vec<usize> {
        std::iter::successors(Some(head), |n| self.fused[*n]).collect()
    }
}

pub(crate) async fn start(engine: Arc<EngineShared>, plan: Plan) -> Result<Graph, StartError> {
    // All at once: a graph is ready when its slowest model is.
    let builds = plan.nodes.iter().map(|node| {
        let path = format!("{}/{}", plan.name, node.name);
        let cx = BuildCx {
            path: path.clone(),
            folder: plan.folder.clone(),
            offline: engine.offline,
            seed: engine.seed,
            threads: node.threads.unwrap_or(1),
            slots: node.slots.unwrap_or(plan.session.max_sessions),
            chunk: node.chunk.clone(),
            env: node.env.iter().cloned().collect(),
        };
        let configured = node.configured.clone();
        let engine = &engine;
        let limit = node.init_timeout;
        async move {
            let build = engine.spawner.blocking(move || configured.build(&cx));
            (path, limit, engine.clock.timeout(limit, build).await)
        }
    });
    let built = futures_util::future::join_all(builds).await;
    let mut bodies = Vec::with_capacity(plan.nodes.len());
    let mut failed = Vec::new();
    let mut pools = Vec::with_capacity(plan.nodes.len());
    for (node, (path, limit, result)) in plan.nodes.iter().zip(built) {
        match result {
            Some(Ok(Ok(body))) => bodies.push(body),
            Some(Ok(Err(e))) => failed.push((path, e)),
            Some(Err(panic)) => failed.push((path, BuildError::new(format!("panicked while it was built: {panic}")))),
            None => {
                let text = format!("not built within {limit:?}; raise `init-timeout` if it needs longer");
                failed.push((path, BuildError::new(text)));
            }
        }
        pools.push(match node.place {
            Place::Thread => match own_thread(&engine) {
                Ok(pool) => pool,
                Err(e) => {
                    failed.push((format!("{}/{}", plan.name, node.name), BuildError::from_error(e)));
                    engine.pool.clone()
                }
            },
            _ => engine.pool.clone(),
        });
    }
    if !failed.is_empty() {
        return Err(StartError { nodes: failed });
    }
    let bodies = bodies.into_iter().enumerate().map(|(i, b)| start_stage(&engine, &plan, i, &pools[i], b)).collect();
    let bodies: Vec<Body> = bodies;
    let fused = if engine.fuse { fuse(&plan, &bodies) } else { vec![None; plan.nodes.len()] };
    let edges: Vec<EdgeSpec> = plan.edges.iter().map(|e| spec(&plan, e)).collect();
    let admission = Arc::new(Semaphore::new(plan.session.max_sessions.clamp(1, Semaphore::MAX_PERMITS)));
    let totals = GraphTotals::new(plan.edges.len(), plan.nodes.len());
    let graph = Arc::new(GraphShared { engine, plan, bodies, edges, pools, fused, admission, totals });
    graph.engine.watch_graph(&graph);
    Ok(Graph(graph))
}

/// Gives a shared stage its slots and its pool; any other body stays as it is.
fn start_stage(engine: &EngineShared, plan: &Plan, node: usize, pool: &Pool, body: Body) -> Body {
    let BodyKind::Stage(mut config, make) = body.0 else { return body };
    config.slots = plan.nodes[node].slots.unwrap_or(plan.session.max_sessions).max(1);
    let clock = engine.clock.clone();
    Body(BodyKind::Started(make(config, pool.clone(), Arc::new(move || clock.now()))))
}

fn own_thread(engine: &Arc<EngineShared>) -> Result<Pool, crate::pool::PoolError> {
    let clock = engine.clock.clone();
    Pool::new(&PoolConfig { threads: 1, ..PoolConfig::default() }, Arc::new(move || clock.now()))
}

fn spec(plan: &Plan, e: &crate::PlanEdge) -> EdgeSpec {
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
    }
}

/// Which step runs after which on one task: a step on place `task` whose only output feeds only the input of another
/// such step, over an edge that waits, on the lane of the chain's own input, so that one fence resets all of them.
fn fuse(plan: &Plan, bodies: &[Body]) -> Vec<Option<usize>> {
    let step = |i: usize| matches!(bodies[i].0, BodyKind::Step(_)) && plan.nodes[i].place == Place::Task;
    let input = |i: usize| plan.nodes[i].inputs.first().copied().flatten();
    (0..plan.nodes.len())
        .map(|i| {
            let outs: Vec<usize> = plan.nodes[i].outputs.iter().flatten().copied().collect();
            let [e] = outs[..] else { return None };
            let edge = &plan.edges[e];
            let (next, lane) = (edge.to.0, edge.lane);
            let same = input(i).is_some_and(|e| plan.edges[e].lane == lane);
            (step(i) && step(next) && edge.policy == Policy::Wait && same && next != i).then_some(next)
        })
        .collect()
}
