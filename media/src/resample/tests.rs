use proptest::prelude::*;

use super::{bank::Bank, dot::Dot, *};

const RATES: [u32; 6] = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000];

fn noise(frames: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    (0..frames)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn tone(frequency: f64, rate: u32, frames: usize) -> Vec<f32> {
    let step = 2.0 * std::f64::consts::PI * frequency / f64::from(rate);
    (0..frames).map(|n| (step * n as f64).sin() as f32).collect()
}

fn rms(samples: &[f32]) -> f64 {
    (samples.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / samples.len() as f64).sqrt()
}

/// F15. The length is rounded, so the grid of outputs may end before the last input sample: by up to 1.5 outputs less one
/// input. An impulse on that sample has its peak where there is no output, and is there by the flank that the outputs
/// before it hold. So what is asked for depends on where it lies: its peak if an output is near, its flank if not, and
/// always the very samples that the same input followed by silence gives: the end of a stream cuts, and changes nothing.
#[test]
fn impulses_at_both_ends_survive_with_exact_length() {
    let highest = |part: &[f32]| part.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for n in [1000usize, 1023, 1025] {
        for (from, to) in RATES.iter().flat_map(|from| RATES.map(|to| (*from, to))) {
            for quality in [Quality::Fast, Quality::Good, Quality::Best] {
                let mut input = vec![0.0; n];
                input[0] = 1.0;
                input[n - 1] = 1.0;
                let out = resample(&input, from, to, 1, quality).unwrap();
                let case = format!("{n} from {from} to {to}, {quality:?}");
                assert_eq!(out.len() as u64, output_len(n as u64, from, to), "{case}");
                input.resize(n + 1000, 0.0);
                let longer = resample(&input, from, to, 1, quality).unwrap();
                assert_eq!(out, longer[..out.len()], "{case}");
                // An impulse of full band keeps about min(1, out/in) of its height at its place.
                let ratio = f64::from(to) / f64::from(from);
                let height = ratio.min(1.0) as f32;
                let place = (n - 1) as f64 * ratio;
                let near = 2 + ratio as usize;
                assert!(highest(&out[..near]) > 0.6 * height, "{case}");
                assert!(highest(&longer[place as usize - near..place as usize + near]) > 0.6 * height, "{case}");
                let beyond = (place - (out.len() - 1) as f64) / ratio.max(1.0);
                let asked = match beyond {
                    ..=0.5 => 0.6,
                    ..=0.8 => 0.25,
                    _ => 0.03,
                };
                let last = highest(&out[out.len() - 8 - near..]);
                assert!(last > asked * height, "{case}: {last} of {height}, {beyond} beyond the end");
                // And nothing of them in the middle.
                if quality != Quality::Best {
                    let middle = &out[out.len() * 2 / 5..out.len() * 3 / 5];
                    assert!(rms(middle) < 1e-3, "{case}: {}", rms(middle));
                }
            }
        }
    }
}

#[test]
fn loud_stream_then_reset_leaves_silence() {
    for (from, to) in [(24_000, 16_000), (8_000, 44_100), (48_000, 48_000)] {
        let mut resampler = Resampler::new(from, to, 2, Quality::Good).unwrap();
        let mut out = Vec::new();
        resampler.push(&noise(9_999 * 2, 3), &mut out);
        resampler.reset();
        out.clear();
        resampler.push(&vec![0.0; 1_001 * 2], &mut out);
        resampler.flush(&mut out);
        assert_eq!(out.len() as u64, 2 * output_len(1_001, from, to));
        assert!(out.iter().all(|&v| v == 0.0));
        // A flush also leaves it as new.
        resampler.push(&noise(500 * 2, 5), &mut out);
        resampler.flush(&mut out);
        out.clear();
        resampler.push(&[0.0; 200], &mut out);
        resampler.flush(&mut out);
        assert!(out.iter().all(|&v| v == 0.0));
    }
}

#[test]
fn rate_switch_gives_both_parts_their_exact_length() {
    let mut out = Vec::new();
    for (rate, frames) in [(24_000, 24_017u64), (16_000, 15_999)] {
        let mut resampler = Resampler::new(rate, 48_000, 1, Quality::Good).unwrap();
        let before = out.len();
        resampler.push(&noise(frames as usize, 1), &mut out);
        resampler.flush(&mut out);
        assert_eq!((out.len() - before) as u64, output_len(frames, rate, 48_000));
    }
}

#[test]
fn tone_keeps_its_pitch_between_all_rates() {
    for from in RATES {
        for to in RATES {
            let out = resample(&tone(440.0, from, from as usize), from, to, 1, Quality::Good).unwrap();
            assert_eq!(out.len(), to as usize);
            let crossings = out.windows(2).filter(|w| (w[0] < 0.0) != (w[1] < 0.0)).count();
            assert!((878..=882).contains(&crossings), "{from} to {to}: {crossings}");
        }
    }
}

#[test]
fn tone_equals_the_tone_made_at_the_other_rate() {
    for (from, to) in [(24_000, 16_000), (16_000, 24_000), (44_100, 16_000), (8_000, 48_000), (48_000, 22_050)] {
        let out = resample(&tone(1_000.0, from, from as usize), from, to, 1, Quality::Good).unwrap();
        let want = tone(1_000.0, to, to as usize);
        let inner = to as usize / 20..to as usize * 19 / 20;
        let error: Vec<f32> = inner.clone().map(|n| out[n] - want[n]).collect();
        let db = 20.0 * (rms(&error) / rms(&want[inner])).log10();
        assert!(db < -75.0, "{from} to {to}: {db:.1} dB");
    }
}

/// Gain in dB of the filter at a part of the lower rate, from its coefficients.
fn gain_db(from: usize, to: usize, quality: Quality, part: f64) -> f64 {
    let divisor = (1..=from.min(to)).rev().find(|d| from.is_multiple_of(*d) && to.is_multiple_of(*d)).unwrap();
    let (up, down) = (to / divisor, from / divisor);
    let taps = design::taps(up as u64, down as u64, quality) as usize;
    let rows = design::phases(up, down, taps, quality);
    let lower = from.min(to) as f64;
    let (mut re, mut im) = (0.0, 0.0);
    for phase in 0..up {
        for tap in 0..taps {
            let t = phase as f64 / up as f64 - tap as f64;
            let angle = 2.0 * std::f64::consts::PI * part * lower / from as f64 * t;
            let value = f64::from(rows[phase * taps + tap]) / up as f64;
            re += value * angle.cos();
            im += value * angle.sin();
        }
    }
    10.0 * (re * re + im * im).log10()
}

#[test]
fn pass_band_is_flat_and_stop_band_is_closed() {
    for quality in [Quality::Fast, Quality::Good, Quality::Best] {
        let flat = match quality {
            Quality::Fast => 0.38,
            Quality::Good => 0.42,
            Quality::Best => 0.46,
        };
        for (from, to) in [(24_000, 16_000), (16_000, 24_000), (48_000, 8_000), (44_100, 48_000)] {
            for step in 0..=40 {
                let gain = gain_db(from, to, quality, flat * f64::from(step) / 40.0);
                assert!(gain.abs() < 0.1, "{quality:?} {from} to {to}: {gain} dB at {step}");
            }
            // The stop band up to half of the interpolated rate, densely at its edge.
            let top = (from * to) as f64 / 1e4 / from.min(to) as f64;
            let top = top.min(2.5);
            for step in 0..=200 {
                let part = 0.5 + (top - 0.5) * (f64::from(step) / 200.0).powi(2);
                let gain = gain_db(from, to, quality, part);
                assert!(gain < -quality.stopband_db(), "{quality:?} {from} to {to}: {gain:.1} dB at {part}");
            }
            let corner = gain_db(from, to, quality, quality.cutoff());
            assert!((corner + 6.0).abs() < 0.3, "{corner}");
        }
    }
}

#[test]
fn tone_above_the_new_nyquist_does_not_fold_back() {
    for (from, to, frequency) in [(24_000, 16_000, 8_100.0), (48_000, 16_000, 11_000.0), (44_100, 8_000, 5_000.0)] {
        let out = resample(&tone(frequency, from, from as usize), from, to, 1, Quality::Good).unwrap();
        let inner = &out[to as usize / 20..to as usize * 19 / 20];
        let db = 20.0 * (rms(inner) * std::f64::consts::SQRT_2).log10();
        assert!(db < -80.0, "{from} to {to}: {db:.1} dB");
    }
}

#[test]
fn constant_stays_that_constant() {
    for (from, to) in [(24_000, 16_000), (22_050, 48_000), (8_000, 44_100)] {
        let out = resample(&vec![0.5; from as usize], from, to, 1, Quality::Good).unwrap();
        for value in &out[to as usize / 10..to as usize * 9 / 10] {
            assert!((value - 0.5).abs() < 1e-6);
        }
    }
}

#[test]
fn equal_rates_pass_through() {
    let input = noise(777 * 2, 11);
    let mut resampler = Resampler::new(44_100, 44_100, 2, Quality::Best).unwrap();
    assert_eq!(resampler.delay_ms(), 0.0);
    let mut out = Vec::new();
    assert_eq!(resampler.push(&input, &mut out), 777);
    assert_eq!(resampler.flush(&mut out), 0);
    assert_eq!(out, input);
}

#[test]
fn tiny_inputs_flush_to_their_length() {
    for from in RATES {
        for to in RATES {
            for n in 0..5u64 {
                let out = resample(&noise(n as usize, n + 7), from, to, 1, Quality::Good).unwrap();
                assert_eq!(out.len() as u64, output_len(n, from, to));
            }
        }
    }
}

#[test]
fn channels_do_not_mix() {
    let (left, right) = (noise(2_000, 1), noise(2_000, 2));
    let both: Vec<f32> = left.iter().zip(&right).flat_map(|(l, r)| [*l, *r]).collect();
    let out = resample(&both, 44_100, 16_000, 2, Quality::Good).unwrap();
    let want_left = resample(&left, 44_100, 16_000, 1, Quality::Good).unwrap();
    let want_right = resample(&right, 44_100, 16_000, 1, Quality::Good).unwrap();
    assert!(out.iter().step_by(2).eq(&want_left));
    assert!(out.iter().skip(1).step_by(2).eq(&want_right));
}

#[test]
fn position_is_exact_after_hours() {
    // 44.1 kHz to 16 kHz, position set as after 10 hours: the state is the one the exact ratio says.
    let mut resampler = Resampler::new(44_100, 16_000, 1, Quality::Fast).unwrap();
    let mut out = Vec::new();
    let block = vec![0.25; 44_100];
    let seconds = 1_800;
    for _ in 0..seconds {
        out.clear();
        resampler.push(&block, &mut out);
    }
    let ahead = resampler.taps() / 2;
    let ready = (seconds * 44_100 - ahead) as u64;
    assert_eq!(resampler.produced(), (ready * 160).div_ceil(441));
    assert!(resampler.history[0].capacity() < 3 * BLOCK);
}

#[test]
fn delay_is_stated() {
    let resampler = Resampler::new(24_000, 16_000, 1, Quality::Good).unwrap();
    assert_eq!(resampler.taps(), 96);
    assert_eq!(resampler.delay_ms(), 2.0);
    // The first output really comes when that much input is there.
    let mut resampler = resampler;
    let mut out = Vec::new();
    resampler.push(&[0.1; 48], &mut out);
    assert_eq!(out.len(), 0);
    resampler.push(&[0.1], &mut out);
    assert_eq!(out.len(), 1);
}

#[test]
fn nonsense_is_refused() {
    assert!(matches!(Resampler::new(0, 16_000, 1, Quality::Good), Err(ResampleError::Rate { rate: 0 })));
    assert!(matches!(Resampler::new(8_000, 900_000, 1, Quality::Good), Err(ResampleError::Rate { .. })));
    assert!(matches!(Resampler::new(8_000, 16_000, 0, Quality::Good), Err(ResampleError::Channels { .. })));
    assert!(matches!(Resampler::new(767_999, 768_000, 1, Quality::Good), Err(ResampleError::Ratio { .. })));
}

#[test]
fn vector_and_plain_agree_in_every_bit() {
    let samples = noise(5_000, 9);
    // Ratios of one phase and of many; counts that leave rests behind every block; one channel and the second of two.
    for (up, down) in [(2, 3), (160, 441), (3, 1), (1, 3), (2, 1), (1, 6), (7, 5)] {
        for quality in [Quality::Fast, Quality::Good, Quality::Best] {
            let taps = design::taps(up as u64, down as u64, quality) as usize;
            let plain = Bank::new(up, down, taps, quality, Dot::Plain);
            let best = Bank::new(up, down, taps, quality, Dot::best());
            for (length, stride, phase) in [(5_000, 1, 0), (5_000, 2, up - 1), (taps + 37, 1, up / 2), (taps, 1, 0)] {
                let samples = &samples[..length];
                let at = Position { base: 0, phase };
                let count = plain.possible(samples.len(), 0, phase);
                let (mut a, mut b) = (vec![0.0; count * stride], vec![0.0; count * stride]);
                let end = plain.convolve(samples, at, &mut a, stride - 1, stride);
                let other = best.convolve(samples, at, &mut b, stride - 1, stride);
                assert_eq!((end.base, end.phase), (other.base, other.phase));
                assert!(a == b, "{up}/{down} {quality:?} {length} {stride}");
            }
        }
    }
}

/// The definition, in f64: y(n) = sum x(k) h(n·down/up - k).
fn naive(input: &[f32], up: usize, down: usize, quality: Quality, length: usize) -> Vec<f64> {
    let taps = design::taps(up as u64, down as u64, quality) as usize;
    let rows = design::phases(up, down, taps, quality);
    (0..length)
        .map(|n| {
            let (index, phase) = (n * down / up, n * down % up);
            (0..taps)
                .map(|tap| {
                    let at = (index + tap + 1).checked_sub(taps / 2);
                    let sample = at.and_then(|at| input.get(at)).copied().unwrap_or(0.0);
                    f64::from(rows[phase * taps + tap]) * f64::from(sample)
                })
                .sum()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_gives_the_same_bits(
        from in 0usize..6, to in 0usize..6, channels in 1usize..4,
        cuts in prop::collection::vec(0usize..700, 0..30), seed in any::<u64>(),
    ) {
        let frames: usize = cuts.iter().sum();
        let input = noise(frames * channels, seed);
        let whole = resample(&input, RATES[from], RATES[to], channels, Quality::Good).unwrap();
        prop_assert_eq!(whole.len() as u64, channels as u64 * output_len(frames as u64, RATES[from], RATES[to]));
        let mut resampler = Resampler::new(RATES[from], RATES[to], channels, Quality::Good).unwrap();
        let (mut out, mut at) = (Vec::new(), 0);
        for cut in cuts {
            resampler.push(&input[at..at + cut * channels], &mut out);
            at += cut * channels;
        }
        resampler.flush(&mut out);
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn output_is_the_definition(frames in 0usize..400, pair in 0usize..4, seed in any::<u64>()) {
        let (from, to, up, down) = [(24_000, 16_000, 2, 3), (16_000, 48_000, 3, 1), (44_100, 16_000, 160, 441),
            (8_000, 22_050, 441, 160)][pair];
        let input = noise(frames, seed);
        let out = resample(&input, from, to, 1, Quality::Fast).unwrap();
        let want = naive(&input, up, down, Quality::Fast, out.len());
        for (a, b) in out.iter().zip(&want) {
            prop_assert!((f64::from(*a) - b).abs() < 2e-6);
        }
    }
}
