//! The low-pass filter of the resampler: a sinc under a Kaiser window.
//!
//! Length and attenuation are stated per [`Quality`]; the stop band begins at half the lower of the two rates, so that
//! nothing above it folds back. Each phase is normalised to unit gain at 0 Hz, so that a constant stays that constant.

use std::f64::consts::PI;

/// How much filter to spend. `f` is the lower of the two sample rates.
///
/// | quality | taps at rate `f` | stop band from 0.5·f | flat within 0.1 dB up to | −6 dB at |
/// |---|---|---|---|---|
/// | `Fast` | 32 | 60 dB | 0.38·f | 0.443·f |
/// | `Good` | 64 | 80 dB | 0.42·f | 0.461·f |
/// | `Best` | 192 | 110 dB | 0.46·f | 0.481·f |
///
/// Down-conversion lengthens the filter by the ratio. The delay is half the length: 2 ms for `Good` at 16 kHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Quality {
    /// For meters, detectors and previews.
    Fast,
    /// For speech, and for everything heard once (default).
    #[default]
    Good,
    /// For music and for material that is converted several times.
    Best,
}

impl Quality {
    /// Taps per phase at the lower rate.
    pub fn taps(self) -> usize {
        match self {
            Quality::Fast => 32,
            Quality::Good => 64,
            Quality::Best => 192,
        }
    }

    /// Attenuation of the stop band in dB for which the window is designed.
    pub fn stopband_db(self) -> f64 {
        match self {
            Quality::Fast => 60.0,
            Quality::Good => 80.0,
            Quality::Best => 110.0,
        }
    }

    /// Attenuation given to Kaiser's formula: a few dB more than is promised, since the formula is an approximation.
    fn design_db(self) -> f64 {
        self.stopband_db() + 3.0
    }

    /// Centre of the transition (−6 dB) as a part of the lower rate: the transition ends at 0.5.
    ///
    /// Width after J. F. Kaiser (1974): `(A − 7.95) / (14.36·taps)`.
    pub fn cutoff(self) -> f64 {
        let width = (self.design_db() - 7.95) / (14.36 * self.taps() as f64);
        0.5 - width / 2.0
    }
}

/// The filter of a reduced ratio `up / down`: `up` phases of `taps` coefficients each, in the order of the input
/// samples. Phase `p` puts the output `p / up` of a sample after the sample at index `taps / 2 - 1`.
pub(super) fn phases(up: usize, down: usize, taps: usize, quality: Quality) -> Vec<f32> {
    let stretch = (up as f64 / down as f64).min(1.0);
    let cutoff = quality.cutoff() * stretch;
    let beta = 0.1102 * (quality.design_db() - 8.7);
    let half = quality.taps() as f64 / (2.0 * stretch);
    let scale = 1.0 / bessel_i0(beta);
    let mut coefficients = vec![0.0f32; up * taps];
    let mut row = vec![0.0f64; taps];
    for phase in 0..up {
        let offset = phase as f64 / up as f64 + (taps / 2 - 1) as f64;
        for (tap, value) in row.iter_mut().enumerate() {
            let t = offset - tap as f64;
            let inside = 1.0 - (t / half) * (t / half);
            *value = if inside <= 0.0 { 0.0 } else { sinc(2.0 * cutoff * t) * bessel_i0(beta * inside.sqrt()) * scale };
        }
        let sum: f64 = row.iter().sum();
        for (to, value) in coefficients[phase * taps..][..taps].iter_mut().zip(&row) {
            *to = (value / sum) as f32;
        }
    }
    coefficients
}

/// Taps per phase: the quality's length stretched by the ratio, up to a multiple of 8 for the vector loop.
pub(super) fn taps(up: u64, down: u64, quality: Quality) -> u64 {
    let base = quality.taps() as u64;
    let stretched = if down > up { (base * down).div_ceil(up) } else { base };
    stretched.next_multiple_of(8)
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Modified Bessel function of the first kind, order 0, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-16 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}
