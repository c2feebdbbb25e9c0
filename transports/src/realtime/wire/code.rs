//! Error codes and refusals.
//!
//! A [`Code`] is what a client branches on; its string never changes. A [`Refusal`] is one code with a message that says
//! what to do, and the field it is about.

use std::borrow::Cow;

/// The class of a code, the `type` inside an `error` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The client asked for something that cannot be done as asked.
    InvalidRequest,
    /// A fault on this side.
    Server,
    /// Too much at once.
    RateLimit,
}

impl Class {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::InvalidRequest => "invalid_request_error",
            Class::Server => "server_error",
            Class::RateLimit => "rate_limit_error",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident, $retry:literal;)*) => {
        /// Every error code of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// All codes, in the order of the tables.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The string on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
            /// The class it is sent under.
            pub fn class(self) -> Class {
                match self { $(Code::$name => Class::$class,)* }
            }
            /// True if the same request may succeed later, unchanged.
            pub fn retryable(self) -> bool {
                match self { $(Code::$name => $retry,)* }
            }
        }
    };
}

codes! {
    /// Not an object, no `type`, or a field that is missing or of the wrong type.
    BadEvent = "bad_event", InvalidRequest, false;
    /// Audio that is not base64.
    BadAudio = "bad_audio", InvalidRequest, false;
    /// No first message in time.
    ConfigTimeout = "config_timeout", InvalidRequest, false;
    /// Text that is not JSON.
    InvalidJson = "invalid_json", InvalidRequest, false;
    /// A message above the size limit.
    EventTooLarge = "event_too_large", InvalidRequest, false;
    /// An unknown `type`.
    UnknownEvent = "unknown_event", InvalidRequest, false;
    /// A session of that id is open.
    SessionExists = "session_exists", InvalidRequest, false;
    /// A command while the session closes.
    SessionClosed = "session_closed", InvalidRequest, false;
    /// A command for a session that is no longer held.
    UnknownSession = "unknown_session", InvalidRequest, false;
    /// A key of ours, or an invalid runtime option, in the configuration.
    InvalidDuplexRuntimeConfig = "invalid_duplex_runtime_config", InvalidRequest, false;
    /// Instructions changed after the context was locked.
    InstructionsUpdateUnsupported = "instructions_update_unsupported", InvalidRequest, false;
    /// Persona text changed where the graph fixes it.
    PersonaUpdateUnsupported = "persona_update_unsupported", InvalidRequest, false;
    /// Voice changed where the graph fixes it.
    VoiceUpdateUnsupported = "voice_update_unsupported", InvalidRequest, false;
    /// A mode of a model that is not available.
    UnsupportedNemotronDuplexMode = "unsupported_nemotron_duplex_mode", InvalidRequest, false;
    /// A per-response option that a model-native graph cannot apply.
    UnsupportedNativeResponseOptions = "unsupported_native_response_options", InvalidRequest, false;
    /// A second response while one runs.
    ConversationAlreadyHasActiveResponse = "conversation_already_has_active_response", InvalidRequest, false;
    /// A cancel of what does not run.
    ResponseCancelNotActive = "response_cancel_not_active", InvalidRequest, false;
    /// A response with nothing to answer.
    ResponseCreateWithoutInput = "response_create_without_input", InvalidRequest, false;
    /// Text alone, to a graph that answers speech only.
    TextOnlyTurnUnsupported = "text_only_turn_unsupported", InvalidRequest, false;
    /// A commit of nothing.
    InputAudioBufferCommitEmpty = "input_audio_buffer_commit_empty", InvalidRequest, false;
    /// An item event that names no item.
    MissingItemId = "missing_item_id", InvalidRequest, false;
    /// No such item.
    ItemNotFound = "item_not_found", InvalidRequest, false;
    /// No such item, asked for by retrieve.
    ItemRetrieveInvalidItemId = "item_retrieve_invalid_item_id", InvalidRequest, false;
    /// An item of that id exists.
    ItemCreateDuplicateItemId = "item_create_duplicate_item_id", InvalidRequest, false;
    /// The item and the response of an acknowledgement do not belong together.
    PlaybackItemMismatch = "playback_item_mismatch", InvalidRequest, false;
    /// No spoken item for that response.
    PlaybackItemNotFound = "playback_item_not_found", InvalidRequest, false;
    /// An acknowledgement after the next user input was committed.
    PlaybackAckTooLate = "playback_ack_too_late", InvalidRequest, false;
    /// An audio format that is not offered.
    UnsupportedAudioFormat = "unsupported_audio_format", InvalidRequest, false;
    /// Turn detection that cannot be had as asked.
    UnsupportedTurnDetection = "unsupported_turn_detection", InvalidRequest, false;
    /// Reference audio that is neither a data nor an http(s) URL.
    UnsupportedRefAudioPath = "unsupported_ref_audio_path", InvalidRequest, false;
    /// Audio asked of a graph that needs a voice sample.
    RefAudioRequired = "ref_audio_required", InvalidRequest, false;
    /// The model changed.
    ModelUpdateUnsupported = "model_update_unsupported", InvalidRequest, false;
    /// The voice changed after the first audio.
    VoiceUpdateAfterAudioUnsupported = "voice_update_after_audio_unsupported", InvalidRequest, false;
    /// The reference audio changed after open.
    RefAudioUpdateUnsupported = "ref_audio_update_unsupported", InvalidRequest, false;
    /// Text appended to a model-native graph.
    NativeTextAppendUnsupported = "native_text_append_unsupported", InvalidRequest, false;
    /// Camera frames that are not as required.
    InvalidVideoFrames = "invalid_video_frames", InvalidRequest, false;
    /// A function result that fits no call.
    InvalidFunctionCallOutput = "invalid_function_call_output", InvalidRequest, false;

    /// A fault of ours.
    InternalError = "internal_error", Server, false;
    /// The model stage refused a unit of input.
    RuntimeAppendFailed = "runtime_append_failed", Server, false;
    /// Decoding, resampling or detection of an append failed.
    RuntimeAppendTaskFailed = "runtime_append_task_failed", Server, false;
    /// A control signal to a stage failed.
    RuntimeSignalFailed = "runtime_signal_failed", Server, false;
    /// Aborting a stage failed.
    RuntimeAbortFailed = "runtime_abort_failed", Server, false;
    /// The stream of a stage broke in mid answer.
    RuntimeDataPlaneStreamFailed = "runtime_data_plane_stream_failed", Server, false;
    /// A stage gave text for a spoken answer, and no audio.
    RuntimeDataPlaneTextWithoutAudio = "runtime_data_plane_text_without_audio", Server, false;
    /// The lease could not be renewed.
    RuntimeTouchFailed = "runtime_touch_failed", Server, true;
    /// A node failed or died.
    EngineError = "engine_error", Server, false;
    /// The input being committed was cancelled.
    CommitAborted = "commit_aborted", Server, false;
    /// The detector's model cannot be loaded.
    ServerVadUnavailable = "server_vad_unavailable", Server, false;

    /// No place for another session.
    ResourceExhausted = "resource_exhausted", RateLimit, true;
    /// Too much pending input, or too many pending commits.
    InputBackpressure = "input_backpressure", RateLimit, true;

    /// A configuration of the wrong shape.
    InvalidSessionConfig = "invalid_session_config", InvalidRequest, false;
    /// Resume fields that are missing or malformed.
    InvalidSessionResume = "invalid_session_resume", InvalidRequest, false;
    /// A session that is unknown or expired.
    SessionResumeExpired = "session_resume_expired", InvalidRequest, false;
    /// A session that cannot resume, or a resume inside an open session.
    UnsupportedSessionResume = "unsupported_session_resume", InvalidRequest, false;
    /// A token that is wrong, old or foreign.
    InvalidResumeToken = "invalid_resume_token", InvalidRequest, false;
    /// The race was lost, or the sequence is beyond the head.
    SessionResumeConflict = "session_resume_conflict", InvalidRequest, false;
    /// The engine refused to attach again.
    RuntimeResumeFailed = "runtime_resume_failed", InvalidRequest, false;
    /// An acknowledgement of events that cannot be.
    InvalidEventAck = "invalid_event_ack", InvalidRequest, false;
    /// An unexpected fault in the input path.
    RealtimeInputFailed = "realtime_input_failed", InvalidRequest, false;
    /// Audio without valid metadata, or a change of rate inside one response.
    ResponseError = "response_error", InvalidRequest, false;
    /// The control queue is full.
    EngineBackpressure = "engine_backpressure", InvalidRequest, true;
    /// An unknown voice.
    InvalidVoice = "invalid_voice", InvalidRequest, false;
    /// The reader did not keep up.
    OutputOverflow = "output_overflow", Server, false;
    /// A control call under an old fence.
    StaleFence = "stale_fence", InvalidRequest, false;
    /// A control call for what is not there.
    NotFound = "not_found", InvalidRequest, false;
    /// A control call with a wrong argument.
    InvalidArgument = "invalid_argument", InvalidRequest, false;
    /// A control call in the wrong state.
    FailedPrecondition = "failed_precondition", InvalidRequest, false;
    /// A control call beyond its deadline.
    Timeout = "timeout", InvalidRequest, true;

    /// Only for an account whose quota is used up: some clients end for good on it.
    InsufficientQuota = "insufficient_quota", RateLimit, false;
    /// Only for an account without credit: some clients end for good on it.
    CreditBalanceExhausted = "credit_balance_exhausted", RateLimit, false;
    /// Only for a wrong key: some clients end for good on it.
    InvalidApiKey = "invalid_api_key", InvalidRequest, false;
    /// Only for an account that is switched off: some clients end for good on it.
    AccountDeactivated = "account_deactivated", InvalidRequest, false;
    /// Only for a billing limit: some clients end for good on it.
    BillingHardLimitReached = "billing_hard_limit_reached", InvalidRequest, false;

    /// Reserved for context operations of a model.
    ContextOperationFailed = "context_operation_failed", Server, false;
    /// Reserved for context operations of a model.
    ContextOutputFailed = "context_output_failed", Server, false;
    /// Reserved for context operations of a model.
    RuntimeInputFailed = "runtime_input_failed", Server, false;
    /// Reserved for context operations of a model.
    ContextNotInitialized = "context_not_initialized", InvalidRequest, false;
    /// Reserved for context operations of a model.
    InvalidContextInput = "invalid_context_input", InvalidRequest, false;
    /// Reserved for context operations of a model.
    StaleContextEpoch = "stale_context_epoch", InvalidRequest, false;
    /// Reserved for context operations of a model.
    StaleContextVersion = "stale_context_version", InvalidRequest, false;
    /// Reserved for context operations of a model.
    StaleTaskSlate = "stale_task_slate", InvalidRequest, false;
    /// Reserved for context operations of a model.
    UnknownFunctionCall = "unknown_function_call", InvalidRequest, false;
    /// Reserved for context operations of a model.
    DuplicateFunctionOutput = "duplicate_function_output", InvalidRequest, false;
    /// Reserved for context operations of a model.
    ContextEventConflict = "context_event_conflict", InvalidRequest, false;
    /// Reserved for context operations of a model.
    InvalidTools = "invalid_tools", InvalidRequest, false;
    /// Reserved for context operations of a model.
    ContextInputUnsupported = "context_input_unsupported", InvalidRequest, false;
    /// Reserved for context operations of a model.
    ContextReplacementUnsupported = "context_replacement_unsupported", InvalidRequest, false;
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request refused, or one fault reported. State is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// What a client branches on.
    pub code: Code,
    /// What happened and what to do.
    pub message: Cow<'static, str>,
    /// The field it is about, as a path (`item.content[0].text`).
    pub param: Option<String>,
}

impl Refusal {
    /// A refusal that is about no field.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), param: None }
    }
    /// The same, about the field `param`.
    pub fn about(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }
    /// The same under another code, where an event has a code of its own for what is wrong with it.
    pub fn under(self, code: Code) -> Self {
        Self { code, ..self }
    }
    /// A field that is missing or of the wrong type.
    pub fn bad(param: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::BadEvent, message).about(param)
    }
    /// A cancel with nothing active. Clients recognise the beginning of the message.
    pub fn cancel_not_active() -> Self {
        Self::new(Code::ResponseCancelNotActive, "Cancellation failed: no active response found; nothing was cancelled")
    }
    /// A second response while one runs.
    pub fn already_active(response_id: &str) -> Self {
        let message =
            format!("response {response_id} is still active; wait for its response.done or send response.cancel first");
        Self::new(Code::ConversationAlreadyHasActiveResponse, message)
    }
    /// A commit of nothing.
    pub fn commit_empty() -> Self {
        let message = "nothing to commit: append audio with input_audio_buffer.append before committing";
        Self::new(Code::InputAudioBufferCommitEmpty, message)
    }
    /// No place for another session.
    pub fn capacity(limit: usize) -> Self {
        Self::new(Code::ResourceExhausted, format!("duplex_session_capacity_exhausted: limit={limit}"))
    }
    /// An item of that id exists.
    pub fn duplicate_item(id: &str) -> Self {
        let id = shown(id);
        let message = format!("an item with the id {id:?} already exists; choose another id or leave it out");
        Self::new(Code::ItemCreateDuplicateItemId, message).about("item.id")
    }
    /// No such item. For `conversation.item.retrieve` use [`Refusal::under`] with its own code.
    pub fn item_not_found(id: &str) -> Self {
        let id = shown(id);
        let message = format!("no item with the id {id:?} in this conversation; it was never created or is deleted");
        Self::new(Code::ItemNotFound, message).about("item_id")
    }
}

/// As much of a client's word as a message repeats.
pub(crate) fn shown(word: &str) -> &str {
    match word.char_indices().nth(64) {
        Some((end, _)) => &word[..end],
        None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_its_own_string_in_the_form_of_codes() {
        let all: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(all.len(), Code::ALL.len());
        for text in all {
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text}");
        }
    }

    #[test]
    fn classes_and_retry_follow_the_tables() {
        let of = |class| Code::ALL.iter().filter(|c| c.class() == class).count();
        // 35 rows with 37 codes (the row of items has two, and so does the one of resumption's own table), see 7.1 to 7.4.
        assert_eq!(of(Class::Server), 11 + 1 + 3);
        assert_eq!(of(Class::RateLimit), 2 + 2);
        let retry: Vec<_> = Code::ALL.iter().filter(|c| c.retryable()).map(|c| c.as_str()).collect();
        let expected =
            ["runtime_touch_failed", "resource_exhausted", "input_backpressure", "engine_backpressure", "timeout"];
        assert_eq!(retry, expected);
        assert_eq!(Code::OutputOverflow.class().as_str(), "server_error");
        assert_eq!(Code::InvalidResumeToken.class().as_str(), "invalid_request_error");
        assert_eq!(Code::InputBackpressure.class().as_str(), "rate_limit_error");
    }

    #[test]
    fn messages_that_clients_read_begin_as_they_expect() {
        assert!(Refusal::cancel_not_active().message.starts_with("Cancellation failed"));
        assert!(Refusal::item_not_found(&"é".repeat(5000)).message.len() < 300);
        assert_eq!(Refusal::capacity(4).message, "duplex_session_capacity_exhausted: limit=4");
        let at = Refusal::bad("item.id", "no");
        assert_eq!((at.code, at.param.as_deref()), (Code::BadEvent, Some("item.id")));
        assert_eq!(
            Refusal::item_not_found("x").under(Code::ItemRetrieveInvalidItemId).param.as_deref(),
            Some("item_id")
        );
    }
}
