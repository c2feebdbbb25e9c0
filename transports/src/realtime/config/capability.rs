//! What a graph can do. A client branches on these and never on the name of a model.

use serde_json::{Value, json};

/// Who decides about turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// The model, unit by unit.
    ModelNative,
    /// The server: hear, think, speak.
    #[default]
    TurnBased,
}

impl Level {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::ModelNative => "model_native_duplex",
            Level::TurnBased => "turn_based_duplex",
        }
    }
}

/// What a graph can do. The default can take audio and commits, and nothing optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Who decides about turns.
    pub level: Level,
    /// The model's unit in ms.
    pub chunk_period_ms: Option<u32>,
    /// Interrupting: gates `barge_in`, `barge_in_on_speech` and server VAD that interrupts.
    pub barge_in: bool,
    /// Coming back after a lost connection.
    pub resume: bool,
    /// Acknowledging playback.
    pub playback_ack: bool,
    /// Cutting an answer to what was heard.
    pub truncate: bool,
    /// Camera frames and pictures.
    pub image: bool,
    /// Turns of text alone.
    pub text_only_turn: bool,
    /// Commits while an answer is spoken.
    pub overlapped_commit: bool,
    /// The HTTP chat route.
    pub chat_completions: bool,
    /// A second `response.create` takes the place of the first.
    pub response_replace: bool,
    /// Functions.
    pub tools: bool,
    /// Clients may commit.
    pub client_commit: bool,
    /// Clients may signal turns.
    pub external_turn_signal: bool,
    /// How fast an interruption should act, in ms.
    pub target_barge_in_latency_ms: Option<u32>,
    /// The graph finds the user's turns, if asked to. Not shown.
    pub detects: bool,
    /// The graph fixes the voice when a session starts. Not shown.
    pub fixed_voice: bool,
    /// The graph fixes the instructions, its persona, when a session starts. Not shown.
    pub fixed_persona: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            level: Level::TurnBased,
            chunk_period_ms: None,
            barge_in: false,
            resume: false,
            playback_ack: false,
            truncate: false,
            image: false,
            text_only_turn: false,
            overlapped_commit: true,
            chat_completions: false,
            response_replace: false,
            tools: false,
            client_commit: true,
            external_turn_signal: true,
            target_barge_in_latency_ms: None,
            detects: true,
            fixed_voice: false,
            fixed_persona: false,
        }
    }
}

impl Capabilities {
    /// Model-native in units of 1 s, with a camera and without tools.
    pub fn profile_a() -> Self {
        Self {
            level: Level::ModelNative,
            chunk_period_ms: Some(1000),
            barge_in: true,
            resume: true,
            playback_ack: true,
            truncate: true,
            image: true,
            ..Self::default()
        }
    }
    /// Model-native in units of 80 ms, and nothing else.
    pub fn profile_b() -> Self {
        Self { level: Level::ModelNative, chunk_period_ms: Some(80), ..Self::default() }
    }
    /// Model-native in units of 80 ms, with tools and resume.
    pub fn profile_c() -> Self {
        Self { resume: true, tools: true, ..Self::profile_b() }
    }
    /// Recognition, language model, synthesis, in units of `chunk_period_ms` (20 to 200).
    pub fn profile_d(chunk_period_ms: u32) -> Self {
        Self {
            level: Level::TurnBased,
            chunk_period_ms: Some(chunk_period_ms),
            barge_in: true,
            resume: true,
            playback_ack: true,
            truncate: true,
            tools: true,
            text_only_turn: true,
            ..Self::default()
        }
    }
    /// A flag by the name that graph files use for it, `barge_in`, or by its name on the wire, `supports_barge_in`.
    pub fn flag(&mut self, name: &str) -> Option<&mut bool> {
        let name = name.strip_prefix("supports_").unwrap_or(name);
        Some(match name {
            "barge_in" => &mut self.barge_in,
            "resume" | "session_resume" => &mut self.resume,
            "playback_ack" => &mut self.playback_ack,
            "truncate" | "audio_truncate" => &mut self.truncate,
            "image" | "image_input" => &mut self.image,
            "text_only_turn" => &mut self.text_only_turn,
            "overlapped_commit" => &mut self.overlapped_commit,
            "chat_completions" => &mut self.chat_completions,
            "response_replace" => &mut self.response_replace,
            "tools" => &mut self.tools,
            "client_commit" => &mut self.client_commit,
            "external_turn_signal" => &mut self.external_turn_signal,
            _ => return None,
        })
    }
    /// True if the model itself owns turn taking.
    pub fn native(&self) -> bool {
        self.level == Level::ModelNative
    }
    /// The object on the wire.
    pub fn to_json(&self) -> Value {
        let mut sources = vec!["client_event"];
        sources.insert(0, if self.native() { "model_native" } else { "server_policy" });
        let optional: &[&str] = if self.image { &["video"] } else { &[] };
        json!({
            "implementation_level": self.level.as_str(),
            "chunk_period_ms": self.chunk_period_ms,
            "input_modes": ["append_audio_chunk"],
            "signal_sources": sources,
            "required_input_modalities": ["audio"],
            "optional_input_modalities": optional,
            "supports_input_append": true,
            "supports_client_commit": self.client_commit,
            "supports_external_turn_signal": self.external_turn_signal,
            "supports_barge_in": self.barge_in,
            "supports_session_resume": self.resume,
            "supports_session_lease": true,
            "supports_multi_session": true,
            "supports_playback_ack": self.playback_ack,
            "supports_audio_truncate": self.truncate,
            "supports_image_input": self.image,
            "supports_text_only_turn": self.text_only_turn,
            "supports_overlapped_commit": self.overlapped_commit,
            "supports_chat_completions": self.chat_completions,
            "supports_response_replace": self.response_replace,
            "supports_tools": self.tools,
            "supports_kv_lease": false,
            "supports_stage_resumption": false,
            "target_barge_in_latency_ms": self.target_barge_in_latency_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_profiles_are_as_the_table_says() {
        let table = [
            (Capabilities::profile_a(), 1000, true, [true, true, true, true, false]),
            (Capabilities::profile_b(), 80, true, [false, false, false, false, false]),
            (Capabilities::profile_c(), 80, true, [true, false, false, false, true]),
            (Capabilities::profile_d(200), 200, false, [true, true, true, false, true]),
        ];
        for (capabilities, unit, native, flags) in table {
            let shown = capabilities.to_json();
            assert_eq!(shown["chunk_period_ms"], unit);
            assert_eq!(shown["implementation_level"] == "model_native_duplex", native);
            let names = ["session_resume", "barge_in", "audio_truncate", "image_input", "tools"];
            for (name, flag) in names.iter().zip(flags) {
                assert_eq!(shown[format!("supports_{name}")], flag, "{name} of {unit}");
            }
        }
        assert_eq!(Capabilities::default().to_json()["chunk_period_ms"], Value::Null);
        assert_eq!(Capabilities::profile_a().to_json()["optional_input_modalities"], json!(["video"]));
    }
}
