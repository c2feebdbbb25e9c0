//! Short programs that show one thing each. Run them with `cargo run -p omni-flow-examples --example NAME`:
//!
//! | example | shows |
//! |---|---|
//! | `hello_node` | a first own node, and a graph that uses it |
//! | `embed_engine` | a graph inside another program: chunks in and out by code, two sessions, an interruption |
//! | `custom_stage` | a model that all sessions share, one unit of work at a time |
//! | `voice_echo` | a client that speaks a recording to a Realtime server and keeps what comes back |
//! | `embed_axum` | a Realtime route inside somebody's own web service, behind a key |
//! | `inline_client` | the same client without a socket: the engine and its client in one process |
