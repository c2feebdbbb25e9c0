//! An answer while it is made: parts as events, then `[DONE]`.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Head;
use super::answer::{Answer, Part};
use super::request::Asked;
use super::whole::metadata;
use crate::api::job::Job;
use crate::api::run::Fail;
use crate::api::stream::{Writer, body};
use crate::api::{Shared, audio};
use crate::door::HttpError;

/// The answer begins with its first part: until then a failure has a status of its own.
pub(super) async fn send(
    api: &Shared,
    asked: Asked,
    mut answer: Answer,
    head: Head,
    job: Job,
) -> Result<Response, HttpError> {
    let first = match answer.next().await {
        Ok(first) => first,
        Err(fail) => {
            let error = fail.http();
            job.failed(&fail);
            return Err(error);
        }
    };
    if first.is_none() && asked.audio.is_some() {
        let error = Fail::NoAudio.http();
        job.failed(&Fail::NoAudio);
        return Err(error);
    }
    let produce = move |writer: Writer| async move {
        let mut parts = Parts { asked, head, job, heard: false, called: false, last: "text" };
        let sent = parts.all(&writer, &mut answer, first).await;
        drop(answer);
        let Parts { job, .. } = parts;
        match sent {
            Ok(length) => {
                writer.finish();
                job.done(length);
            }
            Err(fail) => {
                let told = match &fail {
                    Fail::Gone | Fail::Stalled => false,
                    other => writer.event(&json!({"error": other.http().body()}), false).await.is_ok(),
                };
                if told {
                    writer.finish();
                }
                job.failed(&fail);
            }
        }
    };
    let body = body(&api.clock, api.config.limits.write_stall, produce);
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((kind, body).into_response())
}

struct Parts {
    asked: Asked,
    head: Head,
    job: Job,
    /// Audio has come, calls have.
    heard: bool,
    called: bool,
    /// Modality of the last part.
    last: &'static str,
}

impl Parts {
    /// Sends all of it; gives whether it was cut off by its length.
    async fn all(&mut self, writer: &Writer, answer: &mut Answer, first: Option<Part>) -> Result<bool, Fail> {
        self.part(writer, json!({"role": "assistant", "content": ""}), "text", None).await?;
        let mut next = first;
        while let Some(part) = next {
            self.send(writer, part, answer.spec()).await?;
            next = answer.next().await?;
        }
        if self.asked.audio.is_some() && !self.heard && !self.called {
            return Err(Fail::NoAudio);
        }
        let reason = answer.reason();
        let delta = match self.heard && self.asked.stock {
            true => json!({"audio": {"id": self.head.audio_id(), "expires_at": self.head.expires()}}),
            false => json!({}),
        };
        let mut last = self.chunk(delta, self.last, Some(&reason));
        if self.asked.metrics {
            last["metrics"] = answer.metrics();
        }
        writer.event(&last, false).await?;
        let (prompt, tokens, usage) = answer.usage();
        self.job.tokens(prompt, tokens);
        if self.asked.usage {
            let mut told = self.head.object("chat.completion.chunk", json!([]));
            told["usage"] = usage;
            writer.event(&told, false).await?;
        }
        writer.write("data: [DONE]\n\n").await?;
        Ok(reason == "length")
    }
    async fn send(&mut self, writer: &Writer, part: Part, spec: Option<(u32, u16)>) -> Result<(), Fail> {
        match part {
            Part::Text(text) if self.asked.stock && self.asked.audio.is_some() => {
                let id = self.head.audio_id();
                self.part(writer, json!({"audio": {"id": id, "transcript": text}}), "audio", None).await
            }
            Part::Text(_) if !self.asked.text => Ok(()),
            Part::Text(text) => self.part(writer, json!({"content": text}), "text", None).await,
            Part::Call { index, id, name, arguments } => {
                self.called = true;
                let mut call = json!({"index": index, "function": {"arguments": arguments}});
                if let (Some(id), Some(name)) = (id, name) {
                    call["id"] = id.into();
                    call["type"] = "function".into();
                    call["function"]["name"] = name.into();
                }
                self.part(writer, json!({"tool_calls": [call]}), "text", None).await
            }
            Part::Audio(samples) => {
                let (Some((rate, channels)), Some(format)) = (spec, self.asked.audio) else { return Ok(()) };
                let frames = samples.len() / usize::from(channels.max(1));
                // Joined, the parts are one stream.
                let mut bytes = if self.heard { Vec::new() } else { audio::head(format, rate, channels) };
                self.heard = true;
                bytes.extend(audio::bytes(&samples));
                self.job.frames(frames, rate);
                let data = STANDARD.encode(bytes);
                let delta = match self.asked.stock {
                    true => json!({"audio": {"id": self.head.audio_id(), "data": data}}),
                    false => json!({"content": data}),
                };
                self.part(writer, delta, "audio", Some(metadata(format.name(), (rate, channels), frames))).await
            }
        }
    }
    fn chunk(&self, delta: Value, modality: &str, reason: Option<&str>) -> Value {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": null}]);
        let mut chunk = self.head.object("chat.completion.chunk", choices);
        if !self.asked.stock {
            chunk["modality"] = modality.into();
        }
        chunk
    }
    async fn part(
        &mut self,
        writer: &Writer,
        delta: Value,
        modality: &'static str,
        about: Option<Value>,
    ) -> Result<(), Fail> {
        self.last = modality;
        let mut chunk = self.chunk(delta, modality, None);
        if let Some(about) = about {
            chunk["choices"][0]["audio_metadata"] = about;
        }
        writer.event(&chunk, false).await
    }
}
