//! The seam between this crate and a libopus: two small traits, and the choice at build time.
//!
//! Implementations get legal packets and buffers of the right size only; they report libopus error codes as they are.

use super::Application;

#[cfg(feature = "libopus")]
#[path = "system.rs"]
mod chosen;
#[cfg(not(feature = "libopus"))]
#[path = "port.rs"]
mod chosen;

/// An error code of libopus (negative), with the call it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with libopus code {code}")]
pub struct BackendError {
    /// The operation that failed.
    pub call: &'static str,
    /// libopus code, or [`BackendError::CRASHED`].
    pub code: i32,
}

impl BackendError {
    /// Stands for a defect inside the codec that was contained; its state has been made anew.
    pub const CRASHED: i32 = -1000;
}

/// One setting of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Bits per second.
    Bitrate(i32),
    /// 0 to 10.
    Complexity(i32),
    /// Variable bit rate.
    Vbr(bool),
    /// In-band FEC.
    Fec(bool),
    /// Loss to prepare for, in percent.
    ExpectedLoss(i32),
    /// Discontinued transmission.
    Dtx(bool),
}

/// An encoder of one stream.
pub trait EncoderBackend: Send {
    /// Applies a setting.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn set(&mut self, setting: Setting) -> Result<(), BackendError>;
    /// Frames at the encoder's rate by which its output lies behind its input.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn lookahead(&mut self) -> Result<usize, BackendError>;
    /// Encodes one frame (interleaved, a legal length) into `out` and returns the packet's size.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn encode(&mut self, pcm: &[f32], out: &mut [u8]) -> Result<usize, BackendError>;
    /// Forgets all history.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn reset(&mut self) -> Result<(), BackendError>;
}

/// A decoder of one stream.
pub trait DecoderBackend: Send {
    /// Decodes a packet into exactly `pcm.len()` interleaved samples. An empty packet asks for concealment; `fec` asks for
    /// the copy of the time before the packet. Returns frames per channel.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn decode(&mut self, packet: &[u8], pcm: &mut [f32], fec: bool) -> Result<usize, BackendError>;
    /// Forgets all history.
    ///
    /// # Errors
    /// [`BackendError`] with what the codec says.
    fn reset(&mut self) -> Result<(), BackendError>;
}

/// Name of the backend that was built in.
pub const NAME: &str = chosen::NAME;

/// What the codec calls itself, with its version.
pub fn version() -> &'static str {
    chosen::version()
}

/// A new encoder; rate and channels have been checked.
pub(super) fn encoder(
    rate: u32,
    channels: u8,
    application: Application,
) -> Result<Box<dyn EncoderBackend>, BackendError> {
    Ok(Box::new(chosen::Encoder::new(rate, channels, application)?))
}

/// A new decoder; rate and channels have been checked.
pub(super) fn decoder(rate: u32, channels: u8) -> Result<Box<dyn DecoderBackend>, BackendError> {
    Ok(Box::new(chosen::Decoder::new(rate, channels)?))
}
