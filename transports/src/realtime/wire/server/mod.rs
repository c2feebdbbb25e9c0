//! What the server says, as the session knows it.
//!
//! One [`ServerEvent`] is one thing that happened. How it looks, and whether a client of some profile is told at all, is
//! the matter of [`project`](super::project::project).

pub mod item;
pub mod response;
pub mod session;

use serde_json::{Map, Value};

use super::code::Refusal;
use crate::realtime::config::overlap::OverlapPolicy;
use item::{Content, Item};
use response::{AudioDelta, Created, Done, ListenReason, Part, Place};
use session::{Expiry, Playback, Resync, SessionView, TurnState};

/// What `input_audio_buffer.committed` says besides the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The user's item.
    pub item_id: String,
    /// The item before it.
    pub previous_item_id: Option<String>,
    /// The session.
    pub session_id: String,
    /// The turn.
    pub turn_id: u64,
    /// The epoch.
    pub epoch: u64,
    /// Messages in history.
    pub history_len: u64,
    /// What is in it.
    pub content: Vec<Content>,
    /// True if it waits for the end of the answer that is being spoken.
    pub overlap_deferred: bool,
    /// True if it was judged to hold no speech, so that nothing answers it.
    pub no_response: bool,
}

/// One decision about audio that came while an answer was spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// The session.
    pub session_id: String,
    /// The epoch after the decision.
    pub epoch: u64,
    /// The policy it was taken under.
    pub policy: OverlapPolicy,
    /// `listen`, `barge_in` or `drop`.
    pub action: &'static str,
    /// Why.
    pub reason: &'static str,
    /// Length of the append, in ms.
    pub duration_ms: u64,
    /// Overlap speech so far, in ms.
    pub overlap_speech_ms: u64,
    /// True if the audio is kept.
    pub buffer_audio: bool,
    /// True if the audio does not go into the model now.
    pub defer_runtime_append: bool,
}

/// What `playback.acknowledged` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Acknowledged {
    /// The session.
    pub session_id: String,
    /// The epoch.
    pub epoch: u64,
    /// The item.
    pub item_id: String,
    /// As received, in ms.
    pub played_ms: f64,
    /// As received, in ms.
    pub committed_ms: f64,
    /// As received.
    pub truncate: bool,
    /// The ledger afterwards.
    pub playback: Playback,
    /// True if the answer is now in history.
    pub history_committed: bool,
}

/// An event of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// `session.created`.
    SessionCreated {
        /// The session.
        session: Box<SessionView>,
        /// Which socket this is.
        attachment_generation: u64,
        /// The credential; absent where the session cannot resume.
        resume_token: Option<String>,
    },
    /// `session.updated`.
    SessionUpdated {
        /// The session.
        session: Box<SessionView>,
    },
    /// `session.heartbeat_ack`.
    HeartbeatAck {
        /// The session.
        session_id: String,
    },
    /// `session.closed`.
    SessionClosed {
        /// The session.
        session_id: String,
        /// Why.
        reason: String,
    },
    /// `session.resumed`.
    SessionResumed {
        /// The session.
        session: Box<SessionView>,
        /// Which socket this is.
        attachment_generation: u64,
        /// The new credential.
        resume_token: String,
    },
    /// `session.replaced`.
    SessionReplaced {
        /// The session.
        session_id: String,
        /// The socket that is replaced.
        attachment_generation: u64,
    },
    /// `session.expired`.
    SessionExpired {
        /// The session.
        session_id: String,
        /// Why.
        reason: Expiry,
    },
    /// `session.resync_required`.
    ResyncRequired {
        /// The session.
        session_id: String,
        /// Why.
        reason: Resync,
    },
    /// `conversation.created`, which only the beta knows.
    ConversationCreated {
        /// The conversation.
        conversation_id: String,
    },
    /// `input_audio_buffer.speech_started`.
    SpeechStarted {
        /// The user's item.
        item_id: String,
        /// Where it begins, in ms of the session's audio.
        audio_start_ms: u64,
    },
    /// `input_audio_buffer.speech_stopped`.
    SpeechStopped {
        /// The user's item.
        item_id: String,
        /// Where it ends, in ms of the session's audio.
        audio_end_ms: u64,
    },
    /// `input_audio_buffer.committed`.
    Committed(Committed),
    /// `input_audio_buffer.cleared`.
    InputCleared,
    /// `conversation.item.added`.
    ItemAdded {
        /// The item before it.
        previous_item_id: Option<String>,
        /// The item.
        item: Item,
    },
    /// `conversation.item.created`, the older name for the same.
    ItemCreated {
        /// The item before it.
        previous_item_id: Option<String>,
        /// The item.
        item: Item,
    },
    /// `conversation.item.done`.
    ItemDone {
        /// The item before it.
        previous_item_id: Option<String>,
        /// The item.
        item: Item,
    },
    /// `conversation.item.input_audio_transcription.completed`.
    TranscriptionCompleted {
        /// The user's item.
        item_id: String,
        /// Its part.
        content_index: u32,
        /// What was said.
        transcript: String,
        /// Length of the audio, in ms.
        duration_ms: u64,
    },
    /// `conversation.item.retrieved`.
    ItemRetrieved {
        /// The item.
        item: Item,
    },
    /// `conversation.item.deleted`.
    ItemDeleted {
        /// The item.
        item_id: String,
    },
    /// `conversation.item.truncated`.
    ItemTruncated {
        /// The item.
        item_id: String,
        /// Its part.
        content_index: u64,
        /// Where it was cut, in ms of its audio.
        audio_end_ms: u64,
        /// The request as it came.
        request: Map<String, Value>,
    },
    /// `response.created`.
    ResponseCreated(Created),
    /// `response.output_item.added`.
    OutputItemAdded {
        /// The response.
        response_id: String,
        /// The item's place in it.
        output_index: u32,
        /// The item.
        item: Item,
    },
    /// `response.content_part.added`.
    ContentPartAdded {
        /// Where it belongs.
        place: Place,
        /// The part, still empty.
        part: Part,
    },
    /// `response.speak`.
    Speak {
        /// Where it belongs.
        place: Place,
        /// The session.
        session_id: String,
        /// The epoch.
        epoch: u64,
    },
    /// `response.output_audio.delta`.
    AudioDelta(Box<AudioDelta>),
    /// `response.output_audio_transcript.delta`.
    TranscriptDelta {
        /// Where it belongs.
        place: Place,
        /// More text, possibly none.
        delta: String,
    },
    /// `response.output_audio.done`.
    AudioDone {
        /// Where it belongs.
        place: Place,
    },
    /// `response.output_audio_transcript.done`.
    TranscriptDone {
        /// Where it belongs.
        place: Place,
        /// All of it.
        transcript: String,
    },
    /// `response.output_text.delta`.
    TextDelta {
        /// Where it belongs.
        place: Place,
        /// More text.
        delta: String,
    },
    /// `response.output_text.done`.
    TextDone {
        /// Where it belongs.
        place: Place,
        /// All of it.
        text: String,
    },
    /// `response.content_part.done`.
    ContentPartDone {
        /// Where it belongs.
        place: Place,
        /// The part, whole.
        part: Part,
    },
    /// `response.output_item.done`.
    OutputItemDone {
        /// The response.
        response_id: String,
        /// The item's place in it.
        output_index: u32,
        /// The item.
        item: Item,
    },
    /// `response.done`.
    ResponseDone(Box<Done>),
    /// `response.listen`.
    Listen {
        /// The session.
        session_id: String,
        /// The epoch.
        epoch: u64,
        /// The response that the decision ends, if one had been created.
        response_id: Option<String>,
        /// Why.
        reason: ListenReason,
    },
    /// `response.function_call_arguments.delta`.
    CallDelta {
        /// Where it belongs.
        place: Place,
        /// The call.
        call_id: String,
        /// More of its arguments.
        delta: String,
    },
    /// `response.function_call_arguments.done`.
    CallDone {
        /// Where it belongs.
        place: Place,
        /// The call.
        call_id: String,
        /// The function.
        name: String,
        /// All of its arguments.
        arguments: String,
    },
    /// `duplex.function_call.done`: a call that cannot be answered.
    RawCall {
        /// The session.
        session_id: String,
        /// The epoch.
        epoch: u64,
        /// The call, if the model named it.
        call_id: Option<String>,
        /// The function, if the model named it.
        name: Option<String>,
        /// Its arguments, as far as the model wrote them.
        arguments: String,
    },
    /// `rate_limits.updated`.
    RateLimits,
    /// `output_audio_buffer.cleared`.
    OutputCleared {
        /// The response.
        response_id: String,
    },
    /// `playback.acknowledged`.
    Acknowledged(Acknowledged),
    /// `overlap.decision`.
    Overlap(Overlap),
    /// `turn.event`.
    Turn {
        /// The session.
        session_id: String,
        /// What happened.
        event: String,
        /// Whose turn it is now.
        turn_state: TurnState,
        /// The epoch afterwards.
        epoch: u64,
    },
    /// `error`.
    Error {
        /// What and why.
        refusal: Refusal,
        /// The client's id of the event that caused it.
        event_id: Option<String>,
    },
}
