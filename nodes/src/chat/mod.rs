//! Language models for conversations: in this process from a GGUF file, or on any OpenAI-compatible server.
//!
//! [`ChatModel`] is loaded once and shared; a [`ChatSlot`] is one conversation on it, advanced by bounded steps on the
//! thread of the caller, so that a scheduler decides who runs. [`remote`] speaks to servers. Nothing here knows the
//! engine. The network sits behind [`LanguageModel`].

mod attention;
pub mod call;
pub mod decoder;
pub mod error;
pub mod event;
pub mod gguf;
mod hermes;
pub mod history;
pub mod language;
mod matmul;
mod matrix;
pub mod message;
pub mod model;
pub mod prompt;
pub mod remote;
pub mod sampling;
mod sentencepiece;
pub mod slot;
pub mod stop;
pub mod template;
mod tensors;
pub mod tokenizer;
pub mod tool;
pub mod turns;
pub mod utf8;
pub mod weights;

pub use call::{CallFormat, CallParser, Malformed, Parsed};
pub use error::ChatError;
pub use event::{CallEvent, CallIds, ChatEvent, Done, Failed, TokenCounts};
pub use history::History;
pub use language::{ForwardError, KvState, LanguageModel};
pub use message::{Message, Role, ToolCall};
pub use model::{ChatModel, ChatOptions};
pub use prompt::{Prompt, PromptError};
pub use sampling::Sampling;
pub use slot::{ChatSlot, FinishReason, Step, Usage};
pub use template::Builtin;
pub use tool::{Tool, ToolChoice};
