//! Reading a client's configuration object into a [`SessionConfig`].
//!
//! The nested spelling wins over the flat one wherever both stand, `null` included. A wrong type is
//! `invalid_session_config`, except for overlap and playback fields (`bad_event`), formats, turn detection, and what
//! stands in `extra_body` (`invalid_duplex_runtime_config`).

use serde_json::{Map, Value};

use super::capability::Capabilities;
use super::format::{AudioFormat, FormatSpec};
use super::modality::{self, Modality};
use super::overlap::{CommitPolicy, OverlapPolicy};
use super::session::SessionConfig;
use super::turn::TurnDetection;
use crate::realtime::wire::code::{Code, Refusal, shown};
use crate::realtime::wire::fields::Fields;

/// Fields of the session object that are the server's; a client that sends the object back does not set them.
const OURS: [&str; 14] = [
    "object",
    "id",
    "session_id",
    "state",
    "turn_state",
    "epoch",
    "turn_id",
    "active_request_id",
    "active_response_id",
    "active_response_turn_id",
    "playback",
    "capabilities",
    "response_format",
    "expires_at",
];
/// Keys that a client may not put into `extra_body`, besides all that begin with `duplex_` or an underscore.
const OWNED: [&str; 16] = [
    "session_id",
    "request_id",
    "response_id",
    "active_request_id",
    "active_response_id",
    "active_response_turn_id",
    "state",
    "turn_state",
    "epoch",
    "turn_id",
    "attachment_generation",
    "resume_token",
    "server_event_seq",
    "capabilities",
    "playback",
    "runtime_config",
];
/// Overlap and playback fields, which `extra_body` may hold too.
const OVERLAP: [&str; 5] =
    ["overlap_policy", "overlap_short_ack_ms", "overlap_barge_in_ms", "overlap_silence_rms", "playback_commit_policy"];
/// Stock fields that are kept as given.
const KEPT: [&str; 5] = ["prompt", "include", "metadata", "tracing", "truncation"];

/// Makes the policy agree with turn detection that has just been set and no policy beside it.
pub(super) fn agree(policy: &mut OverlapPolicy, turn_detection: Option<&TurnDetection>) {
    match turn_detection {
        Some(td) => *policy = td.policy(),
        None if *policy == OverlapPolicy::BargeInOnSpeech => *policy = OverlapPolicy::ListenOnly,
        None => {}
    }
}

/// Applies the fields of `given`. After an error the configuration is half applied and must be thrown away.
pub(super) fn apply(c: &mut SessionConfig, given: &Map<String, Value>, can: &Capabilities) -> Result<(), Refusal> {
    let mut flat = Fields::top(given.clone());
    for name in OURS {
        flat.raw(name);
    }
    let mut extra = flat.object("extra_body").map_err(shape)?.unwrap_or_else(|| Fields::at("extra_body", Map::new()));
    let policy = overlap(c, &mut flat, &mut extra)?;
    runtime(c, extra)?;
    let mut audio = match flat.raw("audio") {
        Some(Value::Null) => {
            (c.transcription, c.noise_reduction) = (None, None);
            (c.unknown_input, c.unknown_output) = (Map::new(), Map::new());
            Fields::default()
        }
        Some(Value::Object(map)) => Fields::at("audio", map),
        Some(_) => return Err(shape(Refusal::bad("audio", "`audio` must be an object or null"))),
        None => Fields::default(),
    };
    let mut input = audio.object("input").map_err(shape)?.unwrap_or_default();
    let mut output = audio.object("output").map_err(shape)?.unwrap_or_default();
    formats(c, &mut flat, &mut input, &mut output)?;
    detection(c, &mut flat, &mut input, policy, can)?;
    plain(c, &mut flat).map_err(shape)?;
    spoken(c, &mut flat, &mut input, &mut output).map_err(shape)?;
    c.unknown_input.extend(input.rest());
    c.unknown_output.extend(output.rest());
    c.unknown.extend(flat.rest());
    Ok(())
}

fn shape(refusal: Refusal) -> Refusal {
    if refusal.code == Code::BadEvent { refusal.under(Code::InvalidSessionConfig) } else { refusal }
}

/// Where a field with two spellings stands, with its name there. The other one is taken out.
fn pick<'a>(
    nested: &'a mut Fields,
    name: &'static str,
    flat: &'a mut Fields,
    flat_name: &'static str,
) -> Option<(&'a mut Fields, &'static str)> {
    if nested.has(name) {
        flat.raw(flat_name);
        Some((nested, name))
    } else if flat.has(flat_name) {
        Some((flat, flat_name))
    } else {
        None
    }
}

fn overlap(c: &mut SessionConfig, flat: &mut Fields, extra: &mut Fields) -> Result<Option<OverlapPolicy>, Refusal> {
    let mut policy = None;
    for name in OVERLAP {
        let from = if extra.has(name) {
            flat.raw(name);
            &mut *extra
        } else {
            &mut *flat
        };
        match name {
            "overlap_policy" => {
                let Some(word) = from.string(name).map_err(|r| r.about(name))? else { continue };
                let message = "overlap_policy is listen_only, barge_in_on_speech or auto";
                policy = Some(OverlapPolicy::named(&word).ok_or_else(|| Refusal::bad(name, message))?);
            }
            "playback_commit_policy" => {
                let Some(word) = from.string(name)? else { continue };
                let message = "playback_commit_policy is commit_all_on_done or ack_only";
                c.playback_commit_policy = CommitPolicy::named(&word).ok_or_else(|| Refusal::bad(name, message))?;
            }
            "overlap_silence_rms" => c.overlap.silence_rms = from.length(name)?.unwrap_or(c.overlap.silence_rms),
            "overlap_short_ack_ms" => c.overlap.short_ack_ms = from.integer(name)?.unwrap_or(c.overlap.short_ack_ms),
            _ => c.overlap.barge_in_ms = from.integer(name)?.unwrap_or(c.overlap.barge_in_ms),
        }
    }
    Ok(policy)
}

fn runtime(c: &mut SessionConfig, mut extra: Fields) -> Result<(), Refusal> {
    let refuse = |r: Refusal| r.under(Code::InvalidDuplexRuntimeConfig);
    if let Some(auto) = extra.boolean("auto_response").map_err(refuse)? {
        c.auto_response = auto;
    }
    if let Some(count) = extra.integer("force_listen_count").map_err(refuse)? {
        c.force_listen_count = Some(count);
    }
    if let Some(metrics) = extra.boolean("return_stage_metrics").map_err(refuse)? {
        c.return_stage_metrics = metrics;
    }
    if let Some(text) = extra.string("duplex_initial_user_text").map_err(refuse)? {
        c.initial_user_text = Some(text);
    }
    for (key, value) in extra.rest() {
        if OWNED.contains(&key.as_str()) || key.starts_with("duplex_") || key.starts_with('_') {
            let message = "this key of extra_body belongs to the server; leave it out";
            return Err(
                Refusal::new(Code::InvalidDuplexRuntimeConfig, message).about(format!("extra_body.{}", shown(&key)))
            );
        }
        if value.is_null() {
            c.extra_body.remove(&key);
        } else {
            c.extra_body.insert(key, value);
        }
    }
    Ok(())
}

fn formats(c: &mut SessionConfig, flat: &mut Fields, input: &mut Fields, output: &mut Fields) -> Result<(), Refusal> {
    let read = |at: Option<(&mut Fields, &str)>, rate_hz| -> Result<Option<(AudioFormat, String)>, Refusal> {
        let Some((f, name)) = at else { return Ok(None) };
        let Some(value) = f.value(name) else { return Ok(None) };
        let path = f.path(name);
        let format = FormatSpec::parse(&value, &path)?.resolve(rate_hz).checked(&path)?;
        Ok(Some((format, path)))
    };
    if let Some((format, _)) = read(pick(input, "format", flat, "input_audio_format"), c.input_rate_hz)? {
        c.input = format;
    }
    if let Some((format, path)) = read(pick(output, "format", flat, "output_audio_format"), c.output_rate_hz)? {
        c.output = format.for_output(&path)?;
    }
    Ok(())
}

fn detection(
    c: &mut SessionConfig,
    flat: &mut Fields,
    input: &mut Fields,
    policy: Option<OverlapPolicy>,
    can: &Capabilities,
) -> Result<(), Refusal> {
    let refuse =
        |message: &'static str| Err(Refusal::new(Code::UnsupportedTurnDetection, message).about("overlap_policy"));
    let set = match pick(input, "turn_detection", flat, "turn_detection") {
        None => false,
        Some((f, name)) => {
            let path = f.path(name);
            c.turn_detection = TurnDetection::parse(f.raw(name).unwrap_or_default(), &path, can, &c.vad)?;
            true
        }
    };
    match (&c.turn_detection, policy) {
        // The policy that turn detection stands for is accepted by name even where it is told not to interrupt.
        (Some(td), Some(policy)) if policy == OverlapPolicy::BargeInOnSpeech || policy == td.policy() => {
            c.overlap.policy = td.policy();
        }
        (Some(_), Some(_)) => {
            return refuse("with turn detection on, overlap_policy must be barge_in_on_speech; or set it to null too");
        }
        (None, Some(OverlapPolicy::BargeInOnSpeech)) => {
            return refuse("barge_in_on_speech needs turn_detection server_vad; without it use listen_only or auto");
        }
        (None, Some(policy)) => c.overlap.policy = policy,
        (td, None) if set => agree(&mut c.overlap.policy, td.as_ref()),
        (_, None) => {}
    }
    Ok(())
}

fn plain(c: &mut SessionConfig, f: &mut Fields) -> Result<(), Refusal> {
    if f.string("type")?.is_some_and(|kind| kind != "realtime") {
        return Err(Refusal::bad("type", "only sessions of the type \"realtime\" are offered"));
    }
    if let Some(model) = f.string("model")? {
        c.model = Some(model);
    }
    let older = f.has("modalities").then(|| modality::list(f, "modalities")).transpose();
    if f.has("output_modalities") {
        c.modalities = modality::list(f, "output_modalities")?.unwrap_or_else(both);
    } else if let Some(older) = older? {
        c.modalities = older.unwrap_or_else(both);
    }
    if f.has("instructions") {
        c.instructions = f.string("instructions")?;
    }
    if f.has("initial_user_text") {
        c.initial_user_text = f.string("initial_user_text")?;
    }
    if f.has("temperature") {
        c.temperature = f.length("temperature")?;
    }
    if let Some(limit) = modality::max_tokens(f)? {
        c.max_output_tokens = limit;
    }
    if let Some(seconds) = f.number("idle_timeout_s")? {
        if seconds <= 0.0 {
            return Err(Refusal::bad("idle_timeout_s", "idle_timeout_s must be above 0"));
        }
        c.idle_timeout_s = seconds;
    }
    if f.has("ref_audio") {
        c.ref_audio = f.string("ref_audio")?;
        let fine = |url: &String| ["data:", "http://", "https://"].iter().any(|s| url.starts_with(s));
        if c.ref_audio.as_ref().is_some_and(|url| !fine(url)) {
            let message = "ref_audio must be a data: or http(s): URL; paths on the server are not read";
            return Err(Refusal::new(Code::UnsupportedRefAudioPath, message).about("ref_audio"));
        }
    }
    if f.has("tools") {
        c.tools = f.list("tools")?;
    }
    if f.has("tool_choice") {
        c.tool_choice = f.value("tool_choice");
        if !matches!(c.tool_choice, None | Some(Value::String(_) | Value::Object(_))) {
            return Err(Refusal::bad("tool_choice", "tool_choice is auto, none, required, or an object naming a tool"));
        }
    }
    let (metadata, include) = (f.has("metadata"), f.has("include"));
    if metadata {
        let value = f.object("metadata")?;
        keep(c, "metadata", value.map(|m| Value::Object(m.rest())));
    }
    if include {
        let value = f.list("include")?;
        keep(c, "include", value.map(Value::Array));
    }
    for name in KEPT.into_iter().filter(|n| !matches!(*n, "metadata" | "include")) {
        if let Some(value) = f.raw(name) {
            keep(c, name, Some(value).filter(|v| !v.is_null()));
        }
    }
    Ok(())
}

fn keep(c: &mut SessionConfig, name: &str, value: Option<Value>) {
    match value {
        Some(value) => c.kept.insert(name.to_owned(), value),
        None => c.kept.remove(name),
    };
}

fn both() -> Vec<Modality> {
    vec![Modality::Text, Modality::Audio]
}

fn spoken(c: &mut SessionConfig, flat: &mut Fields, input: &mut Fields, output: &mut Fields) -> Result<(), Refusal> {
    if let Some((f, name)) = pick(output, "voice", flat, "voice") {
        c.voice = modality::voice(f, name)?;
    }
    if let Some((f, name)) = pick(output, "speed", flat, "speed") {
        c.speed = f.length(name)?;
        if c.speed == Some(0.0) {
            return Err(Refusal::bad(f.path(name), "speed must be above 0"));
        }
    }
    let object = |f: &mut Fields, name: &str| f.object(name).map(|o| o.map(|o| Value::Object(o.rest())));
    if let Some((f, name)) = pick(input, "transcription", flat, "input_audio_transcription") {
        c.transcription = object(f, name)?;
    }
    if let Some((f, name)) = pick(input, "noise_reduction", flat, "input_audio_noise_reduction") {
        c.noise_reduction = object(f, name)?;
    }
    Ok(())
}
