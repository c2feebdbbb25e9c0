//! Crossfade of one channel from an old signal to a new one, saturating at full scale.

use crate::mix::full_scale;
use crate::{Tally, Tier};

/// The shape of a crossfade; `t` runs from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fade {
    /// Factors `1 - t` and `t`: keeps the level of signals that are alike (joins of the same speech).
    #[default]
    Linear,
    /// Factors `sqrt(1 - t)` and `sqrt(t)`: keeps the power of signals that have nothing in common.
    EqualPower,
}

/// `out[i] = saturate(old[i] * a(t) + new[i] * b(t))` with `t = (i + 0.5) / n`: symmetric, so that a fade and its reverse
/// mirror each other. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn crossfade(old: &[f32], new: &[f32], out: &mut [f32], fade: Fade) -> Tally {
    Tier::current().crossfade(old, new, out, fade)
}

impl Tier {
    /// [`crossfade`](crate::crossfade()) on this tier.
    pub fn crossfade(self, old: &[f32], new: &[f32], out: &mut [f32], fade: Fade) -> Tally {
        assert!(old.len() == out.len() && new.len() == out.len(), "all three sides of a fade are equally long");
        let step = 1.0 / out.len() as f32;
        dispatch!(
            self,
            plain: plain(old, new, out, fade, step, 0),
            avx2: avx2::crossfade(old, new, out, fade, step),
        )
    }
}

fn plain(old: &[f32], new: &[f32], out: &mut [f32], fade: Fade, step: f32, first: usize) -> Tally {
    let mut tally = Tally::default();
    for (i, ((d, &a), &b)) in out.iter_mut().zip(old).zip(new).enumerate() {
        let t = ((first + i) as f32 + 0.5) * step;
        let (fall, rise) = match fade {
            Fade::Linear => (1.0 - t, t),
            Fade::EqualPower => ((1.0 - t).sqrt(), t.sqrt()),
        };
        *d = full_scale(a * fall + b * rise, &mut tally);
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Fade, Tally, plain};
    use crate::x86::{Count, full_scale8, index8, load, store};

    #[target_feature(enable = "avx2,fma")]
    pub fn crossfade(old: &[f32], new: &[f32], out: &mut [f32], fade: Fade, step: f32) -> Tally {
        debug_assert!(old.len() == out.len() && new.len() == out.len());
        let (old_body, old_tail) = old.as_chunks::<8>();
        let (new_body, new_tail) = new.as_chunks::<8>();
        let (body, tail) = out.as_chunks_mut::<8>();
        let first = body.len() * 8;
        let (half, scale, one) = (_mm256_set1_ps(0.5), _mm256_set1_ps(step), _mm256_set1_ps(1.0));
        let mut count = Count::new();
        for (i, ((d, a), b)) in body.iter_mut().zip(old_body).zip(new_body).enumerate() {
            let t = _mm256_mul_ps(_mm256_add_ps(index8(i * 8), half), scale);
            let rest = _mm256_sub_ps(one, t);
            let (fall, rise) = match fade {
                Fade::Linear => (rest, t),
                Fade::EqualPower => (_mm256_sqrt_ps(rest), _mm256_sqrt_ps(t)),
            };
            let sum = _mm256_add_ps(_mm256_mul_ps(load(a), fall), _mm256_mul_ps(load(b), rise));
            store(d, full_scale8(sum, &mut count));
        }
        count.tally() + plain(old_tail, new_tail, tail, fade, step, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn a_linear_fade_between_equal_signals_changes_nothing_audible() {
        for &tier in Tier::available() {
            let x = [0.5f32; 33];
            let mut out = [0.0; 33];
            assert!(tier.crossfade(&x, &x, &mut out, Fade::Linear).is_clean());
            assert!(out.iter().all(|v| (v - 0.5).abs() < 1e-6), "{tier}");
        }
    }

    #[test]
    fn equal_power_factors_have_unit_power_and_mirror_each_other() {
        for &tier in Tier::available() {
            let (one, zero) = ([1.0f32; 21], [0.0f32; 21]);
            let (mut fall, mut rise) = ([0.0; 21], [0.0; 21]);
            tier.crossfade(&one, &zero, &mut fall, Fade::EqualPower);
            tier.crossfade(&zero, &one, &mut rise, Fade::EqualPower);
            for i in 0..21 {
                assert!((fall[i] * fall[i] + rise[i] * rise[i] - 1.0).abs() < 1e-6);
                assert!((fall[i] - rise[20 - i]).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            for fade in [Fade::Linear, Fade::EqualPower] {
                let (old, new) = (wild(n, n as u64), wild(n, n as u64 + 5));
                let mut want = vec![0.0; n];
                let tally = Tier::PLAIN.crossfade(&old, &new, &mut want, fade);
                for &tier in Tier::available() {
                    let mut got = vec![0.0; n];
                    assert_eq!(tier.crossfade(&old, &new, &mut got, fade), tally, "{tier} {n}");
                    assert_bits(&got, &want, tier.name());
                }
            }
        }
    }
}
