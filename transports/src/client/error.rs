//! Why something did not come to its end.

use std::time::Duration;

use serde::Deserialize;

/// What a server says is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerError {
    /// Its class: `invalid_request_error`, `server_error`, `rate_limit_error`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Its name, for programs.
    #[serde(default)]
    pub code: Option<String>,
    /// Its text, for people.
    #[serde(default)]
    pub message: String,
    /// The field that it is about.
    #[serde(default)]
    pub param: Option<String>,
    /// The `event_id` of the command that caused it.
    #[serde(default)]
    pub event_id: Option<String>,
    /// True if the same may succeed later.
    #[serde(default)]
    pub retryable: bool,
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

/// How a connection ended that was meant to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Why: `client_close`, `shutdown`, or what else the server said.
    pub reason: String,
}

/// Why an operation, a response or the connection failed. Every variant is something else to do for whoever gets it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address or an option cannot be used.
    #[error("{0}")]
    Options(String),
    /// Nobody answers there, or not as a WebSocket.
    #[error("cannot connect to {address}: {why}")]
    Connect {
        /// Where, without what stands behind `?`.
        address: String,
        /// Why.
        why: String,
    },
    /// The server answered the opening request with an HTTP error.
    #[error("the server refused the connection with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What the answer says.
        message: String,
    },
    /// The server refused what was asked, and goes on.
    #[error("the server refused: {0}")]
    Server(ServerError),
    /// The server ended the session.
    #[error("the server closed the connection: {reason}{}", .code.map(|c| format!(" (code {c})")).unwrap_or_default())]
    Closed {
        /// The code of the closing frame.
        code: Option<u16>,
        /// What it says.
        reason: String,
    },
    /// The connection broke, and could not be resumed.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The server does not take this session back; what was said in it is gone for this client.
    #[error("the session could not be resumed: {0}")]
    NotResumed(String),
    /// Another connection has taken the session over.
    #[error("another connection has taken this session over")]
    Replaced,
    /// Something took longer than it may.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// What.
        what: &'static str,
        /// Its limit.
        limit: Duration,
    },
    /// What came is no Realtime protocol.
    #[error("this is no Realtime server: {0}")]
    Protocol(String),
    /// More came than may be held.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its limit in bytes.
        limit: usize,
    },
    /// Events or responses were asked for and not read.
    #[error("{0} were not read in time, and the connection could not wait longer")]
    Unread(&'static str),
    /// This client has been closed or dropped.
    #[error("this client is closed")]
    Ended,
}

impl ClientError {
    /// True if the same may succeed when it is tried again later.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost(_) | Self::Timeout { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::Server(e) => e.retryable,
            _ => false,
        }
    }
}
