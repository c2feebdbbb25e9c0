//! Carriers and front doors of omni-flow.
//!
//! [`realtime`] is the Realtime protocol as pure functions and structs: no socket, no clock, no engine. Carriers between
//! processes and machines (shared memory, QUIC) and the sockets themselves come later and belong here too, so that the
//! engine never names a protocol. Until then the keys of graph files that need them are known and refused.
#![warn(missing_docs)]

pub mod realtime;
