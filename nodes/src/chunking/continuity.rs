//! Whether a ramp can be played without a gap at a given speed, as `check --explain` prints it.
//!
//! The model is one stream alone: frames are made back to back at `g` ms each, playing starts when the first chunk is
//! out, and a frame plays for `p` ms. It says nothing about load, network or decoder time beyond `g`.

/// One chunk of a ramp, judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampStep {
    /// Number of the chunk, from 0.
    pub chunk: usize,
    /// Frames out before it.
    pub before: u64,
    /// Its frames.
    pub size: u64,
    /// The most frames it may have for no underrun: `floor(before · (p/g − 1) + first)`.
    pub limit: u64,
    /// Silence heard before it, ms, by a player that waits and goes on (each gap shifts what follows).
    pub gap_ms: f64,
}

/// What [`check_ramp`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct RampReport {
    /// The chunks from number 1 on, through the ramp and on at its last size until nothing can change any more.
    pub steps: Vec<RampStep>,
    /// Whether the speed can be held for ever: frames are made at least as fast as they play.
    pub sustained: bool,
}

impl RampReport {
    /// The first chunk that leaves a gap.
    pub fn first_gap(&self) -> Option<&RampStep> {
        self.steps.iter().find(|s| s.gap_ms > 0.0)
    }
}

/// The most frames that the next chunk may have for no underrun, when `before` frames are out and `first` of them were
/// in the first chunk: `floor(before · (p/g − 1) + first)`, not below zero. A `g` that is not positive has no limit.
pub fn ramp_limit(before: u64, first: u64, p_ms: f64, g_ms: f64) -> u64 {
    // `!(g > 0)` also takes a NaN.
    if g_ms.is_nan() || g_ms <= 0.0 || p_ms.is_nan() {
        return u64::MAX;
    }
    // One division at the end: C·(p − g) + C0·g is exact for whole milliseconds.
    ((before as f64 * (p_ms - g_ms) + first as f64 * g_ms) / g_ms).max(0.0).floor() as u64
}

/// Judges chunks of `sizes` frames, then `size` each, for frames that play `p_ms` and take `g_ms` to make.
///
/// Looks past the ramp until a chunk of `size` is within its limit for good, at most 1000 chunks.
pub fn check_ramp(sizes: &[u32], size: u32, p_ms: f64, g_ms: f64) -> RampReport {
    const MOST: usize = 1000;
    let first = u64::from(sizes.first().copied().unwrap_or(size));
    let sustained = g_ms <= p_ms;
    let mut steps = Vec::new();
    let (mut before, mut shift) = (first, 0.0);
    for chunk in 1..MOST {
        let in_ramp = chunk < sizes.len();
        let n = u64::from(if in_ramp { sizes[chunk] } else { size });
        let limit = ramp_limit(before, first, p_ms, g_ms);
        let ready = (before + n) as f64 * g_ms;
        let until = first as f64 * g_ms + before as f64 * p_ms + shift;
        let gap_ms = (ready - until).max(0.0);
        shift += gap_ms;
        steps.push(RampStep { chunk, before, size: n, limit, gap_ms });
        before += n;
        if !in_ramp && (!sustained || n <= limit) {
            break;
        }
    }
    RampReport { steps, sustained }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_formula() {
        for (before, limit) in [(4, 6), (8, 8), (16, 13), (29, 21)] {
            assert_eq!(ramp_limit(before, 4, 80.0, 50.0), limit, "C = {before}");
        }
        assert_eq!(ramp_limit(4, 4, 80.0, 0.0), u64::MAX);
        assert_eq!(ramp_limit(100, 4, 80.0, 200.0), 0);
    }
    #[test]
    fn a_ramp_that_grows_too_fast_underruns_and_a_measured_one_does_not() {
        let fast = check_ramp(&[4, 4, 8, 16, 25], 25, 80.0, 50.0);
        let gap = fast.first_gap().expect("a gap");
        assert_eq!((gap.chunk, gap.before, gap.size, gap.limit, gap.gap_ms), (3, 16, 16, 13, 120.0));
        assert_eq!(fast.steps.iter().filter(|s| s.gap_ms > 0.0).count(), 1, "the wait also helps what follows");
        let right = check_ramp(&[4, 4, 8, 13, 21, 25], 25, 80.0, 50.0);
        assert_eq!(right.first_gap(), None);
        assert!(right.sustained);
    }
    #[test]
    fn a_speed_below_playing_is_never_sustained() {
        let slow = check_ramp(&[4, 4], 25, 80.0, 100.0);
        assert!(!slow.sustained);
        assert!(slow.first_gap().is_some());
        assert!(slow.steps.len() < 10);
        assert!(check_ramp(&[], 25, 80.0, f64::NAN).steps.len() < 1000);
    }
}
