//! What a request for speech asks for.

use omni_flow_media::encode::ClipFormat;
use serde_json::{Map, Value, json};

use crate::api::fields::Fields;
use crate::api::{Shared, Speech, audio};
use crate::door::HttpError;

/// How the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Mode {
    Whole,
    Raw,
    Events,
}

/// A request that can be carried out.
#[derive(Clone, Debug)]
pub(in crate::api) struct Speak {
    pub(in crate::api) input: String,
    pub(in crate::api) format: ClipFormat,
    pub(in crate::api) rate: Option<u32>,
    pub(in crate::api) speed: f64,
    pub(in crate::api) mode: Mode,
    pub(in crate::api) instructions: Option<String>,
    /// All that is for the graph, as JSON.
    pub(in crate::api) signal: String,
    /// What has no effect on this graph.
    pub(in crate::api) note: Option<&'static str>,
}

/// Names of the stock API's voices: clients that must name one mean the graph's own.
pub(in crate::api) const STOCK: [&str; 14] = [
    "default", "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer",
    "verse",
];

impl Speak {
    /// Reads a request.
    ///
    /// # Errors
    /// 400, 404 of another model.
    pub(in crate::api) fn read(api: &Shared, f: Fields<'_>, ends: &Speech) -> Result<Self, HttpError> {
        api.model(f.text("model")?)?;
        let input = f.text("input")?.unwrap_or_default();
        if input.trim().is_empty() {
            return Err(HttpError::bad("Input text cannot be empty").about("input"));
        }
        if input.len() > api.config.limits.input_bytes {
            let message = format!("`input` is longer than {} bytes", api.config.limits.input_bytes);
            return Err(HttpError::bad(message).about("input"));
        }
        Self { input: input.to_owned(), ..Self::options(api, f, ends)? }.checked(ends)
    }
    /// Reads all but the text and the model.
    ///
    /// # Errors
    /// 400.
    pub(in crate::api) fn options(api: &Shared, f: Fields<'_>, ends: &Speech) -> Result<Self, HttpError> {
        let limits = &api.config.limits;
        let format = audio::format(f.text("response_format")?.unwrap_or("wav"), "response_format")?;
        let rate = match f.whole("sample_rate", 1)? {
            Some(r) if !(1000..=192_000).contains(&r) => {
                return Err(HttpError::bad("`sample_rate` must be 1000 to 192000 Hz").about("sample_rate"));
            }
            r => r.map(|r| r as u32),
        };
        let speed = f.number("speed", 0.25, 4.0)?.unwrap_or(1.0);
        let stream = f.flag("stream")?.unwrap_or(false);
        let mode = match f.text("stream_format")? {
            None if stream => Mode::Events,
            None => Mode::Whole,
            Some("sse") => Mode::Events,
            Some("audio") => Mode::Raw,
            Some(_) => {
                return Err(HttpError::bad("`stream_format` must be `sse` or `audio`").about("stream_format"));
            }
        };
        let instructions = f.text("instructions")?.filter(|t| !t.is_empty());
        if instructions.is_some_and(|t| t.chars().count() > limits.instructions_chars) {
            let message = format!("`instructions` are longer than {} characters", limits.instructions_chars);
            return Err(HttpError::bad(message).about("instructions"));
        }
        if f.flag("word_timestamps")?.unwrap_or(false) {
            let message = "`word_timestamps` need a node that aligns words with audio; this graph has none";
            return Err(HttpError::bad(message).about("word_timestamps"));
        }
        let voice = voice(api, f)?;
        let mut graph = imitation(f, limits.embedding)?;
        let mut note = None;
        if ends.request.is_none() {
            if let Some(name) = graph.keys().next() {
                let message = format!("`{name}` is not supported: this graph speaks with a voice of its own");
                return Err(HttpError::bad(message).about(name.as_str()));
            }
            if voice.as_ref().is_some_and(|v| !STOCK.contains(&v.as_str()) && !api.config.voices.contains(v)) {
                note = Some("this graph speaks with a voice of its own; the uploaded one has no effect");
            }
        }
        let task = f.text("task_type")?;
        if let Some(other) = task.filter(|t| !["CustomVoice", "VoiceDesign", "Base"].contains(t)) {
            let shown: String = other.chars().take(32).collect();
            let message = format!("`task_type` is `{shown}`; it is CustomVoice, VoiceDesign or Base");
            return Err(HttpError::bad(message).about("task_type"));
        }
        let uploaded = voice.as_ref().and_then(|v| api.voices.reference(v));
        let like = uploaded.is_some() || graph.contains_key("ref_audio") || graph.contains_key("ref_text");
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                graph.insert(name.to_owned(), value);
            }
        };
        set("task_type", Some(task.unwrap_or(if like { "Base" } else { "CustomVoice" }).into()));
        set("voice", voice.map(Into::into));
        set("voice_file", uploaded.map(Into::into));
        set("instructions", instructions.map(Into::into));
        set("language", Some(f.text("language")?.unwrap_or("Auto").into()));
        set("max_new_tokens", f.whole("max_new_tokens", 1)?.map(Into::into));
        set("initial_codec_chunk_frames", f.whole("initial_codec_chunk_frames", 0)?.map(Into::into));
        set("non_streaming_mode", f.flag("non_streaming_mode")?.map(Into::into));
        set("seed", f.whole("seed", i64::MIN)?.map(Into::into));
        set("extra_params", f.object("extra_params")?.map(|o| o.clone().into()));
        Ok(Self {
            input: String::new(),
            format,
            rate,
            speed,
            mode,
            instructions: instructions.map(str::to_owned),
            signal: Value::Object(graph).to_string(),
            note,
        })
    }
    /// What can be told of it before anything is made.
    ///
    /// # Errors
    /// 400.
    pub(in crate::api) fn checked(self, ends: &Speech) -> Result<Self, HttpError> {
        if self.mode != Mode::Whole {
            audio::streams(self.format, "response_format")?;
            if self.speed != 1.0 {
                return Err(HttpError::bad("`speed` must be 1.0 in a stream").about("speed"));
            }
        }
        if let Some(rate) = self.rate.or(ends.rate) {
            audio::takes(self.format, rate)?;
        }
        Ok(self)
    }
}

/// The voice that is asked for, if any.
fn voice(api: &Shared, f: Fields<'_>) -> Result<Option<String>, HttpError> {
    let (field, value) = match (f.get("voice"), f.get("speaker")) {
        (Some(v), _) => ("voice", v),
        (None, Some(v)) => ("speaker", v),
        (None, None) => return Ok(None),
    };
    let name = value.as_str().or_else(|| value.get("id").and_then(Value::as_str));
    let name = name.ok_or_else(|| HttpError::bad(format!("`{field}` must be a string")).about(field))?;
    let own = &api.config.voices;
    if own.iter().any(|v| v == name) || api.voices.has(name) || (STOCK.contains(&name)) {
        return Ok(Some(name.to_owned()));
    }
    let shown: String = name.chars().take(64).collect();
    let some: Vec<String> =
        own.iter().cloned().chain(api.voices.names()).chain(["default".to_owned()]).take(8).collect();
    Err(HttpError::bad(format!("voice `{shown}` does not exist; there are {}", some.join(", "))).about(field))
}

/// What is to be imitated.
fn imitation(f: Fields<'_>, most: usize) -> Result<Map<String, Value>, HttpError> {
    let mut found = Map::new();
    let ref_audio = f.get("ref_audio").cloned();
    if ref_audio.as_ref().is_some_and(|v| {
        !v.is_string() && !v.as_array().is_some_and(|l| !l.is_empty() && l.iter().all(Value::is_string))
    }) {
        return Err(HttpError::bad("`ref_audio` must be an address or a list of them").about("ref_audio"));
    }
    let ref_text = f.text("ref_text")?.map(Value::from);
    let (mut audio, mut text) = (ref_audio, ref_text);
    if let Some(list) = f.list("references")? {
        let bad = |m: &str| HttpError::bad(m).about("references");
        let [one] = &list[..] else { return Err(bad("`references` must hold exactly one reference")) };
        if audio.is_some() || text.is_some() {
            return Err(bad("`references` and `ref_audio` or `ref_text` are the same; give one of them"));
        }
        audio = one.get("audio_path").filter(|v| v.is_string()).cloned();
        text = one.get("text").filter(|v| v.is_string()).cloned();
        if audio.is_none() {
            return Err(bad("a reference needs `audio_path`"));
        }
    }
    if let Some(list) = f.list("speaker_embedding")? {
        let bad = |m: String| HttpError::bad(m).about("speaker_embedding");
        if audio.is_some() {
            return Err(bad("`speaker_embedding` and `ref_audio` exclude each other".to_owned()));
        }
        if list.len() > most || !list.iter().all(|v| v.as_f64().is_some_and(f64::is_finite)) {
            return Err(bad(format!("`speaker_embedding` must be at most {most} finite numbers")));
        }
        found.insert("speaker_embedding".to_owned(), json!(list));
    }
    let x = f.flag("x_vector_only_mode")?.filter(|x| *x).map(Value::from);
    for (name, value) in [("ref_audio", audio), ("ref_text", text), ("x_vector_only_mode", x)] {
        if let Some(value) = value {
            found.insert(name.to_owned(), value);
        }
    }
    Ok(found)
}
