//! Whole clips as files: WAV, FLAC, MP3, Ogg Opus, or bare samples.
//!
//! Which of them a program has depends on its features (`flac`, `mp3`; both on by default); [`ClipFormat::BUILT_IN`] tells.
//! All libraries are Rust; none needs more than rustc.

#[cfg(feature = "flac")]
mod flac;
#[cfg(feature = "mp3")]
mod mp3;
#[cfg(test)]
mod tests;

use crate::ogg_opus::{OggEncodeError, OggOpusEncoder, OpusTags};
use crate::opus::{Application, EncoderConfig, RATES};
use crate::pcm::{Layout, PcmSpec, SampleFormat, SpecError};
use crate::wav::{WavWriteError, WavWriter};

/// How a clip is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipFormat {
    /// A WAV file of 16-bit samples.
    Wav,
    /// Bare 16-bit samples, little-endian.
    Pcm,
    /// A FLAC file of 16-bit samples.
    Flac,
    /// An MP3 file of constant bit rate.
    Mp3,
    /// An Ogg file with Opus.
    Opus,
}

/// Why a clip cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// The program was built without it.
    #[error("`{0}` is not built in")]
    NotBuiltIn(&'static str),
    /// The format has no such rate.
    #[error("{format} does not take {rate} Hz; it takes {takes}")]
    Rate {
        /// The format.
        format: &'static str,
        /// The rate asked for, in Hz.
        rate: u32,
        /// Those that it takes.
        takes: &'static str,
    },
    /// The format has no room for so many channels.
    #[error("{format} takes 1 or 2 channels, not {channels}")]
    Channels {
        /// The format.
        format: &'static str,
        /// Channels of the clip.
        channels: usize,
    },
    /// Rate or channels are out of any range.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The clip is too long for a WAV file.
    #[error(transparent)]
    Wav(#[from] WavWriteError),
    /// The Opus encoder failed.
    #[error(transparent)]
    Opus(#[from] OggEncodeError),
    /// The encoder failed; it says why.
    #[error("the {format} encoder failed: {why}")]
    Codec {
        /// The format.
        format: &'static str,
        /// What the library says.
        why: String,
    },
}

impl ClipFormat {
    /// Those that this program can write.
    pub const BUILT_IN: &'static [ClipFormat] = &[
        Self::Wav,
        Self::Pcm,
        #[cfg(feature = "flac")]
        Self::Flac,
        #[cfg(feature = "mp3")]
        Self::Mp3,
        Self::Opus,
    ];
    const ALL: [ClipFormat; 5] = [Self::Wav, Self::Pcm, Self::Flac, Self::Mp3, Self::Opus];

    /// The format of this name, built in or not.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }
    /// `wav`, `pcm`, `flac`, `mp3` or `opus`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Pcm => "pcm",
            Self::Flac => "flac",
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
        }
    }
    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
            Self::Flac => "audio/flac",
            Self::Mp3 => "audio/mpeg",
            Self::Opus => "audio/ogg",
        }
    }
    /// True if the program can write it.
    pub fn built_in(self) -> bool {
        Self::BUILT_IN.contains(&self)
    }
    /// Whether a clip of `rate` Hz and so many channels can be written, without writing one.
    ///
    /// # Errors
    /// As [`ClipFormat::encode`], as far as it can be told before.
    pub fn check(self, rate: u32, channels: usize) -> Result<(), ClipError> {
        let format = self.name();
        if !self.built_in() {
            return Err(ClipError::NotBuiltIn(format));
        }
        PcmSpec::new(SampleFormat::I16, rate, Layout::of(u16::try_from(channels).unwrap_or(u16::MAX)))?;
        let takes = match self {
            Self::Opus if !RATES.contains(&rate) => "8000, 12000, 16000, 24000 and 48000 Hz",
            #[cfg(feature = "mp3")]
            Self::Mp3 if !mp3::RATES.contains(&rate) => {
                "8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 and 48000 Hz"
            }
            // The field of a FLAC header has no room for more.
            Self::Flac if rate > 96_000 => "up to 96000 Hz",
            Self::Opus | Self::Mp3 | Self::Flac if channels > 2 => {
                return Err(ClipError::Channels { format, channels });
            }
            _ => return Ok(()),
        };
        Err(ClipError::Rate { format, rate, takes })
    }
    /// A whole clip of interleaved samples. CPU work: some percent of the clip's time.
    ///
    /// # Errors
    /// [`ClipError`].
    pub fn encode(self, samples: &[f32], rate: u32, channels: usize) -> Result<Vec<u8>, ClipError> {
        self.check(rate, channels)?;
        let spec = PcmSpec::new(SampleFormat::I16, rate, Layout::of(u16::try_from(channels).unwrap_or(u16::MAX)))?;
        let samples = &samples[..samples.len() / channels * channels];
        match self {
            Self::Pcm => {
                let mut out = Vec::with_capacity(samples.len() * 2);
                SampleFormat::I16.encode(samples, &mut out);
                Ok(out)
            }
            Self::Wav => {
                let mut file = std::io::Cursor::new(Vec::with_capacity(samples.len() * 2 + 64));
                let mut writer = WavWriter::new(&mut file, "clip", spec)?;
                writer.write(samples)?;
                writer.finish()?;
                Ok(file.into_inner())
            }
            #[cfg(feature = "flac")]
            Self::Flac => flac::encode(samples, rate, channels),
            #[cfg(feature = "mp3")]
            Self::Mp3 => mp3::encode(samples, rate, channels),
            #[cfg(not(feature = "flac"))]
            Self::Flac => Err(ClipError::NotBuiltIn(self.name())),
            #[cfg(not(feature = "mp3"))]
            Self::Mp3 => Err(ClipError::NotBuiltIn(self.name())),
            Self::Opus => {
                let config = EncoderConfig {
                    rate,
                    channels: channels as u8,
                    application: Application::Audio,
                    bitrate: 48_000 * channels as u32,
                    ..EncoderConfig::default()
                };
                let mut encoder = OggOpusEncoder::new(config, &OpusTags::default(), 1, 1000)?;
                encoder.push(samples)?;
                let mut file = encoder.take();
                file.extend(encoder.finish()?);
                Ok(file)
            }
        }
    }
}

/// Samples as 16-bit integers, rounded and clipped as [`SampleFormat::I16`] does it.
#[cfg(any(feature = "flac", feature = "mp3"))]
fn integers(samples: &[f32]) -> Vec<i16> {
    let mut bytes = Vec::with_capacity(samples.len() * 2);
    SampleFormat::I16.encode(samples, &mut bytes);
    bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect()
}
