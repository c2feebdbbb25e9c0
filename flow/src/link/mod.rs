//! A remote edge, without I/O: an edge whose two ends are in different processes.
//!
//! [`Sender`] and [`Receiver`] are pure state: frames in, frames out, no clock. The rules are those of an edge in memory:
//! bounded credit that the receiver grants, epochs as maxima, one terminal. [`bridge_tx`] and [`bridge_rx`] join them to
//! in-process edges over a [`Carrier`](crate::carrier::Carrier), so that a node notices no difference.
//!
//! All totals (sequence numbers, credit) count from the start of the lane's epoch: a fence makes every older debt void
//! on both sides at once, so that data cut on the way costs no credit and is no gap. On a lane that is never fenced they
//! are totals since the edge opened.

mod bridge;
mod frame;
mod receiver;
mod sender;
#[cfg(all(test, not(omni_loom)))]
mod tests;

pub use bridge::{bridge_rx, bridge_tx};
pub use frame::Frame;
pub use receiver::{Received, Receiver};
pub use sender::{Offer, Sender};
