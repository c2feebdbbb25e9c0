//! Finite impulse response filters, by block or as a stream with history.
//!
//! Values that are no numbers pass through, as they do in any sum; clean the input first. The outputs of one tier do not
//! depend on how a stream was cut: every output is summed in the order of its taps, wherever in a block it lies.

use crate::Tier;

/// `y[i] = sum over k of taps[k] * x[i + taps.len() - 1 - k]`: the outputs of a convolution for which all inputs exist.
/// `x` holds `y.len() + taps.len() - 1` samples, the oldest first. Error: against an exact sum at most
/// `(taps.len() + 1) * 2^-24 * sum |taps[k] * x|` on every tier (the AVX2 version fuses multiply and add).
///
/// # Panics
/// If `x` has another length, or there are no taps.
pub fn fir(x: &[f32], taps: &[f32], y: &mut [f32]) {
    Tier::current().fir(x, taps, y)
}

/// Sum of `a[i] * b[i]`. Error: at most `(n / 8 + 8) * 2^-24 * sum |a[i] * b[i]|` with AVX2 and `(n + 1) * 2^-24 * ...`
/// with the plain loop, against an exact sum.
///
/// # Panics
/// If the lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    Tier::current().dot(a, b)
}

impl Tier {
    /// [`fir`](crate::fir()) on this tier.
    pub fn fir(self, x: &[f32], taps: &[f32], y: &mut [f32]) {
        assert!(!taps.is_empty(), "a filter has at least one tap");
        assert_eq!(Some(x.len()), y.len().checked_add(taps.len() - 1), "inputs for every output and no more");
        dispatch!(self, plain: plain(x, taps, y), avx2: avx2::fir(x, taps, y))
    }

    /// [`dot`](crate::dot()) on this tier.
    pub fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "both sides of a product are equally long");
        dispatch!(self, plain: plain_dot(a, b), avx2: avx2::dot(a, b))
    }
}

/// A filter over one channel of a stream; before the first sample there was silence.
#[derive(Clone, Debug)]
pub struct Fir {
    taps: Box<[f32]>,
    /// The last `taps.len() - 1` inputs, then the block in work.
    window: Vec<f32>,
    tier: Tier,
}

impl Fir {
    /// A filter with this impulse response; an empty one gives silence.
    pub fn new(taps: &[f32]) -> Self {
        Self::on(Tier::current(), taps)
    }

    /// As [`Fir::new`], on a tier of the caller's choice.
    pub fn on(tier: Tier, taps: &[f32]) -> Self {
        let taps: Box<[f32]> = if taps.is_empty() { Box::new([0.0]) } else { taps.into() };
        let window = vec![0.0; taps.len() - 1];
        Self { taps, window, tier }
    }

    /// Appends one output for each input. Any cut of the input gives the same output.
    pub fn process(&mut self, input: &[f32], out: &mut Vec<f32>) {
        let start = out.len();
        out.resize(start + input.len(), 0.0);
        self.window.extend_from_slice(input);
        self.tier.fir(&self.window, &self.taps, &mut out[start..]);
        self.window.drain(..input.len());
    }

    /// Forgets the history: the next sample follows silence.
    pub fn reset(&mut self) {
        self.window.fill(0.0);
    }
}

fn plain(x: &[f32], taps: &[f32], y: &mut [f32]) {
    for (window, out) in x.windows(taps.len()).zip(y) {
        let mut sum = 0.0;
        for (&tap, &v) in taps.iter().zip(window.iter().rev()) {
            sum += tap * v;
        }
        *out = sum;
    }
}

fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use crate::x86::{lanes, load, store};

    /// Outputs that are summed side by side: four registers hide the latency of the fused multiply-add.
    const WIDE: usize = 32;

    #[target_feature(enable = "avx2,fma")]
    pub fn fir(x: &[f32], taps: &[f32], y: &mut [f32]) {
        debug_assert!(!taps.is_empty() && x.len() == y.len() + taps.len() - 1);
        let (wide, rest) = y.as_chunks_mut::<WIDE>();
        let mut at = 0;
        for out in wide {
            let mut sum = [_mm256_setzero_ps(); 4];
            for (k, &tap) in taps.iter().enumerate() {
                let tap = _mm256_set1_ps(tap);
                let from = at + taps.len() - 1 - k;
                let Some(v) = x.get(from..).and_then(|x| x.first_chunk::<WIDE>()) else { return };
                for (sum, v) in sum.iter_mut().zip(v.as_chunks::<8>().0) {
                    *sum = _mm256_fmadd_ps(tap, load(v), *sum);
                }
            }
            for (out, sum) in out.as_chunks_mut::<8>().0.iter_mut().zip(sum) {
                store(out, sum);
            }
            at += WIDE;
        }
        let (eights, singles) = rest.as_chunks_mut::<8>();
        for out in eights {
            let mut sum = _mm256_setzero_ps();
            for (k, &tap) in taps.iter().enumerate() {
                let from = at + taps.len() - 1 - k;
                let Some(v) = x.get(from..).and_then(|x| x.first_chunk::<8>()) else { return };
                sum = _mm256_fmadd_ps(_mm256_set1_ps(tap), load(v), sum);
            }
            store(out, sum);
            at += 8;
        }
        for (window, out) in x[at..].windows(taps.len()).zip(singles) {
            *out = taps.iter().zip(window.iter().rev()).fold(0.0, |sum, (&tap, &v)| tap.mul_add(v, sum));
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn dot(a: &[f32], b: &[f32]) -> f32 {
        debug_assert_eq!(a.len(), b.len());
        let (a_wide, a_rest) = a.as_chunks::<32>();
        let (b_wide, b_rest) = b.as_chunks::<32>();
        let mut sum = [_mm256_setzero_ps(); 4];
        for (a, b) in a_wide.iter().zip(b_wide) {
            let blocks = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
            for (sum, (a, b)) in sum.iter_mut().zip(blocks) {
                *sum = _mm256_fmadd_ps(load(a), load(b), *sum);
            }
        }
        let (a_eights, a_tail) = a_rest.as_chunks::<8>();
        let (b_eights, b_tail) = b_rest.as_chunks::<8>();
        for (a, b) in a_eights.iter().zip(b_eights) {
            sum[0] = _mm256_fmadd_ps(load(a), load(b), sum[0]);
        }
        let total = _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3]));
        let [a0, a1, a2, a3, a4, a5, a6, a7] = lanes(total);
        let body = ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7));
        a_tail.iter().zip(b_tail).fold(body, |sum, (&x, &y)| x.mul_add(y, sum))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sweep::{assert_bits, sizes, tame};

    const ULP: f64 = 1.0 / (1u64 << 24) as f64;

    #[test]
    fn an_impulse_gives_the_taps() {
        for &tier in Tier::available() {
            for n in [1usize, 2, 7, 8, 33] {
                let taps = tame(n, 5);
                let mut input = vec![0.0; n + 40];
                input[0] = 1.0;
                let mut out = Vec::new();
                Fir::on(tier, &taps).process(&input, &mut out);
                assert_eq!(out[..n], taps[..], "{tier}");
                assert!(out[n..].iter().all(|&v| v == 0.0));
            }
        }
    }

    #[test]
    fn every_tier_keeps_the_stated_error_for_all_sizes() {
        for outputs in sizes() {
            for n in [1usize, 2, 3, 8, 15, 64] {
                let (x, taps) = (tame(outputs + n - 1, 3), tame(n, 4));
                for &tier in Tier::available() {
                    let mut y = vec![9.0; outputs];
                    tier.fir(&x, &taps, &mut y);
                    for (i, got) in y.iter().enumerate() {
                        let terms = (0..n).map(|k| f64::from(taps[k]) * f64::from(x[i + n - 1 - k]));
                        let (sum, scale) = terms.fold((0.0, 0.0), |(s, a), t| (s + t, a + t.abs()));
                        assert!((f64::from(*got) - sum).abs() <= (n + 1) as f64 * ULP * scale, "{tier} {outputs} {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn dot_keeps_the_stated_error() {
        for n in sizes() {
            let (a, b) = (tame(n, 1), tame(n, 2));
            let terms = a.iter().zip(&b).map(|(&x, &y)| f64::from(x) * f64::from(y));
            let (sum, scale) = terms.fold((0.0, 0.0), |(s, m), t| (s + t, m + t.abs()));
            for &tier in Tier::available() {
                let factor = if tier == Tier::PLAIN { n as f64 + 1.0 } else { n as f64 / 8.0 + 8.0 };
                assert!((f64::from(tier.dot(&a, &b)) - sum).abs() <= factor * ULP * scale, "{tier} {n}");
            }
        }
    }

    #[test]
    fn a_reset_filter_is_a_new_one() {
        for &tier in Tier::available() {
            let mut filter = Fir::on(tier, &tame(9, 1));
            let mut out = Vec::new();
            filter.process(&tame(100, 2), &mut out);
            filter.reset();
            out.clear();
            filter.process(&[0.0; 50], &mut out);
            assert!(out.iter().all(|&v| v == 0.0));
        }
    }

    proptest! {
        #[test]
        fn a_stream_does_not_depend_on_its_cuts(
            taps in 1usize..40, cuts in prop::collection::vec(0usize..50, 1..20), seed in 1u64..1000,
        ) {
            let taps = tame(taps, seed);
            let input = tame(cuts.iter().sum(), seed + 1);
            for &tier in Tier::available() {
                let (mut whole, mut parts) = (Vec::new(), Vec::new());
                Fir::on(tier, &taps).process(&input, &mut whole);
                let mut filter = Fir::on(tier, &taps);
                let mut rest = &input[..];
                for &cut in &cuts {
                    let (head, tail) = rest.split_at(cut);
                    filter.process(head, &mut parts);
                    rest = tail;
                }
                assert_bits(&parts, &whole, tier.name());
            }
        }
    }
}
