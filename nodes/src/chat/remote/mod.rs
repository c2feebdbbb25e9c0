//! Chat with any OpenAI-compatible server (`POST {base_url}/chat/completions`, streamed).
//!
//! Promises: every wait has a deadline, every line a bound, retries happen only before the first token, an answer is
//! either ended by an event or by a typed error, and dropping the stream ends the request. The key is read from an
//! environment variable and appears in no error or log.

mod calls;
mod client;
mod error;
mod sse;

pub(crate) use client::address;
pub use client::{RemoteChat, RemoteConfig, RemoteEvent, RemoteStream};
pub use error::{RemoteError, Stage};
pub use sse::{SseError, SseParser};
