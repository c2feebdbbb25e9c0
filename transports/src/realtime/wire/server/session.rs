//! States of a session, and the events about it.

use std::sync::Arc;

use crate::realtime::config::SessionConfig;
use crate::realtime::config::facts::SessionFacts;

/// Whether a session lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// It takes commands.
    #[default]
    Open,
    /// It cleans up.
    Closing,
    /// It is gone.
    Closed,
}

impl SessionState {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionState::Open => "open",
            SessionState::Closing => "closing",
            SessionState::Closed => "closed",
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TurnState {
    /// Nobody's.
    #[default]
    Idle,
    /// The user speaks.
    UserSpeaking,
    /// The user has finished.
    UserCommitted,
    /// The answer is being made.
    AssistantGenerating,
    /// The answer is being played.
    AssistantPlaying,
    /// The user has interrupted.
    BargeIn,
}

impl TurnState {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            TurnState::Idle => "idle",
            TurnState::UserSpeaking => "user_speaking",
            TurnState::UserCommitted => "user_committed",
            TurnState::AssistantGenerating => "assistant_generating",
            TurnState::AssistantPlaying => "assistant_playing",
            TurnState::BargeIn => "barge_in",
        }
    }
}

/// How much of an answer there is, in ms of its audio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Playback {
    /// Audio made.
    pub generated_ms: u64,
    /// Audio accepted into the output path; no proof of delivery.
    pub sent_ms: u64,
    /// Played, as the client says.
    pub played_ms: u64,
    /// Used for history.
    pub committed_ms: u64,
}

/// A session as it is shown: what it was asked to be, and how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// The effective configuration.
    pub config: Arc<SessionConfig>,
    /// How it stands.
    pub facts: SessionFacts,
}

/// Why a session expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// Nothing happened for too long.
    IdleTtl,
    /// Nobody came back in time.
    DisconnectGrace,
}

impl Expiry {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Expiry::IdleTtl => "idle_ttl_expired",
            Expiry::DisconnectGrace => "disconnect_grace_expired",
        }
    }
}

/// Why a client must start afresh with what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resync {
    /// Events it has not seen are no longer kept.
    JournalGap,
    /// The journal was given up.
    JournalOverflow,
}

impl Resync {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Resync::JournalGap => "journal_gap",
            Resync::JournalOverflow => "journal_overflow",
        }
    }
}
