//! Carriers and front doors of omni-flow.
//!
//! This crate is empty so far: every graph runs in one process, and its client is the program that embeds the engine or
//! the `omni-flow` command. Carriers between processes and machines (shared memory, QUIC) and front doors (WebSocket, HTTP,
//! WebTransport) come later and belong here, so that the engine never names a protocol. Until then the keys of graph
//! files that need them are known and refused.
#![warn(missing_docs)]
