//! How items look.

use serde_json::{Map, Value, json};

use super::object;
use crate::realtime::wire::server::Committed;
use crate::realtime::wire::server::item::{Content, Item, ItemKind};

pub(super) fn committed(c: &Committed) -> Map<String, Value> {
    let content: Vec<_> = c.content.iter().map(content).collect();
    let mut event = object(json!({
        "type": "input.committed",
        "session_id": c.session_id,
        "turn_id": c.turn_id,
        "epoch": c.epoch,
        "history_len": c.history_len,
        "response_create_deferred": c.overlap_deferred,
        "message": {"role": "user", "content": content},
    }));
    if c.overlap_deferred {
        event.insert("overlap_deferred".to_owned(), true.into());
    }
    if c.no_response {
        event.insert("no_response".to_owned(), true.into());
        event.insert("is_speech".to_owned(), false.into());
    }
    object(json!({"previous_item_id": c.previous_item_id, "item_id": c.item_id, "event": event}))
}

/// An item.
pub(super) fn item(item: &Item) -> Value {
    let mut map = object(json!({"id": item.id, "object": "realtime.item", "status": item.status.as_str()}));
    map.extend(object(match &item.kind {
        ItemKind::Message { role, content: parts } => {
            let parts: Vec<_> = parts.iter().map(content).collect();
            json!({"type": "message", "role": role.as_str(), "content": parts})
        }
        ItemKind::FunctionCall { call_id, name, arguments } => {
            json!({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
        }
        ItemKind::FunctionCallOutput { call_id, output } => {
            json!({"type": "function_call_output", "call_id": call_id, "output": output})
        }
    }));
    Value::Object(map)
}

fn content(part: &Content) -> Value {
    match part {
        Content::InputText(text) => json!({"type": "input_text", "text": text}),
        Content::InputAudio { transcript: None } => json!({"type": "input_audio"}),
        Content::InputAudio { transcript } => json!({"type": "input_audio", "transcript": transcript}),
        Content::InputImage { image_url: None } => json!({"type": "input_image"}),
        Content::InputImage { image_url } => json!({"type": "input_image", "image_url": image_url}),
        Content::OutputText(text) => json!({"type": "output_text", "text": text}),
        Content::OutputAudio { transcript, audio_duration_ms: None } => {
            json!({"type": "output_audio", "transcript": transcript})
        }
        Content::OutputAudio { transcript, audio_duration_ms } => {
            json!({"type": "output_audio", "transcript": transcript, "audio_duration_ms": audio_duration_ms})
        }
    }
}
