//! What a request for an answer asks for.

use omni_flow::{Payload, Signal};
use omni_flow_media::encode::ClipFormat;
use serde_json::{Map, Value, json};

use crate::api::fields::Fields;
use crate::api::speech::STOCK;
use crate::api::{Chat, Shared, audio};
use crate::door::HttpError;

/// A request that can be carried out.
#[derive(Debug)]
pub(super) struct Asked {
    /// What the graph is asked.
    pub(super) question: Payload,
    /// Words of it, for who counts none better.
    pub(super) words: u64,
    /// What is wanted.
    pub(super) text: bool,
    pub(super) audio: Option<ClipFormat>,
    /// The request has the stock `audio` object, and its answer the stock shape.
    pub(super) stock: bool,
    pub(super) stream: bool,
    pub(super) usage: bool,
    pub(super) metrics: bool,
}

/// Options of the draw, which a prompt carries under the same names.
const DRAW: [&str; 6] = ["temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed"];

fn bad(name: &str, what: impl std::fmt::Display) -> HttpError {
    HttpError::bad(format!("`{name}` {what}")).about(name)
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// 400, 404 of another model.
    pub(super) fn read(api: &Shared, mut map: Map<String, Value>, ends: &Chat) -> Result<Self, HttpError> {
        match map.remove("extra_body") {
            None | Some(Value::Null) => {}
            // What stands beside it wins.
            Some(Value::Object(more)) => {
                for (key, value) in more {
                    map.entry(key).or_insert(value);
                }
            }
            Some(_) => return Err(bad("extra_body", "must be an object")),
        }
        let f = Fields(&map);
        api.model(f.text("model")?)?;
        let (mut text, mut speaks) = (true, false);
        if let Some(list) = f.list("modalities")? {
            let is = |name: &str| list.iter().any(|m| m == name);
            (text, speaks) = (is("text"), is("audio"));
            if list.is_empty() || list.iter().any(|m| m != "text" && m != "audio") {
                return Err(bad("modalities", "must be a list of `text` and `audio`"));
            }
        }
        if speaks && ends.speaker.is_none() {
            return Err(bad("modalities", "asks for audio, and this graph does not speak"));
        }
        let object = f.object("audio")?;
        let own = Map::new();
        let sound = Fields(object.unwrap_or(&own));
        let format = audio::format(sound.text("format")?.unwrap_or("wav"), "audio.format")?;
        voice(api, sound.get("voice"))?;
        let stream = f.flag("stream")?.unwrap_or(false);
        if stream && speaks {
            audio::streams(format, "audio.format")?;
        }
        if f.whole("n", 1)?.is_some_and(|n| n != 1) {
            return Err(bad("n", "must be 1: a graph gives one answer"));
        }
        if f.flag("logprobs")? == Some(true) {
            return Err(bad("logprobs", "are not available"));
        }
        if f.object("response_format")?.is_some_and(|o| o.get("type").is_some_and(|t| t != "text")) {
            return Err(bad("response_format", "must be `text`: nothing here holds an answer to a schema"));
        }
        f.object("chat_template_kwargs")?;
        let usage = Fields(f.object("stream_options")?.unwrap_or(&own)).flag("include_usage")?.unwrap_or(false);
        let messages = messages(f)?;
        let words = messages.iter().map(|m| words(m["content"].as_str().unwrap_or_default())).sum();
        let question = if ends.prompts {
            let prompt = prompt(f, messages, speaks, sound.get("voice").cloned())?;
            Payload::Signal(Signal::Named { name: "chat.prompt".into(), data: prompt.to_string().into() })
        } else {
            let last = messages.iter().rev().find(|m| m["role"] == "user").and_then(|m| m["content"].as_str());
            let last =
                last.filter(|t| !t.trim().is_empty()).ok_or_else(|| bad("messages", "hold nothing to answer"))?;
            Payload::Text(last.to_owned().into())
        };
        Ok(Self {
            question,
            words,
            text,
            audio: speaks.then_some(format),
            stock: object.is_some(),
            stream,
            usage,
            metrics: f.flag("return_stage_metrics")?.unwrap_or(false),
        })
    }
}

/// Words of a text.
pub(super) fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// The voice is one of the graph, or a name that clients must give and that means it.
fn voice(api: &Shared, voice: Option<&Value>) -> Result<(), HttpError> {
    let Some(voice) = voice else { return Ok(()) };
    let name = voice.as_str().or_else(|| voice.get("id").and_then(Value::as_str));
    let name = name.ok_or_else(|| bad("audio.voice", "must be a string"))?;
    if STOCK.contains(&name) || api.config.voices.iter().any(|v| v == name) {
        return Ok(());
    }
    let shown: String = name.chars().take(64).collect();
    let some: Vec<&str> = api.config.voices.iter().map(String::as_str).chain(["default"]).take(8).collect();
    Err(bad("audio.voice", format!("`{shown}` does not exist; there are {}", some.join(", "))))
}

/// The conversation, with its contents as text.
fn messages(f: Fields<'_>) -> Result<Vec<Value>, HttpError> {
    let list =
        f.list("messages")?.filter(|l| !l.is_empty()).ok_or_else(|| bad("messages", "must be a list of messages"))?;
    let mut out = Vec::with_capacity(list.len());
    for (i, message) in list.iter().enumerate() {
        let at = format!("messages[{i}]");
        let object = message.as_object().ok_or_else(|| bad(&at, "must be an object"))?;
        let role = match object.get("role").and_then(Value::as_str) {
            Some("developer") => "system",
            Some(role @ ("system" | "user" | "assistant" | "tool")) => role,
            _ => return Err(bad(&format!("{at}.role"), "must be system, developer, user, assistant or tool")),
        };
        let mut told = json!({"role": role, "content": content(object.get("content"), &at)?});
        let calls = object.get("tool_calls").filter(|v| !v.is_null());
        if let Some(calls) = calls {
            let shaped = |c: &Value| {
                c["id"].is_string() && c["function"]["name"].is_string() && c["function"]["arguments"].is_string()
            };
            if role != "assistant" || !calls.as_array().is_some_and(|l| l.iter().all(shaped)) {
                return Err(bad(
                    &format!("{at}.tool_calls"),
                    "must be calls of an assistant: `id`, `function.name` and `function.arguments`",
                ));
            }
            told["tool_calls"] = calls.clone();
        }
        if role == "tool" {
            let id = object.get("tool_call_id").and_then(Value::as_str);
            told["tool_call_id"] = id.ok_or_else(|| bad(&format!("{at}.tool_call_id"), "must name the call"))?.into();
        }
        out.push(told);
    }
    Ok(out)
}

fn content(content: Option<&Value>, at: &str) -> Result<String, HttpError> {
    let name = format!("{at}.content");
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut texts = Vec::with_capacity(parts.len());
            for part in parts {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
                match (kind, text) {
                    ("text" | "refusal", Some(text)) => texts.push(text),
                    ("image_url" | "audio_url" | "input_audio" | "video_url" | "file", _) => {
                        return Err(bad(&name, format!("has a part `{kind}`, and this graph reads text only")));
                    }
                    _ => return Err(bad(&name, "must be text, or a list of parts of type `text`")),
                }
            }
            Ok(texts.join("\n"))
        }
        Some(_) => Err(bad(&name, "must be text, or a list of parts")),
    }
}

/// The question as a node reads it.
fn prompt(f: Fields<'_>, messages: Vec<Value>, audio: bool, voice: Option<Value>) -> Result<Value, HttpError> {
    let mut prompt = json!({"messages": messages, "audio": audio});
    let own = Map::new();
    // An entry of the list is all that is said to its stage; the model is the first.
    let first = match f.list("sampling_params_list")? {
        None => None,
        Some(list) => {
            let objects = list.iter().map(Value::as_object).collect::<Option<Vec<_>>>();
            let objects = objects.ok_or_else(|| bad("sampling_params_list", "must be a list of objects"))?;
            Some(objects.first().map_or(&own, |o| *o))
        }
    };
    let draw = Fields(first.unwrap_or(f.0));
    draw.number("temperature", 0.0, 10.0)?;
    draw.number("top_p", f64::MIN_POSITIVE, 1.0)?;
    draw.whole("max_tokens", 1)?;
    draw.whole("max_completion_tokens", 1)?;
    draw.whole("seed", 0)?;
    for name in DRAW {
        if let Some(value) = draw.get(name) {
            let name = if name == "max_completion_tokens" { "max_tokens" } else { name };
            prompt[name] = value.clone();
        }
    }
    if let Some(stop) = draw.get("stop") {
        let list = if stop.is_string() { vec![stop.clone()] } else { stop.as_array().cloned().unwrap_or_default() };
        if list.is_empty() || list.len() > 16 || !list.iter().all(Value::is_string) {
            return Err(bad("stop", "must be a string or a list of 1 to 16"));
        }
        prompt["stop"] = list.into();
    }
    if let Some(tools) = f.list("tools")? {
        let named =
            |t: &Value| t["type"] == "function" && t["function"]["name"].as_str().is_some_and(|n| !n.is_empty());
        if !tools.iter().all(named) {
            return Err(bad("tools", "must be functions with a name"));
        }
        prompt["tools"] = tools.clone().into();
    }
    if let Some(choice) = f.get("tool_choice") {
        prompt["tool_choice"] = choice.clone();
    }
    if let Some(voice) = voice {
        prompt["voice"] = voice;
    }
    Ok(prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Vec<Value>, HttpError> {
        messages(Fields(body.as_object().unwrap()))
    }

    #[test]
    fn contents_become_text_and_what_is_none_is_refused() {
        let said = read(json!({"messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
        ]}))
        .unwrap();
        let contents: Vec<_> = said.iter().map(|m| m["content"].as_str().unwrap()).collect();
        assert_eq!(contents, ["Be brief.", "One\ntwo", "", "4"]);
        assert_eq!((&said[0]["role"], &said[2]["tool_calls"][0]["id"]), (&json!("system"), &json!("c")));
        for wrong in [
            json!([]),
            json!([1]),
            json!([{"role": "nobody", "content": "x"}]),
            json!([{"role": "user", "content": 3}]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
            json!([{"role": "user", "content": [{"type": "text"}]}]),
            json!([{"role": "tool", "content": "4"}]),
            json!([{"role": "assistant", "tool_calls": [{"id": "c"}]}]),
            json!([{"role": "user", "content": "x", "tool_calls": []}]),
        ] {
            assert_eq!(read(json!({"messages": wrong})).unwrap_err().status().as_u16(), 400, "{wrong}");
        }
    }

    #[test]
    fn a_question_has_the_options_of_its_request() {
        let ask = |more: Value| {
            let mut body = json!({"temperature": 0.5, "max_completion_tokens": 9, "stop": "x", "tools": [
                {"type": "function", "function": {"name": "f"}}]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            prompt(Fields(body.as_object().unwrap()), vec![json!({"role": "user", "content": "Hi"})], false, None)
        };
        let plain = ask(json!({})).unwrap();
        assert_eq!((&plain["max_tokens"], &plain["stop"], &plain["audio"]), (&json!(9), &json!(["x"]), &json!(false)));
        let listed = ask(json!({"sampling_params_list": [{"temperature": 0.0}, {}]})).unwrap();
        assert_eq!((&listed["temperature"], listed.get("max_tokens")), (&json!(0.0), None));
        for wrong in [
            json!({"temperature": -1}),
            json!({"top_p": 0}),
            json!({"stop": [1]}),
            json!({"max_tokens": 0}),
            json!({"seed": -1}),
            json!({"tools": [{}]}),
            json!({"sampling_params_list": [3]}),
            json!({"sampling_params_list": [{"temperature": "hot"}]}),
        ] {
            assert_eq!(ask(wrong.clone()).unwrap_err().status().as_u16(), 400, "{wrong}");
        }
    }
}
