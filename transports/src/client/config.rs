//! What a client asks of a session, of a response and of a conversation: builders.

use serde_json::{Map, Value, json};

use crate::realtime::wire::profile::Profile;

/// A format of audio on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// 16 bit, little endian, mono, with so many samples per second.
    Pcm16(u32),
    /// G.711 µ-law, 8 kHz.
    Ulaw,
    /// G.711 A-law, 8 kHz.
    Alaw,
}

impl AudioFormat {
    /// Samples per second.
    pub fn rate(self) -> u32 {
        match self {
            Self::Pcm16(rate) => rate,
            Self::Ulaw | Self::Alaw => 8000,
        }
    }
    /// Bytes of a sample.
    pub fn width(self) -> usize {
        if matches!(self, Self::Pcm16(_)) { 2 } else { 1 }
    }
    fn nested(self) -> Value {
        match self {
            Self::Pcm16(rate) => json!({"type": "audio/pcm", "rate": rate}),
            Self::Ulaw => json!({"type": "audio/pcmu"}),
            Self::Alaw => json!({"type": "audio/pcma"}),
        }
    }
    fn flat(self) -> &'static str {
        match self {
            Self::Pcm16(_) => "pcm16",
            Self::Ulaw => "g711_ulaw",
            Self::Alaw => "g711_alaw",
        }
    }
    /// The format that a session object states for one direction, `input` or `output`; either spelling.
    pub(super) fn stated(session: &Value, direction: &str) -> Option<Self> {
        let nested = &session["audio"][direction]["format"];
        let flat = &session[format!("{direction}_audio_format")];
        let rate = nested["rate"].as_u64().and_then(|r| u32::try_from(r).ok());
        match nested["type"].as_str().or(nested.as_str()).or(flat.as_str())? {
            "audio/pcm" | "pcm16" => Some(Self::Pcm16(rate.filter(|r| *r > 0).unwrap_or(24_000))),
            "audio/pcmu" | "g711_ulaw" => Some(Self::Ulaw),
            "audio/pcma" | "g711_alaw" => Some(Self::Alaw),
            _ => None,
        }
    }
}

/// Who finds the ends of the user's turns.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnDetection {
    /// The client commits them.
    Manual,
    /// The server, by voice activity. What is `None` is left to it.
    ServerVad {
        /// Probability of speech, 0 to 1.
        threshold: Option<f64>,
        /// Audio kept before the first speech, ms.
        prefix_padding_ms: Option<u32>,
        /// Silence that ends a turn, ms.
        silence_duration_ms: Option<u32>,
        /// Answer each turn.
        create_response: Option<bool>,
        /// Speech interrupts an answer.
        interrupt_response: Option<bool>,
    },
    /// As the server reads it.
    Raw(Value),
}

impl TurnDetection {
    /// By voice activity, all as the server has it.
    pub fn server_vad() -> Self {
        Self::ServerVad {
            threshold: None,
            prefix_padding_ms: None,
            silence_duration_ms: None,
            create_response: None,
            interrupt_response: None,
        }
    }
    fn to_json(&self) -> Value {
        match self {
            Self::Manual => Value::Null,
            Self::Raw(value) => value.clone(),
            Self::ServerVad {
                threshold,
                prefix_padding_ms,
                silence_duration_ms,
                create_response,
                interrupt_response,
            } => {
                let mut map = Map::new();
                put(&mut map, "type", Some("server_vad"));
                put(&mut map, "threshold", *threshold);
                put(&mut map, "prefix_padding_ms", *prefix_padding_ms);
                put(&mut map, "silence_duration_ms", *silence_duration_ms);
                put(&mut map, "create_response", *create_response);
                put(&mut map, "interrupt_response", *interrupt_response);
                map.into()
            }
        }
    }
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

/// What a session is to be. What is not set is left as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionConfig {
    instructions: Option<String>,
    voice: Option<String>,
    modalities: Option<Vec<&'static str>>,
    input: Option<AudioFormat>,
    output: Option<AudioFormat>,
    turns: Option<TurnDetection>,
    transcription: Option<Value>,
    tools: Option<Vec<Value>>,
    more: Map<String, Value>,
}

impl SessionConfig {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }
    /// Who the model is and how it answers.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }
    /// The voice.
    #[must_use]
    pub fn voice(mut self, name: impl Into<String>) -> Self {
        self.voice = Some(name.into());
        self
    }
    /// Answers are spoken, with a transcript (true), or written only.
    #[must_use]
    pub fn spoken(mut self, yes: bool) -> Self {
        self.modalities = Some(vec![if yes { "audio" } else { "text" }]);
        self
    }
    /// How the user's audio comes.
    #[must_use]
    pub fn input(mut self, format: AudioFormat) -> Self {
        self.input = Some(format);
        self
    }
    /// How answers are to come.
    #[must_use]
    pub fn output(mut self, format: AudioFormat) -> Self {
        self.output = Some(format);
        self
    }
    /// Who finds turns.
    #[must_use]
    pub fn turns(mut self, turns: TurnDetection) -> Self {
        self.turns = Some(turns);
        self
    }
    /// Transcripts of the user's turns; a stock server makes them only if asked, with a model of its own.
    #[must_use]
    pub fn transcription(mut self, model: impl Into<String>) -> Self {
        self.transcription = Some(json!({"model": model.into()}));
        self
    }
    /// Functions that the model may call, each as the stock protocol has it.
    #[must_use]
    pub fn tools(mut self, tools: Vec<Value>) -> Self {
        self.tools = Some(tools);
        self
    }
    /// Any field, as it stands in the session object. It is merged over the others.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }
    /// The session object as servers of this profile read it.
    pub fn to_json(&self, profile: Profile) -> Value {
        let mut map = Map::new();
        put(&mut map, "instructions", self.instructions.as_deref());
        put(&mut map, "tools", self.tools.clone());
        if profile == Profile::Beta {
            // The beta knows `["text"]` and both, not audio alone.
            let both = self.modalities.clone().map(|m| if m == ["audio"] { vec!["text", "audio"] } else { m });
            put(&mut map, "modalities", both);
            put(&mut map, "voice", self.voice.as_deref());
            put(&mut map, "input_audio_format", self.input.map(AudioFormat::flat));
            put(&mut map, "output_audio_format", self.output.map(AudioFormat::flat));
            put(&mut map, "turn_detection", self.turns.as_ref().map(TurnDetection::to_json));
            put(&mut map, "input_audio_transcription", self.transcription.clone());
        } else {
            put(&mut map, "type", Some("realtime"));
            put(&mut map, "output_modalities", self.modalities.clone());
            let (mut input, mut output) = (Map::new(), Map::new());
            put(&mut input, "format", self.input.map(AudioFormat::nested));
            put(&mut input, "turn_detection", self.turns.as_ref().map(TurnDetection::to_json));
            put(&mut input, "transcription", self.transcription.clone());
            put(&mut output, "format", self.output.map(AudioFormat::nested));
            put(&mut output, "voice", self.voice.as_deref());
            let mut audio = Map::new();
            put(&mut audio, "input", Some(input).filter(|m| !m.is_empty()));
            put(&mut audio, "output", Some(output).filter(|m| !m.is_empty()));
            put(&mut map, "audio", Some(audio).filter(|m| !m.is_empty()));
        }
        let mut all = Value::Object(map);
        merge(&mut all, &Value::Object(self.more.clone()));
        all
    }
}

/// Lays one JSON value over another: objects key by key, all else as a whole.
pub(super) fn merge(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

/// What one response is to be; what is not set is as the session has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseConfig(Map<String, Value>);

impl ResponseConfig {
    /// As the session has it.
    pub fn new() -> Self {
        Self::default()
    }
    /// Instructions for this response alone.
    #[must_use]
    pub fn instructions(self, text: impl Into<String>) -> Self {
        self.field("instructions", text.into())
    }
    /// Spoken, with a transcript (true), or written only.
    #[must_use]
    pub fn spoken(self, yes: bool) -> Self {
        self.field("output_modalities", vec![if yes { "audio" } else { "text" }])
    }
    /// Tokens at most.
    #[must_use]
    pub fn max_output_tokens(self, tokens: u64) -> Self {
        self.field("max_output_tokens", tokens)
    }
    /// A note that comes back with the response.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let notes = self.0.entry("metadata").or_insert_with(|| json!({}));
        notes[key.into()] = value.into().into();
        self
    }
    /// Any field of the stock protocol's `response`.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }
    pub(super) fn into_json(self) -> Map<String, Value> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_configuration_in_both_spellings() {
        let config = SessionConfig::new()
            .voice("ash")
            .spoken(true)
            .input(AudioFormat::Pcm16(16_000))
            .output(AudioFormat::Ulaw)
            .turns(TurnDetection::Manual)
            .field("temperature", 0.5);
        assert_eq!(
            config.to_json(Profile::Stock),
            json!({"type": "realtime", "output_modalities": ["audio"], "temperature": 0.5, "audio": {
                "input": {"format": {"type": "audio/pcm", "rate": 16000}, "turn_detection": null},
                "output": {"format": {"type": "audio/pcmu"}, "voice": "ash"}}})
        );
        assert_eq!(
            config.to_json(Profile::Beta),
            json!({"modalities": ["text", "audio"], "voice": "ash", "input_audio_format": "pcm16",
                "output_audio_format": "g711_ulaw", "turn_detection": null, "temperature": 0.5})
        );
        assert_eq!(SessionConfig::new().to_json(Profile::Beta), json!({}));
    }
    #[test]
    fn a_format_is_read_in_either_spelling() {
        let nested = json!({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}});
        assert_eq!(AudioFormat::stated(&nested, "output"), Some(AudioFormat::Pcm16(16_000)));
        assert_eq!(
            AudioFormat::stated(&json!({"output_audio_format": "g711_alaw"}), "output"),
            Some(AudioFormat::Alaw)
        );
        for none in [json!({}), json!(3), json!({"output_audio_format": "mp3"})] {
            assert_eq!(AudioFormat::stated(&none, "output"), None);
        }
    }
    #[test]
    fn objects_merge_and_all_else_is_replaced() {
        let mut a = json!({"a": {"b": 1, "c": [1]}, "d": 2});
        merge(&mut a, &json!({"a": {"c": [2], "e": null}}));
        assert_eq!(a, json!({"a": {"b": 1, "c": [2], "e": null}, "d": 2}));
    }
}
