//! Opening a session: edges first, then instances of all nodes, then their tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ends::Input;
use super::instance::{Instance, revival};
use super::{Closing, Session, SessionShared};
use crate::edge::{Edge, EdgeRx, EdgeTx};
use crate::engine::GraphShared;
use crate::lanes::Lanes;
use crate::node::{BuildError, Lead, Link, NodeShared, run_chain, supervise, watched};
use crate::owner::Owner;
use crate::playback::Playback;
use crate::probe::NodeProbe;
use crate::schema::Client;
use crate::shared::LeaseError;
use crate::{In, Out, Payload};

/// Why a session cannot be opened. Nothing was left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// As many sessions as the graph allows are open.
    #[error("{graph}: {limit} sessions are open, the limit of `session.max-sessions`; try again later")]
    Full {
        /// The graph.
        graph: String,
        /// How many it allows.
        limit: usize,
    },
    /// A shared stage has no free slot.
    #[error("{node}: {source}")]
    Slots {
        /// `graph/node`.
        node: String,
        /// Why.
        source: LeaseError,
    },
    /// A node's instance cannot be made.
    #[error("{node}: {source}")]
    Node {
        /// `graph/node`.
        node: String,
        /// Why.
        source: BuildError,
    },
}

impl OpenError {
    /// The stable code, for clients and metrics: `resource_exhausted`, `closed` or `internal`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } => "resource_exhausted",
            Self::Slots { source, .. } => source.code(),
            Self::Node { .. } => "internal",
        }
    }
}

pub(crate) fn open(
    graph: &Arc<GraphShared>,
    id: u64,
    seed: u64,
    admitted: tokio::sync::OwnedSemaphorePermit,
) -> Result<Session, OpenError> {
    let plan = &graph.plan;
    // Instances first: what can fail, fails before anything runs.
    let mut instances = Vec::with_capacity(plan.nodes.len());
    for (node, body) in plan.nodes.iter().zip(&graph.bodies) {
        let made = Instance::make(body).map_err(|e| e.at(format!("{}/{}", plan.name, node.name)));
        instances.push(Some(made?));
    }
    let lanes = Arc::new(Lanes::new());
    let mut txs: Vec<Option<EdgeTx>> = Vec::with_capacity(plan.edges.len());
    let mut rxs: Vec<Option<EdgeRx>> = Vec::with_capacity(plan.edges.len());
    let mut edges: Vec<Arc<Edge>> = Vec::with_capacity(plan.edges.len());
    for spec in &graph.edges {
        let (tx, rx) = Edge::open(spec.clone(), &lanes, &graph.engine.clock);
        edges.push(tx.edge().clone());
        txs.push(Some(tx));
        rxs.push(Some(rx));
    }
    let probes: Vec<Arc<NodeProbe>> = graph.budgets.iter().map(|b| Arc::new(NodeProbe::new(b.clone()))).collect();
    let playback: Arc<Playback> = Arc::default();
    let owners: Vec<Arc<Owner>> = plan.nodes.iter().map(|_| Arc::default()).collect();
    let closing = Arc::new(Closing::default());
    let shared: Vec<Arc<NodeShared>> = plan
        .nodes
        .iter()
        .enumerate()
        .map(|(i, n)| {
            Arc::new(NodeShared {
                path: format!("{}/{}", plan.name, n.name),
                lane: n.lane,
                fences: n.fences,
                depth: n.depth,
                seed: seed.wrapping_add((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                session: id,
                lanes: lanes.clone(),
                clock: graph.engine.clock.clone(),
                playback: playback.clone(),
                pool: graph.pools[i].clone(),
                probe: probes[i].clone(),
                lead: Lead::default(),
                closing: closing.clone(),
                admission: graph.admissions[i].clone(),
                background: plan.background(i),
            })
        })
        .collect();
    // A client end has no task; a step in the middle of a fused chain runs on the task of the chain's head.
    let head: Vec<bool> =
        (0..plan.nodes.len()).map(|i| plan.nodes[i].schema.client.is_none() && !graph.fused_into(i)).collect();
    let session = Arc::new(SessionShared::new(id, graph.clone(), lanes, edges.clone(), probes, closing, head.clone()));

    let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
    let mut tasks = Vec::new();
    for (i, node) in plan.nodes.iter().enumerate() {
        let take_rx = |rxs: &mut Vec<Option<EdgeRx>>, port: usize| node.inputs[port].and_then(|e| rxs[e].take());
        let take_tx = |txs: &mut Vec<Option<EdgeTx>>, n: usize, owner: Option<&Arc<Owner>>| -> Vec<Vec<EdgeTx>> {
            let ports = plan.nodes[n].outputs.iter();
            ports
                .map(|es| {
                    let taken = es.iter().filter_map(|e| txs[*e].take());
                    taken.map(|t| if let Some(o) = owner { t.owned_by(o) } else { t }).collect()
                })
                .collect()
        };
        if let Some(client) = node.schema.client {
            match client {
                Client::In => {
                    let branches = take_tx(&mut txs, i, None).into_iter().flatten().collect();
                    let kind = node.schema.outputs[0].kind.clone();
                    inputs.insert(node.name.clone(), Input::new(Out::new(branches), kind, session.clone(), i));
                }
                Client::Out => {
                    if let Some(rx) = take_rx(&mut rxs, 0) {
                        outputs.insert(node.name.clone(), In::<Payload>::new(rx));
                    }
                }
            }
            continue;
        }
        if !head[i] {
            continue;
        }
        let chain = graph.chain(i);
        let last = *chain.last().unwrap_or(&i);
        let mut feeds: Vec<Arc<Edge>> = Vec::new();
        for n in &chain {
            feeds.extend(plan.nodes[*n].outputs.iter().flatten().map(|e| edges[*e].clone()));
        }
        let owner = &owners[i];
        let revival = revival(graph, i, &shared[i], owner, &edges);
        let future = match instances[i].take() {
            Some(Instance::Step(step)) if chain.len() > 1 => {
                let Some(rx) = take_rx(&mut rxs, 0) else { return Err(unfed(graph, i)) };
                let link = |step, n: usize| Link {
                    step: watched(step, &shared[n].probe),
                    shared: shared[n].clone(),
                    next: None,
                };
                let mut links = vec![link(step, i)];
                for n in &chain[1..] {
                    if let Some(Instance::Step(step)) = instances[*n].take() {
                        let edge = plan.nodes[*n].inputs[0].map(|e| edges[e].clone());
                        if let (Some(l), Some(edge)) = (links.last_mut(), edge) {
                            l.next = Some(edge);
                        }
                        links.push(link(step, *n));
                    }
                }
                let out = take_tx(&mut txs, last, Some(owner)).into_iter().flatten().collect();
                Box::pin(run_chain(rx, links, Out::new(out)))
            }
            made => {
                let ins = (0..node.inputs.len()).map(|p| {
                    let rx = take_rx(&mut rxs, p);
                    if revival.is_some() { rx.map(|rx| rx.owned_by(owner)) } else { rx }
                });
                let ins = ins.collect();
                let outs = take_tx(&mut txs, i, Some(owner));
                let made = made.unwrap_or(Instance::Client).run(node, shared[i].clone(), ins, outs);
                made.ok_or_else(|| unfed(graph, i))?
            }
        };
        tasks.push(supervise(session.clone(), i, shared[i].path.clone(), owner.clone(), feeds, future, revival));
    }
    // The edges inside fused chains have no ends of their own any more; nothing may see them as broken.
    for tx in txs.into_iter().flatten() {
        tx.finish(crate::edge::Terminal::End);
    }
    drop(rxs);
    graph.totals.opened(&session);
    graph.engine.watch(&session);
    if session.ended() {
        // Nothing runs and nothing can come in.
        session.close();
    }
    for t in tasks {
        graph.engine.spawner.spawn(t);
    }
    Ok(Session { shared: session, inputs, outputs, _admitted: admitted })
}

/// The plan promises that a required input is fed; a plan that does not is refused here and not waited on.
fn unfed(graph: &Arc<GraphShared>, node: usize) -> OpenError {
    let plan = &graph.plan;
    let source = BuildError::new("its input is not fed");
    OpenError::Node { node: format!("{}/{}", plan.name, plan.nodes[node].name), source }
}
