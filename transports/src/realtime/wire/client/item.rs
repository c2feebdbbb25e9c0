//! Item events: create, retrieve, delete, truncate.

use serde_json::{Map, Value};

use crate::realtime::config::format::{FormatSpec, read_rate};
use crate::realtime::wire::client::append::{MOST_IMAGE_CHARS, looks_like_image};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::fields::Fields;
use crate::realtime::wire::server::item::{ItemStatus, Role};

/// One part of a message that a client writes.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPart {
    /// Text: `input_text`, and `output_text` or `text` of an earlier answer.
    Text(String),
    /// Audio: `input_audio`, and `output_audio` or `audio` of an earlier answer.
    Audio {
        /// Base64 audio, not decoded. Absent only together with a transcript.
        audio: Option<String>,
        /// The format named on the part.
        format: Option<FormatSpec>,
        /// The rate named on the part, in Hz.
        rate_hz: Option<u32>,
        /// What was said, as the client knows it.
        transcript: Option<String>,
    },
    /// A picture, as a data URL of a JPEG or PNG that is not decoded.
    Image {
        /// The whole URL.
        image_url: String,
    },
}

/// What an item is.
#[derive(Clone, Debug, PartialEq)]
pub enum NewKind {
    /// A message.
    Message {
        /// Who says it.
        role: Role,
        /// Its parts, possibly none.
        content: Vec<NewPart>,
    },
    /// A call, as a client writes it when it restores a conversation.
    FunctionCall {
        /// The call's id.
        call_id: String,
        /// The function.
        name: String,
        /// Its arguments, JSON text.
        arguments: String,
    },
    /// The result of a call.
    FunctionCallOutput {
        /// The call it answers.
        call_id: String,
        /// The result as text.
        output: String,
    },
}

/// `conversation.item.create`.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemCreate {
    /// The id the client gives, if any.
    pub id: Option<String>,
    /// Its status; `completed` where the client gives none.
    pub status: ItemStatus,
    /// What it is.
    pub kind: NewKind,
    /// The item it is to stand behind, as given (`root` is the beginning).
    pub previous_item_id: Option<String>,
}

impl ItemCreate {
    /// Reads the event.
    ///
    /// # Errors
    /// `bad_event`, `unsupported_audio_format` or `invalid_function_call_output`.
    pub fn read(f: &mut Fields) -> Result<Self, Refusal> {
        let previous_item_id = f.id("previous_item_id")?;
        let mut item = f.need_object("item")?;
        let id = item.id("id")?.filter(|id| !id.is_empty());
        let status = match item.string("status")?.as_deref() {
            None | Some("completed") => ItemStatus::Completed,
            Some("in_progress") => ItemStatus::InProgress,
            Some("incomplete") => ItemStatus::Incomplete,
            Some(_) => {
                let message = "an item's status is completed, in_progress or incomplete";
                return Err(Refusal::bad("item.status", message));
            }
        };
        let kind = match item.string("type")?.as_deref() {
            None | Some("message") => message(&mut item)?,
            Some("function_call") => NewKind::FunctionCall {
                call_id: item.need_string("call_id")?,
                name: item.need_string("name")?,
                arguments: item.need_string("arguments")?,
            },
            Some("function_call_output") => {
                let output = |refusal: Refusal| refusal.under(Code::InvalidFunctionCallOutput);
                NewKind::FunctionCallOutput {
                    call_id: item.need_string("call_id").map_err(output)?,
                    output: item.need_string("output").map_err(output)?,
                }
            }
            Some(_) => {
                let message = "an item is a message, a function_call or a function_call_output";
                return Err(Refusal::bad("item.type", message));
            }
        };
        Ok(Self { id, status, kind, previous_item_id })
    }
}

fn message(item: &mut Fields) -> Result<NewKind, Refusal> {
    let role = match item.string("role")?.as_deref() {
        None | Some("user") => Role::User,
        Some("system") => Role::System,
        Some("assistant") => Role::Assistant,
        Some(_) => return Err(Refusal::bad("item.role", "a role is user, system or assistant")),
    };
    let parts = item.list("content")?.unwrap_or_default();
    let content = parts.into_iter().enumerate().map(|(i, p)| part(i, p)).collect::<Result<_, _>>()?;
    Ok(NewKind::Message { role, content })
}

fn part(index: usize, value: Value) -> Result<NewPart, Refusal> {
    let path = format!("item.content[{index}]");
    let Value::Object(map) = value else {
        return Err(Refusal::bad(path, "a content part is an object with a type"));
    };
    let mut f = Fields::at(path, map);
    match f.need_string("type")?.as_str() {
        "input_text" | "output_text" | "text" => Ok(NewPart::Text(f.need_string("text")?)),
        "input_audio" | "output_audio" | "audio" => {
            let audio = f.string("audio")?;
            let transcript = f.string("transcript")?;
            if audio.is_none() && transcript.is_none() {
                return Err(Refusal::bad(f.path("audio"), "an audio part needs base64 audio"));
            }
            let format = f.value("format").map(|v| FormatSpec::parse(&v, &f.path("format"))).transpose()?;
            let rate_hz = f.value("sample_rate_hz").map(|v| read_rate(&v, &f.path("sample_rate_hz"))).transpose()?;
            Ok(NewPart::Audio { audio, format, rate_hz, transcript })
        }
        "input_image" => {
            let image_url = f.need_string("image_url")?;
            let base64 = ["data:image/jpeg;base64,", "data:image/jpg;base64,", "data:image/png;base64,"]
                .iter()
                .find_map(|prefix| image_url.strip_prefix(prefix));
            match base64 {
                Some(base64) if base64.len() > MOST_IMAGE_CHARS => {
                    let message = "an image may have at most 4000000 base64 characters; send it smaller";
                    Err(Refusal::bad(f.path("image_url"), message))
                }
                Some(base64) if looks_like_image(base64) => Ok(NewPart::Image { image_url }),
                _ => Err(Refusal::bad(f.path("image_url"), "an image is a data URL of a base64 JPEG or PNG")),
            }
        }
        _ => {
            let message = "a content part is input_text, input_audio, input_image, output_text or output_audio";
            Err(Refusal::bad(f.path("type"), message))
        }
    }
}

/// The id of the item an event is about.
///
/// # Errors
/// `missing_item_id` if there is none, `bad_event` for another type.
pub fn item_id(f: &mut Fields) -> Result<String, Refusal> {
    match f.id("item_id")? {
        Some(id) if !id.is_empty() => Ok(id),
        _ => Err(Refusal::new(Code::MissingItemId, "name the item in `item_id`").about(f.path("item_id"))),
    }
}

/// `conversation.item.truncate`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncate {
    /// The item to cut.
    pub item_id: String,
    /// The part to cut.
    pub content_index: u64,
    /// Where, in ms of its audio, rounded down.
    pub audio_end_ms: u64,
    /// The request as it came, which the reply carries, without fields that are not known.
    pub request: Map<String, Value>,
}

impl Truncate {
    /// Reads the event, whose `type` has been taken already; the request gets the canonical one.
    ///
    /// # Errors
    /// `missing_item_id` or `bad_event`.
    pub fn read(f: &mut Fields) -> Result<Self, Refusal> {
        let mut request = f.clone().rest();
        request.retain(|name, _| ["item_id", "content_index", "audio_end_ms"].contains(&name.as_str()));
        request.insert("type".to_owned(), "conversation.item.truncate".into());
        let item_id = item_id(f)?;
        let content_index = f.integer("content_index")?.unwrap_or(0);
        let Some(end) = f.length("audio_end_ms")? else {
            return Err(Refusal::bad(f.path("audio_end_ms"), "`audio_end_ms` is required: where to cut, in ms"));
        };
        Ok(Self { item_id, content_index, audio_end_ms: end as u64, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn top(value: Value) -> Fields {
        match value {
            Value::Object(map) => Fields::top(map),
            _ => panic!("not an object"),
        }
    }
    fn create(item: Value) -> Result<ItemCreate, Refusal> {
        ItemCreate::read(&mut top(json!({ "item": item })))
    }

    #[test]
    fn an_empty_item_is_an_empty_message_of_the_user() {
        let item = create(json!({})).unwrap();
        assert_eq!((item.id, item.status), (None, ItemStatus::Completed));
        assert_eq!(item.kind, NewKind::Message { role: Role::User, content: vec![] });
    }

    #[test]
    fn all_parts_are_read() {
        let item = create(json!({"id": "a", "role": "assistant", "status": "incomplete", "content": [
            {"type": "input_text", "text": "t"},
            {"type": "output_text", "text": "o"},
            {"type": "input_audio", "audio": "AA==", "format": "g711_ulaw", "sample_rate_hz": 8000},
            {"type": "output_audio", "transcript": "said"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        ]}))
        .unwrap();
        let NewKind::Message { role, content } = item.kind else { panic!("not a message") };
        assert_eq!((item.id.as_deref(), item.status, role), (Some("a"), ItemStatus::Incomplete, Role::Assistant));
        assert_eq!(content.len(), 5);
        assert!(matches!(&content[2], NewPart::Audio { rate_hz: Some(8000), format: Some(_), .. }));
        assert!(matches!(&content[3], NewPart::Audio { audio: None, transcript: Some(t), .. } if t == "said"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let image = format!("data:image/png;base64,iVBORw0KGgo{}", "A".repeat(MOST_IMAGE_CHARS));
        for (item, code, param) in [
            (json!(1), Code::BadEvent, "item"),
            (json!({"id": 1}), Code::BadEvent, "item.id"),
            (json!({"id": "x".repeat(1025)}), Code::BadEvent, "item.id"),
            (json!({"type": "mcp_call"}), Code::BadEvent, "item.type"),
            (json!({"role": "tool"}), Code::BadEvent, "item.role"),
            (json!({"status": "done"}), Code::BadEvent, "item.status"),
            (json!({"content": "hello"}), Code::BadEvent, "item.content"),
            (json!({"content": ["hello"]}), Code::BadEvent, "item.content[0]"),
            (json!({"content": [{"text": "x"}]}), Code::BadEvent, "item.content[0].type"),
            (json!({"content": [{"type": "smell"}]}), Code::BadEvent, "item.content[0].type"),
            (json!({"content": [{"type": "input_text", "text": 1}]}), Code::BadEvent, "item.content[0].text"),
            (json!({"content": [{"type": "input_audio"}]}), Code::BadEvent, "item.content[0].audio"),
            (
                json!({"content": [{"type": "input_audio", "audio": "", "format": "mp3"}]}),
                Code::UnsupportedAudioFormat,
                "item.content[0].format",
            ),
            (
                json!({"content": [{"type": "input_image", "image_url": "http://x/y.png"}]}),
                Code::BadEvent,
                "item.content[0].image_url",
            ),
            (
                json!({"content": [{"type": "input_image", "image_url": image}]}),
                Code::BadEvent,
                "item.content[0].image_url",
            ),
            (json!({"type": "function_call_output", "output": "x"}), Code::InvalidFunctionCallOutput, "item.call_id"),
            (
                json!({"type": "function_call_output", "call_id": "c", "output": {"a": 1}}),
                Code::InvalidFunctionCallOutput,
                "item.output",
            ),
            (json!({"type": "function_call", "call_id": "c", "name": "n"}), Code::BadEvent, "item.arguments"),
        ] {
            let refusal = create(item.clone()).unwrap_err();
            assert_eq!((refusal.code, refusal.param.as_deref()), (code, Some(param)), "{param}");
        }
    }

    #[test]
    fn a_truncate_carries_its_request_and_refuses_nonsense() {
        let got = Truncate::read(&mut top(json!({"item_id": "i", "audio_end_ms": 450.9, "junk": "e"}))).unwrap();
        assert_eq!((got.item_id.as_str(), got.content_index, got.audio_end_ms), ("i", 0, 450));
        assert_eq!(got.request["type"], "conversation.item.truncate");
        assert_eq!(got.request["audio_end_ms"], 450.9);
        assert!(!got.request.contains_key("junk"));
        for (event, code, param) in [
            (json!({"audio_end_ms": 1}), Code::MissingItemId, "item_id"),
            (json!({"item_id": "", "audio_end_ms": 1}), Code::MissingItemId, "item_id"),
            (json!({"item_id": 4, "audio_end_ms": 1}), Code::BadEvent, "item_id"),
            (json!({"item_id": "i"}), Code::BadEvent, "audio_end_ms"),
            (json!({"item_id": "i", "audio_end_ms": -1}), Code::BadEvent, "audio_end_ms"),
            (json!({"item_id": "i", "audio_end_ms": true}), Code::BadEvent, "audio_end_ms"),
            (json!({"item_id": "i", "audio_end_ms": 1, "content_index": -1}), Code::BadEvent, "content_index"),
        ] {
            let refusal = Truncate::read(&mut top(event)).unwrap_err();
            assert_eq!((refusal.code, refusal.param.as_deref()), (code, Some(param)));
        }
    }
}
