//! The engine's one clock. Nothing else reads time.
//!
//! Three kinds: the system's monotonic clock, tokio's (so that `tokio::time::pause` governs tests), and the virtual one
//! of [`crate::sim`].

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Mono;
use crate::sim::SimTime;

/// A monotonic clock, cheap to clone. Readings of one clock and its clones compare; others do not.
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    System { zero: Instant, coarse_zero: u64 },
    Tokio { zero: tokio::time::Instant },
    Sim(Arc<SimTime>),
}

impl Clock {
    /// The system's monotonic clock, zero now.
    pub fn system() -> Self {
        let zero = Instant::now();
        // Read after it, and from the exact clock: so the coarse time, which lags behind that, is never ahead.
        Self(Kind::System { zero, coarse_zero: exact_ns().unwrap_or(0) })
    }
    /// The clock of the tokio runtime that the caller runs on, zero now: in a paused runtime, virtual time.
    pub fn tokio() -> Self {
        Self(Kind::Tokio { zero: tokio::time::Instant::now() })
    }
    pub(crate) fn sim(time: Arc<SimTime>) -> Self {
        Self(Kind::Sim(time))
    }
    /// Nanoseconds since this clock's zero.
    pub fn now(&self) -> Mono {
        match &self.0 {
            Kind::System { zero, .. } => Mono(zero.elapsed().as_nanos() as u64),
            Kind::Tokio { zero } => Mono(zero.elapsed().as_nanos() as u64),
            Kind::Sim(t) => t.now(),
        }
    }
    /// The same to within some 4 ms, several times cheaper: for ages and long waits only. It lags behind [`Clock::now`] and
    /// is never ahead of it.
    pub fn coarse(&self) -> Mono {
        match &self.0 {
            Kind::System { coarse_zero, .. } => match coarse_ns() {
                Some(ns) => Mono(ns.saturating_sub(*coarse_zero)),
                None => self.now(),
            },
            _ => self.now(),
        }
    }
    /// Waits until the clock shows `at`.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the wait.
    pub async fn sleep_until(&self, at: Mono) {
        match &self.0 {
            Kind::System { zero, .. } => {
                tokio::time::sleep_until((*zero + Duration::from_nanos(at.0)).into()).await;
            }
            Kind::Tokio { zero } => tokio::time::sleep_until(*zero + Duration::from_nanos(at.0)).await,
            Kind::Sim(t) => t.sleep_until(at).await,
        }
    }
    /// Waits for `d`.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the wait.
    pub async fn sleep(&self, d: Duration) {
        self.sleep_until(self.now().plus(d)).await;
    }
    /// Runs `f` for at most `d`; `None` if it did not end by then (it is dropped).
    ///
    /// # Cancel safety
    /// That of `f`.
    pub async fn timeout<F: Future>(&self, d: Duration, f: F) -> Option<F::Output> {
        let sleep = self.sleep(d);
        futures_util::pin_mut!(f, sleep);
        match futures_util::future::select(f, sleep).await {
            futures_util::future::Either::Left((out, _)) => Some(out),
            futures_util::future::Either::Right(_) => None,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::System { .. } => "system",
            Kind::Tokio { .. } => "tokio",
            Kind::Sim(_) => "sim",
        };
        write!(f, "Clock({kind}, {:?})", self.now())
    }
}

#[cfg(target_os = "linux")]
fn coarse_ns() -> Option<u64> {
    ns(libc::CLOCK_MONOTONIC_COARSE)
}
/// What [`Instant`] reads.
#[cfg(target_os = "linux")]
fn exact_ns() -> Option<u64> {
    ns(libc::CLOCK_MONOTONIC)
}
#[cfg(target_os = "linux")]
fn ns(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid, writable timespec for the length of the call.
    let rc = unsafe { libc::clock_gettime(clock, &raw mut t) };
    (rc == 0).then(|| t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}
#[cfg(not(target_os = "linux"))]
fn coarse_ns() -> Option<u64> {
    None
}
#[cfg(not(target_os = "linux"))]
fn exact_ns() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_time_follows_time() {
        // Made at any moment between two ticks of the coarse clock.
        for _ in 0..200 {
            let c = Clock::system();
            let (a, b) = (c.coarse(), c.now());
            assert!(a <= b, "{a:?} {b:?}");
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    #[tokio::test(start_paused = true)]
    async fn paused_time_is_virtual() {
        let c = Clock::tokio();
        c.sleep(Duration::from_secs(3600)).await;
        assert!(c.now() >= Mono(3_600_000_000_000));
        assert!(c.timeout(Duration::from_secs(1), std::future::pending::<()>()).await.is_none());
    }
}
