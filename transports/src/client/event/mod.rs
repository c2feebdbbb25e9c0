//! What a server says, typed.
//!
//! Names of the stock protocol and of its beta are one variant; extension events are there too; all that is not known, or
//! has another shape than it should, is [`Event::Unknown`] with its JSON.

mod parts;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use parts::{ContentPart, Item, ResponseInfo, Usage};

use super::error::ServerError;
use super::secret::Secret;

/// Where part of a response stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct At {
    /// The response.
    pub response_id: String,
    /// Its item.
    #[serde(default)]
    pub item_id: String,
    /// Which item of the response.
    #[serde(default)]
    pub output_index: u32,
    /// Which part of the item.
    #[serde(default)]
    pub content_index: u32,
}

/// One event. Fields that a server may leave out are `Option` or empty.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs, reason = "the fields are those of the protocol")]
pub enum Event {
    // The session.
    #[serde(rename = "session.created")]
    SessionCreated { session: Value, resume_token: Option<Secret>, attachment_generation: Option<u64> },
    #[serde(rename = "session.updated")]
    SessionUpdated { session: Value },
    #[serde(rename = "session.resumed")]
    SessionResumed { session: Value, resume_token: Secret, attachment_generation: Option<u64> },
    #[serde(rename = "session.heartbeat_ack")]
    HeartbeatAck {},
    #[serde(rename = "session.closed")]
    SessionClosed { reason: String },
    #[serde(rename = "session.expired")]
    SessionExpired { reason: String },
    #[serde(rename = "session.replaced")]
    SessionReplaced {},
    #[serde(rename = "session.resync_required")]
    ResyncRequired { reason: String },
    #[serde(rename = "conversation.created")]
    ConversationCreated { conversation: Value },
    // The user's input.
    #[serde(rename = "input_audio_buffer.speech_started")]
    SpeechStarted {
        #[serde(default)]
        audio_start_ms: u64,
        #[serde(default)]
        item_id: String,
    },
    #[serde(rename = "input_audio_buffer.speech_stopped")]
    SpeechStopped {
        #[serde(default)]
        audio_end_ms: u64,
        #[serde(default)]
        item_id: String,
    },
    #[serde(rename = "input_audio_buffer.committed")]
    Committed { item_id: String, previous_item_id: Option<String> },
    #[serde(rename = "input_audio_buffer.cleared")]
    InputCleared {},
    #[serde(rename = "conversation.item.input_audio_transcription.delta")]
    TranscriptionDelta {
        item_id: String,
        #[serde(default)]
        delta: String,
    },
    #[serde(rename = "conversation.item.input_audio_transcription.completed")]
    Transcription { item_id: String, transcript: String },
    #[serde(rename = "conversation.item.input_audio_transcription.failed")]
    TranscriptionFailed { item_id: String, error: ServerError },
    // The conversation.
    #[serde(rename = "conversation.item.added")]
    ItemAdded { item: Item, previous_item_id: Option<String> },
    #[serde(rename = "conversation.item.created")]
    ItemCreated { item: Item, previous_item_id: Option<String> },
    #[serde(rename = "conversation.item.done")]
    ItemDone { item: Item, previous_item_id: Option<String> },
    #[serde(rename = "conversation.item.retrieved")]
    ItemRetrieved { item: Item },
    #[serde(rename = "conversation.item.deleted")]
    ItemDeleted { item_id: String },
    #[serde(rename = "conversation.item.truncated")]
    ItemTruncated {
        item_id: String,
        #[serde(default)]
        content_index: u32,
        audio_end_ms: u64,
    },
    // Responses.
    #[serde(rename = "response.created")]
    ResponseCreated { response: ResponseInfo },
    #[serde(rename = "response.output_item.added")]
    OutputItemAdded { response_id: String, item: Item },
    #[serde(rename = "response.output_item.done")]
    OutputItemDone { response_id: String, item: Item },
    #[serde(rename = "response.content_part.added")]
    ContentPartAdded {
        #[serde(flatten)]
        at: At,
        part: ContentPart,
    },
    #[serde(rename = "response.content_part.done")]
    ContentPartDone {
        #[serde(flatten)]
        at: At,
        part: ContentPart,
    },
    #[serde(rename = "response.output_audio.delta", alias = "response.audio.delta")]
    AudioDelta {
        #[serde(flatten)]
        at: At,
        /// Decoded.
        #[serde(rename = "delta", alias = "audio", deserialize_with = "base64")]
        audio: Vec<u8>,
        /// Where the server says so (ours).
        sample_rate_hz: Option<u32>,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    #[serde(rename = "response.output_audio.done", alias = "response.audio.done")]
    AudioDone {
        #[serde(flatten)]
        at: At,
    },
    #[serde(rename = "response.output_audio_transcript.delta", alias = "response.audio_transcript.delta")]
    TranscriptDelta {
        #[serde(flatten)]
        at: At,
        delta: String,
    },
    #[serde(rename = "response.output_audio_transcript.done", alias = "response.audio_transcript.done")]
    TranscriptDone {
        #[serde(flatten)]
        at: At,
        transcript: String,
    },
    #[serde(rename = "response.output_text.delta", alias = "response.text.delta")]
    TextDelta {
        #[serde(flatten)]
        at: At,
        delta: String,
    },
    #[serde(rename = "response.output_text.done", alias = "response.text.done")]
    TextDone {
        #[serde(flatten)]
        at: At,
        text: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    CallDelta {
        #[serde(flatten)]
        at: At,
        #[serde(default)]
        call_id: String,
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.done")]
    CallDone {
        #[serde(flatten)]
        at: At,
        #[serde(default)]
        call_id: String,
        name: Option<String>,
        arguments: String,
    },
    #[serde(rename = "response.done")]
    ResponseDone { response: ResponseInfo },
    #[serde(rename = "output_audio_buffer.started")]
    OutputStarted { response_id: String },
    #[serde(rename = "output_audio_buffer.stopped")]
    OutputStopped { response_id: String },
    #[serde(rename = "output_audio_buffer.cleared")]
    OutputCleared { response_id: Option<String> },
    #[serde(rename = "rate_limits.updated")]
    RateLimits { rate_limits: Vec<Value> },
    // Ours.
    #[serde(rename = "response.speak")]
    Speak {
        #[serde(flatten)]
        at: At,
    },
    #[serde(rename = "response.listen")]
    Listen { response_id: Option<String>, response: Value },
    #[serde(rename = "duplex.function_call.done")]
    RawCall { event: Value },
    #[serde(rename = "playback.acknowledged")]
    PlaybackAcknowledged { event: Value },
    #[serde(rename = "overlap.decision")]
    Overlap { action: String, reason: String, policy: Option<String>, epoch: Option<u64> },
    #[serde(rename = "turn.event")]
    Turn { event: String, turn_state: String, epoch: Option<u64> },
    /// Something was refused or went wrong; the connection goes on.
    #[serde(rename = "error")]
    Error { error: ServerError },
    /// Of this client, not of the server: the connection broke and stands again. With `resumed` nothing was lost; else this
    /// is another session.
    #[serde(skip)]
    Reconnected { resumed: bool },
    /// Anything else.
    #[serde(skip)]
    Unknown(Value),
}

fn base64<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
    STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}

/// An event with what stands around it.
#[derive(Debug)]
pub(super) struct Received {
    /// Its number, where the server counts.
    pub(super) seq: Option<u64>,
    pub(super) event: Event,
}

impl Event {
    /// Reads one message.
    ///
    /// # Errors
    /// It is no JSON object with a string `type`; the text says which.
    pub fn parse(text: &str) -> Result<Self, String> {
        receive(text).map(|r| r.event)
    }
}

/// Reads one message.
///
/// # Errors
/// As [`Event::parse`].
pub(super) fn receive(text: &str) -> Result<Received, String> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
        server_event_seq: Option<u64>,
    }
    // The text itself may hold what should not be repeated.
    let at = |e: &serde_json::Error| format!("line {}, column {}", e.line(), e.column());
    let (event, seq) = match (serde_json::from_str::<Event>(text), serde_json::from_str::<Head<'_>>(text)) {
        (Ok(event), head) => (event, head.ok().and_then(|h| h.server_event_seq)),
        (Err(_), head) => {
            let value: Value = serde_json::from_str(text).map_err(|e| format!("a message is not JSON ({})", at(&e)))?;
            if !value["type"].is_string() {
                return Err("a message is no object with a string `type`".to_owned());
            }
            if let Ok(head) = &head {
                tracing::debug!(kind = &*head.kind, "an event that this client does not know");
            }
            let seq = value["server_event_seq"].as_u64();
            (Event::Unknown(value), seq)
        }
    };
    Ok(Received { seq, event })
}

impl Event {
    /// Its type in the stock protocol, for logs.
    pub fn name(&self) -> &str {
        match self {
            Self::SessionCreated { .. } => "session.created",
            Self::SessionUpdated { .. } => "session.updated",
            Self::SessionResumed { .. } => "session.resumed",
            Self::HeartbeatAck {} => "session.heartbeat_ack",
            Self::SessionClosed { .. } => "session.closed",
            Self::SessionExpired { .. } => "session.expired",
            Self::SessionReplaced {} => "session.replaced",
            Self::ResyncRequired { .. } => "session.resync_required",
            Self::ConversationCreated { .. } => "conversation.created",
            Self::SpeechStarted { .. } => "input_audio_buffer.speech_started",
            Self::SpeechStopped { .. } => "input_audio_buffer.speech_stopped",
            Self::Committed { .. } => "input_audio_buffer.committed",
            Self::InputCleared {} => "input_audio_buffer.cleared",
            Self::TranscriptionDelta { .. } => "conversation.item.input_audio_transcription.delta",
            Self::Transcription { .. } => "conversation.item.input_audio_transcription.completed",
            Self::TranscriptionFailed { .. } => "conversation.item.input_audio_transcription.failed",
            Self::ItemAdded { .. } => "conversation.item.added",
            Self::ItemCreated { .. } => "conversation.item.created",
            Self::ItemDone { .. } => "conversation.item.done",
            Self::ItemRetrieved { .. } => "conversation.item.retrieved",
            Self::ItemDeleted { .. } => "conversation.item.deleted",
            Self::ItemTruncated { .. } => "conversation.item.truncated",
            Self::ResponseCreated { .. } => "response.created",
            Self::OutputItemAdded { .. } => "response.output_item.added",
            Self::OutputItemDone { .. } => "response.output_item.done",
            Self::ContentPartAdded { .. } => "response.content_part.added",
            Self::ContentPartDone { .. } => "response.content_part.done",
            Self::AudioDelta { .. } => "response.output_audio.delta",
            Self::AudioDone { .. } => "response.output_audio.done",
            Self::TranscriptDelta { .. } => "response.output_audio_transcript.delta",
            Self::TranscriptDone { .. } => "response.output_audio_transcript.done",
            Self::TextDelta { .. } => "response.output_text.delta",
            Self::TextDone { .. } => "response.output_text.done",
            Self::CallDelta { .. } => "response.function_call_arguments.delta",
            Self::CallDone { .. } => "response.function_call_arguments.done",
            Self::ResponseDone { .. } => "response.done",
            Self::OutputStarted { .. } => "output_audio_buffer.started",
            Self::OutputStopped { .. } => "output_audio_buffer.stopped",
            Self::OutputCleared { .. } => "output_audio_buffer.cleared",
            Self::RateLimits { .. } => "rate_limits.updated",
            Self::Speak { .. } => "response.speak",
            Self::Listen { .. } => "response.listen",
            Self::RawCall { .. } => "duplex.function_call.done",
            Self::PlaybackAcknowledged { .. } => "playback.acknowledged",
            Self::Overlap { .. } => "overlap.decision",
            Self::Turn { .. } => "turn.event",
            Self::Error { .. } => "error",
            Self::Reconnected { .. } => "(reconnected)",
            Self::Unknown(value) => value["type"].as_str().unwrap_or("(unknown)"),
        }
    }
    /// The response that it is part of, if it is about one.
    pub fn response_id(&self) -> Option<&str> {
        match self {
            Self::ResponseCreated { response } | Self::ResponseDone { response } => Some(&response.id),
            Self::OutputItemAdded { response_id, .. }
            | Self::OutputItemDone { response_id, .. }
            | Self::OutputStarted { response_id }
            | Self::OutputStopped { response_id } => Some(response_id),
            Self::OutputCleared { response_id } | Self::Listen { response_id, .. } => response_id.as_deref(),
            Self::ContentPartAdded { at, .. }
            | Self::ContentPartDone { at, .. }
            | Self::AudioDelta { at, .. }
            | Self::AudioDone { at }
            | Self::TranscriptDelta { at, .. }
            | Self::TranscriptDone { at, .. }
            | Self::TextDelta { at, .. }
            | Self::TextDone { at, .. }
            | Self::CallDelta { at, .. }
            | Self::CallDone { at, .. }
            | Self::Speak { at } => Some(&at.response_id),
            _ => None,
        }
    }
}

/// Its name and what it is about: audio is long, and an unknown event may hold anything.
impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut s = f.debug_struct("Event");
        s.field("type", &self.name());
        match self {
            Self::AudioDelta { at, audio, .. } => s.field("at", at).field("bytes", &audio.len()),
            Self::TranscriptDelta { at, delta } | Self::TextDelta { at, delta } => {
                s.field("at", at).field("delta", delta)
            }
            Self::Transcription { item_id, transcript } => s.field("item_id", item_id).field("transcript", transcript),
            Self::ResponseCreated { response } | Self::ResponseDone { response } => s.field("response", response),
            Self::SessionClosed { reason } | Self::SessionExpired { reason } | Self::ResyncRequired { reason } => {
                s.field("reason", reason)
            }
            Self::Error { error } => s.field("error", error),
            Self::Reconnected { resumed } => s.field("resumed", resumed),
            other => s.field("response_id", &other.response_id()),
        };
        s.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
