//! The realtime protocol: one session of spoken conversation over one socket at a time.
//!
//! [`rules`] decides, and neither waits, reads a clock nor touches a socket.

pub mod rules;
