//! A whole answer.

use std::collections::BTreeMap;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Head;
use super::answer::{Answer, Part};
use super::request::Asked;
use crate::api::audio;
use crate::api::job::Job;
use crate::api::run::Fail;
use crate::door::HttpError;

pub(super) async fn make(asked: Asked, answer: Answer, head: Head, mut job: Job) -> Result<Response, HttpError> {
    match answered(&asked, answer, &head, &mut job).await {
        Ok((body, length)) => {
            job.done(length);
            Ok(Json(body).into_response())
        }
        Err(fail) => {
            let error = fail.http();
            job.failed(&fail);
            Err(error)
        }
    }
}

#[derive(Default)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

async fn answered(asked: &Asked, mut answer: Answer, head: &Head, job: &mut Job) -> Result<(Value, bool), Fail> {
    let (mut text, mut samples) = (String::new(), Vec::new());
    let mut calls = BTreeMap::<u64, Call>::new();
    while let Some(part) = answer.next().await? {
        match part {
            Part::Text(more) => text.push_str(&more),
            Part::Audio(more) => samples.extend(more),
            Part::Call { index, id, name, arguments } => {
                let call = calls.entry(index).or_default();
                call.id = call.id.take().or(id);
                call.name = call.name.take().or(name);
                call.arguments.push_str(&arguments);
            }
        }
    }
    let reason = answer.reason();
    // An answer that only calls says nothing, and has nothing to be heard.
    let speaks = asked.audio.filter(|_| calls.is_empty() || !samples.is_empty());
    let sound = match speaks {
        None => None,
        Some(format) => {
            let spec = answer.spec().filter(|_| !samples.is_empty()).ok_or(Fail::NoAudio)?;
            let (file, frames) = audio::clip(format, samples, spec, 1.0).await?;
            job.frames(frames, spec.0);
            let about = metadata(format.name(), spec, frames);
            let audio = json!({"id": head.audio_id(), "data": STANDARD.encode(file), "expires_at": head.expires(),
                "transcript": text});
            Some((audio, about))
        }
    };
    let (prompt, tokens, usage) = answer.usage();
    job.tokens(prompt, tokens);
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    // In the stock shape the words of an answer that is spoken are its transcript.
    let own = asked.text && !(asked.stock && sound.is_some());
    if own && (calls.is_empty() || !text.is_empty()) {
        message["content"] = text.into();
    }
    if !calls.is_empty() {
        let all = calls
            .into_values()
            .map(|c| json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}));
        message["tool_calls"] = all.collect();
    }
    let choices = match sound {
        None => json!([choice(0, message, &reason)]),
        Some((audio, about)) if asked.stock || !asked.text => {
            message["audio"] = audio;
            let mut one = choice(0, message, &reason);
            one["audio_metadata"] = about;
            json!([one])
        }
        Some((audio, about)) => {
            let mut two = choice(1, json!({"role": "assistant", "content": null, "audio": audio}), &reason);
            two["audio_metadata"] = about;
            json!([choice(0, message, &reason), two])
        }
    };
    let mut body = head.object("chat.completion", choices);
    body["usage"] = usage;
    if asked.metrics {
        body["metrics"] = answer.metrics();
    }
    Ok((body, reason == "length"))
}

fn choice(index: u64, message: Value, reason: &str) -> Value {
    json!({"index": index, "message": message, "finish_reason": reason, "logprobs": null})
}

/// What the audio of a choice is, after everything that was done to it.
pub(super) fn metadata(format: &str, (rate, channels): (u32, u16), frames: usize) -> Value {
    json!({"format": format, "sample_rate_hz": rate, "frame_count": frames, "channels": channels})
}
