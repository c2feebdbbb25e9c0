//! Two ways to write a node, one way to run it.

mod step;

pub use step::{Emit, Step, StepError};

use std::path::PathBuf;

/// What a node can know when it is built.
#[derive(Clone, Debug, Default)]
pub struct BuildCx {
    /// `graph/node`, for messages.
    pub path: String,
    /// Folder of the graph file: relative paths in options start here.
    pub folder: PathBuf,
    /// Refuse to fetch anything.
    pub offline: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads that a model of this node may use.
    pub threads: usize,
    /// Streams to make room for.
    pub slots: usize,
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

/// What sessions' instances of a node are made from.
pub struct Body;
