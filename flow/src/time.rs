//! Two kinds of time, which never mix.
//!
//! [`MediaTime`] counts positions and lengths on a stream's own time line, exactly, for every audio rate and video
//! frame rate in use; it says nothing about when something happens. [`Mono`] is a reading of the engine's one
//! monotonic clock; it says nothing about media.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// Ticks of [`MediaTime`] in one second: 705 600 000, the "flick" rate.
///
/// It is a multiple of 8, 11.025, 16, 22.05, 24, 32, 44.1, 48, 88.2, 96 and 192 kHz and of 24, 25, 30, 50, 60, 90, 100
/// and 120 frames per second, also at the NTSC rates (x 1000/1001), so positions never need rounding. The unit was
/// published by Facebook (Oculus) in 2018 as the `flick`.
pub const TICKS_PER_SECOND: i64 = 705_600_000;

/// A position or a length on a media time line, in ticks of 1/705 600 000 s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MediaTime(i64);

impl MediaTime {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// `ticks` of 1/[`TICKS_PER_SECOND`] s.
    pub const fn from_ticks(ticks: i64) -> Self {
        Self(ticks)
    }
    /// The number of ticks.
    pub const fn ticks(self) -> i64 {
        self.0
    }
    /// The time that `samples` samples per channel take at `rate` Hz; exact where `rate` divides the tick rate, else
    /// rounded down to a tick. Zero when `rate` is zero.
    pub const fn from_samples(samples: u64, rate: u32) -> Self {
        if rate == 0 {
            return Self(0);
        }
        Self((samples as i128 * TICKS_PER_SECOND as i128 / rate as i128) as i64)
    }
    /// How many whole samples at `rate` Hz this time holds, rounded to nearest; negative time gives zero.
    pub const fn to_samples(self, rate: u32) -> u64 {
        if self.0 <= 0 {
            return 0;
        }
        ((self.0 as i128 * rate as i128 + TICKS_PER_SECOND as i128 / 2) / TICKS_PER_SECOND as i128) as u64
    }
    /// `ms` milliseconds, exactly.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * (TICKS_PER_SECOND / 1000))
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(TICKS_PER_SECOND / 1000)
    }
    /// Seconds, for people and metrics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / TICKS_PER_SECOND as f64
    }
    /// The same length as a wall-clock duration, rounded down to a nanosecond; negative time gives zero.
    pub const fn to_duration(self) -> Duration {
        if self.0 <= 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.0 as i128 * 1_000_000_000 / TICKS_PER_SECOND as i128) as u64)
    }
    /// The media length of a wall-clock duration, rounded down to a tick, at most the largest media time.
    pub const fn from_duration(d: Duration) -> Self {
        let ticks = d.as_nanos() as i128 * TICKS_PER_SECOND as i128 / 1_000_000_000;
        if ticks > i64::MAX as i128 { Self(i64::MAX) } else { Self(ticks as i64) }
    }
    /// The sum, held at the ends of the range.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The difference, held at the ends of the range.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::fmt::Debug for MediaTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}ms", self.0 as f64 * 1e3 / TICKS_PER_SECOND as f64)
    }
}
impl Add for MediaTime {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        self.saturating_add(o)
    }
}
impl Sub for MediaTime {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self.saturating_sub(o)
    }
}
impl AddAssign for MediaTime {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl SubAssign for MediaTime {
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}

/// A reading of the engine's monotonic clock: nanoseconds since that clock was made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);
    /// The time that has passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
    /// This reading moved forward by `d`.
    pub const fn plus(self, d: Duration) -> Self {
        let n = d.as_nanos();
        Self(self.0.saturating_add(if n > u64::MAX as u128 { u64::MAX } else { n as u64 }))
    }
}
impl std::fmt::Debug for Mono {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t+{:.6}s", self.0 as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_rate_is_exact() {
        for rate in [8_000u32, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 192_000] {
            for n in [0u64, 1, 7, 511, 1_000_003] {
                assert_eq!(MediaTime::from_samples(n, rate).to_samples(rate), n, "{n} at {rate}");
            }
            assert_eq!(MediaTime::from_samples(u64::from(rate), rate).ticks(), TICKS_PER_SECOND);
        }
    }
    #[test]
    fn odd_rates_and_extremes_do_not_overflow() {
        assert_eq!(MediaTime::from_samples(5, 0), MediaTime::ZERO);
        assert_eq!(MediaTime::from_samples(u64::MAX / 4096, 192_000).to_samples(0), 0);
        assert_eq!(MediaTime::from_duration(Duration::MAX).ticks(), i64::MAX);
        assert_eq!(MediaTime::from_millis(-5).to_duration(), Duration::ZERO);
        assert_eq!(Mono(5).since(Mono(9)), Duration::ZERO);
    }
}
