//! The inner product of the resampler, the same in every bit on every machine.
//!
//! Eight running sums, one per lane, and one fixed tree at the end. The vector version (AVX2, chosen at run time) does
//! the same multiplications and additions in the same order and uses no fused operation, so its error against the plain
//! version is 0.

/// A way to compute the inner product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dot {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

/// Coefficients and samples of one output: equal lengths, a multiple of 8.
pub(super) type Pair<'a> = (&'a [f32], &'a [f32]);

impl Dot {
    /// The fastest one of this machine.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Dot::Avx2;
        }
        Dot::Plain
    }

    /// One output.
    pub(super) fn one(self, pair: Pair<'_>) -> f32 {
        plain(pair)
    }

    /// Four outputs at once; each equals [`Self::one`] in every bit.
    pub(super) fn four(self, pairs: [Pair<'_>; 4]) -> [f32; 4] {
        match self {
            Dot::Plain => pairs.map(plain),
            #[cfg(target_arch = "x86_64")]
            Dot::Avx2 => {
                let taps = pairs[0].0.len();
                assert!(taps.is_multiple_of(8) && pairs.iter().all(|(c, x)| c.len() == taps && x.len() == taps));
                // SAFETY: `Avx2` is only made after the feature was found; all eight slices hold `taps` values.
                unsafe { avx2::four(pairs, taps) }
            }
        }
    }
}

fn plain((coefficients, samples): Pair<'_>) -> f32 {
    let mut sums = [0.0f32; 8];
    for (c, x) in coefficients.chunks_exact(8).zip(samples.chunks_exact(8)) {
        for lane in 0..8 {
            sums[lane] += c[lane] * x[lane];
        }
    }
    let [a, b, c, d] = std::array::from_fn(|lane| sums[lane] + sums[lane + 4]);
    (a + c) + (b + d)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Pair;

    /// # Safety
    /// The machine has AVX2 and every slice holds at least `taps` values, a multiple of 8.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn four(pairs: [Pair<'_>; 4], taps: usize) -> [f32; 4] {
        let c = pairs.map(|p| p.0.as_ptr());
        let x = pairs.map(|p| p.1.as_ptr());
        let mut sums = [_mm256_setzero_ps(); 4];
        let mut at = 0;
        while at < taps {
            for lane in 0..4 {
                // SAFETY: at + 8 <= taps, the length of both slices.
                let product =
                    unsafe { _mm256_mul_ps(_mm256_loadu_ps(c[lane].add(at)), _mm256_loadu_ps(x[lane].add(at))) };
                sums[lane] = _mm256_add_ps(sums[lane], product);
            }
            at += 8;
        }
        sums.map(|sum| {
            let quad = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
            let pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
        })
    }
}
