//! The formats of samples that a client may speak (Realtime protocol, input formats).

use omni_flow_media::{pcm::SampleFormat, resample::ResampleError};

/// Lowest and highest rate of a client's audio, in samples per second.
pub const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;
/// The rate of G.711 where none is given, and of all G.711 output.
pub const TELEPHONE_RATE: u32 = 8_000;

/// How one sample is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Signed 16 bits, little-endian.
    Pcm16,
    /// 32-bit float, little-endian, full scale 1.0.
    PcmF32,
    /// G.711 mu-law.
    Mulaw,
    /// G.711 A-law.
    Alaw,
}

impl Encoding {
    /// The encoding of that name: `pcm16`, `pcm_s16le`, `s16le`, `audio/pcm`, `pcm_f32le`, `g711_ulaw`, `audio/pcmu`,
    /// `g711_alaw`, `audio/pcma`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "pcm16" | "pcm_s16le" | "s16le" | "audio/pcm" => Some(Self::Pcm16),
            "pcm_f32le" => Some(Self::PcmF32),
            "g711_ulaw" | "audio/pcmu" => Some(Self::Mulaw),
            "g711_alaw" | "audio/pcma" => Some(Self::Alaw),
            _ => None,
        }
    }

    /// The flat name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcm16 => "pcm16",
            Self::PcmF32 => "pcm_f32le",
            Self::Mulaw => "g711_ulaw",
            Self::Alaw => "g711_alaw",
        }
    }

    /// The format of its samples.
    pub const fn samples(self) -> SampleFormat {
        match self {
            Self::Pcm16 => SampleFormat::I16,
            Self::PcmF32 => SampleFormat::F32,
            Self::Mulaw => SampleFormat::Mulaw,
            Self::Alaw => SampleFormat::Alaw,
        }
    }

    /// The rate where none is given: the session's for PCM, that of the telephone for G.711.
    pub const fn default_rate(self, session: u32) -> u32 {
        match self {
            Self::Pcm16 | Self::PcmF32 => session,
            Self::Mulaw | Self::Alaw => TELEPHONE_RATE,
        }
    }
}

/// An encoding and a rate, one channel. The rate is within [`RATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format {
    encoding: Encoding,
    rate: u32,
}

impl Format {
    /// Joins the two.
    ///
    /// # Errors
    /// [`AudioError::Rate`]
    pub fn new(encoding: Encoding, rate: u32) -> Result<Self, AudioError> {
        if RATES.contains(&rate) { Ok(Self { encoding, rate }) } else { Err(AudioError::Rate(rate)) }
    }

    /// How one sample is written.
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// Samples per second.
    pub fn rate(self) -> u32 {
        self.rate
    }
}

/// Why audio is refused; the stream is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AudioError {
    /// Not base64 (`bad_audio`).
    #[error("audio is not base64 ({0}); use the standard alphabet with padding and no white space")]
    Base64(#[from] base64::DecodeError),
    /// A rate that no client may have (`unsupported_audio_format`).
    #[error("{0} Hz is outside 8000 to 48000 Hz")]
    Rate(u32),
    /// Two rates that cannot be converted into each other (`unsupported_audio_format`).
    #[error(transparent)]
    Resample(#[from] ResampleError),
}

/// The level of a block: root of the mean square, full scale 1.0; 0 for no samples.
pub fn rms(samples: &[f32]) -> f32 {
    if samples.is_empty() {
        return 0.0;
    }
    let sum: f64 = samples.iter().filter(|s| s.is_finite()).map(|s| f64::from(*s) * f64::from(*s)).sum();
    (sum / samples.len() as f64).sqrt() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_generations_are_known() {
        for encoding in [Encoding::Pcm16, Encoding::PcmF32, Encoding::Mulaw, Encoding::Alaw] {
            assert_eq!(Encoding::parse(encoding.name()), Some(encoding));
        }
        assert_eq!(Encoding::parse("audio/pcmu"), Some(Encoding::Mulaw));
        assert_eq!(Encoding::parse("mp3"), None);
        assert_eq!([Encoding::Pcm16.default_rate(24_000), Encoding::Alaw.default_rate(24_000)], [24_000, 8_000]);
    }

    #[test]
    fn rates_have_inclusive_bounds() {
        for (rate, good) in [(7_999, false), (8_000, true), (48_000, true), (48_001, false)] {
            assert_eq!(Format::new(Encoding::Pcm16, rate).is_ok(), good, "{rate}");
        }
    }

    #[test]
    fn the_level_is_that_of_the_full_scale() {
        assert_eq!([rms(&[]), rms(&[0.0; 4]), rms(&[0.5, -0.5]), rms(&[f32::NAN, 0.0])], [0.0, 0.0, 0.5, 0.0]);
        let sine: Vec<f32> = (0..16_000).map(|i| (i as f32 * 0.172_787_6).sin()).collect();
        assert!((rms(&sine) - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-3);
    }
}
