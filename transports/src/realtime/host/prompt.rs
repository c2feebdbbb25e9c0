//! Questions and what is told about answers, as named signals with JSON.

use omni_flow::Signal;
use serde_json::{Value, json};

use super::asked::Announced;
use crate::realtime::machine::{AnswerPart, Message, Prompt};

/// The name of a question.
const PROMPT: &str = "chat.prompt";
/// The name of what tells how far an answer has been said.
const SPOKEN: &str = "speech.spoken";

/// Says that the conversation is the client's.
pub(super) fn own() -> Signal {
    Signal::Named { name: "chat.own".into(), data: "{}".into() }
}

/// What a graph that answers by itself should know of the session.
pub(super) fn context(instructions: Option<String>, voice: Option<String>) -> Signal {
    let data = json!({"instructions": instructions, "voice": voice});
    Signal::Named { name: "chat.context".into(), data: data.to_string().into() }
}

/// A question as a node reads it: messages, tools and options in the shape of the stock chat API, and what only this
/// protocol has.
pub(super) fn signal(prompt: &Prompt) -> Signal {
    let mut messages = Vec::new();
    if let Some(text) = prompt.instructions.as_ref().filter(|t| !t.trim().is_empty()) {
        messages.push(json!({"role": "system", "content": text}));
    }
    messages.extend(prompt.messages.iter().map(message));
    let mut data = json!({
        "messages": messages,
        "turn": prompt.turn,
        "instructions": prompt.instructions,
        "audio": prompt.audio,
    });
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            data[key] = value;
        }
    };
    set("tools", (!prompt.tools.is_empty()).then(|| prompt.tools.iter().map(tool).collect()));
    set("tool_choice", prompt.tool_choice.clone());
    set("temperature", prompt.temperature.map(Into::into));
    set("max_tokens", prompt.max_output_tokens.map(Into::into));
    set("voice", prompt.voice.clone().map(Into::into));
    set("speed", prompt.speed.map(Into::into));
    Signal::Named { name: PROMPT.into(), data: data.to_string().into() }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(text) => json!({"role": "system", "content": text}),
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Assistant(text) => json!({"role": "assistant", "content": text}),
        Message::Call { call_id, name, arguments } => json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]}),
        Message::CallOutput { call_id, output } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": output})
        }
    }
}

/// A tool of the Realtime protocol is flat; the chat API nests it.
fn tool(tool: &Value) -> Value {
    if tool.get("function").is_some() {
        return tool.clone();
    }
    let mut function = tool.clone();
    if let Some(map) = function.as_object_mut() {
        map.remove("type");
    }
    json!({"type": "function", "function": function})
}

/// What a signal tells about an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    /// `answer.started`: the next answer comes like this.
    Begins(Announced),
    /// At once.
    Now(AnswerPart),
    /// After everything of the answer that has been given.
    Then(AnswerPart),
}

/// Reads a signal of the graph; none if it tells nothing about an answer.
pub(super) fn told(signal: &Signal) -> Option<Told> {
    let Signal::Named { name, data } = signal else { return None };
    let data = || serde_json::from_str::<Value>(data).unwrap_or_default();
    let text = |data: &Value, key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(match &**name {
        "answer.started" => {
            let data = data();
            let whole = |key: &str| data.get(key).and_then(Value::as_str) == Some("cumulative");
            Told::Begins(Announced {
                wordless: data.get("text").and_then(Value::as_bool) == Some(false),
                whole_text: whole("text_mode"),
                whole_audio: whole("audio_mode"),
            })
        }
        "chat.call" => {
            let data = data();
            Told::Now(AnswerPart::Call {
                call_id: text(&data, "call_id"),
                name: text(&data, "name"),
                arguments: text(&data, "arguments").unwrap_or_default(),
            })
        }
        "chat.failed" | "failed" => Told::Then(AnswerPart::Failed {
            message: text(&data(), "message").unwrap_or_else(|| "the answer failed".to_owned()),
        }),
        "listen" => Told::Then(AnswerPart::Listen),
        "unit.needed" => Told::Then(AnswerPart::NeedsUnit),
        _ => return None,
    })
}

/// A piece of an answer and where its audio ends, in ms since the answer's began.
pub(super) fn spoken(signal: &Signal) -> Option<(String, f64)> {
    let Signal::Named { name, data } = signal else { return None };
    let data: Value = (**name == *SPOKEN).then(|| serde_json::from_str(data).ok()).flatten()?;
    let until = data.get("until_ms")?.as_f64().filter(|ms| ms.is_finite())?;
    Some((data.get("text")?.as_str()?.to_owned(), until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_shape_of_the_chat_api() {
        let prompt = Prompt {
            instructions: Some("Be brief.".to_owned()),
            messages: vec![
                Message::User("Light!".to_owned()),
                Message::Call { call_id: "c".to_owned(), name: "light".to_owned(), arguments: "{}".to_owned() },
                Message::CallOutput { call_id: "c".to_owned(), output: "on".to_owned() },
            ],
            tools: vec![json!({"type": "function", "name": "light", "parameters": {"type": "object"}})],
            temperature: Some(0.5),
            audio: true,
            ..Prompt::default()
        };
        let Signal::Named { data, .. } = signal(&prompt) else { panic!("named") };
        let data: Value = serde_json::from_str(&data).unwrap();
        let roles: Vec<_> = data["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(
            data["tools"][0],
            json!({"type": "function", "function": {"name": "light", "parameters": {"type": "object"}}})
        );
        assert_eq!((&data["temperature"], data.get("max_tokens")), (&json!(0.5), None));
    }
}
