//! Channels side by side (interleaved frames) or one after the other (planes), and fewer or more of them.
//!
//! A frame is one sample of each channel. All here is exact: equal to the reference bit for bit.

use crate::{Tally, Tier};

/// Frames from planes: `frames[i * planes.len() + c] = planes[c][i]`.
///
/// # Panics
/// If the planes are not equally long, or `frames` is not as long as all of them.
pub fn interleave(planes: &[&[f32]], frames: &mut [f32]) {
    Tier::current().interleave(planes, frames)
}

/// Planes from frames: `planes[c][i] = frames[i * planes.len() + c]`.
///
/// # Panics
/// If the planes are not equally long, or `frames` is not as long as all of them.
pub fn deinterleave(frames: &[f32], planes: &mut [&mut [f32]]) {
    Tier::current().deinterleave(frames, planes)
}

/// One channel from frames of `channels`: the mean, so L = R = x gives x and the level never rises. A frame whose sum is
/// not a number gives 0 and is counted.
///
/// # Panics
/// If `channels` is 0 or `frames` does not hold `channels` samples for each output.
pub fn downmix(frames: &[f32], channels: usize, mono: &mut [f32]) -> Tally {
    Tier::current().downmix(frames, channels, mono)
}

/// Frames of `channels` from one channel: the same sample in each.
///
/// # Panics
/// If `frames` does not hold `channels` samples for each input.
pub fn spread(mono: &[f32], channels: usize, frames: &mut [f32]) {
    assert_eq!(mono.len().checked_mul(channels), Some(frames.len()), "one sample for each channel of each frame");
    if channels > 0 {
        for (frame, &v) in frames.chunks_exact_mut(channels).zip(mono) {
            frame.fill(v);
        }
    }
}

impl Tier {
    /// [`interleave`](crate::interleave()) on this tier.
    pub fn interleave(self, planes: &[&[f32]], frames: &mut [f32]) {
        check(planes.iter().map(|p| p.len()), frames.len());
        match planes {
            [left, right] => {
                dispatch!(self, plain: plain_interleave(planes, frames), avx2: avx2::interleave(left, right, frames))
            }
            _ => plain_interleave(planes, frames),
        }
    }

    /// [`deinterleave`](crate::deinterleave()) on this tier.
    pub fn deinterleave(self, frames: &[f32], planes: &mut [&mut [f32]]) {
        check(planes.iter().map(|p| p.len()), frames.len());
        match planes {
            [left, right] => dispatch!(
                self,
                plain: plain_deinterleave(frames, &mut [left, right]),
                avx2: avx2::deinterleave(frames, left, right),
            ),
            _ => plain_deinterleave(frames, planes),
        }
    }

    /// [`downmix`](crate::downmix()) on this tier.
    pub fn downmix(self, frames: &[f32], channels: usize, mono: &mut [f32]) -> Tally {
        assert!(channels > 0, "a frame has at least one channel");
        assert_eq!(mono.len().checked_mul(channels), Some(frames.len()), "one frame for each output sample");
        match channels {
            2 => dispatch!(self, plain: plain_stereo(frames, mono), avx2: avx2::downmix(frames, mono)),
            _ => plain_downmix(frames, channels, mono),
        }
    }
}

fn check(mut planes: impl Iterator<Item = usize>, frames: usize) {
    let first = planes.next().unwrap_or(0);
    let count = 1 + planes.inspect(|&n| assert_eq!(n, first, "planes are equally long")).count();
    assert_eq!(first.checked_mul(count), Some(frames), "a place for each sample of each plane");
}

fn plain_interleave(planes: &[&[f32]], frames: &mut [f32]) {
    for (c, plane) in planes.iter().enumerate() {
        for (d, &s) in frames.iter_mut().skip(c).step_by(planes.len()).zip(*plane) {
            *d = s;
        }
    }
}

fn plain_deinterleave(frames: &[f32], planes: &mut [&mut [f32]]) {
    let channels = planes.len();
    for (c, plane) in planes.iter_mut().enumerate() {
        for (d, &s) in plane.iter_mut().zip(frames.iter().skip(c).step_by(channels)) {
            *d = s;
        }
    }
}

fn number(v: f32, tally: &mut Tally) -> f32 {
    if v.is_nan() {
        tally.nan += 1;
        return 0.0;
    }
    v
}

fn plain_stereo(frames: &[f32], mono: &mut [f32]) -> Tally {
    let mut tally = Tally::default();
    for (d, [l, r]) in mono.iter_mut().zip(frames.as_chunks::<2>().0) {
        *d = number((l + r) * 0.5, &mut tally);
    }
    tally
}

/// The sum of equal `f32` values is exact in `f64`, so their mean is the value itself for any count of channels.
fn plain_downmix(frames: &[f32], channels: usize, mono: &mut [f32]) -> Tally {
    let mut tally = Tally::default();
    for (d, frame) in mono.iter_mut().zip(frames.chunks_exact(channels)) {
        let sum: f64 = frame.iter().copied().map(f64::from).sum();
        *d = number((sum / channels as f64) as f32, &mut tally);
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Tally, plain_deinterleave, plain_interleave, plain_stereo};
    use crate::x86::{Count, load, store};

    #[target_feature(enable = "avx2,fma")]
    pub fn interleave(left: &[f32], right: &[f32], frames: &mut [f32]) {
        debug_assert!(left.len() == right.len() && frames.len() == 2 * left.len());
        let (l, l_tail) = left.as_chunks::<8>();
        let (r, r_tail) = right.as_chunks::<8>();
        let (body, tail) = frames.split_at_mut(l.len() * 16);
        for (d, (l, r)) in body.as_chunks_mut::<8>().0.chunks_exact_mut(2).zip(l.iter().zip(r)) {
            let (l, r) = (load(l), load(r));
            let (low, high) = (_mm256_unpacklo_ps(l, r), _mm256_unpackhi_ps(l, r));
            store(&mut d[0], _mm256_permute2f128_ps::<0x20>(low, high));
            store(&mut d[1], _mm256_permute2f128_ps::<0x31>(low, high));
        }
        plain_interleave(&[l_tail, r_tail], tail);
    }

    /// Left and right samples of eight frames.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn split(a: __m256, b: __m256) -> (__m256, __m256) {
        let low = _mm256_permute2f128_ps::<0x20>(a, b);
        let high = _mm256_permute2f128_ps::<0x31>(a, b);
        (_mm256_shuffle_ps::<0b10_00_10_00>(low, high), _mm256_shuffle_ps::<0b11_01_11_01>(low, high))
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn deinterleave(frames: &[f32], left: &mut [f32], right: &mut [f32]) {
        debug_assert!(left.len() == right.len() && frames.len() == 2 * left.len());
        let (l, l_tail) = left.as_chunks_mut::<8>();
        let (r, r_tail) = right.as_chunks_mut::<8>();
        let (body, tail) = frames.split_at(l.len() * 16);
        for (s, (l, r)) in body.as_chunks::<8>().0.chunks_exact(2).zip(l.iter_mut().zip(r)) {
            let (left, right) = split(load(&s[0]), load(&s[1]));
            store(l, left);
            store(r, right);
        }
        plain_deinterleave(tail, &mut [l_tail, r_tail]);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn downmix(frames: &[f32], mono: &mut [f32]) -> Tally {
        debug_assert_eq!(frames.len(), 2 * mono.len());
        let (out, out_tail) = mono.as_chunks_mut::<8>();
        let (body, tail) = frames.split_at(out.len() * 16);
        let half = _mm256_set1_ps(0.5);
        let mut count = Count::new();
        for (s, d) in body.as_chunks::<8>().0.chunks_exact(2).zip(out) {
            let (left, right) = split(load(&s[0]), load(&s[1]));
            let mean = _mm256_mul_ps(_mm256_add_ps(left, right), half);
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(mean, mean);
            count.nan(nan);
            store(d, _mm256_andnot_ps(nan, mean));
        }
        count.tally() + plain_stereo(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, tame, wild};

    #[test]
    fn the_mean_of_equal_channels_is_the_channel() {
        for &tier in Tier::available() {
            for channels in 1..=9 {
                let mono = tame(37, channels as u64);
                let mut frames = vec![0.0; 37 * channels];
                spread(&mono, channels, &mut frames);
                let mut back = vec![0.0; 37];
                assert!(tier.downmix(&frames, channels, &mut back).is_clean());
                assert_bits(&back, &mono, tier.name());
            }
            let mut out = [9.0; 2];
            tier.downmix(&[0.5, 0.5, 1.0, -1.0], 2, &mut out);
            assert_eq!(out, [0.5, 0.0]);
        }
    }

    #[test]
    fn interleave_and_back_is_the_identity_for_any_count_of_channels() {
        for &tier in Tier::available() {
            for channels in 1..=8usize {
                for n in sizes() {
                    let planes: Vec<Vec<f32>> = (0..channels).map(|c| wild(n, c as u64 + 1)).collect();
                    let refs: Vec<&[f32]> = planes.iter().map(Vec::as_slice).collect();
                    let mut frames = vec![0.0; n * channels];
                    tier.interleave(&refs, &mut frames);
                    for i in 0..n * channels {
                        assert_eq!(frames[i].to_bits(), planes[i % channels][i / channels].to_bits(), "{tier} {n}");
                    }
                    let mut back = vec![vec![0.0; n]; channels];
                    let mut outs: Vec<&mut [f32]> = back.iter_mut().map(Vec::as_mut_slice).collect();
                    tier.deinterleave(&frames, &mut outs);
                    for (a, b) in back.iter().zip(&planes) {
                        assert_bits(a, b, tier.name());
                    }
                }
            }
        }
    }

    #[test]
    fn all_tiers_downmix_wild_stereo_alike() {
        for n in sizes() {
            let frames = wild(2 * n, n as u64 + 3);
            let mut want = vec![0.0; n];
            let tally = Tier::PLAIN.downmix(&frames, 2, &mut want);
            for &tier in Tier::available() {
                let mut got = vec![0.0; n];
                assert_eq!(tier.downmix(&frames, 2, &mut got), tally, "{tier} {n}");
                assert_bits(&got, &want, tier.name());
            }
        }
    }

    #[test]
    fn no_planes_are_no_frames() {
        interleave(&[], &mut []);
        deinterleave(&[], &mut []);
    }
}
