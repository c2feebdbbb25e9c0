//! The Realtime protocol, without I/O and without a clock.
//!
//! [`wire`] reads what clients send and shapes what they are sent; [`config`] holds what a session was asked to be.

pub mod config;
pub mod wire;
