//! 24-bit samples packed in three bytes, least significant first: full scale 8388608.

use super::quantize;
use crate::{Tally, Tier};

const SCALE: f32 = 1.0 / 8_388_608.0;
const LIMIT: f32 = 8_388_607.0;

/// `dst[i] = sample i of src / 8388608`; `src` holds three bytes for each sample. Exact.
///
/// # Panics
/// If `src` is not three times as long as `dst`.
pub fn i24_to_f32(src: &[u8], dst: &mut [f32]) {
    Tier::current().i24_to_f32(src, dst)
}

/// Sample i of `dst` `= round(src[i] * 8388608)`, saturated; `dst` holds three bytes for each sample. Exact.
///
/// # Panics
/// If `dst` is not three times as long as `src`.
pub fn f32_to_i24(src: &[f32], dst: &mut [u8]) -> Tally {
    Tier::current().f32_to_i24(src, dst)
}

impl Tier {
    /// [`i24_to_f32`](crate::i24_to_f32()) on this tier.
    pub fn i24_to_f32(self, src: &[u8], dst: &mut [f32]) {
        assert_eq!(Some(src.len()), dst.len().checked_mul(3), "three bytes for each sample");
        dispatch!(self, plain: decode(src, dst), avx2: avx2::decode(src, dst))
    }

    /// [`f32_to_i24`](crate::f32_to_i24()) on this tier.
    pub fn f32_to_i24(self, src: &[f32], dst: &mut [u8]) -> Tally {
        assert_eq!(src.len().checked_mul(3), Some(dst.len()), "three bytes for each sample");
        dispatch!(self, plain: encode(src, dst), avx2: avx2::encode(src, dst))
    }
}

fn decode(src: &[u8], dst: &mut [f32]) {
    for (d, &[a, b, c]) in dst.iter_mut().zip(src.as_chunks::<3>().0) {
        *d = (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 * SCALE;
    }
}

fn encode(src: &[f32], dst: &mut [u8]) -> Tally {
    let mut tally = Tally::default();
    for (d, &x) in dst.as_chunks_mut::<3>().0.iter_mut().zip(src) {
        let [a, b, c, _] = quantize(x, LIMIT, &mut tally).to_le_bytes();
        *d = [a, b, c];
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LIMIT, SCALE, Tally};
    use crate::x86::{Count, load, load128, quantize8, store, store64, store128};

    /// Eight samples are 24 bytes: the first four lie in bytes 0..12 of a load at 0, the others in bytes 4..16 of a load
    /// at 8. Each goes to the upper three bytes of its lane and is shifted down with its sign.
    #[target_feature(enable = "avx2,fma")]
    pub fn decode(src: &[u8], dst: &mut [f32]) {
        debug_assert_eq!(src.len(), dst.len() * 3);
        let (body, tail) = src.as_chunks::<24>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let low = _mm_setr_epi8(-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11);
        let high = _mm_setr_epi8(-1, 4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15);
        let scale = _mm256_set1_ps(SCALE);
        for (d, s) in out.iter_mut().zip(body) {
            let (Some(head), Some(rest)) = (s.first_chunk::<16>(), s.last_chunk::<16>()) else { break };
            let a = _mm_shuffle_epi8(load128(head), low);
            let b = _mm_shuffle_epi8(load128(rest), high);
            let wide = _mm256_srai_epi32::<8>(_mm256_set_m128i(b, a));
            store(d, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), scale));
        }
        super::decode(tail, out_tail);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn encode(src: &[f32], dst: &mut [u8]) -> Tally {
        debug_assert_eq!(src.len() * 3, dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<24>();
        let pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        let mut count = Count::new();
        for (d, s) in out.iter_mut().zip(body) {
            let q = quantize8(load(s), LIMIT, &mut count);
            let a = _mm_shuffle_epi8(_mm256_castsi256_si128(q), pack);
            let b = _mm_shuffle_epi8(_mm256_extracti128_si256::<1>(q), pack);
            if let Some(head) = d.first_chunk_mut::<16>() {
                store128(head, _mm_or_si128(a, _mm_slli_si128::<12>(b)));
            }
            if let Some(rest) = d.last_chunk_mut::<8>() {
                store64(rest, _mm_srli_si128::<4>(b));
            }
        }
        count.tally() + super::encode(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Noise, assert_bits, sizes, wild};

    #[test]
    fn the_ends_and_a_sweep_of_codes_survive_the_round_trip() {
        // Every 251st code (a prime, so that all bytes vary), and both ends.
        let codes: Vec<i32> = (-8_388_608..=8_388_607).step_by(251).chain([8_388_607, -1, 0, 1]).collect();
        let bytes: Vec<u8> = codes.iter().flat_map(|c| c.to_le_bytes()[..3].to_vec()).collect();
        for &tier in Tier::available() {
            let mut floats = vec![0.0; codes.len()];
            tier.i24_to_f32(&bytes, &mut floats);
            for (f, c) in floats.iter().zip(&codes) {
                assert_eq!(*f, *c as f32 / 8_388_608.0, "{tier}");
            }
            let mut back = vec![0; bytes.len()];
            assert!(tier.f32_to_i24(&floats, &mut back).is_clean());
            assert!(back == bytes, "{tier}");
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            let src = wild(n, n as u64 + 2000);
            let mut want = vec![0; 3 * n];
            let tally = Tier::PLAIN.f32_to_i24(&src, &mut want);
            let mut noise = Noise::new(n as u64);
            let bytes: Vec<u8> = (0..3 * n).map(|_| noise.bits() as u8).collect();
            let mut floats = vec![0.0; n];
            Tier::PLAIN.i24_to_f32(&bytes, &mut floats);
            for &tier in Tier::available() {
                let mut got = vec![0; 3 * n];
                assert_eq!(tier.f32_to_i24(&src, &mut got), tally, "{tier} {n}");
                assert_eq!(got, want, "{tier} {n}");
                let mut b = vec![0.0; n];
                tier.i24_to_f32(&bytes, &mut b);
                assert_bits(&b, &floats, tier.name());
            }
        }
    }

    #[test]
    fn saturation_and_not_a_number() {
        for &tier in Tier::available() {
            let mut got = [9u8; 27];
            let src = [1.0, -1.0, f32::NAN, 2.0, -2.0, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0];
            assert_eq!(tier.f32_to_i24(&src, &mut got), Tally { nan: 1, clipped: 6 });
            let (max, min) = ([0xFF, 0xFF, 0x7F], [0, 0, 0x80]);
            assert_eq!(*got.as_chunks::<3>().0, [max, min, [0; 3], max, min, max, min, [0; 3], max]);
        }
    }
}
