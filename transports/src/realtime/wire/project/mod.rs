//! How events look to a client.
//!
//! One session, one state machine; a [`Profile`] only chooses names and leaves out what its clients do not know. Fields
//! that are not there are absent; `null` stands only where the stock protocol has it.

mod item;
mod name;
mod response;
mod text;

use serde_json::{Map, Value, json};

use item::{committed, item};
pub use name::{name, told};
use response::{audio_delta, created, done, part};
pub use text::text;

use super::profile::Profile;
use super::server::response::Place;
use super::server::session::SessionView;
use super::server::{Acknowledged, Overlap, ServerEvent};
use crate::realtime::config::echo::{number, playback};

/// What every event carries besides itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The event's own id, unique in the life of the server.
    pub event_id: String,
    /// Its number in the journal, if it has one.
    pub server_event_seq: Option<u64>,
}

/// The JSON object that a client of `profile` is sent for `event`; none if such clients are not told.
///
/// Whoever counts or stores events does so with what comes back, so that an event nobody is told takes no number.
pub fn project(event: &ServerEvent, profile: Profile, envelope: &Envelope) -> Option<Value> {
    if !told(event, profile) {
        return None;
    }
    let mut object = body(event, profile);
    object.insert("type".to_owned(), name(event, profile).into());
    object.insert("event_id".to_owned(), envelope.event_id.as_str().into());
    if let Some(seq) = envelope.server_event_seq {
        object.insert("server_event_seq".to_owned(), seq.into());
    }
    Some(Value::Object(object))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn placed(place: &Place, more: Value) -> Map<String, Value> {
    let mut map = object(more);
    map.insert("response_id".to_owned(), (&*place.response_id).into());
    map.insert("item_id".to_owned(), (&*place.item_id).into());
    map.insert("output_index".to_owned(), place.output_index.into());
    map.insert("content_index".to_owned(), place.content_index.into());
    map
}

fn body(event: &ServerEvent, profile: Profile) -> Map<String, Value> {
    match event {
        ServerEvent::SessionCreated { session, attachment_generation, resume_token } => {
            let mut map = attached(session, *attachment_generation, profile);
            if let Some(token) = resume_token {
                map.insert("resume_token".to_owned(), token.as_str().into());
            }
            map
        }
        ServerEvent::SessionUpdated { session } => object(json!({"session": view(session, profile)})),
        ServerEvent::SessionResumed { session, attachment_generation, resume_token } => {
            let mut map = attached(session, *attachment_generation, profile);
            map.insert("resume_token".to_owned(), resume_token.as_str().into());
            map.insert("session_id".to_owned(), session.facts.id.as_str().into());
            map
        }
        ServerEvent::SessionReplaced { session_id, attachment_generation } => {
            object(json!({"session_id": session_id, "attachment_generation": attachment_generation}))
        }
        ServerEvent::HeartbeatAck { session_id } => object(json!({"session_id": session_id})),
        ServerEvent::SessionClosed { session_id, reason } => {
            let event = json!({"type": "session.closed", "reason": reason});
            object(json!({"session_id": session_id, "reason": reason, "event": event}))
        }
        ServerEvent::SessionExpired { session_id, reason } => {
            object(json!({"session_id": session_id, "reason": reason.as_str()}))
        }
        ServerEvent::ResyncRequired { session_id, reason } => {
            object(json!({"session_id": session_id, "reason": reason.as_str()}))
        }
        ServerEvent::ConversationCreated { conversation_id } => {
            object(json!({"conversation": {"id": conversation_id, "object": "realtime.conversation"}}))
        }
        ServerEvent::SpeechStarted { item_id, audio_start_ms } => {
            object(json!({"item_id": item_id, "audio_start_ms": audio_start_ms}))
        }
        ServerEvent::SpeechStopped { item_id, audio_end_ms } => {
            object(json!({"item_id": item_id, "audio_end_ms": audio_end_ms}))
        }
        ServerEvent::Committed(c) => committed(c),
        ServerEvent::InputCleared => Map::new(),
        ServerEvent::ItemAdded { previous_item_id, item: one }
        | ServerEvent::ItemCreated { previous_item_id, item: one }
        | ServerEvent::ItemDone { previous_item_id, item: one } => {
            object(json!({"previous_item_id": previous_item_id, "item": item(one)}))
        }
        ServerEvent::TranscriptionCompleted { item_id, content_index, transcript, duration_ms } => object(json!({
            "item_id": item_id,
            "content_index": content_index,
            "transcript": transcript,
            "usage": {"type": "duration", "seconds": number(*duration_ms as f64 / 1000.0)},
        })),
        ServerEvent::ItemRetrieved { item: one } => object(json!({"item": item(one)})),
        ServerEvent::ItemDeleted { item_id } => {
            let event = json!({"type": "conversation.item.deleted", "item_id": item_id});
            object(json!({"item_id": item_id, "event": event}))
        }
        ServerEvent::ItemTruncated { item_id, content_index, audio_end_ms, request } => object(json!({
            "item_id": item_id,
            "content_index": content_index,
            "audio_end_ms": audio_end_ms,
            "event": request,
        })),
        ServerEvent::ResponseCreated(c) => created(c, profile),
        ServerEvent::OutputItemAdded { response_id, output_index, item: one }
        | ServerEvent::OutputItemDone { response_id, output_index, item: one } => {
            object(json!({"response_id": response_id, "output_index": output_index, "item": item(one)}))
        }
        ServerEvent::ContentPartAdded { place, part: p } | ServerEvent::ContentPartDone { place, part: p } => {
            placed(place, json!({"part": part(p)}))
        }
        ServerEvent::Speak { place, session_id, epoch } => {
            let metadata = json!({"session_id": session_id, "epoch": epoch, "model_speak": true});
            placed(place, json!({"metadata": metadata}))
        }
        ServerEvent::AudioDelta(d) => audio_delta(d),
        ServerEvent::TranscriptDelta { place, delta } | ServerEvent::TextDelta { place, delta } => {
            placed(place, json!({"delta": delta}))
        }
        ServerEvent::AudioDone { place } => placed(place, json!({})),
        ServerEvent::TranscriptDone { place, transcript } => placed(place, json!({"transcript": transcript})),
        ServerEvent::TextDone { place, text } => placed(place, json!({"text": text})),
        ServerEvent::ResponseDone(d) => done(d, profile),
        ServerEvent::Listen { session_id, epoch, response_id, reason } => {
            let event = "response.listen";
            let metadata = json!({"type": event, "session_id": session_id, "epoch": epoch, "reason": reason.as_str()});
            let mut response =
                object(json!({"object": "realtime.response", "status": "listening", "metadata": metadata}));
            let mut map = object(json!({"session_id": session_id, "epoch": epoch}));
            if let Some(id) = response_id {
                response.insert("id".to_owned(), id.as_str().into());
                map.insert("response_id".to_owned(), id.as_str().into());
            }
            map.insert("response".to_owned(), response.into());
            map
        }
        ServerEvent::CallDelta { place, call_id, delta } => placed(place, json!({"call_id": call_id, "delta": delta})),
        ServerEvent::CallDone { place, call_id, name, arguments } => {
            placed(place, json!({"call_id": call_id, "name": name, "arguments": arguments}))
        }
        ServerEvent::RawCall { session_id, epoch, call_id, name, arguments } => object(json!({"event": {
            "type": "function_call.done",
            "session_id": session_id,
            "epoch": epoch,
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
        }})),
        ServerEvent::RateLimits => object(json!({"rate_limits": []})),
        ServerEvent::OutputCleared { response_id } => object(json!({"response_id": response_id})),
        ServerEvent::Acknowledged(a) => acknowledged(a),
        ServerEvent::Overlap(o) => overlap(o),
        ServerEvent::Turn { session_id, event, turn_state, epoch } => object(json!({
            "session_id": session_id,
            "event": event,
            "turn_state": turn_state.as_str(),
            "epoch": epoch,
        })),
        ServerEvent::Error { refusal, event_id } => {
            let code = refusal.code;
            let mut error =
                object(json!({"type": code.class().as_str(), "code": code.as_str(), "message": refusal.message}));
            // Stock servers send both keys always; ours only where there is something to say.
            for (key, value) in [("param", &refusal.param), ("event_id", event_id)] {
                if value.is_some() || profile != Profile::Duplex {
                    error.insert(key.to_owned(), json!(value));
                }
            }
            if code.retryable() {
                error.insert("retryable".to_owned(), true.into());
            }
            object(json!({ "error": error }))
        }
    }
}

fn view(session: &SessionView, profile: Profile) -> Value {
    session.config.to_json(&session.facts, profile)
}

fn attached(session: &SessionView, generation: u64, profile: Profile) -> Map<String, Value> {
    object(json!({"attachment_generation": generation, "session": view(session, profile)}))
}

fn acknowledged(a: &Acknowledged) -> Map<String, Value> {
    object(json!({"event": {
        "type": "playback.acknowledged",
        "session_id": a.session_id,
        "epoch": a.epoch,
        "item_id": a.item_id,
        // As received, but whole: milliseconds on the wire are integers.
        "played_ms": a.played_ms as i64,
        "committed_ms": a.committed_ms as i64,
        "truncate": a.truncate,
        "playback": playback(&a.playback),
        "history_committed": a.history_committed,
    }}))
}

fn overlap(o: &Overlap) -> Map<String, Value> {
    object(json!({
        "session_id": o.session_id,
        "epoch": o.epoch,
        "policy": o.policy.as_str(),
        "action": o.action,
        "reason": o.reason,
        "metadata": {
            "duration_ms": o.duration_ms,
            "overlap_speech_ms": o.overlap_speech_ms,
            "buffer_audio": o.buffer_audio,
            "defer_runtime_append": o.defer_runtime_append,
        },
    }))
}

#[cfg(test)]
mod golden;
