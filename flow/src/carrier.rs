//! Carriers: how the frames of remote edges travel. The engine knows this trait and no transport.
//!
//! A carrier has two paths. Control (fences, limits, ends) is reliable and in order; so is the data of one epoch. Nothing
//! is promised between the paths: control may overtake data and data control. Data of an epoch that was fenced may be
//! cut. A peer that dies is noticed by the carrier itself, within a second, on both sides.

mod loopback;

pub use loopback::{Loopback, loopback};

use std::future::Future;

use crate::Epoch;
use crate::link::Frame;

/// The link is broken for good: the peer died, left, or cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CarrierLost {
    /// What happened, for people.
    pub reason: String,
}

/// One remote edge's connection to its other half.
///
/// Promises:
/// - Frames of the control path arrive in the order sent, each once, unless the carrier is lost.
/// - `Data` frames of one epoch arrive in order. One may arrive twice; none is missing unless its epoch was cut.
/// - Both paths are bounded: a send waits when its path is full. A full data path never holds up control.
/// - Once lost, it stays lost: every call fails, after the frames that had arrived were received.
/// - Dropping it tells the peer, which receives what was sent before.
pub trait Carrier: Send + Sync + 'static {
    /// Sends a frame, on the path that [`Frame::is_data`] names.
    ///
    /// # Errors
    /// [`CarrierLost`]; the frame may or may not have arrived.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the frame was not sent.
    fn send(&self, frame: Frame) -> impl Future<Output = Result<(), CarrierLost>> + Send;
    /// The next frame from the peer, of either path.
    ///
    /// # Errors
    /// [`CarrierLost`] once nothing more can arrive.
    ///
    /// # Cancel safety
    /// Dropped while waiting, no frame is lost.
    fn recv(&self) -> impl Future<Output = Result<Frame, CarrierLost>> + Send;
    /// Data of epochs before `epoch` is worthless: what was sent and has not arrived may be thrown away, and then all that
    /// follows it of its epoch is too, as when a stream is reset. Never waits.
    fn cut(&self, epoch: Epoch);
}
