//! What a client sends.
//!
//! [`parse`] reads one text message. Aliases are resolved, `turn.signal` is unwrapped, and every field has its type; what
//! is refused names the field, and echoes the client's `event_id` whenever one could be read.

pub mod append;
pub mod item;
pub mod response;
pub mod signal;

use serde_json::{Map, Value};

use super::code::{Code, Refusal, shown};
use super::fields::Fields;
use append::Append;
use item::{ItemCreate, Truncate, item_id};
use response::ResponseOptions;
use signal::TurnSignal;

/// Bytes of one client message at most; more is refused unread.
pub const MOST_BYTES: usize = 15 * 1024 * 1024;

/// One event of a client. Two spellings of one event are one variant: `input.commit` is a [`ClientEvent::Commit`] that
/// asks for a response unless it says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// `session.update`, with the configuration from `session{}` or from the top level.
    SessionUpdate(Map<String, Value>),
    /// `session.heartbeat`.
    Heartbeat,
    /// `session.event_ack`: the journal may forget up to this number.
    EventAck(u64),
    /// `session.close`, `close_session`, `close`.
    Close {
        /// Why.
        reason: String,
    },
    /// `session.resume`, not looked at yet.
    Resume(Resume),
    /// `input_audio_buffer.append`.
    Append(Box<Append>),
    /// `input_audio_buffer.commit`, `input.commit`.
    Commit(Commit),
    /// `input_audio_buffer.clear`.
    InputClear,
    /// `input.cancel`.
    InputCancel,
    /// `input.text.append`, `input_text.append`, `push_text`.
    TextAppend {
        /// The text.
        text: String,
    },
    /// `conversation.item.create`.
    ItemCreate(ItemCreate),
    /// `conversation.item.retrieve`.
    ItemRetrieve {
        /// The item.
        item_id: String,
    },
    /// `conversation.item.delete`.
    ItemDelete {
        /// The item.
        item_id: String,
    },
    /// `conversation.item.truncate`.
    ItemTruncate(Truncate),
    /// `response.create`.
    ResponseCreate(Box<ResponseOptions>),
    /// `response.cancel`.
    ResponseCancel {
        /// Which one; the active one if absent.
        response_id: Option<String>,
    },
    /// `output_audio_buffer.clear`.
    OutputClear {
        /// Which one; the active one if absent.
        response_id: Option<String>,
    },
    /// `barge_in`.
    BargeIn,
    /// `turn.signal`, `signal_turn` with a plain signal.
    TurnSignal(TurnSignal),
    /// `playback.ack`, `audio.playback_ack`.
    PlaybackAck(PlaybackAck),
}

/// A commit of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// False seals a part and keeps the turn open.
    pub is_final: bool,
    /// Whether an answer is wanted; absent leaves it to the session.
    pub response_create: Option<bool>,
    /// The client's verdict on the whole input.
    pub is_speech: Option<bool>,
}

/// What the client says it has played. Numbers may have either sign: they only ever raise what is known.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaybackAck {
    /// Played so far, in ms.
    pub played_ms: f64,
    /// To be kept in history, in ms; what was played, if the client does not say.
    pub committed_ms: f64,
    /// The response.
    pub response_id: Option<String>,
    /// The item.
    pub item_id: Option<String>,
    /// Cut there for good.
    pub truncate: bool,
}

/// A resume whose fields have not been looked at: in an open session another error comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume(Fields);

/// The fields of a resume.
#[derive(Clone, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub session_id: String,
    /// The credential.
    pub resume_token: String,
    /// The last event the client has seen.
    pub last_received: u64,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The credential is never shown.
        let Claim { session_id, last_received, .. } = self;
        f.debug_struct("Claim").field("session_id", session_id).field("last_received", last_received).finish()
    }
}

impl Resume {
    /// Reads the fields.
    ///
    /// # Errors
    /// `invalid_session_resume`.
    pub fn claim(self) -> Result<Claim, Refusal> {
        let mut f = self.0;
        let mut read = || {
            Ok(Claim {
                session_id: f.need_string("session_id")?,
                resume_token: f.need_string("resume_token")?,
                last_received: f.integer("last_received_server_event_seq")?.unwrap_or(0),
            })
        };
        read().map_err(|refusal: Refusal| refusal.under(Code::InvalidSessionResume))
    }
}

/// A client event with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The id the client gave the event.
    pub event_id: Option<String>,
    /// The event.
    pub event: ClientEvent,
}

/// A message that is no event, with the client's id if one could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{refusal}")]
pub struct Rejected {
    /// The id the client gave the event.
    pub event_id: Option<String>,
    /// Why.
    pub refusal: Refusal,
}

/// Reads one text message of at most `limit` bytes ([`MOST_BYTES`]).
///
/// # Errors
/// The refusal to answer with; the connection stays usable.
pub fn parse(text: &str, limit: usize) -> Result<Incoming, Rejected> {
    let unread = |refusal| Rejected { event_id: None, refusal };
    if text.len() > limit {
        let message = format!("the message has {} bytes, {limit} are allowed; send it in smaller parts", text.len());
        return Err(unread(Refusal::new(Code::EventTooLarge, message)));
    }
    let value: Value = serde_json::from_str(text).map_err(|e| {
        // Category and place only: the text itself may hold what should not be repeated.
        let message = format!("the message is not JSON (line {}, column {})", e.line(), e.column());
        unread(Refusal::new(Code::InvalidJson, message))
    })?;
    let Value::Object(map) = value else {
        return Err(unread(Refusal::new(Code::BadEvent, "an event is a JSON object with a `type`")));
    };
    let mut fields = Fields::top(map);
    let event_id = fields.id("event_id").map_err(unread)?;
    let event = fields.need_string("type").and_then(|kind| read_event(&kind, fields));
    match event {
        Ok(event) => Ok(Incoming { event_id, event }),
        Err(refusal) => Err(Rejected { event_id, refusal }),
    }
}

/// Reads the event `kind` from the rest of its fields.
pub(super) fn read_event(kind: &str, mut f: Fields) -> Result<ClientEvent, Refusal> {
    let f = &mut f;
    Ok(match kind {
        "session.update" => ClientEvent::SessionUpdate(configuration(f)?),
        "session.heartbeat" => ClientEvent::Heartbeat,
        "session.event_ack" => ClientEvent::EventAck(event_ack(f)?),
        "session.close" | "close_session" | "close" => {
            ClientEvent::Close { reason: f.string("reason")?.unwrap_or_else(|| "client_close".to_owned()) }
        }
        "session.resume" => ClientEvent::Resume(Resume(std::mem::take(f))),
        "input_audio_buffer.append" => ClientEvent::Append(Box::new(Append::read(f)?)),
        "input_audio_buffer.commit" => ClientEvent::Commit(commit(f, None)?),
        "input.commit" => ClientEvent::Commit(commit(f, Some(true))?),
        "input_audio_buffer.clear" => ClientEvent::InputClear,
        "input.cancel" => ClientEvent::InputCancel,
        "input.text.append" | "input_text.append" | "push_text" => {
            ClientEvent::TextAppend { text: f.need_string("text")? }
        }
        "conversation.item.create" => ClientEvent::ItemCreate(ItemCreate::read(f)?),
        "conversation.item.retrieve" => ClientEvent::ItemRetrieve { item_id: item_id(f)? },
        "conversation.item.delete" => ClientEvent::ItemDelete { item_id: item_id(f)? },
        "conversation.item.truncate" => ClientEvent::ItemTruncate(Truncate::read(f)?),
        "response.create" => ClientEvent::ResponseCreate(Box::new(ResponseOptions::read(f)?)),
        "response.cancel" => ClientEvent::ResponseCancel { response_id: f.id("response_id")? },
        "output_audio_buffer.clear" => ClientEvent::OutputClear { response_id: f.id("response_id")? },
        "barge_in" => ClientEvent::BargeIn,
        "turn.signal" | "signal_turn" => signal::read(f)?,
        "playback.ack" | "audio.playback_ack" => {
            let played_ms = f.need_number("played_ms")?;
            ClientEvent::PlaybackAck(PlaybackAck {
                played_ms,
                committed_ms: f.number("committed_ms")?.unwrap_or(played_ms),
                response_id: f.id("response_id")?,
                item_id: f.id("item_id")?,
                truncate: f.boolean("truncate")?.unwrap_or(false),
            })
        }
        "push_chunk" | "input.audio.append" => {
            let message = format!("`{kind}` is not offered; send audio with input_audio_buffer.append");
            return Err(Refusal::new(Code::UnknownEvent, message).about("type"));
        }
        _ => {
            let message = format!("unknown event type {:?}", shown(kind));
            return Err(Refusal::new(Code::UnknownEvent, message).about("type"));
        }
    })
}

fn configuration(f: &mut Fields) -> Result<Map<String, Value>, Refusal> {
    match f.value("session") {
        None => Ok(std::mem::take(f).rest()),
        Some(Value::Object(map)) => Ok(map),
        Some(_) => {
            let message = "`session` must be an object with the fields to set";
            Err(Refusal::new(Code::InvalidSessionConfig, message).about(f.path("session")))
        }
    }
}

fn event_ack(f: &mut Fields) -> Result<u64, Refusal> {
    let refuse = |refusal: Refusal| refusal.under(Code::InvalidEventAck);
    let seq = f.integer("server_event_seq").map_err(refuse)?;
    seq.ok_or_else(|| {
        let message = "`server_event_seq` is required: the number of the last event received";
        Refusal::new(Code::InvalidEventAck, message).about(f.path("server_event_seq"))
    })
}

fn commit(f: &mut Fields, default: Option<bool>) -> Result<Commit, Refusal> {
    Ok(Commit {
        is_final: f.boolean("final")?.unwrap_or(true),
        response_create: f.either(["response_create", "create_response"], Fields::boolean)?.or(default),
        is_speech: f.boolean("is_speech")?,
    })
}

#[cfg(test)]
mod tests;
