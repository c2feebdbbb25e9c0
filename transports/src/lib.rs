//! Carriers and front doors of omni-flow.
//!
//! [`realtime`] is the Realtime protocol: pure functions and structs, and hosts that run its sessions over graphs; [`door`]
//! puts WebSocket and HTTP in front of a host, [`api`] answers requests for speech, transcripts and chat; [`serve`] listens. `client` (feature `client`) is the other side: one client
//! over a socket or in process. Carriers between processes and machines (shared memory, QUIC) come later and
//! belong here too, so that the engine never names a protocol. Until then the keys of graph files that need them are known
//! and refused.
#![warn(missing_docs)]

pub mod api;
#[cfg(feature = "client")]
pub mod client;
pub mod door;
pub mod metrics;
mod page;
pub mod realtime;
pub mod serve;
