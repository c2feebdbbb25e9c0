//! The node types that a program knows: registered by hand, at start, and never by linking alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::file::{Diagnostic, Tree};
use crate::node::{Body, BuildCx, BuildError};
use crate::schema::Schema;

/// A node type: its name, its options, its facts, and how to make one.
pub trait Make: Send + Sync + 'static {
    /// Name in graph files: `audio.gain`.
    const NAME: &'static str;
    /// The options. Unknown keys never reach it: they are refused against [`Schema::options`].
    type Config: DeserializeOwned + Send + Sync + 'static;

    /// The facts that hold for every node of this type.
    fn schema() -> Schema;

    /// Checks the options and narrows the schema to them (an output's sample rate, say).
    ///
    /// # Errors
    /// An [`OptionError`] that names the option.
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        let _ = (config, schema);
        Ok(())
    }

    /// Makes what sessions are made of. Runs once per node of a graph, on a thread where blocking is allowed: load
    /// models here, and let the returned [`Body`] make cheap per-session instances.
    ///
    /// # Errors
    /// A [`BuildError`] that says what is missing and what to do.
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError>;
}

/// An option whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}`: {message}")]
pub struct OptionError {
    /// The option.
    pub option: String,
    /// What is wrong with its value.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl OptionError {
    /// An error of the option named `option`.
    pub fn new(option: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { option: option.to_owned(), message: message.into(), hint: hint.into() }
    }
}

/// A node type with the options of one node.
pub trait Configured: Send + Sync + 'static {
    /// The schema, refined by the options.
    fn schema(&self) -> &Schema;
    /// See [`Make::build`].
    ///
    /// # Errors
    /// As [`Make::build`].
    fn build(&self, cx: &BuildCx) -> Result<Body, BuildError>;
}

/// A node type whose Rust types are erased.
pub(crate) trait AnyMake: Send + Sync {
    fn schema(&self) -> Schema;
    /// Reads the options of one node: `options` is the node's map without the engine's own keys.
    fn configure(&self, options: &Tree) -> Result<Arc<dyn Configured>, Vec<Diagnostic>>;
}

/// The node types that a program knows.
#[derive(Clone, Default)]
pub struct Registry {
    types: BTreeMap<&'static str, Arc<dyn AnyMake>>,
}
