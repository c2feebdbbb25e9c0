//! Which events a profile has, and under which names.

use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::server::ServerEvent;

/// True if a client of `profile` is told of `event` at all.
pub fn told(event: &ServerEvent, profile: Profile) -> bool {
    match event {
        ServerEvent::ItemAdded { .. } | ServerEvent::ItemDone { .. } => profile != Profile::Beta,
        ServerEvent::ItemCreated { .. } => profile != Profile::Stock,
        ServerEvent::ConversationCreated { .. } => profile == Profile::Beta,
        _ => true,
    }
}

/// The `type` of `event` for a client of `profile`.
pub fn name(event: &ServerEvent, profile: Profile) -> &'static str {
    let beta = profile == Profile::Beta;
    match event {
        ServerEvent::SessionCreated { .. } => "session.created",
        ServerEvent::SessionUpdated { .. } => "session.updated",
        ServerEvent::HeartbeatAck { .. } => "session.heartbeat_ack",
        ServerEvent::SessionClosed { .. } => "session.closed",
        ServerEvent::SessionResumed { .. } => "session.resumed",
        ServerEvent::SessionReplaced { .. } => "session.replaced",
        ServerEvent::SessionExpired { .. } => "session.expired",
        ServerEvent::ResyncRequired { .. } => "session.resync_required",
        ServerEvent::ConversationCreated { .. } => "conversation.created",
        ServerEvent::SpeechStarted { .. } => "input_audio_buffer.speech_started",
        ServerEvent::SpeechStopped { .. } => "input_audio_buffer.speech_stopped",
        ServerEvent::Committed(_) => "input_audio_buffer.committed",
        ServerEvent::InputCleared => "input_audio_buffer.cleared",
        ServerEvent::ItemAdded { .. } => "conversation.item.added",
        ServerEvent::ItemCreated { .. } => "conversation.item.created",
        ServerEvent::ItemDone { .. } => "conversation.item.done",
        ServerEvent::TranscriptionCompleted { .. } => "conversation.item.input_audio_transcription.completed",
        ServerEvent::ItemRetrieved { .. } => "conversation.item.retrieved",
        ServerEvent::ItemDeleted { .. } => "conversation.item.deleted",
        ServerEvent::ItemTruncated { .. } => "conversation.item.truncated",
        ServerEvent::ResponseCreated(_) => "response.created",
        ServerEvent::OutputItemAdded { .. } => "response.output_item.added",
        ServerEvent::ContentPartAdded { .. } => "response.content_part.added",
        ServerEvent::Speak { .. } => "response.speak",
        ServerEvent::AudioDelta(_) if beta => "response.audio.delta",
        ServerEvent::AudioDelta(_) => "response.output_audio.delta",
        ServerEvent::TranscriptDelta { .. } if beta => "response.audio_transcript.delta",
        ServerEvent::TranscriptDelta { .. } => "response.output_audio_transcript.delta",
        ServerEvent::AudioDone { .. } if beta => "response.audio.done",
        ServerEvent::AudioDone { .. } => "response.output_audio.done",
        ServerEvent::TranscriptDone { .. } if beta => "response.audio_transcript.done",
        ServerEvent::TranscriptDone { .. } => "response.output_audio_transcript.done",
        ServerEvent::TextDelta { .. } if beta => "response.text.delta",
        ServerEvent::TextDelta { .. } => "response.output_text.delta",
        ServerEvent::TextDone { .. } if beta => "response.text.done",
        ServerEvent::TextDone { .. } => "response.output_text.done",
        ServerEvent::ContentPartDone { .. } => "response.content_part.done",
        ServerEvent::OutputItemDone { .. } => "response.output_item.done",
        ServerEvent::ResponseDone(_) => "response.done",
        ServerEvent::Listen { .. } => "response.listen",
        ServerEvent::CallDelta { .. } => "response.function_call_arguments.delta",
        ServerEvent::CallDone { .. } => "response.function_call_arguments.done",
        ServerEvent::RawCall { .. } => "duplex.function_call.done",
        ServerEvent::RateLimits => "rate_limits.updated",
        ServerEvent::OutputCleared { .. } => "output_audio_buffer.cleared",
        ServerEvent::Acknowledged(_) => "playback.acknowledged",
        ServerEvent::Overlap(_) => "overlap.decision",
        ServerEvent::Turn { .. } => "turn.event",
        ServerEvent::Error { .. } => "error",
    }
}
