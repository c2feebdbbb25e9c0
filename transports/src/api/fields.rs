//! Bodies of requests, and the fields of JSON ones.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use futures_util::StreamExt as _;
use omni_flow::Clock;
use serde_json::{Map, Value};
use std::time::Duration;

use super::limits::Limits;
use super::room::{Held, Room};
use crate::door::HttpError;

/// After a body that is too large, so much of it is still read, so that its sender hears of it.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Reads what is left of a refused body, so that its sender gets to read the answer.
pub(super) async fn drain(clock: &Clock, body: Body) {
    let read = async {
        let (mut stream, mut got) = (body.into_data_stream(), 0);
        while let Some(Ok(piece)) = stream.next().await {
            got += piece.len();
            if got > DRAIN_BYTES {
                break;
            }
        }
    };
    let _ = clock.timeout(DRAIN_TIME, read).await;
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// 413; 400 if it breaks off or pauses for too long; 503 if there is no room.
async fn whole(
    clock: &Clock,
    body: Body,
    limit: usize,
    pause: Duration,
    held: &mut Held,
) -> Result<Vec<u8>, HttpError> {
    let (mut stream, mut got) = (body.into_data_stream(), Vec::new());
    loop {
        let piece: Bytes = match clock.timeout(pause, stream.next()).await {
            None => return Err(HttpError::bad(format!("the body paused for {} s", pause.as_secs_f64()))),
            Some(None) => return Ok(got),
            Some(Some(Err(e))) => return Err(HttpError::bad(format!("the body broke off: {e}"))),
            Some(Some(Ok(piece))) => piece,
        };
        if got.len() + piece.len() > limit {
            drain(clock, Body::from_stream(stream)).await;
            return Err(HttpError::too_large(format!("the body is larger than {limit} bytes")));
        }
        if let Err(full) = held.grow(piece.len()) {
            drain(clock, Body::from_stream(stream)).await;
            return Err(full);
        }
        got.extend_from_slice(&piece);
    }
}

/// The JSON object that a request is.
///
/// # Errors
/// 413, 415, 503, and 400 if it is none.
pub(super) async fn json(
    clock: &Clock,
    limits: &Limits,
    room: &Room,
    request: Request,
) -> Result<(Map<String, Value>, Held), HttpError> {
    let mut held = room.hold();
    let kind = request.headers().get(header::CONTENT_TYPE).map(|v| v.to_str().unwrap_or("?").to_ascii_lowercase());
    if let Some(kind) = kind.filter(|k| !k.split(';').next().unwrap_or_default().trim().ends_with("json")) {
        drain(clock, request.into_body()).await;
        let shown: String = kind.chars().take(64).collect();
        let message = format!("the body must be `application/json`, not `{shown}`");
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let body = whole(clock, request.into_body(), limits.json_bytes, limits.body_pause, &mut held).await?;
    match serde_json::from_slice(&body) {
        Ok(Value::Object(map)) => Ok((map, held)),
        Ok(_) => Err(HttpError::bad("the body must be a JSON object")),
        Err(e) => Err(HttpError::bad(format!("the body is no JSON: {e}"))),
    }
}

/// Fields of an object. `null` is no value.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

fn wrong(name: &str, what: &str) -> HttpError {
    HttpError::bad(format!("`{name}` must be {what}")).about(name)
}

impl<'a> Fields<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|v| !v.is_null())
    }
    pub(super) fn text(self, name: &str) -> Result<Option<&'a str>, HttpError> {
        self.get(name).map(|v| v.as_str().ok_or_else(|| wrong(name, "a string"))).transpose()
    }
    pub(super) fn flag(self, name: &str) -> Result<Option<bool>, HttpError> {
        self.get(name).map(|v| v.as_bool().ok_or_else(|| wrong(name, "true or false"))).transpose()
    }
    pub(super) fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, HttpError> {
        self.get(name).map(|v| v.as_object().ok_or_else(|| wrong(name, "an object"))).transpose()
    }
    pub(super) fn list(self, name: &str) -> Result<Option<&'a Vec<Value>>, HttpError> {
        self.get(name).map(|v| v.as_array().ok_or_else(|| wrong(name, "a list"))).transpose()
    }
    /// A finite number from `low` to `high`.
    pub(super) fn number(self, name: &str, low: f64, high: f64) -> Result<Option<f64>, HttpError> {
        let what = || wrong(name, &format!("a number from {low} to {high}"));
        let read = |v: &Value| v.as_f64().filter(|n| (low..=high).contains(n)).ok_or_else(what);
        self.get(name).map(read).transpose()
    }
    /// A whole number from `low` on.
    pub(super) fn whole(self, name: &str, low: i64) -> Result<Option<i64>, HttpError> {
        let what = || match low {
            i64::MIN => wrong(name, "a whole number of 64 bits"),
            low => wrong(name, &format!("a whole number, {low} or more")),
        };
        self.get(name).map(|v| v.as_i64().filter(|n| *n >= low).ok_or_else(what)).transpose()
    }
}
