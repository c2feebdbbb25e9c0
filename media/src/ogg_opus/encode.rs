//! Samples into an Ogg Opus stream, with pre-skip and end trim so that it decodes to exactly the samples that went in.

use super::{OggOpusWriter, OpusHead, OpusTags};
use crate::opus::{EncodeError, EncoderConfig, OpusEncoder, PacketError, TICKS};

/// Why encoding failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OggEncodeError {
    /// The settings, or the codec.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The codec made a packet that cannot be written.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

/// Streaming encoder.
#[derive(Debug)]
pub struct OggOpusEncoder {
    encoder: OpusEncoder,
    writer: OggOpusWriter,
    pre_skip: u16,
    frames: u64,
    waiting: Vec<f32>,
}

impl OggOpusEncoder {
    /// Begins a stream; the header pages can be taken at once.
    ///
    /// # Errors
    /// [`OggEncodeError::Encode`] if the settings are wrong.
    pub fn new(config: EncoderConfig, tags: &OpusTags, serial: u32, max_page_ms: u32) -> Result<Self, OggEncodeError> {
        let encoder = OpusEncoder::new(config)?;
        let config = encoder.config();
        let pre_skip = (encoder.lookahead() * TICKS as usize / config.rate as usize) as u16;
        let head = OpusHead { channels: config.channels, pre_skip, input_rate: config.rate, gain: 0 };
        let writer = OggOpusWriter::new(&head, tags, serial, max_page_ms);
        Ok(Self { encoder, writer, pre_skip, frames: 0, waiting: Vec::new() })
    }

    /// Takes interleaved samples, any number of whole frames.
    ///
    /// # Errors
    /// [`OggEncodeError`] if the codec itself fails; the stream cannot go on.
    pub fn push(&mut self, pcm: &[f32]) -> Result<(), OggEncodeError> {
        self.frames += (pcm.len() / usize::from(self.encoder.config().channels)) as u64;
        self.waiting.extend_from_slice(pcm);
        self.encode()
    }

    /// The bytes that are ready.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Encodes the rest and ends the stream.
    ///
    /// # Errors
    /// As [`OggOpusEncoder::push`].
    pub fn finish(mut self) -> Result<Vec<u8>, OggEncodeError> {
        let end = u64::from(self.pre_skip) + self.frames * u64::from(TICKS) / u64::from(self.encoder.config().rate);
        let frame = self.frame();
        while self.writer.granule() < end {
            self.waiting.resize(frame, 0.0);
            self.encode()?;
        }
        Ok(self.writer.finish(Some(end)))
    }

    fn encode(&mut self) -> Result<(), OggEncodeError> {
        let frame = self.frame();
        let mut done = 0;
        while let Some(pcm) = self.waiting.get(done..done + frame) {
            self.writer.packet(&self.encoder.encode(pcm)?)?;
            done += frame;
        }
        self.waiting.drain(..done);
        Ok(())
    }

    fn frame(&self) -> usize {
        self.encoder.config().frame_len() * usize::from(self.encoder.config().channels)
    }
}
