//! The Opus encoder of one stream: typed configuration in, one packet per frame out.
//!
//! The caller brings whole frames; collecting them from a stream is `audio.frame`'s work. Frames above 60 ms become
//! packets of several coded frames, as the codec does it.

use super::{
    RATES,
    backend::{self, BackendError, EncoderBackend, Setting},
};

/// Room for the largest packet: 120 ms as 20 ms frames of 1275 bytes, and their sizes.
const MAX_PACKET: usize = 6 * 1277 + 2;

/// What the encoder optimises for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Application {
    /// Speech, intelligibility (default).
    #[default]
    Voip,
    /// Faithful to the input, music included.
    Audio,
    /// Transform layer only, 2.5 ms lookahead, no FEC.
    LowDelay,
}

/// Settings of an encoder. The default is speech over a network: mono 48 kHz, 20 ms, 32 kbit/s VBR, complexity 5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderConfig {
    /// Input rate in Hz: 8000, 12000, 16000, 24000 or 48000.
    pub rate: u32,
    /// 1 or 2.
    pub channels: u8,
    /// Frame length in tenths of a millisecond: 25, 50, 100, 200, 400, 600, 800, 1000 or 1200.
    pub frame_tenths: u16,
    /// What to optimise for.
    pub application: Application,
    /// Bits per second, 6000 to 510000.
    pub bitrate: u32,
    /// Effort, 0 to 10.
    pub complexity: u8,
    /// Variable bit rate; false gives packets of equal size.
    pub vbr: bool,
    /// Put a coarse copy of each packet into the next (needs `expected_loss` above 0 to take effect).
    pub fec: bool,
    /// Loss to prepare for, in percent, 0 to 100.
    pub expected_loss: u8,
    /// Stop sending in silence: packets of 1 or 2 bytes.
    pub dtx: bool,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            rate: 48_000,
            channels: 1,
            frame_tenths: 200,
            application: Application::Voip,
            bitrate: 32_000,
            complexity: 5,
            vbr: true,
            fec: false,
            expected_loss: 0,
            dtx: false,
        }
    }
}

impl EncoderConfig {
    /// Frames per channel that one packet takes, at `rate`.
    pub fn frame_len(&self) -> usize {
        self.rate as usize * usize::from(self.frame_tenths) / 10_000
    }

    /// Duration of one packet in ticks at 48 kHz.
    pub fn frame_ticks(&self) -> u32 {
        u32::from(self.frame_tenths) * 48 / 10
    }

    fn check(&self) -> Result<(), EncodeError> {
        if !RATES.contains(&self.rate) {
            return Err(EncodeError::Rate { rate: self.rate });
        }
        if !matches!(self.channels, 1 | 2) {
            return Err(EncodeError::Channels { channels: self.channels });
        }
        if !matches!(self.frame_tenths, 25 | 50 | 100 | 200 | 400 | 600 | 800 | 1000 | 1200) {
            return Err(EncodeError::FrameLength { tenths: self.frame_tenths });
        }
        let ranges = [
            ("bitrate", self.bitrate, 6_000, 510_000),
            ("complexity", self.complexity.into(), 0, 10),
            ("expected_loss", self.expected_loss.into(), 0, 100),
        ];
        for (option, value, low, high) in ranges {
            if value < low || value > high {
                return Err(EncodeError::Option { option, value, low, high });
            }
        }
        Ok(())
    }
}

/// Why an encoder could not be made or a frame not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Opus does not take this rate.
    #[error("Opus does not encode {rate} Hz; resample to 8000, 12000, 16000, 24000 or 48000 Hz")]
    Rate {
        /// The rate asked for, in Hz.
        rate: u32,
    },
    /// Neither mono nor stereo.
    #[error("Opus encoder takes 1 or 2 channels, not {channels}")]
    Channels {
        /// The count asked for.
        channels: u8,
    },
    /// No legal frame length.
    #[error("Opus frames last 2.5, 5, 10, 20, 40, 60, 80, 100 or 120 ms, not {tenths} tenths of a ms")]
    FrameLength {
        /// The length asked for.
        tenths: u16,
    },
    /// A setting outside its range.
    #[error("{option} {value} is outside {low}..={high}")]
    Option {
        /// Name of the setting.
        option: &'static str,
        /// The value asked for.
        value: u32,
        /// Lowest legal value.
        low: u32,
        /// Highest legal value.
        high: u32,
    },
    /// `encode` got another number of samples than one frame.
    #[error("one Opus frame takes {expected} interleaved samples, got {found}; collect whole frames first")]
    FrameSize {
        /// Samples of one frame over all channels.
        expected: usize,
        /// Samples given.
        found: usize,
    },
    /// The codec failed; it can go on with the next frame.
    #[error(transparent)]
    Codec(#[from] BackendError),
}

/// An encoder of one stream.
pub struct OpusEncoder {
    config: EncoderConfig,
    backend: Box<dyn EncoderBackend>,
    lookahead: usize,
}

impl std::fmt::Debug for OpusEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpusEncoder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl OpusEncoder {
    /// Checks `config` and makes the encoder.
    ///
    /// # Errors
    /// [`EncodeError`]: the first setting that is out of its range; or the codec cannot be made.
    pub fn new(config: EncoderConfig) -> Result<Self, EncodeError> {
        config.check()?;
        let mut backend = backend::encoder(config.rate, config.channels, config.application)?;
        for setting in [
            Setting::Bitrate(config.bitrate as i32),
            Setting::Complexity(config.complexity.into()),
            Setting::Vbr(config.vbr),
            Setting::Fec(config.fec),
            Setting::ExpectedLoss(config.expected_loss.into()),
            Setting::Dtx(config.dtx),
        ] {
            backend.set(setting)?;
        }
        let lookahead = backend.lookahead()?;
        Ok(Self { config, backend, lookahead })
    }

    /// The settings.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Frames at the encoder's rate by which decoded audio lies behind the input; Ogg calls it pre-skip (at 48 kHz).
    pub fn lookahead(&self) -> usize {
        self.lookahead
    }

    /// Encodes exactly one frame ([`EncoderConfig::frame_len`] × channels interleaved samples). Values that are not
    /// numbers are taken as 0 and others held within ±4, so that they cannot spoil the frames that follow.
    ///
    /// # Errors
    /// [`EncodeError::FrameSize`] for another number of samples; or the codec itself fails.
    pub fn encode(&mut self, pcm: &[f32]) -> Result<Vec<u8>, EncodeError> {
        let expected = self.config.frame_len() * usize::from(self.config.channels);
        if pcm.len() != expected {
            return Err(EncodeError::FrameSize { expected, found: pcm.len() });
        }
        let mut packet = vec![0; MAX_PACKET];
        let size = if pcm.iter().all(|v| v.abs() <= 4.0) {
            self.backend.encode(pcm, &mut packet)?
        } else {
            let clean: Vec<f32> = pcm.iter().map(|v| if v.is_nan() { 0.0 } else { v.clamp(-4.0, 4.0) }).collect();
            self.backend.encode(&clean, &mut packet)?
        };
        packet.truncate(size);
        packet.shrink_to_fit();
        Ok(packet)
    }

    /// Changes the bit rate from the next frame on.
    ///
    /// # Errors
    /// [`EncodeError::Option`]; the bit rate stays as it was.
    pub fn set_bitrate(&mut self, bitrate: u32) -> Result<(), EncodeError> {
        let changed = EncoderConfig { bitrate, ..self.config.clone() };
        changed.check()?;
        self.backend.set(Setting::Bitrate(bitrate as i32))?;
        self.config = changed;
        Ok(())
    }

    /// Changes the loss to prepare for (percent) from the next frame on.
    ///
    /// # Errors
    /// [`EncodeError::Option`]; the loss stays as it was.
    pub fn set_expected_loss(&mut self, percent: u8) -> Result<(), EncodeError> {
        let changed = EncoderConfig { expected_loss: percent, ..self.config.clone() };
        changed.check()?;
        self.backend.set(Setting::ExpectedLoss(percent.into()))?;
        self.config = changed;
        Ok(())
    }

    /// Forgets all history, as at a fence.
    ///
    /// # Errors
    /// [`EncodeError`] of the codec itself.
    pub fn reset(&mut self) -> Result<(), EncodeError> {
        Ok(self.backend.reset()?)
    }
}
