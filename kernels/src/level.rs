//! Sum of squares and peak of a block, the raw material of RMS and meters.

use std::ops::{Add, AddAssign};

use crate::Tier;

/// What one pass over a block measures. Adds up over blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// Sum of the squares of all samples.
    pub sum_squares: f64,
    /// Largest absolute sample.
    pub peak: f32,
    /// Samples seen, those that were no numbers included.
    pub samples: usize,
    /// Samples that were not a number and counted as 0.
    pub nan: usize,
}

impl Level {
    /// Root of the mean square; 0 for no samples.
    pub fn rms(&self) -> f32 {
        if self.samples == 0 { 0.0 } else { (self.sum_squares / self.samples as f64).sqrt() as f32 }
    }
}

impl Add for Level {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            sum_squares: self.sum_squares + other.sum_squares,
            peak: self.peak.max(other.peak),
            samples: self.samples + other.samples,
            nan: self.nan + other.nan,
        }
    }
}

impl AddAssign for Level {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Measures a block in one pass. Peak and counts are exact; squares are exact products in `f64`, and their sum differs
/// between versions only by the order of n additions: at most `n * 2^-52` relative, so [`Level::rms`] agrees within
/// 1 ULP for blocks up to 2^24 samples.
pub fn level(x: &[f32]) -> Level {
    Tier::current().level(x)
}

impl Tier {
    /// [`level`](crate::level()) on this tier.
    pub fn level(self, x: &[f32]) -> Level {
        dispatch!(self, plain: plain(x), avx2: avx2::level(x))
    }
}

fn plain(x: &[f32]) -> Level {
    let mut level = Level { samples: x.len(), ..Level::default() };
    for &v in x {
        if v.is_nan() {
            level.nan += 1;
            continue;
        }
        level.sum_squares += f64::from(v) * f64::from(v);
        level.peak = level.peak.max(v.abs());
    }
    level
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Level, plain};
    use crate::x86::{Count, abs, lanes, load, sum_f64};

    #[target_feature(enable = "avx2,fma")]
    pub fn level(x: &[f32]) -> Level {
        let (body, tail) = x.as_chunks::<8>();
        let (mut low, mut high) = (_mm256_setzero_pd(), _mm256_setzero_pd());
        let mut peak = _mm256_setzero_ps();
        let mut count = Count::new();
        for s in body {
            let v = load(s);
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v);
            count.nan(nan);
            let v = _mm256_andnot_ps(nan, v);
            peak = _mm256_max_ps(peak, abs(v));
            let a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
            let b = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v));
            low = _mm256_fmadd_pd(a, a, low);
            high = _mm256_fmadd_pd(b, b, high);
        }
        let body_level = Level {
            sum_squares: sum_f64(_mm256_add_pd(low, high)),
            peak: lanes(peak).into_iter().fold(0.0, f32::max),
            samples: body.len() * 8,
            nan: count.tally().nan,
        };
        body_level + plain(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{sizes, tame, wild};

    #[test]
    fn a_constant_has_its_own_level_and_nothing_has_none() {
        for &tier in Tier::available() {
            let level = tier.level(&[-0.25; 77]);
            assert_eq!((level.rms(), level.peak, level.samples, level.nan), (0.25, 0.25, 77, 0));
            assert_eq!(tier.level(&[]).rms(), 0.0);
        }
    }

    #[test]
    fn what_is_no_number_counts_as_zero() {
        for &tier in Tier::available() {
            let mut x = [f32::NAN; 16];
            x[3] = 1.0;
            let level = tier.level(&x);
            assert_eq!((level.sum_squares, level.peak, level.samples, level.nan), (1.0, 1.0, 16, 15));
            assert_eq!(tier.level(&[f32::NEG_INFINITY; 9]).peak, f32::INFINITY);
        }
    }

    #[test]
    fn all_tiers_agree_within_the_stated_error() {
        for n in sizes() {
            for x in [tame(n, n as u64), wild(n, n as u64)] {
                let want = Tier::PLAIN.level(&x);
                for &tier in Tier::available() {
                    let got = tier.level(&x);
                    assert_eq!((got.peak, got.samples, got.nan), (want.peak, want.samples, want.nan), "{tier} {n}");
                    if want.sum_squares.is_finite() {
                        let bound = n as f64 * f64::EPSILON * want.sum_squares;
                        assert!((got.sum_squares - want.sum_squares).abs() <= bound, "{tier} {n}");
                        assert!(got.rms().to_bits().abs_diff(want.rms().to_bits()) <= 1);
                    } else {
                        assert_eq!(got.sum_squares, want.sum_squares);
                    }
                }
            }
        }
    }
}
