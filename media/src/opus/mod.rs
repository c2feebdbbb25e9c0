//! Opus: packets, encoder, decoder, and the receiver that keeps the timeline of a lossy stream.
//!
//! The codec itself is libopus: by default a pure Rust port of 1.3.1, without SIMD; with the feature `libopus` the C
//! library, which needs cmake to build and takes about a fifth less time (`benches/README.md`). Both sit behind
//! [`backend`], and nothing above knows which. Packets are parsed here first ([`PacketInfo`], RFC 6716 §3), so that an
//! illegal one never reaches the codec. All audio is interleaved `f32`, full scale 1.0. Mono and stereo; streams of
//! more channels (multistream) are not decoded.

pub mod backend;
mod decoder;
mod encoder;
mod packet;
mod receiver;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, OpusDecoder};
pub use encoder::{Application, EncodeError, EncoderConfig, OpusEncoder};
pub use packet::{Mode, PacketError, PacketInfo};
pub use receiver::{Fill, OpusReceiver, Received, ReceiverConfig, ReceiverStats, Unwrap};

/// Ticks per second of Opus time: timestamps and durations count at 48 kHz, whatever the rate of the audio.
pub const TICKS: u32 = 48_000;
/// The rates at which Opus encodes and decodes, in Hz.
pub const RATES: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];
/// Ticks of the shortest frame, 2.5 ms: concealment works in multiples of it.
pub const SHORTEST: u32 = 120;
/// Ticks of the longest packet, 120 ms.
pub const LONGEST: u32 = 5_760;
