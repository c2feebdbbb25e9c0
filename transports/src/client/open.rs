//! From a connection to an open session, the first time and again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::carrier::{Carrier, Wire};
use super::command::Command;
use super::error::ClientError;
use super::event::{Event, Received, receive};
use super::options::Options;
use super::secret::Secret;
use super::track::Track;
use crate::realtime::host::Out;

/// Names our first `session.update`.
const CONFIGURES: &str = "client_open";

/// An open session.
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) session: Value,
    pub(super) token: Option<Secret>,
    /// The server is one of ours, with extension events.
    pub(super) ours: bool,
    pub(super) track: Track,
}

/// Why a session did not come back.
pub(super) enum Lost {
    /// It may, later.
    Retry(ClientError),
    /// It will not.
    Gone(ClientError),
}

async fn next(wire: &mut Wire) -> Result<Received, ClientError> {
    match wire.rx.recv().await {
        Some(Out::Text(text)) => receive(&text).map_err(ClientError::Protocol),
        Some(Out::Close(code, reason)) => Err(ClientError::Closed { code: Some(code), reason }),
        None => Err(wire.why()),
    }
}

async fn say(wire: &Wire, event: Value) -> Result<(), ClientError> {
    wire.tx.send(event.to_string().into()).await.map_err(|_| ClientError::Lost("nothing can be sent".to_owned()))
}

/// Opens a session, and configures it.
///
/// # Errors
/// Those of connecting; [`ClientError::Server`]: it was refused.
pub(super) async fn open(carrier: &Carrier, options: &Options, config: Option<&Value>) -> Result<Opened, ClientError> {
    let mut wire = carrier.open(options, false).await?;
    let limit = options.timeouts.handshake;
    match timeout(limit, greet(&mut wire, config)).await {
        Ok(Ok((session, token, ours, track))) => Ok(Opened { wire, session, token, ours, track }),
        failed => {
            let error = match failed {
                Ok(Err(e)) => e,
                _ => ClientError::Timeout { what: "opening the session", limit },
            };
            tokio::spawn(wire.close(options.timeouts.close));
            Err(error)
        }
    }
}

type Greeted = (Value, Option<Secret>, bool, Track);

async fn greet(wire: &mut Wire, config: Option<&Value>) -> Result<Greeted, ClientError> {
    let mut track = Track::default();
    let (mut session, token, ours) = loop {
        let Received { seq, event } = next(wire).await?;
        track.see(Duration::ZERO, seq);
        match event {
            Event::SessionCreated { session, resume_token, attachment_generation } => {
                let ours = resume_token.is_some() || attachment_generation.is_some();
                break (session, resume_token, ours);
            }
            Event::Error { error } => return Err(ClientError::Server(error)),
            event => tracing::debug!(event = event.name(), "before the session was created"),
        }
    };
    if let Some(config) = config {
        say(wire, json!({"type": "session.update", "event_id": CONFIGURES, "session": config})).await?;
        loop {
            let Received { seq, event } = next(wire).await?;
            track.see(Duration::ZERO, seq);
            match event {
                Event::SessionUpdated { session: now } => {
                    session = now;
                    break;
                }
                Event::Error { error } if error.event_id.as_deref().is_none_or(|id| id == CONFIGURES) => {
                    return Err(ClientError::Server(error));
                }
                _ => {}
            }
        }
    }
    Ok((session, token, ours, track))
}

/// Comes back to a session after event `seq`.
///
/// # Errors
/// [`Lost`].
pub(super) async fn resume(
    carrier: &Carrier,
    options: &Options,
    session: &Value,
    token: &Secret,
    track: Track,
) -> Result<Opened, Lost> {
    let mut wire = match carrier.open(options, true).await {
        Ok(wire) => wire,
        Err(e) if e.retryable() => return Err(Lost::Retry(e)),
        Err(e) => return Err(Lost::Gone(e)),
    };
    let id = session["id"].as_str().unwrap_or_default();
    let limit = options.timeouts.handshake;
    let command = Command::resume(id, token.reveal(), track.last()).to_json(options.profile);
    let answer = async {
        say(&wire, command).await?;
        next(&mut wire).await
    };
    let answer = timeout(limit, answer).await;
    let lost = match answer {
        Ok(Ok(Received { event: Event::SessionResumed { session, resume_token, .. }, .. })) => {
            return Ok(Opened { wire, session, token: Some(resume_token), ours: true, track });
        }
        Ok(Ok(Received { event: Event::Error { error }, .. })) if error.retryable => {
            Lost::Retry(ClientError::Server(error))
        }
        Ok(Ok(Received { event: Event::Error { error }, .. })) => {
            Lost::Gone(ClientError::NotResumed(error.to_string()))
        }
        Ok(Ok(Received { event: Event::ResyncRequired { reason }, .. })) => Lost::Gone(ClientError::NotResumed(reason)),
        Ok(Ok(_)) => Lost::Gone(ClientError::NotResumed("the server began with something else".to_owned())),
        Ok(Err(e @ (ClientError::Protocol(_) | ClientError::TooLarge { .. }))) => Lost::Gone(e),
        Ok(Err(e)) => Lost::Retry(e),
        Err(_) => Lost::Retry(ClientError::Timeout { what: "resuming the session", limit }),
    };
    tokio::spawn(wire.close(options.timeouts.close));
    Err(lost)
}
