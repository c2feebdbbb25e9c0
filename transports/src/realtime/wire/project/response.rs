//! How answers look.

use serde_json::{Map, Value, json};

use super::item::item;
use super::{object, placed};
use crate::realtime::config::echo::playback;
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::server::response::{AudioDelta, Created, Done, Outcome, Part, Usage};

pub(super) fn part(part: &Part) -> Value {
    match part {
        Part::Audio(transcript) => json!({"type": "audio", "transcript": transcript}),
        Part::Text(text) => json!({"type": "text", "text": text}),
    }
}

/// Puts the client's metadata and ours where `profile` has them.
fn metadata(response: &mut Map<String, Value>, client: &Map<String, Value>, ours: Value, profile: Profile) {
    let strings: Map<_, _> =
        client.iter().filter(|(_, v)| v.is_string()).map(|(k, v)| (k.clone(), v.clone())).collect();
    if profile.strings_only() {
        let theirs = if strings.is_empty() { Value::Null } else { Value::Object(strings) };
        response.insert("metadata".to_owned(), theirs);
        response.insert("omni".to_owned(), ours);
    } else {
        let mut all = strings;
        all.extend(object(ours));
        response.insert("metadata".to_owned(), all.into());
    }
}

pub(super) fn created(c: &Created, profile: Profile) -> Map<String, Value> {
    let modalities: Vec<_> = c.modalities.iter().map(|m| m.as_str()).collect();
    let mut response = object(json!({
        "id": c.response_id,
        "object": "realtime.response",
        "status": "in_progress",
        "status_details": null,
        "output": [],
        "modalities": modalities,
        "output_modalities": modalities,
    }));
    let ours = json!({"duplex_event": {
        "type": "response.created",
        "session_id": c.session_id,
        "response_id": c.response_id,
        "epoch": c.epoch,
        "turn_id": c.turn_id,
    }});
    metadata(&mut response, &c.metadata, ours, profile);
    object(json!({"response_id": c.response_id, "response": response}))
}

/// Measurements stand under two names: that of existing clients, and ours.
fn measure(metadata: &mut Map<String, Value>, metrics: &Option<Map<String, Value>>) {
    if let Some(metrics) = metrics {
        for name in ["vllm_omni", "omni_flow"] {
            metadata.insert(name.to_owned(), json!({ "stage_metrics": metrics }));
        }
    }
}

pub(super) fn audio_delta(d: &AudioDelta) -> Map<String, Value> {
    let marks: Vec<_> =
        d.marks.iter().map(|m| json!({"text_chars": m.text_chars, "audio_end_ms": m.audio_end_ms})).collect();
    let mut metadata = object(json!({
        "session_id": &*d.session_id,
        "epoch": d.epoch,
        "model_speak": d.model_speak,
        "end_of_turn": d.end_of_turn,
        "audio_duration_ms": d.audio_duration_ms,
        "audio_text_marks": marks,
        "playback": playback(&d.playback),
    }));
    measure(&mut metadata, &d.stage_metrics);
    let more = json!({
        "delta": d.delta,
        "format": d.format,
        "sample_rate_hz": d.sample_rate_hz,
        "metadata": metadata,
    });
    placed(&d.place, more)
}

pub(super) fn done(d: &Done, profile: Profile) -> Map<String, Value> {
    let output: Vec<_> = d.output.iter().map(item).collect();
    let details = match &d.outcome {
        Outcome::Completed => Value::Null,
        Outcome::Cancelled(reason) => json!({"type": "cancelled", "reason": reason.as_str()}),
        Outcome::Incomplete(reason) => json!({"type": "incomplete", "reason": reason}),
        Outcome::Failed(refusal) => {
            let code = refusal.code;
            let error = json!({"type": code.class().as_str(), "code": code.as_str(), "message": refusal.message});
            json!({"type": "failed", "reason": code.as_str(), "error": error})
        }
    };
    let mut response = object(json!({
        "id": d.response_id,
        "object": "realtime.response",
        "status": d.outcome.status(),
        "status_details": details,
        "output": output,
        "usage": usage(&d.usage),
    }));
    let mut ours = object(json!({
        "type": "response.done",
        "session_id": d.session_id,
        "response_id": d.response_id,
        "epoch": d.epoch,
        "committed": d.committed,
        "playback": playback(&d.playback),
    }));
    measure(&mut ours, &d.stage_metrics);
    metadata(&mut response, &d.metadata, Value::Object(ours), profile);
    object(json!({"response_id": d.response_id, "response": response}))
}

fn usage(u: &Usage) -> Value {
    let input = u.input_text.saturating_add(u.input_audio).saturating_add(u.input_image);
    let output = u.output_text.saturating_add(u.output_audio);
    json!({
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input.saturating_add(output),
        "input_token_details": {
            "text_tokens": u.input_text,
            "audio_tokens": u.input_audio,
            "image_tokens": u.input_image,
            "cached_tokens": u.cached_text.saturating_add(u.cached_audio),
            "cached_tokens_details": {
                "text_tokens": u.cached_text,
                "audio_tokens": u.cached_audio,
                "image_tokens": 0,
            },
        },
        "output_token_details": {"text_tokens": u.output_text, "audio_tokens": u.output_audio},
    })
}
