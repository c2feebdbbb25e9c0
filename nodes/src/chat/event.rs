//! What is told of an answer beside its text: calls of tools, its end, and why there is none.
//!
//! Each is JSON in a signal of its name. A call is told in any number of pieces and one end, an answer has exactly one
//! [`Done`] or [`Failed`] unless a fence took it.

use serde::{Deserialize, Serialize};

use super::slot::{FinishReason, Usage};

/// Something of an answer that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// A piece or the end of a tool call.
    Call(CallEvent),
    /// The answer is whole.
    Done(Done),
    /// There is no answer, or not all of it. The conversation can go on.
    Failed(Failed),
}

/// A piece of a tool call (`arguments_delta`), or its end (`done`, with all of `arguments`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEvent {
    /// Number of the call in its answer, from 0.
    pub index: usize,
    /// Its name in the conversation; `null` in a malformed one.
    pub call_id: Option<String>,
    /// The tool; `null` if a malformed call names none.
    pub name: Option<String>,
    /// More of the arguments, JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_delta: Option<String>,
    /// All arguments: the text of a JSON object, or of a malformed call whatever came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The call is over.
    pub done: bool,
    /// Set if it cannot be carried out: what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The end of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: String,
    /// What it cost, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenCounts>,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that did not have to be computed.
    pub cached_tokens: usize,
    /// Of the answer.
    pub completion_tokens: usize,
}

/// Why there is no answer, or not all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// `invalid_prompt`, `context_too_long`, `template_failed`, `model_failed`, or of a server `unreachable`,
    /// `unauthorized`, `not_found`, `rate_limited`, `server_failed`, `refused`, `timeout`, `malformed_stream`.
    pub code: String,
    /// The same in words.
    pub message: String,
}

impl Done {
    /// The end of an answer that called tools or not.
    pub fn new(reason: FinishReason, called: bool, usage: Option<Usage>) -> Self {
        let finish_reason = match reason {
            FinishReason::Length => "length",
            _ if called => "tool_calls",
            _ => "stop",
        };
        let usage = usage.map(|u| TokenCounts {
            prompt_tokens: u.prompt,
            cached_tokens: u.cached,
            completion_tokens: u.completion,
        });
        Self { finish_reason: finish_reason.to_owned(), usage }
    }
}

impl ChatEvent {
    /// The names of the signals.
    pub const NAMES: [&'static str; 3] = ["chat.call", "chat.done", "chat.failed"];

    /// The name of its signal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Call(_) => Self::NAMES[0],
            Self::Done(_) => Self::NAMES[1],
            Self::Failed(_) => Self::NAMES[2],
        }
    }

    /// The data of its signal.
    pub fn to_json(&self) -> String {
        let json = match self {
            Self::Call(e) => serde_json::to_string(e),
            Self::Done(e) => serde_json::to_string(e),
            Self::Failed(e) => serde_json::to_string(e),
        };
        // Texts and numbers alone: nothing can fail to be written.
        json.unwrap_or_default()
    }

    /// Reads a signal; `None` if it is of another name.
    ///
    /// # Errors
    /// If the data is not what the name says.
    pub fn parse(name: &str, json: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match name {
            "chat.call" => serde_json::from_str(json).map(Self::Call),
            "chat.done" => serde_json::from_str(json).map(Self::Done),
            "chat.failed" => serde_json::from_str(json).map(Self::Failed),
            _ => return None,
        })
    }
}

/// Names for calls that have none, unlike all names in the conversation.
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    next: u64,
    taken: Vec<String>,
}

impl CallIds {
    /// Keeps clear of these from now on. Those of earlier prompts are not kept, those given out are never given again.
    pub fn avoid<'a>(&mut self, taken: impl IntoIterator<Item = &'a str>) {
        self.taken = taken.into_iter().map(str::to_owned).collect();
    }
    /// A new one.
    pub fn fresh(&mut self) -> String {
        loop {
            self.next += 1;
            let id = format!("call_{}", self.next);
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_back_as_written() {
        let call = CallEvent { call_id: Some("c".into()), name: Some("f".into()), ..CallEvent::default() };
        let all = [
            ChatEvent::Call(CallEvent { arguments_delta: Some("{\"a\"".into()), ..call.clone() }),
            ChatEvent::Call(CallEvent { arguments: Some("{}".into()), done: true, ..call }),
            ChatEvent::Call(CallEvent { arguments: Some("{".into()), error: Some("x".into()), ..CallEvent::default() }),
            ChatEvent::Done(Done::new(FinishReason::End, true, Some(Usage { prompt: 3, cached: 1, completion: 2 }))),
            ChatEvent::Failed(Failed { code: "timeout".into(), message: "late".into() }),
        ];
        for event in all {
            assert_eq!(ChatEvent::parse(event.name(), &event.to_json()).unwrap().unwrap(), event);
        }
        assert!(ChatEvent::parse("chat.prompt", "{}").is_none());
        assert!(ChatEvent::parse("chat.call", "[]").unwrap().is_err());
    }

    #[test]
    fn names_are_never_given_twice() {
        let mut ids = CallIds::default();
        ids.avoid(["call_2", "other"]);
        assert_eq!([ids.fresh(), ids.fresh()], ["call_1", "call_3"]);
        ids.avoid(["call_1"]);
        assert_eq!(ids.fresh(), "call_4");
    }
}
