//! Chunk growth bounded by how much the listener still has to play.
//!
//! The target of the next chunk follows the headroom: audio handed on less time passed since the first chunk. Once the
//! headroom covers making a full chunk, chunks stay full for the rest of the segment. Targets never shrink.

use omni_flow::Mono;

/// The numbers of the adaptive rule; all counts are frames and at least 1, `min` is not above `size`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// The smallest target that headroom may choose.
    pub min: u32,
    /// The full chunk.
    pub size: u32,
    /// Playback time that must stay in hand, ms.
    pub margin_ms: f64,
    /// Growth per chunk is `floor(e / divisor)` frames.
    pub divisor: u32,
    /// The least growth per chunk.
    pub delta_min: u32,
}

impl Default for Adaptive {
    /// The defaults of the port options: min 2, size 25, margin 50 ms, divisor 15, least growth 2.
    fn default() -> Self {
        Self { min: 2, size: 25, margin_ms: 50.0, divisor: 15, delta_min: 2 }
    }
}

/// What the rule remembers within one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Headroom {
    /// Moving average of the ms that a frame takes to make; 0 = nothing measured yet.
    pub frame_ms: f64,
    /// When the first chunk of the segment left.
    pub first_emit: Option<Mono>,
    /// When the latest chunk left.
    pub last_emit: Option<Mono>,
    /// Frames handed on in this segment.
    pub emitted: u64,
    /// The latest target (not what was shipped).
    pub last_target: u64,
    /// Whether chunks are full from now on.
    pub locked: bool,
}

impl Headroom {
    /// Playback time in hand at `now`, ms, for frames of `play_ms`: negative once the listener waits.
    pub fn buffer_ms(&self, play_ms: f64, now: Mono) -> f64 {
        self.emitted as f64 * play_ms - self.first_emit.map_or(0.0, |t0| ms(now, t0))
    }
    /// The frames that the next chunk should have; may lock the full size.
    pub fn target(&mut self, rule: &Adaptive, play_ms: f64, now: Mono) -> u64 {
        let (size, min) = (u64::from(rule.size), u64::from(rule.min));
        let (e, buffer) = (self.frame_ms, self.buffer_ms(play_ms, now));
        if self.locked || (e > 0.0 && buffer >= rule.size as f64 * e + rule.margin_ms) {
            self.locked = true;
            return size;
        }
        // A float cast saturates, so neither a tiny `e` nor a negative headroom can overflow.
        let affordable = if e > 0.0 { ((buffer - rule.margin_ms).max(0.0) / e).floor() as u64 } else { min };
        let greedy = affordable.min(size).max(min);
        let measured = if e > 0.0 { (e / f64::from(rule.divisor)).floor() as u64 } else { 0 };
        let delta = measured.max(u64::from(rule.delta_min));
        self.last_target.saturating_add(delta).max(greedy).min(size)
    }
    /// Takes note that `frames` left at `now` under `target`.
    pub fn emitted(&mut self, frames: u64, target: u64, now: Mono) {
        if let Some(last) = self.last_emit.filter(|_| self.emitted > 0 && frames > 0) {
            self.measure(ms(now, last), frames);
        }
        self.first_emit.get_or_insert(now);
        self.last_emit = Some(now);
        self.emitted += frames;
        self.last_target = target;
    }
    fn measure(&mut self, elapsed_ms: f64, frames: u64) {
        let m = elapsed_ms / frames as f64;
        self.frame_ms = if self.frame_ms == 0.0 { m } else { 0.3 * m + 0.7 * self.frame_ms };
    }
}

fn ms(now: Mono, earlier: Mono) -> f64 {
    now.since(earlier).as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }
    fn state(e: f64, emitted: u64, last: u64) -> Headroom {
        Headroom {
            frame_ms: e,
            first_emit: Some(at(0)),
            last_emit: Some(at(0)),
            emitted,
            last_target: last,
            locked: false,
        }
    }

    #[test]
    fn targets_follow_the_table() {
        let rule = Adaptive::default();
        let rows = [
            (50.0, 2, 4, 200, rule, 7),
            (50.0, 4, 4, 100, rule, 7),
            (50.0, 8, 0, 100, rule, 9),
            (10.0, 50, 0, 100, rule, 25),
            (0.0, 10, 0, 1, rule, 2),
            (50.0, 2, 4, 200, Adaptive { divisor: 10, ..rule }, 9),
            (10.0, 2, 4, 200, Adaptive { delta_min: 4, ..rule }, 8),
        ];
        for (e, emitted, last, now, rule, want) in rows {
            assert_eq!(state(e, emitted, last).target(&rule, 80.0, at(now)), want, "e {e} emitted {emitted} {rule:?}");
        }
        assert_eq!(state(50.0, 2, 4).buffer_ms(80.0, at(200)), -40.0);
        assert_eq!(state(50.0, 4, 4).buffer_ms(80.0, at(100)), 220.0);
    }
    #[test]
    fn the_full_size_is_locked_for_good() {
        let rule = Adaptive::default();
        let mut s = state(10.0, 50, 0);
        assert_eq!(s.target(&rule, 80.0, at(100)), 25);
        assert_eq!(s.target(&rule, 80.0, at(1_000_000)), 25, "also when the headroom is long gone");
        let mut unmeasured = state(0.0, 1000, 0);
        unmeasured.target(&rule, 80.0, at(1));
        assert!(!unmeasured.locked, "no lock without a measurement");
    }
    #[test]
    fn the_average_moves_by_three_tenths() {
        let mut s = state(20.0, 8, 8);
        s.emitted(8, 8, at(500));
        assert!((s.frame_ms - 32.75).abs() < 1e-9, "{}", s.frame_ms);
        let mut s = state(0.0, 4, 4);
        s.emitted(4, 4, at(400));
        assert_eq!(s.frame_ms, 100.0);
        let mut s = Headroom::default();
        s.emitted(4, 4, at(400));
        assert_eq!((s.frame_ms, s.emitted, s.first_emit), (0.0, 4, Some(at(400))), "the first chunk measures nothing");
    }
    #[test]
    fn extremes_do_not_overflow() {
        let rule = Adaptive { divisor: 1, ..Adaptive::default() };
        for e in [f64::MIN_POSITIVE, 1e300, f64::INFINITY] {
            let mut s = state(e, u64::MAX / 2, u64::MAX);
            assert!(s.target(&rule, 80.0, Mono(u64::MAX)) <= 25);
        }
    }
}
