//! The session object, as each profile shows it.

use serde_json::{Map, Value, json};

use super::facts::SessionFacts;
use super::session::SessionConfig;
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::server::session::Playback;

/// The voice that is named where the graph has only its own: stock clients want a string.
const OWN_VOICE: &str = "default";
/// Characters of a voice sample that are shown; the object must fit a frame.
const MOST_SAMPLE: usize = 4096;

impl SessionConfig {
    /// The session object: every effective value in both spellings, and how the session stands.
    pub fn to_json(&self, facts: &SessionFacts, profile: Profile) -> Value {
        let stock = profile.strings_only();
        let modalities: Vec<_> = self.modalities.iter().map(|m| m.as_str()).collect();
        let voice = match &self.voice {
            None if stock => json!(OWN_VOICE),
            voice => json!(voice),
        };
        let speed = match self.speed {
            None if stock => json!(1.0),
            speed => json!(speed),
        };
        let tokens = self.max_output_tokens.map_or(json!("inf"), |n| json!(n));
        let detection = self.turn_detection.as_ref().map(|td| td.to_json());
        let transcription = match &self.transcription {
            Some(Value::Object(map)) if stock => Some(json!(only(map, &["model", "language", "prompt"]))),
            other => other.clone(),
        };
        let mut input = self.unknown_input.clone();
        put(
            &mut input,
            json!({
                "format": self.input.to_json(),
                "transcription": transcription,
                "noise_reduction": self.noise_reduction,
                "turn_detection": detection,
            }),
        );
        let mut output = self.unknown_output.clone();
        put(&mut output, json!({"format": self.output.to_json(), "voice": voice, "speed": speed}));
        let mut extra = self.extra_body.clone();
        put(
            &mut extra,
            json!({"auto_response": self.auto_response, "return_stage_metrics": self.return_stage_metrics}),
        );
        if let Some(count) = self.force_listen_count {
            extra.insert("force_listen_count".to_owned(), json!(count));
        }
        let mut all = self.unknown.clone();
        for name in ["prompt", "include", "metadata", "tracing", "truncation"] {
            all.insert(name.to_owned(), self.kept.get(name).cloned().unwrap_or_default());
        }
        put(
            &mut all,
            json!({
                "object": "realtime.session",
                "type": "realtime",
                "model": self.model,
                "modalities": modalities,
                "output_modalities": modalities,
                "instructions": self.instructions.as_deref().unwrap_or_default(),
                "initial_user_text": self.initial_user_text,
                "voice": voice,
                "ref_audio": self.ref_audio.as_deref().map(shown_sample),
                "input_audio_format": self.input.encoding.name(),
                "output_audio_format": self.output.encoding.name(),
                "response_format": self.output.encoding.name(),
                "speed": speed,
                "temperature": self.temperature,
                "max_response_output_tokens": tokens,
                "max_output_tokens": tokens,
                "turn_detection": detection,
                "input_audio_transcription": transcription,
                "input_audio_noise_reduction": self.noise_reduction,
                "audio": {"input": input, "output": output},
                "tools": self.tools.as_deref().unwrap_or_default(),
                "tool_choice": self.tool_choice(stock),
                "overlap_policy": self.overlap.policy.as_str(),
                "overlap_short_ack_ms": self.overlap.short_ack_ms,
                "overlap_barge_in_ms": self.overlap.barge_in_ms,
                "overlap_silence_rms": self.overlap.silence_rms,
                "playback_commit_policy": self.playback_commit_policy.as_str(),
                "idle_timeout_s": number(self.idle_timeout_s),
                "extra_body": extra,
            }),
        );
        put(
            &mut all,
            json!({
                "id": facts.id,
                "state": facts.state.as_str(),
                "turn_state": facts.turn_state.as_str(),
                "epoch": facts.epoch,
                "turn_id": facts.turn_id,
                "active_request_id": facts.active_request_id,
                "active_response_id": facts.active_response_id,
                "active_response_turn_id": facts.active_response_turn_id,
                "playback": playback(&facts.playback),
                "capabilities": facts.capabilities.to_json(),
                "expires_at": facts.expires_at,
            }),
        );
        Value::Object(all)
    }

    fn tool_choice(&self, stock: bool) -> Value {
        match &self.tool_choice {
            None => json!("auto"),
            // One named tool is a tool required, in the only words that every stock client reads.
            Some(Value::Object(_)) if stock => json!("required"),
            Some(choice) => choice.clone(),
        }
    }
}

fn put(map: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        map.extend(more);
    }
}

fn only(map: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    map.iter().filter(|(k, _)| names.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn shown_sample(url: &str) -> String {
    if url.len() <= MOST_SAMPLE {
        return url.to_owned();
    }
    let kept: String = url.chars().take(64).collect();
    format!("{kept}... ({} bytes)", url.len())
}

/// A ledger on the wire.
pub(crate) fn playback(p: &Playback) -> Value {
    json!({
        "generated_ms": p.generated_ms,
        "sent_ms": p.sent_ms,
        "played_ms": p.played_ms,
        "committed_ms": p.committed_ms,
    })
}

/// A number without a fraction where it has none: some clients want integers.
pub(crate) fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9e15 { json!(x as i64) } else { json!(x) }
}
