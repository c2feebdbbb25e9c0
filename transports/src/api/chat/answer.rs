//! An answer of a graph on its way, as a stream of parts.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::StatusCode;
use omni_flow::{Clock, Mono, Payload, Signal};
use serde_json::{Value, json};

use super::request::{Asked, words};
use crate::api::audio::Shape;
use crate::api::run::{Fail, Role, Run, too_long};
use crate::api::{Chat, Shared};
use crate::door::HttpError;

/// A part of an answer.
#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    /// Interleaved samples.
    Audio(Vec<f32>),
    /// More of a call: its number, its id and name where it begins, and more of its arguments.
    Call {
        index: u64,
        id: Option<String>,
        name: Option<String>,
        arguments: String,
    },
}

/// A running answer. Dropped, its session is aborted.
pub(super) struct Answer {
    run: Run,
    clock: Clock,
    begun: Mono,
    shape: Shape,
    /// Samples per channel that may still come, once the rate is known.
    room: Option<u64>,
    seconds: u32,
    ready: VecDeque<Part>,
    /// Calls that have begun, with the arguments that were given out.
    calls: Vec<u64>,
    reason: Option<String>,
    /// Why the model gave up. Outputs are not ordered among each other: what it said before is on its way.
    failed: Option<Fail>,
    usage: Option<Value>,
    prompt_words: u64,
    text_words: String,
    frames: u64,
    first: [Option<Duration>; 2],
}

impl Answer {
    /// Opens a session and asks it.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub(super) fn start(api: &Shared, ends: &Chat, asked: &Asked) -> Result<Self, HttpError> {
        let limits = &api.config.limits;
        let speaker = if asked.audio.is_some() { Role::Audio } else { Role::Unwanted };
        let roles =
            [(Some(&ends.said), Role::Text), (ends.events.as_ref(), Role::Events), (ends.speaker.as_ref(), speaker)];
        let mut run = Run::open(&api.graph, &api.clock, limits.output_wait, &roles)?;
        let mut ask = run.input(&ends.ask)?;
        let question = asked.question.clone();
        run.feed(async move {
            // Whatever became of it, the outputs tell.
            let _ = ask.send_last(question).await;
            ask.end();
        });
        Ok(Self {
            run,
            clock: api.clock.clone(),
            begun: api.clock.now(),
            shape: Shape::new(None),
            room: None,
            seconds: if asked.stream { u32::MAX } else { limits.clip_seconds },
            ready: VecDeque::new(),
            calls: Vec::new(),
            reason: None,
            failed: None,
            usage: None,
            prompt_words: asked.words,
            text_words: String::new(),
            frames: 0,
            first: [None; 2],
        })
    }
    /// Rate and channels of the audio, once some has come.
    pub(super) fn spec(&self) -> Option<(u32, u16)> {
        self.shape.spec()
    }
    /// The next part; `None` when the answer is whole.
    ///
    /// # Errors
    /// [`Fail`]; final.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Part>, Fail> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            let Some((role, _, payload)) = self.run.next().await? else {
                return self.failed.take().map_or(Ok(None), Err);
            };
            match (role, payload) {
                (Role::Text, Payload::Text(text)) if !text.is_empty() => {
                    self.at(0);
                    self.text_words.push_str(&text);
                    self.ready.push_back(Part::Text(text.to_string()));
                }
                (Role::Audio, Payload::Audio(pcm)) => {
                    let left = self.room.unwrap_or(u64::from(self.seconds) * u64::from(pcm.rate()));
                    let left = left.checked_sub(pcm.frames() as u64).ok_or_else(|| too_long(self.seconds))?;
                    self.room = Some(left);
                    let mut samples = Vec::new();
                    self.shape.push(&pcm, &mut samples)?;
                    if !samples.is_empty() {
                        self.at(1);
                        self.frames += pcm.frames() as u64;
                        self.ready.push_back(Part::Audio(samples));
                    }
                }
                (Role::Events, Payload::Signal(Signal::Named { name, data })) => {
                    self.event(&name, &serde_json::from_str(&data).unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    fn at(&mut self, which: usize) {
        self.first[which].get_or_insert(self.clock.now().since(self.begun));
    }
    fn event(&mut self, name: &str, data: &Value) {
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        match name {
            "chat.call" => {
                let index = data["index"].as_u64().unwrap_or(0);
                if data.get("error").is_some_and(|e| !e.is_null()) {
                    // A call that cannot be carried out is what the model said, no more.
                    let words = text("arguments").unwrap_or_default();
                    self.text_words.push_str(&words);
                    return self.ready.push_back(Part::Text(words));
                }
                let begins = !self.calls.contains(&index);
                let more = text("arguments_delta");
                if begins {
                    self.calls.push(index);
                    let arguments = more.or_else(|| text("arguments")).unwrap_or_default();
                    let (id, name) = (text("call_id"), text("name"));
                    self.ready.push_back(Part::Call { index, id, name, arguments });
                } else if let Some(arguments) = more.filter(|a| !a.is_empty()) {
                    self.ready.push_back(Part::Call { index, id: None, name: None, arguments });
                }
            }
            "chat.done" => {
                self.reason = text("finish_reason");
                self.usage = data.get("usage").filter(|u| u.is_object()).cloned();
            }
            "chat.failed" => self.failed = Some(failed(&text("code").unwrap_or_default(), text("message"))),
            _ => {}
        }
    }
    /// Why it ended: `stop`, `length` or `tool_calls`.
    pub(super) fn reason(&self) -> String {
        let called = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.reason.clone().unwrap_or_else(|| called.to_owned())
    }
    /// Tokens, as the model counts them; a model that does not is counted in words. 20 ms of audio are one.
    pub(super) fn usage(&self) -> (u64, u64, Value) {
        let count = |key: &str| self.usage.as_ref().and_then(|u| u[key].as_u64());
        let prompt = count("prompt_tokens").unwrap_or(self.prompt_words);
        let text = count("completion_tokens").unwrap_or_else(|| words(&self.text_words));
        let audio = self.spec().map_or(0, |(rate, _)| self.frames.div_ceil(u64::from(rate / 50).max(1)));
        let answer = text + audio;
        let value = json!({"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": count("cached_tokens").unwrap_or(0)},
            "completion_tokens_details": {"audio_tokens": audio}});
        (prompt, answer, value)
    }
    /// Where the time went, milliseconds.
    pub(super) fn metrics(&self) -> Value {
        let ms = |d: Duration| (d.as_secs_f64() * 1e4).round() / 10.0;
        json!({"first_text_ms": self.first[0].map(ms), "first_audio_ms": self.first[1].map(ms),
            "total_ms": ms(self.clock.now().since(self.begun))})
    }
}

/// Why a model gives no answer, in HTTP.
fn failed(code: &str, message: Option<String>) -> Fail {
    let message = message.unwrap_or_else(|| "the answer failed".to_owned());
    Fail::Refused(match code {
        "invalid_prompt" | "context_too_long" | "template_failed" | "refused" => {
            HttpError::bad(message).about("messages")
        }
        "rate_limited" => HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).retry_after(1),
        "timeout" => HttpError::new(StatusCode::GATEWAY_TIMEOUT, message),
        "unreachable" | "unauthorized" | "not_found" => HttpError::unavailable(message),
        _ => HttpError::internal(message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_fails_has_a_status() {
        let status = |code| failed(code, None).http().status().as_u16();
        assert_eq!(
            ["context_too_long", "rate_limited", "timeout", "unreachable", "model_failed"].map(status),
            [400, 429, 504, 503, 500]
        );
    }
}
