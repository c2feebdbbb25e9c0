//! Levels in decibels of full scale, a running meter, and where in a clip somebody speaks.
//!
//! 0 dBFS is a constant of 1.0, so a sine of full scale has an RMS of -3.01 dBFS (AES17 would call that 0). Silence is
//! minus infinity. Samples that are no numbers count as 0.

use std::collections::VecDeque;
use std::ops::Range;

use omni_flow_kernels::{Level, level};

/// An amplitude in decibels of full scale: 20 log10(x); minus infinity for 0.
pub fn dbfs(amplitude: f32) -> f32 {
    20.0 * amplitude.abs().log10()
}

/// The amplitude of a level in decibels of full scale.
pub fn amplitude(dbfs: f32) -> f32 {
    10f32.powf(dbfs / 20.0)
}

/// RMS and peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Root mean square, in dBFS.
    pub rms: f32,
    /// Largest absolute sample, in dBFS.
    pub peak: f32,
}

impl From<Level> for Reading {
    fn from(level: Level) -> Self {
        Self { rms: dbfs(level.rms()), peak: dbfs(level.peak) }
    }
}

/// The level of a block of samples; interleaved channels count alike.
pub fn measure(samples: &[f32]) -> Reading {
    level(samples).into()
}

/// A meter over a stream: the level of the last window, moved on in steps of a tenth of it, and of all so far. The
/// readings do not depend on how the stream was cut. Memory: ten steps.
#[derive(Clone, Debug)]
pub struct Meter {
    step: usize,
    steps: VecDeque<Level>,
    open: Level,
    total: Level,
}

/// Steps in a window.
const STEPS: usize = 10;

impl Meter {
    /// A meter whose window is about so many samples (frames times channels), at least ten.
    pub fn new(window: usize) -> Self {
        Self {
            step: (window / STEPS).max(1),
            steps: VecDeque::with_capacity(STEPS),
            open: Level::default(),
            total: Level::default(),
        }
    }

    /// Takes the next samples.
    pub fn push(&mut self, samples: &[f32]) {
        let mut rest = samples;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(self.step - self.open.samples));
            self.open += level(head);
            rest = tail;
            if self.open.samples == self.step {
                if self.steps.len() == STEPS {
                    self.steps.pop_front();
                }
                self.steps.push_back(self.open);
                self.total += self.open;
                self.open = Level::default();
            }
        }
    }

    /// The last ten whole steps.
    pub fn window(&self) -> Reading {
        self.steps.iter().fold(Level::default(), |sum, &l| sum + l).into()
    }

    /// Everything so far.
    pub fn total(&self) -> Reading {
        (self.total + self.open).into()
    }

    /// Samples so far that were no numbers.
    pub fn nan(&self) -> usize {
        (self.total + self.open).nan
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::new(self.step * STEPS);
    }
}

/// A window of speech is louder than this part of the loudest one.
const SPEECH_FLOOR: f64 = 0.05;

/// The samples from the first to the last window of 10 ms whose RMS exceeds 5 % of the loudest window's, in a clip of one
/// channel. This is the measure by which "end of speech" is defined in benchmarks; it is no voice detector. `None` for
/// silence and for clips shorter than one window; a cut last window is not looked at.
pub fn speech_bounds(mono: &[f32], rate: u32) -> Option<Range<usize>> {
    let window = (rate / 100).max(1) as usize;
    let powers: Vec<f64> = mono.chunks_exact(window).map(|w| level(w).sum_squares).collect();
    let loudest = powers.iter().copied().fold(0.0, f64::max);
    let speech = |p: &f64| *p > SPEECH_FLOOR * SPEECH_FLOOR * loudest;
    let first = powers.iter().position(speech)?;
    let last = powers.iter().rposition(speech)?;
    Some(first * window..(last + 1) * window)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sine(n: usize, amplitude: f32) -> Vec<f32> {
        (0..n).map(|i| amplitude * (i as f32 * std::f32::consts::TAU / 48.0).sin()).collect()
    }

    #[test]
    fn a_sine_of_full_scale_has_minus_three_decibels() {
        let reading = measure(&sine(4800, 1.0));
        assert!((reading.rms + 3.0103).abs() < 0.01 && reading.peak.abs() < 0.01, "{reading:?}");
        assert_eq!(measure(&[0.0; 10]).rms, f32::NEG_INFINITY);
        assert_eq!(measure(&[]).peak, f32::NEG_INFINITY);
        assert!((amplitude(dbfs(0.25)) - 0.25).abs() < 1e-6);
    }

    #[test]
    fn a_window_forgets_and_the_total_does_not() {
        let mut meter = Meter::new(480);
        meter.push(&sine(4800, 0.5));
        let loud = meter.window();
        meter.push(&[0.0; 480]);
        assert_eq!(meter.window().rms, f32::NEG_INFINITY);
        assert!(meter.total().rms > loud.rms - 1.0);
        meter.push(&[f32::NAN; 3]);
        assert_eq!(meter.nan(), 3);
        meter.reset();
        assert_eq!(meter.total().peak, f32::NEG_INFINITY);
    }

    #[test]
    fn speech_is_found_between_silences() {
        let mut clip = vec![0.0; 1600];
        clip.extend(sine(3200, 0.5));
        clip.extend(vec![0.001; 1605]);
        assert_eq!(speech_bounds(&clip, 16_000), Some(1600..4800));
        assert_eq!(speech_bounds(&[0.0; 16_000], 16_000), None);
        assert_eq!(speech_bounds(&[0.5; 100], 16_000), None);
        assert_eq!(speech_bounds(&[], 0), None);
    }

    proptest! {
        #[test]
        fn a_meter_does_not_depend_on_cuts(cuts in prop::collection::vec(0usize..300, 1..20)) {
            let x = sine(cuts.iter().sum(), 0.7);
            let (mut whole, mut parts) = (Meter::new(100), Meter::new(100));
            whole.push(&x);
            let mut rest = &x[..];
            for &cut in &cuts {
                let (head, tail) = rest.split_at(cut);
                parts.push(head);
                rest = tail;
            }
            let (a, b) = (whole.window(), parts.window());
            prop_assert!((a.rms - b.rms).abs() < 1e-3 || a.rms == b.rms);
            prop_assert_eq!(a.peak, b.peak);
        }
    }
}
