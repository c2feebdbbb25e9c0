//! One stream of audio brought to a rate and a number of channels.
//!
//! Promises exact length per stretch: each stretch (until the format changes, the time line jumps, or [`Converter::end`])
//! of N frames gives `round(N·out/in)` frames. A downmix is the mean; mono spreads to all channels alike. Other changes of
//! the channel count are refused, not guessed.

use omni_flow::{MediaTime, Pcm};
use omni_flow_kernels as kernels;
use omni_flow_media::resample::{Quality, ResampleError, Resampler};
use thiserror::Error;

use super::jumps;

/// Why audio cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// No rule makes the one out of the other.
    #[error("{from} channels cannot be made into {to}: use 1 channel, or the {from} that come in")]
    Channels {
        /// Channels that came.
        from: u16,
        /// Channels asked for.
        to: u16,
    },
    /// The rates.
    #[error(transparent)]
    Resample(#[from] ResampleError),
}

/// A piece of converted audio.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Time of its first frame.
    pub pts: MediaTime,
    /// Channels.
    pub channels: u16,
    /// Interleaved samples; never empty.
    pub samples: Vec<f32>,
}

/// Converts one stream.
#[derive(Debug)]
pub struct Converter {
    rate: Option<u32>,
    channels: Option<u16>,
    quality: Quality,
    stretch: Option<Stretch>,
}

#[derive(Debug)]
struct Stretch {
    from: (u32, u16),
    channels: u16,
    resampler: Resampler,
    start: MediaTime,
    /// Where the next input belongs.
    expected: MediaTime,
    mixed: Vec<f32>,
}

impl Converter {
    /// To `rate` Hz and `channels` channels; `None` leaves that as it comes.
    pub fn new(rate: Option<u32>, channels: Option<u16>, quality: Quality) -> Self {
        Self { rate, channels, quality, stretch: None }
    }
    /// Takes the audio at `pts` and appends what it makes known to `out`.
    ///
    /// # Errors
    /// [`ConvertError`]; the audio is not taken.
    pub fn push(&mut self, pts: MediaTime, audio: &Pcm, out: &mut Vec<Converted>) -> Result<(), ConvertError> {
        if audio.is_empty() {
            return Ok(());
        }
        let from = (audio.rate(), audio.channels());
        if self.stretch.as_ref().is_some_and(|s| s.from != from || jumps(s.expected, pts)) {
            self.end(out);
        }
        if self.stretch.is_none() {
            self.stretch = Some(self.begin(from, pts)?);
        }
        let Some(s) = &mut self.stretch else { return Ok(()) };
        s.expected = pts + audio.len();
        let samples = audio.f32();
        let input: &[f32] = if s.from.1 == s.channels {
            &samples
        } else {
            s.mixed.clear();
            s.mixed.resize(audio.frames() * usize::from(s.channels), 0.0);
            if s.channels == 1 {
                kernels::downmix(&samples, usize::from(s.from.1), &mut s.mixed);
            } else {
                kernels::spread(&samples, usize::from(s.channels), &mut s.mixed);
            }
            &s.mixed
        };
        let (at, mut made) = (s.resampler.produced(), Vec::new());
        s.resampler.push(input, &mut made);
        s.give(at, made, out);
        Ok(())
    }
    /// Ends the stretch: appends what is held.
    pub fn end(&mut self, out: &mut Vec<Converted>) {
        let Some(mut s) = self.stretch.take() else { return };
        let (at, mut made) = (s.resampler.produced(), Vec::new());
        s.resampler.flush(&mut made);
        s.give(at, made, out);
    }
    /// Forgets all history, as at a fence.
    pub fn clear(&mut self) {
        self.stretch = None;
    }
    /// Delay of the stretch in ms.
    pub fn delay_ms(&self) -> f64 {
        self.stretch.as_ref().map_or(0.0, |s| s.resampler.delay_ms())
    }

    fn begin(&self, from: (u32, u16), start: MediaTime) -> Result<Stretch, ConvertError> {
        let channels = self.channels.unwrap_or(from.1);
        if channels != from.1 && channels != 1 && from.1 != 1 {
            return Err(ConvertError::Channels { from: from.1, to: channels });
        }
        let rate = self.rate.unwrap_or(from.0);
        let resampler = Resampler::new(from.0, rate, usize::from(channels), self.quality)?;
        Ok(Stretch { from, channels, resampler, start, expected: start, mixed: Vec::new() })
    }
}

impl Stretch {
    fn give(&self, at: u64, samples: Vec<f32>, out: &mut Vec<Converted>) {
        if !samples.is_empty() {
            let pts = self.start + MediaTime::from_samples(at, self.resampler.out_rate());
            out.push(Converted { pts, channels: self.channels, samples });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::pcm;
    use omni_flow_media::resample::output_len;

    fn frames(out: &[Converted]) -> usize {
        out.iter().map(|c| c.samples.len() / usize::from(c.channels)).sum()
    }

    #[test]
    fn both_parts_of_a_rate_change_have_exact_length() {
        let mut c = Converter::new(Some(16_000), Some(1), Quality::Good);
        let mut out = Vec::new();
        let first = pcm(24_000, 1, vec![0.5; 1_023]).unwrap();
        c.push(MediaTime::ZERO, &first, &mut out).unwrap();
        let begun = out.len();
        c.push(first.len(), &pcm(16_000, 1, vec![0.5; 777]).unwrap(), &mut out).unwrap();
        let second: usize = out.iter().skip(begun).map(|c| c.samples.len()).sum();
        c.end(&mut out);
        assert_eq!(frames(&out) as u64, output_len(1_023, 24_000, 16_000) + 777);
        assert!(second >= 777, "equal rates pass at once, behind the first part's rest");
    }
    #[test]
    fn a_downmix_is_the_mean_and_nothing_is_guessed() {
        let mut c = Converter::new(None, Some(1), Quality::Good);
        let mut out = Vec::new();
        c.push(MediaTime::ZERO, &pcm(8_000, 2, vec![0.5, 0.5, 1.0, -1.0]).unwrap(), &mut out).unwrap();
        assert_eq!(out[0].samples, [0.5, 0.0]);
        let mut c = Converter::new(None, Some(2), Quality::Good);
        let six = pcm(8_000, 6, vec![0.0; 6]).unwrap();
        assert_eq!(c.push(MediaTime::ZERO, &six, &mut out), Err(ConvertError::Channels { from: 6, to: 2 }));
    }
    #[test]
    fn a_fence_leaves_nothing_behind() {
        let mut c = Converter::new(Some(16_000), None, Quality::Good);
        let mut out = Vec::new();
        c.push(MediaTime::ZERO, &pcm(24_000, 1, vec![0.9; 2_400]).unwrap(), &mut out).unwrap();
        c.clear();
        out.clear();
        c.push(MediaTime::from_millis(100), &pcm(24_000, 1, vec![0.0; 2_400]).unwrap(), &mut out).unwrap();
        c.end(&mut out);
        assert_eq!(frames(&out), 1_600);
        assert!(out.iter().all(|c| c.samples.iter().all(|s| *s == 0.0)));
    }
}
