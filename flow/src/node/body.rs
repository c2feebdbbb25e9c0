//! What a node type builds once per graph, and from which each session gets its own instance.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt as _;

use super::any::{AnyStep, Erased};
use super::{Ctx, Node, NodeError};
use crate::pool::{Now, Pool};
use crate::probe::NodeProbe;
use crate::shared::{AnyStage, Stage, StageConfig, StageHandle};
use crate::{Item, Sent, Stamp, Step};

/// What a node can know when it is built.
#[derive(Clone, Debug)]
pub struct BuildCx {
    /// `graph/node`, for messages.
    pub path: String,
    /// Folder of the graph file: relative paths in options start here.
    pub folder: PathBuf,
    /// Refuse to fetch anything.
    pub offline: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads that a model of this node may use, at least 1.
    pub threads: usize,
    /// Streams to make room for, at least 1.
    pub slots: usize,
    /// The node's `chunk` key: chunk policies, per output port or for all.
    pub chunk: Option<serde_json::Value>,
    /// False (`chunked: false`): whole answers are wanted, not their parts.
    pub chunked: bool,
    /// The variables that the graph file gives to the node.
    pub env: Env,
}

impl Default for BuildCx {
    /// As a node of a graph file that says nothing else: one slot, one thread.
    fn default() -> Self {
        Self {
            path: String::new(),
            folder: PathBuf::new(),
            offline: false,
            seed: 0,
            threads: 1,
            slots: 1,
            chunk: None,
            chunked: true,
            env: Env::default(),
        }
    }
}

/// Environment of a node: what its graph file gives, before that of the process. Values are never shown.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| std::env::var(name).ok())
    }
}
impl FromIterator<(String, String)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}
impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why a node cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BuildError {
    /// What is missing or wrong, and what to do.
    pub message: String,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl BuildError {
    /// An error with its own words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }
    /// The words of a cause.
    pub fn from_error(e: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { message: e.to_string(), source: Some(Box::new(e)) }
    }
}

type Made<T> = Arc<dyn Fn() -> Result<T, BuildError> + Send + Sync>;
type NodeFuture = Pin<Box<dyn Future<Output = Result<(), NodeError>> + Send>>;
type MakeStage = Box<dyn FnOnce(StageConfig, Pool, Now, Option<Arc<NodeProbe>>) -> Arc<dyn AnyStage> + Send + Sync>;
pub(crate) type NodeRun = Box<dyn FnOnce(Ctx) -> NodeFuture + Send>;

/// What sessions' instances of a node are made from: cheap to call, heavy things already loaded.
pub struct Body(pub(crate) BodyKind);

pub(crate) enum BodyKind {
    Step(Made<Box<dyn AnyStep>>),
    Node(Made<NodeRun>),
    /// A model that has not been given its slots and its pool yet.
    Stage(StageConfig, MakeStage),
    /// The same, running.
    Started(Arc<dyn AnyStage>),
    Client,
}

impl Body {
    /// One [`Step`] per session.
    pub fn step<S: Step>(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self::try_step(move || Ok(make()))
    }
    /// One [`Step`] per session, which may fail to be made.
    ///
    /// # Errors
    /// None here. An error of `make` refuses the session that it was made for ([`OpenError`](crate::OpenError)).
    pub fn try_step<S: Step>(make: impl Fn() -> Result<S, BuildError> + Send + Sync + 'static) -> Self {
        Self(BodyKind::Step(Arc::new(move || Ok(Box::new(Erased::new(make()?)) as Box<dyn AnyStep>))))
    }
    /// One [`Node`] per session.
    pub fn node<N: Node>(make: impl Fn() -> N + Send + Sync + 'static) -> Self {
        Self::try_node(move || Ok(make()))
    }
    /// One [`Node`] per session, which may fail to be made.
    ///
    /// # Errors
    /// None here. An error of `make` refuses the session that it was made for ([`OpenError`](crate::OpenError)).
    pub fn try_node<N: Node>(make: impl Fn() -> Result<N, BuildError> + Send + Sync + 'static) -> Self {
        Self(BodyKind::Node(Arc::new(move || {
            let node = make()?;
            Ok(Box::new(move |cx: Ctx| Box::pin(node.run(cx)) as NodeFuture) as NodeRun)
        })))
    }
    /// One stream per session, whose items go to the output named `port`. Write it with `async_stream::try_stream!`.
    /// The stream is dropped when nobody reads any more.
    pub fn stream<T, S>(port: &'static str, make: impl Fn(&mut Ctx) -> S + Send + Sync + Clone + 'static) -> Self
    where
        T: Item,
        S: Stream<Item = Result<(Stamp, T), NodeError>> + Send + 'static,
    {
        Self(BodyKind::Node(Arc::new(move || {
            let make = make.clone();
            Ok(Box::new(move |mut cx: Ctx| {
                Box::pin(async move {
                    let mut out = cx.output::<T>(port)?;
                    let stream = make(&mut cx);
                    futures_util::pin_mut!(stream);
                    while let Some(item) = stream.next().await {
                        let (stamp, value) = item?;
                        if out.send(&stamp, value).await == Sent::Gone {
                            break;
                        }
                    }
                    Ok(())
                }) as NodeFuture
            }) as NodeRun)
        })))
    }
    /// One model for all sessions; each leases a slot of it. The graph file says how many slots there are.
    pub fn stage<S: Stage>(stage: S) -> Self {
        Self::stage_with(stage, StageConfig::default())
    }
    /// The same, with batches and memory as the model wants them; the slots come from the graph file.
    pub fn stage_with<S: Stage>(stage: S, config: StageConfig) -> Self {
        let make = move |config, pool, now, watch| {
            Arc::new(StageHandle::watched(stage, config, pool, now, watch)) as Arc<dyn AnyStage>
        };
        Self(BodyKind::Stage(config, Box::new(make)))
    }
    /// A client end of the graph: chunks enter or leave here.
    pub(crate) fn client() -> Self {
        Self(BodyKind::Client)
    }
}
