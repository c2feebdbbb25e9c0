//! What a chat server can answer instead of an answer.

use std::time::Duration;

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The first event of the answer.
    FirstToken,
    /// The next event.
    NextToken,
}

/// Why a server gave no answer, or not all of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The configuration cannot work.
    #[error("{0}")]
    Config(String),
    /// The environment variable with the key is not set.
    #[error("the environment variable {0} with the API key is not set; set it or remove `api-key-env`")]
    MissingKey(String),
    /// No connection, or it broke before the first token.
    #[error("cannot reach {url}: {why}; check `base-url` and that the server runs")]
    Unreachable {
        /// The address, without credentials.
        url: String,
        /// What the network said.
        why: String,
    },
    /// 401 or 403.
    #[error("{url} refused the key (status {status}); check the environment variable that `api-key-env` names")]
    Unauthorized {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// 404.
    #[error("{url} has no model `{model}` or no such path: {body}; check `model` and `base-url`")]
    NotFound {
        /// The address.
        url: String,
        /// The model that was asked for.
        model: String,
        /// The beginning of the server's answer.
        body: String,
    },
    /// The prompt is longer than the server's model takes.
    #[error("the prompt is too long for the server's model: {body}; shorten the history or lower `max-tokens`")]
    ContextLength {
        /// The beginning of the server's answer.
        body: String,
    },
    /// 429, also after the retries.
    #[error("the server limits the rate: {body}; wait or ask for a higher limit")]
    RateLimited {
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
        /// The beginning of the server's answer.
        body: String,
    },
    /// 5xx, also after the retries, or an error inside the stream.
    #[error("the server failed (status {status}): {body}")]
    Server {
        /// The HTTP status.
        status: u16,
        /// The beginning of the server's answer.
        body: String,
    },
    /// Any other status: the request is at fault.
    #[error("the server refused the request (status {status}): {body}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The beginning of the server's answer.
        body: String,
    },
    /// A deadline passed.
    #[error("the server sent nothing for {after:?} ({stage:?}); raise the timeout or check the server's load")]
    Timeout {
        /// What was waited for.
        stage: Stage,
        /// The limit.
        after: Duration,
    },
    /// The stream is not what the protocol says, or ended in the middle.
    #[error("the server's stream is malformed: {why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
}

impl RemoteError {
    /// Whether the same request may succeed later.
    pub fn transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::RateLimited { .. } | Self::Server { .. })
    }
}
