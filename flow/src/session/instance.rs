//! An instance of a node: made from its body, then set on its edges; once when a session opens, and again when it is
//! made anew after a fault.

use std::sync::Arc;

use super::open::OpenError;
use crate::edge::{Edge, EdgeRx, EdgeTx};
use crate::engine::GraphShared;
use crate::node::{AnyStep, Body, BodyKind, BuildError, Ctx, Link, NodeFuture, NodeRun, NodeShared, Ports};
use crate::node::{Restarts, Revival, run_chain, run_leased, run_step_on_pool, watched};
use crate::owner::Owner;
use crate::shared::{AnyLeased, LeaseError};
use crate::{Out, Place, PlanNode};

/// An instance of a node, made and not yet running.
pub(super) enum Instance {
    Step(Box<dyn AnyStep>),
    Node(NodeRun),
    Leased(Box<dyn AnyLeased>),
    Client,
}

/// Why there is no instance.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    #[error("{0}")]
    Build(BuildError),
    #[error("{0}")]
    Lease(LeaseError),
}

impl MakeError {
    /// The same for who opens a session.
    pub(super) fn at(self, node: String) -> OpenError {
        match self {
            Self::Build(source) => OpenError::Node { node, source },
            Self::Lease(source) => OpenError::Slots { node, source },
        }
    }
}

impl Instance {
    pub(super) fn make(body: &Body) -> Result<Self, MakeError> {
        Ok(match &body.0 {
            BodyKind::Step(make) => Self::Step(make().map_err(MakeError::Build)?),
            BodyKind::Node(make) => Self::Node(make().map_err(MakeError::Build)?),
            BodyKind::Started(stage) => Self::Leased(stage.lease().map_err(MakeError::Lease)?),
            BodyKind::Client | BodyKind::Stage(..) => Self::Client,
        })
    }
    /// Runs it alone on its task; `ins` and `outs` are its ends, by port. `None` if a step or stage is not fed.
    pub(super) fn run(
        self,
        node: &PlanNode,
        shared: Arc<NodeShared>,
        mut ins: Vec<Option<EdgeRx>>,
        outs: Vec<Vec<EdgeTx>>,
    ) -> Option<NodeFuture> {
        let mut first = || ins.first_mut().and_then(Option::take);
        Some(match self {
            Self::Step(step) if node.place == Place::Task => {
                let step = watched(step, &shared.probe);
                let link = Link { step, shared, next: None };
                Box::pin(run_chain(first()?, vec![link], all(outs)))
            }
            Self::Step(step) => {
                let step = watched(step, &shared.probe);
                Box::pin(run_step_on_pool(first()?, step, shared, all(outs)))
            }
            Self::Leased(leased) => {
                let takes = node.schema.outputs.iter().map(|p| p.kind.medium);
                let outs = takes.zip(outs.into_iter().map(Out::new)).collect();
                Box::pin(run_leased(first()?, leased, shared, outs))
            }
            Self::Node(run) => {
                let names = |ports: &[crate::Port]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
                let ports = Ports {
                    inputs: names(&node.schema.inputs).into_iter().zip(ins).collect(),
                    outputs: names(&node.schema.outputs).into_iter().zip(outs.into_iter().map(Some)).collect(),
                };
                run(Ctx::new(shared, ports))
            }
            Self::Client => Box::pin(std::future::ready(Ok(()))),
        })
    }
}

fn all(outs: Vec<Vec<EdgeTx>>) -> Out<crate::Payload> {
    Out::new(outs.into_iter().flatten().collect())
}

/// What makes node `i` anew on `edges`, if its policy allows that at all. Such a node is fused with no other.
pub(super) fn revival(
    graph: &Arc<GraphShared>,
    i: usize,
    shared: &Arc<NodeShared>,
    owner: &Arc<Owner>,
    edges: &[Arc<Edge>],
) -> Option<Revival> {
    let node = &graph.plan.nodes[i];
    let policy = node.restart?;
    let ins: Vec<Option<Arc<Edge>>> = node.inputs.iter().map(|e| e.map(|e| edges[e].clone())).collect();
    let outs: Vec<Vec<Arc<Edge>>> =
        node.outputs.iter().map(|es| es.iter().map(|e| edges[*e].clone()).collect()).collect();
    let inputs = ins.iter().flatten().cloned().collect();
    let (graph, shared, owner) = (graph.clone(), shared.clone(), owner.clone());
    let remake = move || {
        let instance = Instance::make(&graph.bodies[i]).map_err(|e| e.to_string())?;
        let rx = |e: &Arc<Edge>| EdgeRx::new(e.clone()).owned_by(&owner);
        let tx = |e: &Arc<Edge>| EdgeTx::new(e.clone()).owned_by(&owner);
        let ins = ins.iter().map(|e| e.as_ref().map(rx)).collect();
        let outs = outs.iter().map(|es| es.iter().map(tx).collect()).collect();
        let future = instance.run(&graph.plan.nodes[i], shared.clone(), ins, outs);
        future.ok_or_else(|| "its input is not fed".to_owned())
    };
    Some(Revival { rule: Restarts::new(policy), inputs, remake: Box::new(remake) })
}
