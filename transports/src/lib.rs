//! Carriers and front doors of omni-flow.
//!
//! Here are, so far, the rules of the realtime protocol ([`realtime`]), without I/O. Carriers between processes and machines
//! (shared memory, QUIC) and the front doors themselves (WebSocket, HTTP, WebTransport) belong here too, so that the
//! engine never names a protocol. Until they come the keys of graph files that need them are known and refused.
#![warn(missing_docs)]

pub mod realtime;
