//! `turn.signal`: a plain signal about turns, or another event in a wrapper.

use serde_json::Map;

use crate::realtime::wire::client::{ClientEvent, read_event};
use crate::realtime::wire::code::Refusal;
use crate::realtime::wire::fields::Fields;
use crate::realtime::wire::server::session::TurnState;

/// A plain turn signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnSignal {
    /// The user began to speak.
    UserStarted,
    /// The user's turn is committed.
    UserCommitted,
    /// The assistant began.
    AssistantStarted,
    /// The assistant is done.
    AssistantDone,
    /// The client says what it has played.
    PlaybackAck {
        /// Played so far, in ms.
        played_ms: Option<f64>,
        /// To be kept in history, in ms.
        committed_ms: Option<f64>,
    },
    /// The session is to close.
    Close,
    /// The session is to close, because of a time limit of the client.
    Timeout,
}

impl TurnSignal {
    /// The name it came under.
    pub fn as_str(self) -> &'static str {
        match self {
            TurnSignal::UserStarted => "user_started",
            TurnSignal::UserCommitted => "user_committed",
            TurnSignal::AssistantStarted => "assistant_started",
            TurnSignal::AssistantDone => "assistant_done",
            TurnSignal::PlaybackAck { .. } => "playback_ack",
            TurnSignal::Close => "close",
            TurnSignal::Timeout => "timeout",
        }
    }
    /// The turn state it brings about, if it brings about one.
    pub fn turn_state(self) -> Option<TurnState> {
        match self {
            TurnSignal::UserStarted => Some(TurnState::UserSpeaking),
            TurnSignal::UserCommitted => Some(TurnState::UserCommitted),
            TurnSignal::AssistantStarted => Some(TurnState::AssistantGenerating),
            TurnSignal::AssistantDone => Some(TurnState::Idle),
            TurnSignal::PlaybackAck { .. } | TurnSignal::Close | TurnSignal::Timeout => None,
        }
    }
}

/// Reads the event: the event it carries, or a plain signal.
///
/// # Errors
/// `bad_event` without a known name, and what the carried event is refused for.
pub fn read(f: &mut Fields) -> Result<ClientEvent, Refusal> {
    let name = f.need_string("event")?;
    let mut payload = f.object("payload")?.unwrap_or_else(|| Fields::at("payload", Map::new()));
    let signal = match name.as_str() {
        "input.cancel"
        | "barge_in"
        | "response.cancel"
        | "session.update"
        | "conversation.item.create"
        | "conversation.item.delete"
        | "conversation.item.truncate"
        | "conversation.item.retrieve" => {
            // Paths in refusals are those of the carried event, which is what the client has in mind.
            return read_event(&name, Fields::top(payload.rest()));
        }
        "user_started" => TurnSignal::UserStarted,
        "user_committed" => TurnSignal::UserCommitted,
        "assistant_started" => TurnSignal::AssistantStarted,
        "assistant_done" => TurnSignal::AssistantDone,
        "playback_ack" => TurnSignal::PlaybackAck {
            played_ms: payload.number("played_ms")?,
            committed_ms: payload.number("committed_ms")?,
        },
        "close" => TurnSignal::Close,
        "timeout" => TurnSignal::Timeout,
        _ => {
            return Err(Refusal::bad(f.path("event"), "turn.signal knows no such event; see the list of turn signals"));
        }
    };
    Ok(ClientEvent::TurnSignal(signal))
}
