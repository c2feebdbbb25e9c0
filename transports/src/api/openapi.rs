//! `/openapi.json`: all routes of a server, for people and tools.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{Api, CHAT, OPENAPI, SPEECH, SPEECH_BATCH, SPEECH_STREAM, TRANSCRIPTIONS, TRANSLATIONS, VOICE, VOICES};

/// One route: method, path, what it does, its body (type, schema), and its answer's type.
struct Route {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    body: Option<(&'static str, &'static str)>,
    answer: &'static str,
}

const fn route(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    body: Option<(&'static str, &'static str)>,
    answer: &'static str,
) -> Route {
    Route { method, path, summary, body, answer }
}

const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data";

const ROUTES: [Route; 18] = [
    route(
        "post",
        SPEECH,
        "Text to speech: a clip, a raw stream, or a stream of events",
        Some((JSON, "Speech")),
        "audio/*",
    ),
    route("post", SPEECH_BATCH, "Several clips in one request", Some((JSON, "SpeechBatch")), JSON),
    route("get", SPEECH_STREAM, "WebSocket: text in pieces, speech unit by unit", None, ""),
    route("get", VOICES, "Voices that can be asked for", None, JSON),
    route("post", VOICES, "Upload a voice", Some((FORM, "Voice")), JSON),
    route("delete", VOICE, "Delete an uploaded voice", None, JSON),
    route("post", TRANSCRIPTIONS, "Speech to text", Some((FORM, "Transcription")), JSON),
    route("post", TRANSLATIONS, "Speech to text in English", Some((FORM, "Transcription")), JSON),
    route("post", CHAT, "An answer as text, speech, or both", Some((JSON, "Chat")), JSON),
    route("get", OPENAPI, "This document", None, JSON),
    route("get", "/v1/realtime", "WebSocket: the Realtime protocol", None, ""),
    route("get", "/v1/duplex", "WebSocket: the Realtime protocol, duplex profile", None, ""),
    route("get", "/v1/models", "The graph that is served", None, JSON),
    route("get", "/v1/models/{id}", "The same, by its name", None, JSON),
    route("get", "/v1/omni/stats", "What the graph does just now, as a stream of events", None, "text/event-stream"),
    route("get", "/health", "200 while every model works", None, JSON),
    route("get", "/ready", "200 once everything is loaded and joined", None, JSON),
    route("get", "/metrics", "Metrics in the text format of Prometheus", None, "text/plain"),
];

pub(super) async fn document(State(api): State<Api>) -> Json<Value> {
    Json(describe(&api.model, |path| bound(&api, path)))
}

/// Whether the graph answers a route; those of the door are not of its making.
fn bound(api: &Api, path: &str) -> bool {
    match path {
        SPEECH | SPEECH_BATCH | SPEECH_STREAM | VOICES | VOICE => api.ends.speech.is_some() && api.allowed(path),
        TRANSCRIPTIONS | TRANSLATIONS => api.ends.transcription.is_some() && api.allowed(path),
        CHAT => api.ends.chat.is_some() && api.allowed(path),
        _ => true,
    }
}

fn describe(model: &str, bound: impl Fn(&str) -> bool) -> Value {
    let mut paths = json!({});
    for r in &ROUTES {
        let error = |text: &str| json!({"description": text, "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}});
        let ok = match r.answer {
            "" => json!({"101": {"description": "the connection becomes a WebSocket"}}),
            kind => json!({"200": {"description": "the answer", "content": {kind: {}}}}),
        };
        let mut operation = json!({"summary": r.summary, "responses": ok, "x-omni-flow-bound": bound(r.path)});
        for (status, text) in
            [("400", "the request is wrong"), ("401", "an API key is needed"), ("404", "there is no such thing here")]
        {
            operation["responses"][status] = error(text);
        }
        if r.body.is_some() {
            for (status, text) in
                [("413", "the body is too large"), ("429", "all places are taken"), ("500", "the graph failed")]
            {
                operation["responses"][status] = error(text);
            }
        }
        if let Some((kind, schema)) = r.body {
            let schema = format!("#/components/schemas/{schema}");
            operation["requestBody"] = json!({"required": true, "content": {kind: {"schema": {"$ref": schema}}}});
        }
        let named: Vec<Value> = ["id", "name"]
            .iter()
            .filter(|p| r.path.contains(&format!("{{{p}}}")))
            .map(|p| json!({"name": p, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        if !named.is_empty() {
            operation["parameters"] = named.into();
        }
        paths[r.path][r.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": format!("omni-flow: {model}"), "version": env!("CARGO_PKG_VERSION"),
            "description": "Routes with `x-omni-flow-bound: false` exist and answer 404: this graph does not serve them."},
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}, "schemas": schemas()},
    })
}

fn schemas() -> Value {
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean", "default": false});
    let words = |all: &[&str]| json!({"type": "string", "enum": all});
    let whole = |low: i64| json!({"type": "integer", "minimum": low});
    let formats = ["wav", "pcm", "flac", "mp3", "opus"];
    let speech = json!({
        "input": text(), "model": text(), "voice": text(), "response_format": words(&formats),
        "sample_rate": whole(1000), "speed": {"type": "number", "minimum": 0.25, "maximum": 4.0, "default": 1.0},
        "stream": flag(), "stream_format": words(&["sse", "audio"]), "instructions": text(), "language": text(),
        "task_type": words(&["CustomVoice", "VoiceDesign", "Base"]), "seed": {"type": "integer"},
        "max_new_tokens": whole(1), "initial_codec_chunk_frames": whole(0), "extra_params": {"type": "object"},
    });
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
    let mut batch = speech.clone();
    batch["items"] = json!({"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Speech"}});
    let error = json!({"error": object(&["message", "type", "code"], json!({"message": text(), "type": text(),
        "param": {"type": ["string", "null"]}, "code": whole(400)}))});
    json!({
        "Error": object(&["error"], error),
        "Speech": object(&["input"], speech),
        "SpeechBatch": object(&["items"], batch),
        "Voice": object(&["audio_sample", "consent", "name"], json!({"audio_sample": {"type": "string",
            "format": "binary"}, "consent": text(), "name": text(), "ref_text": text(), "speaker_description": text()})),
        "Transcription": object(&["file"], json!({"file": {"type": "string", "format": "binary"}, "model": text(),
            "language": text(), "prompt": text(), "temperature": {"type": "number", "minimum": 0, "maximum": 1},
            "response_format": words(&["json", "text", "verbose_json", "srt", "vtt"]), "stream": flag(),
            "timestamp_granularities": {"type": "array", "items": words(&["segment", "word"])}})),
        "Chat": object(&["messages"], json!({"messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "model": text(), "modalities": {"type": "array", "items": words(&["text", "audio"])},
            "audio": {"type": "object", "properties": {"voice": text(), "format": words(&formats)}},
            "stream": flag(), "stream_options": {"type": "object", "properties": {"include_usage": flag()}},
            "temperature": {"type": "number", "minimum": 0, "maximum": 10}, "top_p": {"type": "number", "maximum": 1},
            "max_tokens": whole(1), "max_completion_tokens": whole(1), "stop": {}, "seed": whole(0),
            "tools": {"type": "array", "items": {"type": "object"}}, "tool_choice": {},
            "sampling_params_list": {"type": "array", "items": {"type": "object"}}, "return_stage_metrics": flag()})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = describe("g", |_| true);
        let text = document.to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
