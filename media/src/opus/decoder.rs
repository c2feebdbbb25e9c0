//! The Opus decoder of one stream.
//!
//! Takes the duration from each packet, so that frame length, mode and coded channels may change at any packet. An
//! illegal packet is an error that leaves the decoder as it was, ready for the next good one.

use super::{
    LONGEST, PacketError, PacketInfo, RATES,
    backend::{self, BackendError, DecoderBackend},
};

/// Why a decoder could not be made or a packet not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Opus does not decode to this rate.
    #[error("Opus does not decode to {rate} Hz; decode to 8000, 12000, 16000, 24000 or 48000 Hz and resample")]
    Rate {
        /// The rate asked for, in Hz.
        rate: u32,
    },
    /// Neither mono nor stereo.
    #[error("Opus decoder gives 1 or 2 channels, not {channels}")]
    Channels {
        /// The count asked for.
        channels: u8,
    },
    /// A concealed span must be a multiple of 2.5 ms.
    #[error("a concealed span must be a multiple of {unit} frames (2.5 ms) up to 10 s, not {frames}")]
    Span {
        /// Frames asked for.
        frames: usize,
        /// Frames of 2.5 ms.
        unit: usize,
    },
    /// The packet breaks the framing rules; nothing was changed.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The codec refused the packet; it can go on with the next one.
    #[error(transparent)]
    Codec(#[from] BackendError),
}

/// A decoder of one stream.
pub struct OpusDecoder {
    rate: u32,
    channels: u8,
    backend: Box<dyn DecoderBackend>,
}

impl std::fmt::Debug for OpusDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpusDecoder")
            .field("rate", &self.rate)
            .field("channels", &self.channels)
            .finish_non_exhaustive()
    }
}

impl OpusDecoder {
    /// A decoder that gives `channels` (1 or 2) at `rate` Hz, one of [`RATES`], whatever the packets hold.
    ///
    /// # Errors
    /// [`DecodeError::Rate`], [`DecodeError::Channels`]; [`DecodeError::Codec`] if the codec cannot be made.
    pub fn new(rate: u32, channels: u8) -> Result<Self, DecodeError> {
        if !RATES.contains(&rate) {
            return Err(DecodeError::Rate { rate });
        }
        if !matches!(channels, 1 | 2) {
            return Err(DecodeError::Channels { channels });
        }
        Ok(Self { rate, channels, backend: backend::decoder(rate, channels)? })
    }

    /// Output rate in Hz.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Output channels.
    pub fn channels(&self) -> u8 {
        self.channels
    }

    /// Decodes one packet, appends its interleaved samples to `out`, and returns what the packet said of itself. On an
    /// error nothing is appended.
    ///
    /// # Errors
    /// [`DecodeError::Packet`]: treat the packet as lost; [`DecodeError::Codec`].
    pub fn decode(&mut self, packet: &[u8], out: &mut Vec<f32>) -> Result<PacketInfo, DecodeError> {
        let info = PacketInfo::parse(packet)?;
        self.append(packet, info.samples(self.rate), false, out)?;
        Ok(info)
    }

    /// Appends `frames` frames of concealment for lost time: a multiple of 2.5 ms, at most 10 s.
    ///
    /// # Errors
    /// [`DecodeError::Span`] for another span; [`DecodeError::Codec`].
    pub fn conceal(&mut self, frames: usize, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        self.check_span(frames)?;
        let most = self.frames(LONGEST);
        let mut left = frames;
        while left > 0 {
            let now = left.min(most);
            self.append(&[], now, false, out)?;
            left -= now;
        }
        Ok(())
    }

    /// Appends `frames` frames for the lost time right before `packet`, the last part of it from the packet's FEC data.
    /// Where the packet has none this is concealment. The packet itself is to be decoded afterwards.
    ///
    /// # Errors
    /// [`DecodeError::Packet`], [`DecodeError::Span`], [`DecodeError::Codec`].
    pub fn decode_fec(&mut self, packet: &[u8], frames: usize, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        let info = PacketInfo::parse(packet)?;
        self.check_span(frames)?;
        let covered = frames.min(self.frames(info.frame_ticks));
        let start = out.len();
        if covered == 0 || !info.has_fec() {
            return self.conceal(frames, out);
        }
        self.conceal(frames - covered, out)?;
        self.append(packet, covered, true, out).inspect_err(|_| out.truncate(start))
    }

    /// Forgets all history, as at a fence or a discontinuity.
    ///
    /// # Errors
    /// [`DecodeError::Codec`].
    pub fn reset(&mut self) -> Result<(), DecodeError> {
        Ok(self.backend.reset()?)
    }

    /// Frames at the output rate of a span in ticks, a multiple of 2.5 ms.
    pub(super) fn frames(&self, ticks: u32) -> usize {
        (u64::from(ticks) * u64::from(self.rate) / 48_000) as usize
    }

    fn check_span(&self, frames: usize) -> Result<(), DecodeError> {
        let unit = self.rate as usize / 400;
        if !frames.is_multiple_of(unit) || frames > 10 * self.rate as usize {
            return Err(DecodeError::Span { frames, unit });
        }
        Ok(())
    }

    fn append(&mut self, packet: &[u8], frames: usize, fec: bool, out: &mut Vec<f32>) -> Result<(), DecodeError> {
        let start = out.len();
        out.resize(start + frames * usize::from(self.channels), 0.0);
        match self.backend.decode(packet, &mut out[start..], fec) {
            Ok(_) => Ok(()),
            Err(error) => {
                out.truncate(start);
                Err(error.into())
            }
        }
    }
}
