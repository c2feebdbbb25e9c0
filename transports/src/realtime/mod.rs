//! The Realtime protocol: one session of spoken conversation over one socket at a time.
//!
//! [`wire`] reads what clients send and shapes what they are sent; [`config`] holds what a session was asked to be;
//! [`rules`] decides. None of them waits, reads a clock or touches a socket.

pub mod config;
pub mod rules;
pub mod wire;
