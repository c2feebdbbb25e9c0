//! Format, rate and layout of a PCM stream, checked once.

use std::fmt;
use std::time::Duration;

use super::{Layout, SampleFormat};

/// Most channels of a stream.
pub const MAX_CHANNELS: u16 = 64;
/// Lowest sampling rate of a stream, in Hz. A header that claims less does not tell the truth: its few bytes would stand
/// for hours, and become gigabytes at a usual rate.
pub const MIN_RATE: u32 = 1000;
/// Highest sampling rate of a stream, in Hz.
pub const MAX_RATE: u32 = 768_000;

/// What must be known to read PCM bytes. Rate and channels are always within their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PcmSpec {
    format: SampleFormat,
    rate: u32,
    layout: Layout,
}

/// A rate or a number of channels that no stream may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No channels, or too many.
    #[error("{0} channels: give 1 to {MAX_CHANNELS}")]
    Channels(u16),
    /// No rate, or one that no recording has.
    #[error("a sampling rate of {0} Hz: give {MIN_RATE} to {MAX_RATE}")]
    Rate(u32),
}

impl PcmSpec {
    /// Checks and joins the three.
    ///
    /// # Errors
    /// [`SpecError`]: a rate or a number of channels that no stream may have.
    pub fn new(format: SampleFormat, rate: u32, layout: Layout) -> Result<Self, SpecError> {
        if layout.channels() == 0 || layout.channels() > MAX_CHANNELS {
            return Err(SpecError::Channels(layout.channels()));
        }
        if !(MIN_RATE..=MAX_RATE).contains(&rate) {
            return Err(SpecError::Rate(rate));
        }
        Ok(Self { format, rate, layout })
    }

    /// Format of each sample.
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Frames per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Channels and their positions.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Channels in a frame.
    pub fn channels(&self) -> usize {
        usize::from(self.layout.channels())
    }

    /// Bytes in a frame: at most 512.
    pub fn frame_bytes(&self) -> usize {
        self.format.bytes() * self.channels()
    }

    /// Whole frames nearest to a duration; half-way goes up.
    pub fn frames_in(&self, span: Duration) -> u64 {
        let scaled = span.as_nanos() * u128::from(self.rate);
        u64::try_from((scaled + 500_000_000) / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// How long so many frames last, to the nanosecond below.
    pub fn span_of(&self, frames: u64) -> Duration {
        let rate = u64::from(self.rate);
        let nanos = (frames % rate) * 1_000_000_000 / rate;
        Duration::new(frames / rate, nanos as u32)
    }

    /// Appends `frames` whole frames of silence to `out`; the way to make silence of a length is
    /// `spec.silence(spec.frames_in(span), out)`, which never cuts a sample.
    pub fn silence(&self, frames: usize, out: &mut Vec<u8>) {
        out.resize(out.len().saturating_add(frames.saturating_mul(self.frame_bytes())), self.format.silence());
    }
}

impl fmt::Display for PcmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz {} {}", self.rate, self.layout, self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_in_frames_not_in_bytes() {
        let spec = PcmSpec::new(SampleFormat::I16, 22_050, Layout::MONO).unwrap();
        let frames = spec.frames_in(Duration::from_millis(250));
        assert_eq!(frames, 5513); // 5512.5 frames: 11025 bytes would cut a sample
        let mut out = Vec::new();
        spec.silence(frames as usize, &mut out);
        assert_eq!(out, vec![0; 11_026]);
    }

    #[test]
    fn a_gap_on_a_telephone_stream_is_filled_with_the_code_of_its_own_law() {
        for (format, filler) in [(SampleFormat::Mulaw, 0xFF), (SampleFormat::Alaw, 0xD5)] {
            let spec = PcmSpec::new(format, 8000, Layout::MONO).unwrap();
            let mut out = Vec::new();
            spec.silence(spec.frames_in(Duration::from_millis(100)) as usize, &mut out);
            assert_eq!(out, vec![filler; 800]);
        }
    }

    #[test]
    fn spans_and_frames_go_both_ways_for_hours() {
        let spec = PcmSpec::new(SampleFormat::I16, 44_100, Layout::STEREO).unwrap();
        for frames in [0, 1, 44_099, 44_100, 44_100 * 3600 * 24 + 7, u64::MAX / 2_000_000_000] {
            assert_eq!(spec.frames_in(spec.span_of(frames)), frames);
        }
        assert_eq!(spec.span_of(44_100 * 90), Duration::from_secs(90));
        assert_eq!(spec.frames_in(Duration::MAX), u64::MAX);
    }

    #[test]
    fn impossible_streams_are_refused() {
        let of = |rate, channels| PcmSpec::new(SampleFormat::I16, rate, Layout::of(channels));
        assert_eq!(of(16_000, 0), Err(SpecError::Channels(0)));
        assert_eq!(of(16_000, 65), Err(SpecError::Channels(65)));
        assert_eq!(of(0, 1), Err(SpecError::Rate(0)));
        assert_eq!(of(MIN_RATE - 1, 1), Err(SpecError::Rate(MIN_RATE - 1)));
        assert_eq!(of(u32::MAX, 1), Err(SpecError::Rate(u32::MAX)));
        assert_eq!(of(48_000, 2).unwrap().to_string(), "48000 Hz stereo i16");
    }
}
