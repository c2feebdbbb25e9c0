//! `POST /v1/audio/speech`: text to speech, as a whole clip, a raw stream, or a stream of events.

pub(super) mod batch;
mod make;
mod request;
pub(super) mod socket;
mod split;
mod usage;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::job::Job;
use super::run::Fail;
use super::{Api, SPEECH, audio, fields, stream};
use crate::door::HttpError;
use make::Making;
pub(super) use request::STOCK;
use request::{Mode, Speak};
use usage::Usage;

/// A header for clients: what of the request had no effect.
const NOTE: HeaderName = HeaderName::from_static("x-omni-flow-note");

pub(super) async fn speak(State(api): State<Api>, request: Request) -> Result<Response, HttpError> {
    api.admit(request.headers())?;
    let ends = api.speech(SPEECH)?;
    let mut job = api.job(SPEECH);
    let read = async {
        let (body, _held) = fields::json(&api.clock, &api.config.limits, &api.room, request).await?;
        Speak::read(&api, fields::Fields(&body), ends)
    };
    let (speak, making) = match read.await.and_then(|s| Making::start(&api, &s).map(|m| (s, m))) {
        Ok(made) => made,
        Err(e) => {
            job.failed(&Fail::Refused(e.clone()));
            return Err(e);
        }
    };
    job.speaks(&ends.node, speak.mode != Mode::Whole, true);
    let done = match speak.mode {
        Mode::Whole => whole(&speak, making, &mut job).await,
        Mode::Raw | Mode::Events => return streamed(&api, speak, making, job).await,
    };
    finish(job, done)
}

fn finish<T>(job: Job, done: Result<T, Fail>) -> Result<T, HttpError> {
    match done {
        Ok(got) => {
            job.done(false);
            Ok(got)
        }
        Err(fail) => {
            let error = fail.http();
            job.failed(&fail);
            Err(error)
        }
    }
}

async fn whole(speak: &Speak, making: Making, job: &mut Job) -> Result<Response, Fail> {
    let clip = make::clip(speak, making, job).await?;
    let mut response = clip.file.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(speak.format.media_type()));
    clip.usage.headers(headers);
    note(speak, headers);
    Ok(response)
}

fn note(speak: &Speak, headers: &mut axum::http::HeaderMap) {
    if let Some(note) = speak.note {
        headers.insert(NOTE, HeaderValue::from_static(note));
    }
}

/// The answer begins with the first audio: until then a failure has a status of its own.
async fn streamed(api: &Api, speak: Speak, mut making: Making, job: Job) -> Result<Response, HttpError> {
    let first = match making.next().await.and_then(|f| f.ok_or(Fail::NoAudio)) {
        Ok(first) => first,
        Err(fail) => return finish(job, Err(fail)),
    };
    let Some((rate, channels)) = making.spec() else { return finish(job, Err(Fail::NoAudio)) };
    let (format, events) = (speak.format, speak.mode == Mode::Events);
    let kind = if events { "text/event-stream".to_owned() } else { audio::media_type(format, rate, channels) };
    let mut headers = axum::http::HeaderMap::new();
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    note(&speak, &mut headers);
    let produce = move |writer: stream::Writer| async move {
        let mut job = job;
        let mut frames = 0;
        let sent = async {
            let mut next = Some(first);
            let mut head = audio::head(format, rate, channels);
            while let Some(samples) = next {
                let count = samples.len() / usize::from(channels.max(1));
                frames += count;
                head.extend(audio::bytes(&samples));
                let piece = std::mem::take(&mut head);
                if events {
                    let delta = json!({"type": "speech.audio.delta", "audio": STANDARD.encode(piece),
                        "response_format": format.name()});
                    writer.event(&delta, true).await?;
                } else {
                    writer.write(piece).await?;
                }
                job.frames(count, rate);
                next = making.next().await?;
            }
            Ok(())
        };
        let sent: Result<(), Fail> = sent.await;
        drop(making);
        let last = match &sent {
            Ok(()) => {
                let usage = Usage::of(&speak, frames, rate);
                events.then(|| json!({"type": "speech.audio.done", "usage": usage.json()}))
            }
            Err(Fail::Gone | Fail::Stalled) => None,
            Err(fail) => events.then(|| {
                json!({"type": "speech.audio.error", "error": {
                    "message": fail.http().message(), "type": "server_error", "param": null, "code": 500}})
            }),
        };
        let told = match &last {
            Some(event) => writer.event(event, true).await,
            None => Ok(()),
        };
        // A stream of events ends well once it has told how it ended; raw audio only if it is whole.
        if told.is_ok() && (sent.is_ok() || last.is_some()) {
            writer.finish();
        }
        match sent.and(told) {
            Ok(()) => job.done(false),
            Err(fail) => job.failed(&fail),
        }
    };
    let body = stream::body(&api.clock, api.config.limits.write_stall, produce);
    Ok((headers, body).into_response())
}
