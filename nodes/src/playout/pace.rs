//! Pacing by media time: sample n is due at `t0 + n / rate`, and a lag is made up slowly.
//!
//! After a stall at most one extra frame leaves per frame interval of the grid, until the pace is back on the grid; the
//! time base never moves because somebody was late. The grid is computed from the count of samples, so it never drifts.

use omni_flow::Mono;

/// Most frames in one interval of the grid: the one that is due and one extra.
const MOST_PER_INTERVAL: u32 = 2;

/// The grid of one stretch of audio.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: u32,
    /// Samples of a whole frame.
    frame: u64,
    t0: Mono,
    /// Samples handed out since `t0`.
    sent: u64,
    interval: u64,
    in_interval: u32,
}

impl Pace {
    /// A grid that begins at `t0`, for frames of `frame` samples at `rate` Hz (both at least 1).
    pub const fn new(rate: u32, frame: u32, t0: Mono) -> Self {
        let (rate, frame) = (if rate == 0 { 1 } else { rate }, if frame == 0 { 1 } else { frame as u64 });
        Self { rate, frame, t0, sent: 0, interval: 0, in_interval: 0 }
    }
    /// When the next frame is due on the grid, whatever has left in this interval.
    pub const fn due(&self) -> Mono {
        self.at(self.sent)
    }
    /// The earliest time from `now` on at which the next frame may leave.
    pub const fn next(&self, now: Mono) -> Mono {
        let (due, interval) = (self.due(), self.interval_of(now));
        if interval <= self.interval && self.in_interval >= MOST_PER_INTERVAL {
            let free = self.at((self.interval + 1).saturating_mul(self.frame));
            if free.0 > due.0 { free } else { due }
        } else {
            due
        }
    }
    /// Whether the next frame may leave at `now`.
    pub const fn ready(&self, now: Mono) -> bool {
        self.next(now).0 <= now.0
    }
    /// Takes note that `samples` left at `now`.
    pub const fn sent(&mut self, samples: u64, now: Mono) {
        let interval = self.interval_of(now);
        if interval > self.interval {
            self.interval = interval;
            self.in_interval = 0;
        }
        self.in_interval = self.in_interval.saturating_add(1);
        self.sent = self.sent.saturating_add(samples);
    }
    /// Moves the grid later by `gap` ns, because there was nothing to send for that long.
    pub const fn shift(&mut self, gap: u64) {
        self.t0 = Mono(self.t0.0.saturating_add(gap));
    }
    /// Samples that a player who began at `t0` has played at `now`: never more than were sent.
    pub const fn played(&self, now: Mono) -> u64 {
        let samples = self.elapsed_samples(now);
        if samples < self.sent { samples } else { self.sent }
    }
    /// Samples sent that such a player has not played at `now`.
    pub const fn unplayed(&self, now: Mono) -> u64 {
        self.sent - self.played(now)
    }
    /// How far handing out is behind the grid at `now`, ns.
    pub const fn lag(&self, now: Mono) -> u64 {
        now.0.saturating_sub(self.due().0)
    }

    const fn at(&self, samples: u64) -> Mono {
        // One rounding, down to a nanosecond; media ticks would add another at unusual rates.
        let ns = samples as u128 * 1_000_000_000 / self.rate as u128;
        Mono(self.t0.0.saturating_add(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 }))
    }
    const fn interval_of(&self, now: Mono) -> u64 {
        self.elapsed_samples(now) / self.frame
    }
    /// Whole samples of the grid that have begun to pass; consistent with `at`, which rounds down to a nanosecond.
    const fn elapsed_samples(&self, now: Mono) -> u64 {
        let ns = now.0.saturating_sub(self.t0.0) as u128;
        let floor = ns * self.rate as u128 / 1_000_000_000;
        let next = floor as u64 + 1;
        if self.at(next).0 <= now.0 { next } else { floor as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Plays with the sleeps given after each wake; returns the times of the frames.
    fn simulate(rate: u32, until: u64, mut late: impl FnMut(u64) -> u64) -> (Pace, Vec<u64>) {
        let frame = rate / 50;
        let mut pace = Pace::new(rate, frame, Mono(7 * MS));
        let (mut now, mut times) = (Mono(7 * MS), Vec::new());
        while now.0 < until + 7 * MS {
            while pace.ready(now) {
                pace.sent(u64::from(frame), now);
                times.push(now.0 - 7 * MS);
            }
            let next = pace.next(now);
            assert!(next > now, "a frame is either ready or has a time");
            now = Mono(next.0 + late(next.0));
        }
        (pace, times)
    }
    fn most_per_interval(times: &[u64]) -> usize {
        times.chunk_by(|a, b| a / (20 * MS) == b / (20 * MS)).map(<[u64]>::len).max().unwrap_or(0)
    }

    #[test]
    fn frames_leave_on_the_grid() {
        for rate in [8_000, 16_000, 22_050, 24_000, 44_100, 48_000] {
            let (_, times) = simulate(rate, 60_000 * MS, |_| 0);
            assert_eq!(times.len(), 3_000);
            let exact = times.iter().enumerate().all(|(n, &t)| t == n as u64 * 20 * MS);
            assert!(exact, "{rate} Hz");
        }
    }
    #[test]
    fn a_jump_of_two_seconds_is_made_up_by_one_extra_frame_per_interval() {
        let jump = 10_003 * MS;
        let mut jumped = false;
        let (_, times) = simulate(24_000, 20_000 * MS, |next| {
            let now = next >= jump && !std::mem::replace(&mut jumped, next >= jump);
            if now { 2_000 * MS } else { 0 }
        });
        assert_eq!(times.len(), 1_000, "none lost");
        assert!(times.is_sorted());
        assert_eq!(most_per_interval(&times), 2);
        let back = times.iter().enumerate().rposition(|(n, &t)| t != n as u64 * 20 * MS).expect("some are late");
        let end = times[back];
        assert!(end <= jump + 4_040 * MS, "back on the grid 2 s after the stall, not at {} ms", end / MS);
    }
    #[test]
    fn ten_minutes_of_sloppy_timers_keep_the_rate() {
        let mut x = 0x2545_F491_4F6C_DD1Du64;
        let (_, times) = simulate(24_000, 600_000 * MS, |_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % (30 * MS)
        });
        assert!((29_999..=30_001).contains(&times.len()), "{} frames", times.len());
        assert!(most_per_interval(&times) <= 2);
        let (_, always) = simulate(24_000, 600_000 * MS, |_| 30 * MS);
        assert!((29_999..=30_001).contains(&always.len()), "{} frames when always 30 ms late", always.len());
    }
    proptest! {
        #[test]
        fn never_early_never_more_than_two(late in proptest::collection::vec(0u64..400, 1..50), rate in 8_000u32..96_000) {
            let (mut i, frame) = (0, rate / 50);
            let (_, times) = simulate(rate, 5_000 * MS, |_| {
                i += 1;
                late[i % late.len()] * MS
            });
            for (n, &t) in times.iter().enumerate() {
                let due = n as u128 * u128::from(frame) * 1_000_000_000 / u128::from(rate);
                prop_assert!(u128::from(t) + 1 >= due, "frame {n} at {t}, due {due}");
            }
        }
    }
}
