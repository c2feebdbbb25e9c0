//! How a session stands, as far as its `session` object shows it.

use super::capability::Capabilities;
use crate::realtime::wire::server::session::{Playback, SessionState, TurnState};

/// What is not configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// The session's id.
    pub id: String,
    /// Whether it lives.
    pub state: SessionState,
    /// Whose turn it is.
    pub turn_state: TurnState,
    /// The interruption fence.
    pub epoch: u64,
    /// Model turns finished.
    pub turn_id: u64,
    /// The request that runs.
    pub active_request_id: Option<String>,
    /// The response that runs.
    pub active_response_id: Option<String>,
    /// The turn of that response.
    pub active_response_turn_id: Option<u64>,
    /// The ledger of the last answer.
    pub playback: Playback,
    /// When the session ends at the latest, in Unix seconds.
    pub expires_at: u64,
    /// What the graph can do.
    pub capabilities: Capabilities,
}
