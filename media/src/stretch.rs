//! A clip at another speed and the same pitch (WSOLA: waveform similarity overlap-add).
//!
//! Pieces of the clip are laid over each other closer together or farther apart than they were. Each is looked for near its
//! place, where it is most like what follows the piece before, so that the waves join.

/// Length of a piece and how far it is looked for, in ms.
const PIECE_MS: usize = 40;
const SEARCH_MS: usize = 10;

/// `samples`, interleaved, played at `speed` (2 is twice as fast): `round(frames / speed)` frames. Not a number, zero and
/// less, and 1 leave the clip as it is.
pub fn stretch(samples: &[f32], channels: usize, rate: u32, speed: f64) -> Vec<f32> {
    let frames = samples.len() / channels.max(1);
    if speed == 1.0 || !speed.is_finite() || speed <= 0.0 || frames == 0 {
        return samples.to_vec();
    }
    let due = (frames as f64 / speed).round() as usize;
    let hop = (rate as usize * PIECE_MS / 1000 / 2).max(8);
    let reach = rate as usize * SEARCH_MS / 1000;
    // What is compared: all channels together.
    let mono: Vec<f32> = samples.chunks_exact(channels).map(|f| f.iter().sum()).collect();
    let fade: Vec<f32> =
        (0..hop).map(|i| 0.5 - 0.5 * (std::f32::consts::PI * (i as f32 + 0.5) / hop as f32).cos()).collect();
    let mut out = vec![0.0f32; due * channels];
    let at = |frame: usize, c: usize| samples.get(frame * channels + c).copied().unwrap_or(0.0);
    // The first piece begins as the clip does.
    for (i, o) in out.iter_mut().enumerate().take(hop * channels) {
        *o = at(i / channels, i % channels);
    }
    let (mut from, mut to) = (0usize, hop);
    while to < due {
        // What would follow the piece before.
        let follows = from + hop;
        let place = ((to as f64) * speed).round() as usize;
        from = best(&mono, follows, place, reach, hop);
        for i in 0..hop.min(due - to) {
            for c in 0..channels {
                let old = at(follows + i, c);
                let new = at(from + i, c);
                out[(to + i) * channels + c] = old + (new - old) * fade[i];
            }
        }
        to += hop;
    }
    out
}

/// Where near `place` the clip is most like itself at `follows`, over `len` frames.
fn best(mono: &[f32], follows: usize, place: usize, reach: usize, len: usize) -> usize {
    let Some(wanted) = mono.get(follows..follows + len) else { return place };
    let (low, high) = (place.saturating_sub(reach), place + reach);
    let score = |start: usize, step: usize| -> Option<f32> {
        let piece = mono.get(start..start + len)?;
        let (mut cross, mut energy) = (0.0f32, 1e-9f32);
        for i in (0..len).step_by(step) {
            cross += piece[i] * wanted[i];
            energy += piece[i] * piece[i];
        }
        Some(cross / energy.sqrt())
    };
    let top = |range: &mut dyn Iterator<Item = usize>, step| {
        range.filter_map(|s| Some((score(s, step)?, s))).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, s)| s)
    };
    // Roughly first, then exactly around the best.
    let Some(rough) = top(&mut (low..=high).step_by(4), 4) else { return place };
    top(&mut (rough.saturating_sub(4)..=rough + 4), 1).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(frames: usize, channels: usize) -> Vec<f32> {
        let at = |i: usize| 0.5 * (std::f32::consts::TAU * 220.0 * i as f32 / 24_000.0).sin();
        (0..frames * channels).map(|i| at(i / channels)).collect()
    }

    #[test]
    fn the_length_changes_and_the_pitch_does_not() {
        for channels in [1, 2] {
            let clip = tone(48_000, channels);
            for speed in [0.25, 0.5, 0.8, 1.3, 2.0, 4.0] {
                let out = stretch(&clip, channels, 24_000, speed);
                assert_eq!(out.len(), (48_000.0 / speed).round() as usize * channels);
                let one: Vec<f32> = out.iter().step_by(channels).copied().collect();
                let periods = one.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count() as f64;
                let pitch = periods * 24_000.0 / one.len() as f64;
                assert!((pitch - 220.0).abs() < 4.0, "{speed}: {pitch} Hz");
                // The waves join: a tone stays as loud as it was, everywhere but at the very end.
                let loud = one[..one.len() * 9 / 10].chunks(240).map(|w| w.iter().fold(0.0f32, |m, s| m.max(s.abs())));
                assert!(loud.clone().all(|l| (0.4..0.6).contains(&l)), "{speed}");
            }
        }
    }

    #[test]
    fn odd_clips_are_no_trouble() {
        assert_eq!(stretch(&[], 1, 24_000, 2.0), []);
        assert_eq!(stretch(&[0.5], 1, 8000, 4.0).len(), 0);
        assert_eq!(stretch(&[0.5; 3], 1, 8000, 0.25).len(), 12);
        assert_eq!(stretch(&[0.5; 6], 2, 1000, f64::NAN), [0.5; 6]);
        assert_eq!(stretch(&[0.5; 6], 2, 1000, 0.0), [0.5; 6]);
    }
}
