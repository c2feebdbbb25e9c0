//! The Realtime protocol: one session of spoken conversation over one socket at a time.
//!
//! [`wire`] reads what clients send and shapes what they are sent; [`config`] holds what a session was asked to be;
//! [`rules`] decides
//! single questions, and [`machine`] is the session that asks them; [`outlet`]
//! numbers and keeps what it tells. None of these waits, reads a clock or
//! touches a socket. [`host`] runs sessions over graphs.

pub mod config;
pub mod host;
pub mod machine;
pub mod outlet;
pub mod rules;
pub mod wire;
