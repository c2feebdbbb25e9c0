//! How much input a session may have waiting (Realtime protocol, limits, "pending input").
//!
//! Bytes and commits are held by permits, which give them back when they are dropped: work that is cancelled, rolled back
//! or lost with its task returns its share by itself. Permits may be dropped on any thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Bounds of what may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, audio that is not committed yet included.
    pub bytes: usize,
    /// Commits accepted whose turn is not done.
    pub commits: usize,
}

impl Default for Limits {
    /// 16 MiB and 4 commits.
    fn default() -> Self {
        Self { bytes: 16 << 20, commits: 4 }
    }
}

/// Too much waits already (`input_backpressure`, worth another try); nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Bytes.
    #[error("{held} bytes of input wait already and {asked} more would exceed {limit}; try again once a turn is done")]
    Bytes {
        /// Bytes that wait.
        held: usize,
        /// Bytes asked for.
        asked: usize,
        /// The most that may wait.
        limit: usize,
    },
    /// Commits.
    #[error("{limit} commits wait already; try again once a turn is done")]
    Commits {
        /// The most that may wait.
        limit: usize,
    },
}

/// What waits in one session.
#[derive(Debug)]
pub struct Pending {
    limits: Limits,
    bytes: Arc<AtomicUsize>,
    commits: Arc<AtomicUsize>,
}

impl Pending {
    /// Nothing waits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, bytes: Arc::default(), commits: Arc::default() }
    }

    /// Room for so many bytes.
    ///
    /// # Errors
    /// [`Full::Bytes`]
    pub fn hold(&self, bytes: usize) -> Result<Bytes, Full> {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.limits.bytes);
        match self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(Bytes { count: bytes, total: Arc::clone(&self.bytes) }),
            Err(held) => Err(Full::Bytes { held, asked: bytes, limit: self.limits.bytes }),
        }
    }

    /// A place for one commit.
    ///
    /// # Errors
    /// [`Full::Commits`]
    pub fn commit(&self) -> Result<Commit, Full> {
        let add = |held: usize| (held < self.limits.commits).then_some(held + 1);
        match self.commits.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(Commit { total: Arc::clone(&self.commits) }),
            Err(_) => Err(Full::Commits { limit: self.limits.commits }),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Commits that wait.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::Acquire)
    }
}

/// Some of a session's bytes; dropping it gives them back.
#[derive(Debug)]
#[must_use = "dropping it gives the bytes back"]
pub struct Bytes {
    count: usize,
    total: Arc<AtomicUsize>,
}

impl Bytes {
    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes over the bytes of another permit of the same session. One of another session comes back.
    ///
    /// # Errors
    /// The other permit, unchanged.
    pub fn join(&mut self, mut other: Bytes) -> Result<(), Bytes> {
        if !Arc::ptr_eq(&self.total, &other.total) {
            return Err(other);
        }
        self.count += std::mem::take(&mut other.count);
        Ok(())
    }

    /// Gives back so many of them, at most all.
    pub fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.count);
        self.count -= bytes;
        self.total.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.release(self.count);
    }
}

/// The place of one commit; dropping it gives the place back.
#[derive(Debug)]
#[must_use = "dropping it gives the place back"]
pub struct Commit {
    total: Arc<AtomicUsize>,
}

impl Drop for Commit {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fifth_commit_waits_until_one_is_done() {
        let pending = Pending::new(Limits::default());
        let mut places: Vec<_> = (0..4).map(|_| pending.commit().unwrap()).collect();
        assert_eq!(pending.commit().unwrap_err(), Full::Commits { limit: 4 });
        places.pop();
        let _fifth = pending.commit().unwrap();
        assert_eq!(pending.commits(), 4);
    }

    #[test]
    fn the_bound_of_bytes_is_exact_and_a_refusal_changes_nothing() {
        let pending = Pending::new(Limits { bytes: 100, commits: 1 });
        let all = pending.hold(100).unwrap();
        assert_eq!(pending.hold(1).unwrap_err(), Full::Bytes { held: 100, asked: 1, limit: 100 });
        assert!(pending.hold(usize::MAX).is_err());
        assert_eq!(pending.bytes(), 100);
        drop(all);
        assert_eq!(pending.bytes(), 0);
    }

    #[test]
    fn a_permit_of_another_session_is_not_taken_over() {
        let (a, b) = (Pending::new(Limits::default()), Pending::new(Limits::default()));
        let mut held = a.hold(5).unwrap();
        let other = held.join(b.hold(7).unwrap()).unwrap_err();
        assert_eq!((held.count(), other.count(), a.bytes(), b.bytes()), (5, 7, 5, 7));
    }

    proptest! {
        #[test]
        fn what_waits_is_the_sum_of_the_permits(steps in prop::collection::vec((0u8..4, 0usize..60), 0..60)) {
            let pending = Pending::new(Limits { bytes: 100, commits: 4 });
            let mut permits: Vec<Bytes> = Vec::new();
            for (what, n) in steps {
                let sum: usize = permits.iter().map(Bytes::count).sum();
                match what {
                    0 => match pending.hold(n) {
                        Ok(permit) => { prop_assert!(sum + n <= 100); permits.push(permit) }
                        Err(_) => prop_assert!(sum + n > 100),
                    },
                    1 if !permits.is_empty() => drop(permits.swap_remove(n % permits.len())),
                    2 if !permits.is_empty() => { let at = n % permits.len(); permits[at].release(n) }
                    3 if permits.len() > 1 => {
                        let other = permits.pop().unwrap();
                        permits[0].join(other).unwrap();
                    }
                    _ => {}
                }
                prop_assert_eq!(pending.bytes(), permits.iter().map(Bytes::count).sum::<usize>());
            }
            permits.clear();
            prop_assert_eq!(pending.bytes(), 0);
        }
    }
}
