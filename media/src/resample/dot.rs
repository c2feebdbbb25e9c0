//! The inner loop of the resampler, the same in every bit on every machine.
//!
//! Each output has eight running sums, one per lane, and one fixed tree at the end. The vector version (AVX2, chosen
//! at run time) does the same multiplications and additions in the same order and uses no fused operation, so its
//! error against the plain version is 0. It makes eight outputs of one phase at a time, which hides the latency of the
//! additions and loads a coefficient once for all of them; where a ratio has too many phases for that, four outputs in
//! a row.

use super::Position;

/// A way to run the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dot {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

/// A filter table and how far one output goes: `whole` samples and `part` phases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) coefficients: &'a [f32],
    pub(super) taps: usize,
    pub(super) up: usize,
    pub(super) whole: usize,
    pub(super) part: usize,
}

/// Coefficients and samples of one output: equal lengths, a multiple of 8.
type Pair<'a> = (&'a [f32], &'a [f32]);

impl Dot {
    /// The fastest one of this machine.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Dot::Avx2;
        }
        Dot::Plain
    }

    /// Writes an output to every `stride`-th place of `out` from `offset` on, and returns the position after the last.
    pub(super) fn run(
        self,
        walk: Walk<'_>,
        samples: &[f32],
        at: Position,
        out: &mut [f32],
        offset: usize,
        stride: usize,
    ) -> Position {
        match self {
            Dot::Plain => walk_plain(walk, samples, at, out, offset, stride),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only made after the feature was found.
            Dot::Avx2 => unsafe { avx2::walk(walk, samples, at, out, offset, stride) },
        }
    }
}

impl<'a> Walk<'a> {
    /// The pair at a position, which moves on by one output.
    #[inline(always)]
    fn take(&self, samples: &'a [f32], at: &mut Position) -> Pair<'a> {
        let pair = (&self.coefficients[at.phase * self.taps..][..self.taps], &samples[at.base..][..self.taps]);
        at.base += self.whole;
        at.phase += self.part;
        if at.phase >= self.up {
            at.phase -= self.up;
            at.base += 1;
        }
        pair
    }
}

fn walk_plain<'a>(
    walk: Walk<'a>,
    samples: &'a [f32],
    mut at: Position,
    out: &mut [f32],
    offset: usize,
    stride: usize,
) -> Position {
    for place in out.iter_mut().skip(offset).step_by(stride) {
        *place = plain(walk.take(samples, &mut at));
    }
    at
}

#[inline(always)]
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

    use super::{Pair, Position, Walk, plain};

    /// Outputs of one phase that are summed side by side.
    const SAME: usize = 8;

    /// # Safety
    /// The machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn walk<'a>(
        walk: Walk<'a>,
        samples: &'a [f32],
        mut at: Position,
        out: &mut [f32],
        offset: usize,
        stride: usize,
    ) -> Position {
        let count = out.len() / stride;
        let down = walk.whole * walk.up + walk.part;
        let mut done = 0;
        while count - done >= SAME * walk.up {
            for phase in 0..walk.up {
                let base = at.base;
                let (coefficients, _) = walk.take(samples, &mut at);
                // The same phase comes again `up` outputs later, `down` samples further on.
                let under = &samples[base..][..(SAME - 1) * down + walk.taps];
                // SAFETY: `under` holds `taps` values from each multiple of `down` below `SAME`.
                let values = unsafe { same(coefficients, under.as_ptr(), down) };
                for (index, value) in values.into_iter().enumerate() {
                    out[(done + index * walk.up + phase) * stride + offset] = value;
                }
            }
            at.base += (SAME - 1) * down;
            done += SAME * walk.up;
        }
        while count - done >= 4 {
            let pairs: [Pair<'a>; 4] = [
                walk.take(samples, &mut at),
                walk.take(samples, &mut at),
                walk.take(samples, &mut at),
                walk.take(samples, &mut at),
            ];
            // SAFETY: `take` checked that all eight slices hold `taps` values, a multiple of 8.
            let values = unsafe { four(pairs, walk.taps) };
            for (index, value) in values.into_iter().enumerate() {
                out[(done + index) * stride + offset] = value;
            }
            done += 4;
        }
        while done < count {
            out[done * stride + offset] = plain(walk.take(samples, &mut at));
            done += 1;
        }
        at
    }

    /// The same coefficients (a multiple of 8) over `SAME` places of the samples, `apart` from each other.
    ///
    /// # Safety
    /// `x` may be read for `(SAME - 1) * apart + coefficients.len()` values.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn same(coefficients: &[f32], x: *const f32, apart: usize) -> [f32; SAME] {
        let mut sums = [_mm256_setzero_ps(); SAME];
        for (block, c) in coefficients.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: `c` holds eight values; the last one of `x` read is the last that may be.
            unsafe {
                let c = _mm256_loadu_ps(c.as_ptr());
                for (index, sum) in sums.iter_mut().enumerate() {
                    let x = _mm256_loadu_ps(x.add(block * 8 + index * apart));
                    *sum = _mm256_add_ps(*sum, _mm256_mul_ps(c, x));
                }
            }
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
        let ([a, b, c, d], [e, f, g, h]) = (totals([s0, s1, s2, s3]), totals([s4, s5, s6, s7]));
        [a, b, c, d, e, f, g, h]
    }

    /// # Safety
    /// Every slice holds at least `taps` values, a multiple of 8.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(pairs: [Pair<'_>; 4], taps: usize) -> [f32; 4] {
        let [c0, c1, c2, c3] = pairs.map(|p| p.0.as_ptr());
        let [x0, x1, x2, x3] = pairs.map(|p| p.1.as_ptr());
        let [mut s0, mut s1, mut s2, mut s3] = [_mm256_setzero_ps(); 4];
        let mut at = 0;
        while at < taps {
            // SAFETY: at + 8 <= taps, the length of every slice.
            unsafe {
                s0 = _mm256_add_ps(s0, _mm256_mul_ps(_mm256_loadu_ps(c0.add(at)), _mm256_loadu_ps(x0.add(at))));
                s1 = _mm256_add_ps(s1, _mm256_mul_ps(_mm256_loadu_ps(c1.add(at)), _mm256_loadu_ps(x1.add(at))));
                s2 = _mm256_add_ps(s2, _mm256_mul_ps(_mm256_loadu_ps(c2.add(at)), _mm256_loadu_ps(x2.add(at))));
                s3 = _mm256_add_ps(s3, _mm256_mul_ps(_mm256_loadu_ps(c3.add(at)), _mm256_loadu_ps(x3.add(at))));
            }
            at += 8;
        }
        totals([s0, s1, s2, s3])
    }

    /// The tree of the plain version, for four outputs at once.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn totals(sums: [__m256; 4]) -> [f32; 4] {
        let [q0, q1, q2, q3] = sums.map(|s| _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps::<1>(s)));
        // Lanes: a + c and b + d of one output, then of the next.
        let low = _mm_add_ps(_mm_movelh_ps(q0, q1), _mm_movehl_ps(q1, q0));
        let high = _mm_add_ps(_mm_movelh_ps(q2, q3), _mm_movehl_ps(q3, q2));
        let total = _mm_add_ps(_mm_shuffle_ps::<0b10_00_10_00>(low, high), _mm_shuffle_ps::<0b11_01_11_01>(low, high));
        let mut values = [0.0; 4];
        // SAFETY: the array has room for four values.
        unsafe { _mm_storeu_ps(values.as_mut_ptr(), total) };
        values
    }
}
