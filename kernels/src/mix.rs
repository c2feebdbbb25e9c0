//! Mixing and saturation of `f32` samples at full scale [-1, 1].

use crate::{Tally, Tier};

/// `acc[i] = saturate(acc[i] + src[i] * gain)`, product and sum each rounded once. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn mix(acc: &mut [f32], src: &[f32], gain: f32) -> Tally {
    Tier::current().mix(acc, src, gain)
}

/// Brings every sample into [-1, 1]; not a number becomes 0. Exact.
pub fn saturate(x: &mut [f32]) -> Tally {
    Tier::current().saturate(x)
}

impl Tier {
    /// [`mix`](crate::mix()) on this tier.
    pub fn mix(self, acc: &mut [f32], src: &[f32], gain: f32) -> Tally {
        assert_eq!(acc.len(), src.len(), "both sides of a mix are equally long");
        dispatch!(self, plain: plain_mix(acc, src, gain), avx2: avx2::mix(acc, src, gain))
    }

    /// [`saturate`](crate::saturate()) on this tier.
    pub fn saturate(self, x: &mut [f32]) -> Tally {
        dispatch!(self, plain: plain_saturate(x), avx2: avx2::saturate(x))
    }
}

/// The reference of saturation for one sample.
#[inline]
pub(crate) fn full_scale(x: f32, tally: &mut Tally) -> f32 {
    if x.is_nan() {
        tally.nan += 1;
        return 0.0;
    }
    if x.abs() > 1.0 {
        tally.clipped += 1;
    }
    x.clamp(-1.0, 1.0)
}

fn plain_mix(acc: &mut [f32], src: &[f32], gain: f32) -> Tally {
    let mut tally = Tally::default();
    for (a, &s) in acc.iter_mut().zip(src) {
        *a = full_scale(*a + s * gain, &mut tally);
    }
    tally
}

fn plain_saturate(x: &mut [f32]) -> Tally {
    let mut tally = Tally::default();
    for v in x {
        *v = full_scale(*v, &mut tally);
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Tally, plain_mix, plain_saturate};
    use crate::x86::{Count, full_scale8, load, store};

    #[target_feature(enable = "avx2,fma")]
    pub fn mix(acc: &mut [f32], src: &[f32], gain: f32) -> Tally {
        debug_assert_eq!(acc.len(), src.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = acc.as_chunks_mut::<8>();
        let g = _mm256_set1_ps(gain);
        let mut count = Count::new();
        for (a, s) in out.iter_mut().zip(body) {
            let sum = _mm256_add_ps(load(a), _mm256_mul_ps(load(s), g));
            store(a, full_scale8(sum, &mut count));
        }
        count.tally() + plain_mix(out_tail, tail, gain)
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn saturate(x: &mut [f32]) -> Tally {
        let (body, tail) = x.as_chunks_mut::<8>();
        let mut count = Count::new();
        for v in body {
            store(v, full_scale8(load(v), &mut count));
        }
        count.tally() + plain_saturate(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn a_loud_sum_saturates_and_what_is_no_number_is_silent() {
        for &tier in Tier::available() {
            let mut acc = [0.75, -0.75, 0.25, f32::NAN, f32::INFINITY, 0.5, 0.5, 0.5, -0.9];
            let src = [0.75, -0.75, 0.25, 0.0, f32::NEG_INFINITY, f32::NAN, f32::INFINITY, 0.0, -0.2];
            assert_eq!(tier.mix(&mut acc, &src, 1.0), Tally { nan: 3, clipped: 4 }, "{tier}");
            assert_eq!(acc, [1.0, -1.0, 0.5, 0.0, 0.0, 0.0, 1.0, 0.5, -1.0]);
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            for gain in [1.0, -0.5, 0.0, 3.7, f32::NAN, f32::INFINITY] {
                let (acc, src) = (wild(n, n as u64), wild(n, n as u64 + 9));
                let mut want = acc.clone();
                let tally = Tier::PLAIN.mix(&mut want, &src, gain);
                let mut flat = src.clone();
                let flat_tally = Tier::PLAIN.saturate(&mut flat);
                for &tier in Tier::available() {
                    let mut got = acc.clone();
                    assert_eq!(tier.mix(&mut got, &src, gain), tally, "{tier} {n} {gain}");
                    assert_bits(&got, &want, tier.name());
                    let mut got = src.clone();
                    assert_eq!(tier.saturate(&mut got), flat_tally);
                    assert_bits(&got, &flat, tier.name());
                }
            }
        }
    }
}
