//! Messages of a conversation, in the shape of OpenAI's chat messages.
//!
//! A message of the model may call tools ([`ToolCall`]); a message of role `tool` is the result of such a call. What is
//! read may have `null` or a list of text parts as its content; what is written has text, or `null` beside calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    #[serde(alias = "developer")]
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called: the content is its result.
    Tool,
}

impl Role {
    /// `system`, `user`, `assistant` or `tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WireCall", into = "WireCall")]
pub struct ToolCall {
    /// Its name in the conversation; the result refers to it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, JSON text.
    pub arguments: String,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; empty if there are only calls.
    pub content: String,
    /// Of the model: the tools that it calls.
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool: the call that this answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// An instruction.
    pub fn system(content: impl Into<String>) -> Self {
        Self::plain(Role::System, content.into())
    }

    /// What the person said.
    pub fn user(content: impl Into<String>) -> Self {
        Self::plain(Role::User, content.into())
    }

    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::plain(Role::Assistant, content.into())
    }

    /// What the model said and the tools that it called.
    pub fn calls(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..Self::plain(Role::Assistant, content.into()) }
    }

    /// What a tool answered to the call `id`.
    pub fn tool(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::plain(Role::Tool, content.into()) }
    }

    /// Text of a role.
    pub(super) fn plain(role: Role, content: String) -> Self {
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }

    /// Bytes of its texts, as they are held.
    pub fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter().map(|c| c.id.capacity() + c.name.capacity() + c.arguments.capacity());
        self.content.capacity() + calls.sum::<usize>() + self.tool_call_id.as_ref().map_or(0, String::capacity)
    }
}

/// Joins neighbours that templates and servers want as one: two messages of the person, and two of the model without a
/// result between them (what it said and what it called come as items of their own).
pub fn joined(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for m in messages {
        match out.last_mut() {
            Some(last) if last.role == m.role && matches!(m.role, Role::User | Role::Assistant) => {
                if !last.content.is_empty() && !m.content.is_empty() {
                    last.content.push('\n');
                }
                last.content.push_str(&m.content);
                last.tool_calls.extend(m.tool_calls);
            }
            _ => out.push(m),
        }
    }
    out
}

/// A message as it is written.
#[derive(Serialize, Deserialize)]
struct Wire {
    role: Role,
    #[serde(default)]
    content: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

impl TryFrom<Wire> for Message {
    type Error = String;
    fn try_from(w: Wire) -> Result<Self, String> {
        let tool_calls = w.tool_calls.unwrap_or_default();
        Ok(Self { role: w.role, content: text(w.content)?, tool_calls, tool_call_id: w.tool_call_id })
    }
}

impl From<Message> for Wire {
    fn from(m: Message) -> Self {
        let bare = m.content.is_empty() && !m.tool_calls.is_empty();
        Self {
            role: m.role,
            content: if bare { Value::Null } else { m.content.into() },
            tool_calls: (!m.tool_calls.is_empty()).then_some(m.tool_calls),
            tool_call_id: m.tool_call_id,
        }
    }
}

/// The text of a content: a text, nothing, or a list of parts that are text.
fn text(content: Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(s) => Ok(s),
        Value::Array(parts) => {
            let mut all = String::new();
            for part in &parts {
                match (part.get("text").and_then(Value::as_str), part.get("type").and_then(Value::as_str)) {
                    (Some(t), _) => all.push_str(t),
                    (None, kind) => {
                        let kind = kind.unwrap_or("an unknown type");
                        return Err(format!(
                            "a content part of type `{kind}` holds no text; the model takes text only"
                        ));
                    }
                }
            }
            Ok(all)
        }
        _ => Err("`content` is neither text nor a list of parts".to_owned()),
    }
}

/// A call as it is written: nested under `function`.
#[derive(Serialize, Deserialize)]
struct WireCall {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", default = "function")]
    kind: String,
    function: WireFunction,
}

#[derive(Serialize, Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

fn function() -> String {
    "function".to_owned()
}

impl From<WireCall> for ToolCall {
    fn from(w: WireCall) -> Self {
        Self { id: w.id, name: w.function.name, arguments: w.function.arguments }
    }
}

impl From<ToolCall> for WireCall {
    fn from(c: ToolCall) -> Self {
        Self { id: c.id, kind: function(), function: WireFunction { name: c.name, arguments: c.arguments } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> ToolCall {
        ToolCall { id: "call_1".into(), name: "set_light".into(), arguments: "{\"on\":true}".into() }
    }

    #[test]
    fn messages_have_the_shape_of_chat_messages() {
        let talk = vec![
            Message::system("Be kind."),
            Message::user("Light!"),
            Message::calls("", vec![call()]),
            Message::tool("call_1", "done"),
            Message::assistant("It is on."),
        ];
        let wire = json!([
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "Light!" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "call_1", "type": "function",
                  "function": { "name": "set_light", "arguments": "{\"on\":true}" } }] },
            { "role": "tool", "content": "done", "tool_call_id": "call_1" },
            { "role": "assistant", "content": "It is on." },
        ]);
        assert_eq!(serde_json::to_value(&talk).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Vec<Message>>(wire).unwrap(), talk);
    }

    #[test]
    fn other_ways_to_write_a_content_are_read() {
        let read = |v: Value| serde_json::from_value::<Message>(v);
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "input_text", "text": "b" }]);
        assert_eq!(read(json!({ "role": "user", "content": parts })).unwrap(), Message::user("ab"));
        assert_eq!(read(json!({ "role": "developer" })).unwrap(), Message::system(""));
        let e = read(json!({ "role": "user", "content": [{ "type": "image_url" }] })).unwrap_err().to_string();
        assert!(e.contains("`image_url`"), "{e}");
        assert!(read(json!({ "role": "user", "content": 3 })).is_err());
        assert!(read(json!({ "role": "robot", "content": "x" })).is_err());
    }

    #[test]
    fn neighbours_become_one() {
        let talk = vec![
            Message::user("a"),
            Message::user("b"),
            Message::assistant("Let me see."),
            Message::calls("", vec![call()]),
            Message::calls("", vec![ToolCall { id: "call_2".into(), ..call() }]),
            Message::tool("call_1", "1"),
            Message::tool("call_2", "2"),
        ];
        let want = vec![
            Message::user("a\nb"),
            Message::calls("Let me see.", vec![call(), ToolCall { id: "call_2".into(), ..call() }]),
            Message::tool("call_1", "1"),
            Message::tool("call_2", "2"),
        ];
        assert_eq!(joined(talk), want);
    }
}
