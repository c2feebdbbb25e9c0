//! How a stream or a session ends when it does not end well.

use std::fmt;
use std::sync::Arc;

/// Why a stream or a session ended in error. Cheap to clone: every stream that the failure reaches gets the same one.
#[derive(Clone)]
pub struct RunError(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    node: String,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The class of a [`RunError`]: what a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The node returned an error.
    Node,
    /// The node panicked.
    Panic,
    /// The producer went away without ending its stream.
    ProducerGone,
    /// No chunk came within the edge's deadline.
    InputTimeout,
    /// A chunk was not of the kind that the edge agreed on.
    Format,
    /// A chunk was missing from the sequence.
    SequenceGap,
    /// The process or machine at the other end of an edge is gone.
    PeerLost,
    /// The other end of an edge sent what the protocol does not allow.
    Protocol,
    /// The session was aborted.
    Aborted,
    /// The session did not end within its deadline; the message names who held it up.
    Stuck,
    /// Capacity is exhausted: try later.
    Exhausted,
    /// Nothing happened in the session for as long as `session.idle-ttl` says.
    Idle,
}

impl ErrorKind {
    /// The stable code, for clients and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Node => "node_error",
            Self::Panic => "node_panic",
            Self::ProducerGone => "producer_gone",
            Self::InputTimeout => "input_wait_timeout",
            Self::Format => "format_mismatch",
            Self::SequenceGap => "sequence_gap",
            Self::PeerLost => "peer_lost",
            Self::Protocol => "protocol_error",
            Self::Aborted => "aborted",
            Self::Stuck => "stuck",
            Self::Exhausted => "resource_exhausted",
            Self::Idle => "idle_ttl_expired",
        }
    }
}

impl RunError {
    /// An error of the node at `graph/node`.
    pub fn new(kind: ErrorKind, node: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, node: node.into(), message: message.into(), source: None }))
    }
    /// An error of the node at `graph/node`, with its cause.
    pub fn with_source(
        kind: ErrorKind,
        node: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self(Arc::new(Inner { kind, node: node.into(), message: source.to_string(), source: Some(source) }))
    }
    /// The same failure with more to say about it.
    pub(crate) fn noting(&self, more: &str) -> Self {
        let (kind, node, message) = (self.kind(), self.0.node.clone(), format!("{} ({more})", self.0.message));
        Self(Arc::new(Inner { kind, node, message, source: Some(Box::new(self.clone())) }))
    }
    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// `graph/node` of the node at fault; empty if no node is.
    pub fn node(&self) -> &str {
        &self.0.node
    }
    /// What happened, without the node's name.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// True if both are the same failure.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.node.is_empty() {
            write!(f, "{}: ", self.0.node)?;
        }
        match self.0.kind {
            ErrorKind::Panic => write!(f, "panicked: {}", self.0.message),
            _ => f.write_str(&self.0.message),
        }
    }
}
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunError({}, {self})", self.0.kind.code())
    }
}
impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message is the first source's own text; what lies behind it is the cause.
        self.0.source.as_ref().and_then(|s| s.source())
    }
}
