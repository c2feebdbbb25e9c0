//! `POST /v1/chat/completions`: an answer as text, as speech, or both; whole or while it is made.
//!
//! Two shapes: with the stock `audio` object, audio and its transcript belong to the one choice; with `modalities` alone,
//! text and audio are choices of their own, and the parts of a stream say which they are of.

mod answer;
mod request;
mod stream;
mod whole;

use axum::extract::{Request, State};
use axum::response::Response;

use super::job::Job;
use super::run::Fail;
use super::{Api, CHAT, Shared, fields};
use crate::door::HttpError;
use answer::Answer;
use request::Asked;

pub(super) async fn complete(State(api): State<Api>, request: Request) -> Result<Response, HttpError> {
    api.admit(request.headers())?;
    let ends = api.ends.chat.as_ref().filter(|_| api.allowed(CHAT));
    let ends = ends.ok_or_else(|| HttpError::not_bound("Chat Completions API"))?;
    let mut job = api.job(CHAT);
    let read = async {
        let (body, _held) = fields::json(&api.clock, &api.config.limits, &api.room, request).await?;
        let asked = Asked::read(&api, body, ends)?;
        let answer = Answer::start(&api, ends, &asked)?;
        Ok((asked, answer))
    };
    let (asked, answer) = match read.await {
        Ok(begun) => begun,
        Err(e) => return refused(job, e),
    };
    if asked.audio.is_some() {
        job.speaks(&ends.node, asked.stream, false);
    }
    let head = Head::new(&api);
    if asked.stream {
        stream::send(&api, asked, answer, head, job).await
    } else {
        whole::make(asked, answer, head, job).await
    }
}

fn refused<T>(job: Job, e: HttpError) -> Result<T, HttpError> {
    job.failed(&Fail::Refused(e.clone()));
    Err(e)
}

/// What every part of one answer carries.
struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    fn new(api: &Shared) -> Self {
        let mut bytes = [0; 12];
        // Without a source of randomness an id is still an id.
        let _ = getrandom::fill(&mut bytes);
        let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let created = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self { id: format!("chatcmpl-{}", hex.concat()), created, model: api.model.clone() }
    }
    /// An answer, or a part of it.
    fn object(&self, kind: &str, choices: serde_json::Value) -> serde_json::Value {
        serde_json::json!({"id": self.id, "object": kind, "created": self.created, "model": self.model,
            "choices": choices})
    }
    /// The name of its audio, by which a later request may refer to it.
    fn audio_id(&self) -> String {
        self.id.replace("chatcmpl-", "audio_")
    }
    /// Audio is not kept: it is over with the answer.
    fn expires(&self) -> u64 {
        self.created
    }
}
