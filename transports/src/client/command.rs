//! What a client says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::config::{ResponseConfig, SessionConfig};
use super::error::ClientError;
use crate::realtime::wire::profile::Profile;

/// One command. `Debug` shows its type only: what it carries may be long, or nobody's business.
#[derive(Clone, PartialEq)]
pub struct Command {
    name: String,
    fields: Map<String, Value>,
    /// Spelled when it is sent.
    session: Option<Box<SessionConfig>>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Command").field(&self.name).finish()
    }
}

fn text_item(role: &str, kind: &str, text: String) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

impl Command {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), fields: Map::new(), session: None }
    }
    /// A field more. For fields of ours that a builder here does not know.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }
    /// An id of the client's, which an error about this command names.
    #[must_use]
    pub fn id(self, event_id: impl Into<String>) -> Self {
        self.with("event_id", event_id.into())
    }
    /// Any event, for what is not known here.
    ///
    /// # Errors
    /// [`ClientError::Options`]: it is no object with a string `type`.
    pub fn raw(event: Value) -> Result<Self, ClientError> {
        let wrong = || ClientError::Options("a command is a JSON object with a string `type`".to_owned());
        let Value::Object(mut fields) = event else { return Err(wrong()) };
        let Some(Value::String(name)) = fields.remove("type") else { return Err(wrong()) };
        Ok(Self { name, fields, session: None })
    }
    /// `session.update`.
    pub fn session_update(session: SessionConfig) -> Self {
        Self { session: Some(Box::new(session)), ..Self::new("session.update") }
    }
    /// `input_audio_buffer.append`: audio in the session's input format, in whole samples.
    pub fn append(audio: &[u8]) -> Self {
        Self::new("input_audio_buffer.append").with("audio", STANDARD.encode(audio))
    }
    /// `input_audio_buffer.append` of PCM16 samples.
    pub fn append_pcm16(samples: &[i16]) -> Self {
        let bytes: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
        Self::append(&bytes)
    }
    /// `input_audio_buffer.commit`: the turn is over.
    pub fn commit() -> Self {
        Self::new("input_audio_buffer.commit")
    }
    /// `input_audio_buffer.clear`.
    pub fn clear_input() -> Self {
        Self::new("input_audio_buffer.clear")
    }
    /// `conversation.item.create` of any item.
    pub fn item(item: Value) -> Self {
        Self::new("conversation.item.create").with("item", item)
    }
    /// `conversation.item.create`: something the user writes.
    pub fn user_text(text: impl Into<String>) -> Self {
        Self::item(text_item("user", "input_text", text.into()))
    }
    /// `conversation.item.create`: something to keep in mind.
    pub fn system_text(text: impl Into<String>) -> Self {
        Self::item(text_item("system", "input_text", text.into()))
    }
    /// `conversation.item.create`: what a function gave.
    pub fn call_output(call_id: impl Into<String>, output: impl Into<String>) -> Self {
        Self::item(json!({"type": "function_call_output", "call_id": call_id.into(), "output": output.into()}))
    }
    /// `conversation.item.retrieve`.
    pub fn retrieve(item_id: impl Into<String>) -> Self {
        Self::new("conversation.item.retrieve").with("item_id", item_id.into())
    }
    /// `conversation.item.delete`.
    pub fn delete(item_id: impl Into<String>) -> Self {
        Self::new("conversation.item.delete").with("item_id", item_id.into())
    }
    /// `conversation.item.truncate`: of this answer only so much was heard.
    pub fn truncate(item_id: impl Into<String>, audio_end_ms: u64) -> Self {
        let command = Self::new("conversation.item.truncate").with("item_id", item_id.into());
        command.with("content_index", 0).with("audio_end_ms", audio_end_ms)
    }
    /// `response.create`. [`Client::respond`](super::Client::respond) also gives the response.
    pub fn respond(config: ResponseConfig) -> Self {
        let fields = config.into_json();
        let command = Self::new("response.create");
        if fields.is_empty() { command } else { command.with("response", fields) }
    }
    /// `response.cancel`; of the active response if none is named.
    pub fn cancel(response_id: Option<&str>) -> Self {
        let command = Self::new("response.cancel");
        match response_id {
            Some(id) => command.with("response_id", id),
            None => command,
        }
    }
    /// `output_audio_buffer.clear`: what is not played yet is void.
    pub fn clear_output() -> Self {
        Self::new("output_audio_buffer.clear")
    }
    /// `barge_in` (ours).
    pub fn barge_in() -> Self {
        Self::new("barge_in")
    }
    /// `playback.ack` (ours): so much of a response has been played.
    pub fn played(response_id: impl Into<String>, played_ms: u64) -> Self {
        Self::new("playback.ack").with("response_id", response_id.into()).with("played_ms", played_ms)
    }
    /// `turn.signal` (ours).
    pub fn turn_signal(event: impl Into<String>) -> Self {
        Self::new("turn.signal").with("event", event.into())
    }
    pub(super) fn heartbeat() -> Self {
        Self::new("session.heartbeat")
    }
    pub(super) fn event_ack(seq: u64) -> Self {
        Self::new("session.event_ack").with("server_event_seq", seq)
    }
    pub(super) fn close() -> Self {
        Self::new("session.close")
    }
    pub(super) fn resume(session_id: &str, token: &str, seq: u64) -> Self {
        let command = Self::new("session.resume").with("session_id", session_id).with("resume_token", token);
        command.with("last_received_server_event_seq", seq)
    }
    /// Its type.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The event as servers of this profile read it.
    pub fn to_json(&self, profile: Profile) -> Value {
        let mut map = self.fields.clone();
        map.insert("type".to_owned(), self.name.as_str().into());
        if let Some(session) = &self.session {
            map.insert("session".to_owned(), session.to_json(profile));
        }
        map.into()
    }
    /// The configuration that it sets.
    pub(super) fn configures(&self, profile: Profile) -> Option<Value> {
        match (&self.session, self.name.as_str()) {
            (Some(session), _) => Some(session.to_json(profile)),
            (None, "session.update") => self.fields.get("session").cloned(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::wire::client::{MOST_BYTES, parse};

    /// Whatever is built here, the server reads.
    #[test]
    fn every_command_is_one_that_a_server_reads() {
        let all = [
            Command::session_update(SessionConfig::new().voice("a").instructions("b")),
            Command::append(&[0, 1]),
            Command::append_pcm16(&[1, -1]),
            Command::commit(),
            Command::clear_input(),
            Command::user_text("hello"),
            Command::system_text("be brief"),
            Command::call_output("call_1", "{}"),
            Command::retrieve("item_1"),
            Command::delete("item_1"),
            Command::truncate("item_1", 20),
            Command::respond(ResponseConfig::new().instructions("x").metadata("k", "v").max_output_tokens(3)),
            Command::cancel(None),
            Command::cancel(Some("r1")),
            Command::clear_output(),
            Command::barge_in(),
            Command::played("r1", 20),
            Command::turn_signal("user_started"),
            Command::heartbeat(),
            Command::event_ack(3),
            Command::close(),
            Command::resume("duplex-1", "token", 3),
        ];
        for command in all {
            for profile in Profile::ALL {
                let text = command.clone().id("c-1").to_json(profile).to_string();
                let read = parse(&text, MOST_BYTES).unwrap_or_else(|e| panic!("{text}: {e:?}"));
                assert_eq!(read.event_id.as_deref(), Some("c-1"));
            }
        }
    }
    #[test]
    fn a_raw_command_is_any_object_with_a_type() {
        let raw = Command::raw(json!({"type": "x.y", "z": 1})).unwrap();
        assert_eq!(raw.to_json(Profile::Stock), json!({"type": "x.y", "z": 1}));
        for wrong in [json!([]), json!({"type": 1}), json!({})] {
            assert!(Command::raw(wrong).is_err());
        }
        let resume = format!("{:?}", Command::resume("s", "very-secret", 1));
        assert_eq!(resume, "Command(\"session.resume\")");
    }
}
