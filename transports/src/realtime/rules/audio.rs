//! What the audio of either direction has in common (Realtime protocol, input formats).

use omni_flow_media::{pcm::SampleFormat, resample::ResampleError};

use crate::realtime::config::format::{AudioFormat, Encoding, PCM_RATES};

/// The format of an encoding's samples.
pub const fn samples(encoding: Encoding) -> SampleFormat {
    match encoding {
        Encoding::Pcm16 => SampleFormat::I16,
        Encoding::PcmF32 => SampleFormat::F32,
        Encoding::Ulaw => SampleFormat::Mulaw,
        Encoding::Alaw => SampleFormat::Alaw,
    }
}

/// Refuses a rate that no audio here may have, whatever its encoding.
///
/// # Errors
/// [`AudioError::Rate`]
pub(super) fn check(format: AudioFormat) -> Result<(), AudioError> {
    if PCM_RATES.contains(&format.rate_hz) { Ok(()) } else { Err(AudioError::Rate(format.rate_hz)) }
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
    fn the_samples_are_as_long_as_the_format_says() {
        for encoding in [Encoding::Pcm16, Encoding::PcmF32, Encoding::Ulaw, Encoding::Alaw] {
            assert_eq!(samples(encoding).bytes(), encoding.sample_bytes(), "{encoding:?}");
        }
    }

    #[test]
    fn rates_have_inclusive_bounds() {
        for (rate, good) in
            [(7_999, false), (8_000, true), (48_000, true), (48_001, false), (0, false), (u32::MAX, false)]
        {
            assert_eq!(check(AudioFormat::pcm16(rate)).is_ok(), good, "{rate}");
        }
    }

    #[test]
    fn the_level_is_that_of_the_full_scale() {
        assert_eq!([rms(&[]), rms(&[0.0; 4]), rms(&[0.5, -0.5]), rms(&[f32::NAN, 0.0])], [0.0, 0.0, 0.5, 0.0]);
        let sine: Vec<f32> = (0..16_000).map(|i| (i as f32 * 0.172_787_6).sin()).collect();
        assert!((rms(&sine) - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-3);
    }
}
