//! Answers as the server shows them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::item::Item;
use super::session::Playback;
use crate::realtime::config::modality::Modality;
use crate::realtime::wire::code::{Code, Refusal};

/// Where an event of a response belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The response.
    pub response_id: Arc<str>,
    /// Its item.
    pub item_id: Arc<str>,
    /// The item's place in the response.
    pub output_index: u32,
    /// The part's place in the item.
    pub content_index: u32,
}

/// What `response.created` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The response.
    pub response_id: String,
    /// Its session.
    pub session_id: String,
    /// The epoch it belongs to.
    pub epoch: u64,
    /// The turn it belongs to.
    pub turn_id: u64,
    /// What it is made of.
    pub modalities: Vec<Modality>,
    /// The client's own metadata.
    pub metadata: Map<String, Value>,
}

/// A part of the answer, whole or just begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Speech, and what is said.
    Audio(String),
    /// Text.
    Text(String),
}

/// Characters of the transcript that are spoken once so much audio has been played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mark {
    /// Characters from the beginning.
    pub text_chars: u64,
    /// Audio from the beginning, in ms.
    pub audio_end_ms: u64,
}

/// One piece of audio.
#[derive(Clone, Debug, PartialEq)]
pub struct AudioDelta {
    /// Where it belongs.
    pub place: Place,
    /// Base64 audio.
    pub delta: String,
    /// What it is in (`pcm16`).
    pub format: &'static str,
    /// Samples per second.
    pub sample_rate_hz: u32,
    /// Its session.
    pub session_id: Arc<str>,
    /// The epoch it belongs to.
    pub epoch: u64,
    /// True if the model said that it speaks.
    pub model_speak: bool,
    /// True with the last piece of a turn.
    pub end_of_turn: bool,
    /// Audio of this response so far, this piece included, in ms.
    pub audio_duration_ms: u64,
    /// Where the text stands in the audio.
    pub marks: Vec<Mark>,
    /// The ledger after this piece.
    pub playback: Playback,
    /// Measurements per stage, if asked for.
    pub stage_metrics: Option<Map<String, Value>>,
}

/// Why an answer was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// `response.cancel`.
    ClientCancelled,
    /// The user interrupted.
    BargeIn,
    /// The detector heard the user.
    TurnDetected,
    /// Another response took its place.
    NewResponse,
    /// `output_audio_buffer.clear`.
    OutputAudioBufferClear,
}

impl CancelReason {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            CancelReason::ClientCancelled => "client_cancelled",
            CancelReason::BargeIn => "barge_in",
            CancelReason::TurnDetected => "turn_detected",
            CancelReason::NewResponse => "new_response",
            CancelReason::OutputAudioBufferClear => "output_audio_buffer_clear",
        }
    }
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whole.
    Completed,
    /// Cancelled.
    Cancelled(CancelReason),
    /// Failed; the same code as the `error` before it.
    Failed(Refusal),
    /// Cut short, for a reason of the stock protocol (`max_output_tokens`, `content_filter`).
    Incomplete(&'static str),
}

impl Outcome {
    /// The status on the wire.
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Cancelled(_) => "cancelled",
            Outcome::Failed(_) => "failed",
            Outcome::Incomplete(_) => "incomplete",
        }
    }
    /// A failure with a code and nothing more to say.
    pub fn failed(code: Code, message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Outcome::Failed(Refusal::new(code, message))
    }
}

/// Tokens used. All zero where the graph does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Text tokens read.
    pub input_text: u64,
    /// Audio tokens read.
    pub input_audio: u64,
    /// Image tokens read.
    pub input_image: u64,
    /// Of those read, text tokens found in a cache.
    pub cached_text: u64,
    /// Of those read, audio tokens found in a cache.
    pub cached_audio: u64,
    /// Text tokens made.
    pub output_text: u64,
    /// Audio tokens made.
    pub output_audio: u64,
}

/// What `response.done` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The response.
    pub response_id: String,
    /// Its session.
    pub session_id: String,
    /// The epoch it belongs to.
    pub epoch: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its items.
    pub output: Vec<Item>,
    /// Tokens used.
    pub usage: Usage,
    /// The client's own metadata, as in `response.created`.
    pub metadata: Map<String, Value>,
    /// True if it is in history.
    pub committed: bool,
    /// The ledger at its end.
    pub playback: Playback,
    /// Measurements per stage, if asked for.
    pub stage_metrics: Option<Map<String, Value>>,
}

/// Why the model listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenReason {
    /// It decided so.
    ModelListen,
    /// There was nothing to answer.
    SilenceOrNoise,
}

impl ListenReason {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ListenReason::ModelListen => "model_listen",
            ListenReason::SilenceOrNoise => "silence_or_noise",
        }
    }
}
