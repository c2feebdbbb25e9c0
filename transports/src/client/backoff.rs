//! How long to wait between attempts to come back.

use std::time::Duration;

/// Waits that double, each somewhere in its upper half, so that many clients do not come back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait, at most.
    pub first: Duration,
    /// Every wait, at most.
    pub most: Duration,
    /// Attempts.
    pub attempts: u32,
}

impl Default for Backoff {
    /// Eight attempts, from 250 ms to 8 s: a little more than the 30 s for which a server keeps a session.
    fn default() -> Self {
        Self { first: Duration::from_millis(250), most: Duration::from_secs(8), attempts: 8 }
    }
}

impl Backoff {
    /// The wait before attempt `n` (from 0); `random` is from 0 to 1. `None`: no more attempts.
    pub fn wait(&self, n: u32, random: f64) -> Option<Duration> {
        if n >= self.attempts {
            return None;
        }
        let whole = self.first.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(self.most);
        Some(whole.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_end() {
        let b = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(1), attempts: 6 };
        let all: Vec<_> = (0..7).map(|n| b.wait(n, 1.0).map(|d| d.as_millis())).collect();
        assert_eq!(all, [Some(100), Some(200), Some(400), Some(800), Some(1000), Some(1000), None]);
        assert_eq!(b.wait(1, 0.0), Some(Duration::from_millis(100)));
        let long = Backoff { attempts: u32::MAX, ..b };
        assert_eq!(long.wait(40, 1.0), Some(Duration::from_secs(1)));
    }
    #[test]
    fn waits_stay_between_half_and_whole() {
        let b = Backoff::default();
        for i in 0..=10 {
            let wait = b.wait(2, f64::from(i) / 10.0).unwrap();
            assert!(wait >= b.first * 2 && wait <= b.first * 4, "{wait:?}");
        }
    }
}
