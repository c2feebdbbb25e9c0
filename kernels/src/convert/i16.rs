//! 16-bit samples: full scale 32768.

use super::quantize;
use crate::{Tally, Tier};

const SCALE: f32 = 1.0 / 32768.0;
const LIMIT: f32 = 32767.0;

/// `dst[i] = src[i] / 32768`. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn i16_to_f32(src: &[i16], dst: &mut [f32]) {
    Tier::current().i16_to_f32(src, dst)
}

/// `dst[i] = round(src[i] * 32768)`, saturated. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_i16(src: &[f32], dst: &mut [i16]) -> Tally {
    Tier::current().f32_to_i16(src, dst)
}

impl Tier {
    /// [`i16_to_f32`](crate::i16_to_f32()) on this tier.
    pub fn i16_to_f32(self, src: &[i16], dst: &mut [f32]) {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: decode(src, dst), avx2: avx2::decode(src, dst))
    }

    /// [`f32_to_i16`](crate::f32_to_i16()) on this tier.
    pub fn f32_to_i16(self, src: &[f32], dst: &mut [i16]) -> Tally {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: encode(src, dst), avx2: avx2::encode(src, dst))
    }
}

fn decode(src: &[i16], dst: &mut [f32]) {
    for (d, &s) in dst.iter_mut().zip(src) {
        *d = f32::from(s) * SCALE;
    }
}

fn encode(src: &[f32], dst: &mut [i16]) -> Tally {
    let mut tally = Tally::default();
    for (d, &x) in dst.iter_mut().zip(src) {
        *d = quantize(x, LIMIT, &mut tally) as i16;
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LIMIT, SCALE, Tally};
    use crate::x86::{Count, load, load128, quantize8, store, store128};

    #[target_feature(enable = "avx2,fma")]
    pub fn decode(src: &[i16], dst: &mut [f32]) {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let scale = _mm256_set1_ps(SCALE);
        for (d, s) in out.iter_mut().zip(body) {
            let wide = _mm256_cvtepi16_epi32(load128(s));
            store(d, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), scale));
        }
        super::decode(tail, out_tail);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn encode(src: &[f32], dst: &mut [i16]) -> Tally {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let mut count = Count::new();
        for (d, s) in out.iter_mut().zip(body) {
            let q = quantize8(load(s), LIMIT, &mut count);
            store128(d, _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256::<1>(q)));
        }
        count.tally() + super::encode(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn every_code_survives_the_round_trip_on_every_tier() {
        let all: Vec<i16> = (i16::MIN..=i16::MAX).collect();
        for &tier in Tier::available() {
            let mut floats = vec![0.0; all.len()];
            tier.i16_to_f32(&all, &mut floats);
            assert_eq!((floats[0], floats[32768], floats[65535]), (-1.0, 0.0, 32767.0 / 32768.0));
            let mut back = vec![0; all.len()];
            assert!(tier.f32_to_i16(&floats, &mut back).is_clean());
            assert_eq!(back, all, "{tier}");
        }
    }

    #[test]
    fn rounding_saturation_and_not_a_number_are_as_documented() {
        let half = 0.5 / 32768.0;
        let src = [1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, half, 3.0 * half, -half, 1e-45, -1.00001];
        let want = [32767, -32768, 0, 32767, -32768, 0, 2, 0, 0, -32768];
        for &tier in Tier::available() {
            let mut got = [7i16; 10];
            // -1.00001 rounds to -32768, which is inside.
            assert_eq!(tier.f32_to_i16(&src, &mut got), Tally { nan: 1, clipped: 3 }, "{tier}");
            assert_eq!(got, want, "{tier}");
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            let src = wild(n, n as u64);
            let mut want = vec![0; n];
            let tally = Tier::PLAIN.f32_to_i16(&src, &mut want);
            for &tier in Tier::available() {
                let mut got = vec![0; n];
                assert_eq!(tier.f32_to_i16(&src, &mut got), tally, "{tier} {n}");
                assert_eq!(got, want, "{tier} {n}");
                let (mut a, mut b) = (vec![0.0; n], vec![0.0; n]);
                Tier::PLAIN.i16_to_f32(&want, &mut a);
                tier.i16_to_f32(&want, &mut b);
                assert_bits(&b, &a, tier.name());
            }
        }
    }

    #[test]
    #[should_panic(expected = "one output sample")]
    fn a_short_output_is_a_mistake_of_the_caller() {
        f32_to_i16(&[0.0; 3], &mut [0; 2]);
    }
}
