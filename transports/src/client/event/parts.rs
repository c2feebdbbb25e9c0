//! What events are made of.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A null where an object or a list may be is an empty one.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// Part of an item's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ContentPart {
    /// `audio`, `output_audio`, `input_audio`, `text`, `output_text` or `input_text`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Text.
    pub text: Option<String>,
    /// What is said.
    pub transcript: Option<String>,
}

/// One item of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Item {
    /// Its name.
    #[serde(default)]
    pub id: String,
    /// `message`, `function_call` or `function_call_output`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Who speaks.
    pub role: Option<String>,
    /// Where it stands.
    pub status: Option<String>,
    /// Its content.
    #[serde(default, deserialize_with = "or_empty")]
    pub content: Vec<ContentPart>,
    /// Of a function call.
    pub call_id: Option<String>,
    /// Of a function call.
    pub name: Option<String>,
    /// Of a function call: JSON text.
    pub arguments: Option<String>,
    /// Of a function's output.
    pub output: Option<String>,
}

impl Item {
    /// All that it says, in words.
    pub fn words(&self) -> String {
        self.content.iter().filter_map(|p| p.transcript.as_deref().or(p.text.as_deref())).collect()
    }
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Made.
    #[serde(default)]
    pub output_tokens: u64,
    /// Both.
    #[serde(default)]
    pub total_tokens: u64,
}

/// A response as `response.created` and `response.done` show it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ResponseInfo {
    /// Its name.
    pub id: String,
    /// `in_progress`, `completed`, `cancelled`, `incomplete` or `failed`.
    #[serde(default)]
    pub status: String,
    /// Why it is not complete.
    pub status_details: Option<Value>,
    /// Its items.
    #[serde(default, deserialize_with = "or_empty")]
    pub output: Vec<Item>,
    /// What it took.
    pub usage: Option<Usage>,
    /// Notes: the client's, and in the duplex profile ours.
    #[serde(default, deserialize_with = "or_empty")]
    pub metadata: Map<String, Value>,
}
