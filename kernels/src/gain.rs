//! Gain, constant or as a straight ramp over a block, saturating at full scale.

use crate::mix::full_scale;
use crate::{Tally, Tier};

/// `x[i] = saturate(x[i] * factor)`. Exact.
pub fn gain(x: &mut [f32], factor: f32) -> Tally {
    Tier::current().gain_ramp(x, factor, factor)
}

/// `x[i] = saturate(x[i] * (from + i * (to - from) / n))` for a block of n samples of one channel; `to` is what the first
/// sample of the next block gets, so blocks join without a step. Exact (blocks of up to 2^24 samples ramp evenly).
pub fn gain_ramp(x: &mut [f32], from: f32, to: f32) -> Tally {
    Tier::current().gain_ramp(x, from, to)
}

impl Tier {
    /// [`gain`](crate::gain()) on this tier.
    pub fn gain(self, x: &mut [f32], factor: f32) -> Tally {
        self.gain_ramp(x, factor, factor)
    }

    /// [`gain_ramp`](crate::gain_ramp()) on this tier.
    pub fn gain_ramp(self, x: &mut [f32], from: f32, to: f32) -> Tally {
        let step = if x.is_empty() { 0.0 } else { (to - from) / x.len() as f32 };
        dispatch!(self, plain: plain(x, from, step, 0), avx2: avx2::ramp(x, from, step))
    }
}

fn plain(x: &mut [f32], from: f32, step: f32, first: usize) -> Tally {
    let mut tally = Tally::default();
    for (i, v) in x.iter_mut().enumerate() {
        *v = full_scale(*v * (from + step * (first + i) as f32), &mut tally);
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Tally, plain};
    use crate::x86::{Count, full_scale8, index8, load, store};

    #[target_feature(enable = "avx2,fma")]
    pub fn ramp(x: &mut [f32], from: f32, step: f32) -> Tally {
        let (body, tail) = x.as_chunks_mut::<8>();
        let first = body.len() * 8;
        let (base, slope) = (_mm256_set1_ps(from), _mm256_set1_ps(step));
        let mut count = Count::new();
        for (i, v) in body.iter_mut().enumerate() {
            let factor = _mm256_add_ps(base, _mm256_mul_ps(slope, index8(i * 8)));
            store(v, full_scale8(_mm256_mul_ps(load(v), factor), &mut count));
        }
        count.tally() + plain(tail, from, step, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn a_ramp_starts_at_from_and_meets_the_next_block() {
        for &tier in Tier::available() {
            let mut x = [1.0f32; 20];
            assert!(tier.gain_ramp(&mut x, 0.0, 1.0).is_clean());
            assert_eq!(x[0], 0.0);
            for (i, v) in x.iter().enumerate() {
                assert!((v - i as f32 / 20.0).abs() < 1e-6, "{tier} {i} {v}");
            }
        }
    }

    #[test]
    fn too_much_gain_saturates() {
        for &tier in Tier::available() {
            let mut x = [0.6, -0.6, 0.4, f32::NAN, 0.0, -0.0, 0.5, 0.1, 0.7];
            assert_eq!(tier.gain(&mut x, 2.0), Tally { nan: 1, clipped: 3 });
            assert_bits(&x, &[1.0, -1.0, 0.8, 0.0, 0.0, -0.0, 1.0, 0.2, 1.0], tier.name());
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            for (from, to) in [(0.0, 1.0), (1.0, 0.0), (2.5, -1.0), (0.7, 0.7), (f32::NAN, 1.0), (1.0, f32::INFINITY)] {
                let src = wild(n, n as u64 + 17);
                let mut want = src.clone();
                let tally = Tier::PLAIN.gain_ramp(&mut want, from, to);
                for &tier in Tier::available() {
                    let mut got = src.clone();
                    assert_eq!(tier.gain_ramp(&mut got, from, to), tally, "{tier} {n} {from} {to}");
                    assert_bits(&got, &want, tier.name());
                }
            }
        }
    }
}
