//! 8-bit unsigned samples: 128 is zero, full scale 128.

use super::quantize;
use crate::{Tally, Tier};

const SCALE: f32 = 1.0 / 128.0;
const LIMIT: f32 = 127.0;

/// `dst[i] = (src[i] - 128) / 128`. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn u8_to_f32(src: &[u8], dst: &mut [f32]) {
    Tier::current().u8_to_f32(src, dst)
}

/// `dst[i] = round(src[i] * 128) + 128`, saturated; not a number gives 128. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_u8(src: &[f32], dst: &mut [u8]) -> Tally {
    Tier::current().f32_to_u8(src, dst)
}

impl Tier {
    /// [`u8_to_f32`](crate::u8_to_f32()) on this tier.
    pub fn u8_to_f32(self, src: &[u8], dst: &mut [f32]) {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: decode(src, dst), avx2: avx2::decode(src, dst))
    }

    /// [`f32_to_u8`](crate::f32_to_u8()) on this tier.
    pub fn f32_to_u8(self, src: &[f32], dst: &mut [u8]) -> Tally {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: encode(src, dst), avx2: avx2::encode(src, dst))
    }
}

fn decode(src: &[u8], dst: &mut [f32]) {
    for (d, &s) in dst.iter_mut().zip(src) {
        *d = (f32::from(s) - 128.0) * SCALE;
    }
}

fn encode(src: &[f32], dst: &mut [u8]) -> Tally {
    let mut tally = Tally::default();
    for (d, &x) in dst.iter_mut().zip(src) {
        *d = (quantize(x, LIMIT, &mut tally) + 128) as u8;
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LIMIT, SCALE, Tally};
    use crate::x86::{Count, load, load64, quantize8, store, store64};

    #[target_feature(enable = "avx2,fma")]
    pub fn decode(src: &[u8], dst: &mut [f32]) {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let (scale, middle) = (_mm256_set1_ps(SCALE), _mm256_set1_epi32(128));
        for (d, s) in out.iter_mut().zip(body) {
            let wide = _mm256_sub_epi32(_mm256_cvtepu8_epi32(load64(s)), middle);
            store(d, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), scale));
        }
        super::decode(tail, out_tail);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn encode(src: &[f32], dst: &mut [u8]) -> Tally {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let mut count = Count::new();
        for (d, s) in out.iter_mut().zip(body) {
            let q = _mm256_add_epi32(quantize8(load(s), LIMIT, &mut count), _mm256_set1_epi32(128));
            let words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256::<1>(q));
            store64(d, _mm_packus_epi16(words, words));
        }
        count.tally() + super::encode(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn every_code_survives_the_round_trip_and_the_ends_saturate() {
        let all: Vec<u8> = (0..=255).collect();
        for &tier in Tier::available() {
            let mut floats = vec![0.0; 256];
            tier.u8_to_f32(&all, &mut floats);
            assert_eq!((floats[0], floats[128], floats[255]), (-1.0, 0.0, 127.0 / 128.0));
            let mut back = vec![0; 256];
            assert!(tier.f32_to_u8(&floats, &mut back).is_clean());
            assert_eq!(back, all, "{tier}");
            let mut ends = [0; 9];
            let src = [1.0, -1.0, f32::NAN, 9.0, -9.0, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
            assert_eq!(tier.f32_to_u8(&src, &mut ends), Tally { nan: 1, clipped: 5 });
            assert_eq!(ends, [255, 0, 128, 255, 0, 128, 128, 255, 0]);
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            let src = wild(n, n as u64 + 1000);
            let mut want = vec![0; n];
            let tally = Tier::PLAIN.f32_to_u8(&src, &mut want);
            for &tier in Tier::available() {
                let mut got = vec![0; n];
                assert_eq!(tier.f32_to_u8(&src, &mut got), tally, "{tier} {n}");
                assert_eq!(got, want, "{tier} {n}");
                let (mut a, mut b) = (vec![0.0; n], vec![0.0; n]);
                Tier::PLAIN.u8_to_f32(&want, &mut a);
                tier.u8_to_f32(&want, &mut b);
                assert_bits(&b, &a, tier.name());
            }
        }
    }
}
