//! The events of a session that a returning client may be told again (Realtime protocol, resume).
//!
//! Events are numbered from 1 without a gap and kept for a while, up to so many bytes of compact JSON (the number
//! included; the caller says how many). An event that does not fit ends the journal for the rest of the session: what a
//! client would be told after it would have a hole.

use std::{collections::VecDeque, time::Duration};

/// Bounds of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long an event is kept.
    pub age: Duration,
    /// Bytes of all events kept.
    pub bytes: usize,
}

impl Default for Limits {
    /// 60 s and 8 MiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(60), bytes: 8 << 20 }
    }
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It is kept under this number.
    Numbered(u64),
    /// The journal ended with it: tell the client once (`journal_overflow`). The event goes out without a number.
    Overflow,
    /// The journal has ended before. The event goes out without a number.
    Unnumbered,
}

/// Why an acknowledgement is refused (`invalid_event_ack`); the journal is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// Below zero.
    #[error("the number {0} is negative; acknowledge the last number received, or 0")]
    Negative(i64),
    /// Higher than any number given out.
    #[error("the number {seq} was not sent yet; the last one is {head}")]
    BeyondHead {
        /// The number acknowledged.
        seq: i64,
        /// The last number given out.
        head: u64,
    },
}

/// Why nothing can be told again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Below zero (`invalid_session_resume`).
    #[error("the number {0} is negative; give the last number received, or 0")]
    Negative(i64),
    /// Higher than any number given out (`session_resume_conflict`).
    #[error("the number {seq} was not sent yet; the last one is {head}")]
    BeyondHead {
        /// The number given.
        seq: i64,
        /// The last number given out.
        head: u64,
    },
    /// Events after it are not kept any more (`journal_gap`).
    #[error("events after {seq} are no longer kept; the oldest is {oldest}")]
    Gap {
        /// The number given.
        seq: u64,
        /// The oldest number kept, or the next one if none is.
        oldest: u64,
    },
    /// The journal has ended: live events only (`journal_overflow`).
    #[error("the journal of this session has overflowed; only live events follow")]
    Overflowed,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    at: Duration,
    bytes: usize,
    event: T,
}

/// The journal of one session.
#[derive(Debug, Clone)]
pub struct Journal<T> {
    limits: Limits,
    entries: VecDeque<Entry<T>>,
    bytes: usize,
    next: u64,
    overflowed: bool,
}

impl<T> Journal<T> {
    /// An empty one; the first number is 1.
    pub fn new(limits: Limits) -> Self {
        Self { limits, entries: VecDeque::new(), bytes: 0, next: 1, overflowed: false }
    }

    /// The number that the next event gets; `None` once the journal has ended. It is part of the event's JSON, so it is
    /// asked for first.
    pub fn next(&self) -> Option<u64> {
        (!self.overflowed).then_some(self.next)
    }

    /// The last number given out, 0 if none.
    pub fn head(&self) -> u64 {
        self.next - 1
    }

    /// Whether the journal has ended.
    pub fn is_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Events kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no event is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps an event of so many bytes of JSON. What is too old leaves first.
    pub fn note(&mut self, now: Duration, bytes: usize, event: T) -> Noted {
        if self.overflowed {
            return Noted::Unnumbered;
        }
        self.expire(now);
        // An event of no bytes would have no bound.
        let bytes = bytes.max(1);
        let Some(sum) = self.bytes.checked_add(bytes).filter(|sum| *sum <= self.limits.bytes) else {
            self.overflowed = true;
            self.entries = VecDeque::new();
            self.bytes = 0;
            return Noted::Overflow;
        };
        self.bytes = sum;
        self.entries.push_back(Entry { at: now, bytes, event });
        self.next += 1;
        Noted::Numbered(self.next - 1)
    }

    /// Lets go of what is too old.
    pub fn expire(&mut self, now: Duration) {
        while self.entries.front().is_some_and(|e| now.saturating_sub(e.at) > self.limits.age) {
            self.drop_front();
        }
    }

    /// The client has everything up to this number.
    ///
    /// # Errors
    /// [`AckError`]: a number below zero or one that was not given out.
    pub fn ack(&mut self, seq: i64) -> Result<(), AckError> {
        let through = u64::try_from(seq).map_err(|_| AckError::Negative(seq))?;
        if through > self.head() {
            return Err(AckError::BeyondHead { seq, head: self.head() });
        }
        while !self.entries.is_empty() && self.oldest() <= through {
            self.drop_front();
        }
        Ok(())
    }

    /// Every event after a number, oldest first, with its own number.
    ///
    /// # Errors
    /// [`ReplayError`], in the order in which a resume is checked.
    pub fn since(&mut self, now: Duration, seq: i64) -> Result<impl Iterator<Item = (u64, &T)>, ReplayError> {
        let after = u64::try_from(seq).map_err(|_| ReplayError::Negative(seq))?;
        if after > self.head() {
            return Err(ReplayError::BeyondHead { seq, head: self.head() });
        }
        if self.overflowed {
            return Err(ReplayError::Overflowed);
        }
        self.expire(now);
        let oldest = self.oldest();
        if after + 1 < oldest {
            return Err(ReplayError::Gap { seq: after, oldest });
        }
        let skip = (after + 1 - oldest) as usize;
        Ok(self.entries.iter().enumerate().skip(skip).map(move |(index, e)| (oldest + index as u64, &e.event)))
    }

    /// The oldest number kept, or the next one.
    fn oldest(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    fn drop_front(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn numbers(journal: &mut Journal<u64>, now: u64, seq: i64) -> Result<Vec<u64>, ReplayError> {
        journal.since(s(now), seq).map(|all| all.map(|(n, _)| n).collect())
    }

    #[test]
    fn numbers_start_at_one_and_have_no_gap() {
        let mut journal = Journal::new(Limits::default());
        assert_eq!((journal.next(), journal.head()), (Some(1), 0));
        assert_eq!([journal.note(s(0), 10, 1u64), journal.note(s(0), 10, 2)], [Noted::Numbered(1), Noted::Numbered(2)]);
        assert_eq!(numbers(&mut journal, 0, 0), Ok(vec![1, 2]));
        assert_eq!(numbers(&mut journal, 0, 2), Ok(vec![]));
        assert_eq!(numbers(&mut journal, 0, 3), Err(ReplayError::BeyondHead { seq: 3, head: 2 }));
        assert_eq!(numbers(&mut journal, 0, -1), Err(ReplayError::Negative(-1)));
    }

    #[test]
    fn what_is_acknowledged_or_old_is_gone_and_asking_for_it_is_a_gap() {
        let mut journal = Journal::new(Limits::default());
        for n in 0..4 {
            journal.note(s(n * 20), 10, n);
        }
        journal.ack(1).unwrap();
        assert_eq!(numbers(&mut journal, 60, 0), Err(ReplayError::Gap { seq: 0, oldest: 2 }));
        assert_eq!(numbers(&mut journal, 60, 1), Ok(vec![2, 3, 4]));
        assert_eq!(numbers(&mut journal, 81, 1), Err(ReplayError::Gap { seq: 1, oldest: 3 }));
        journal.expire(s(500));
        assert_eq!((journal.bytes(), numbers(&mut journal, 500, 4)), (0, Ok(vec![])));
        assert_eq!(numbers(&mut journal, 500, 3), Err(ReplayError::Gap { seq: 3, oldest: 5 }));
    }

    #[test]
    fn an_event_is_kept_for_exactly_its_time() {
        let mut journal = Journal::new(Limits::default());
        journal.note(s(0), 10, 1);
        assert_eq!(numbers(&mut journal, 60, 0), Ok(vec![1]));
        journal.expire(s(60) + Duration::from_nanos(1));
        assert!(journal.is_empty());
    }

    #[test]
    fn a_wrong_acknowledgement_changes_nothing() {
        let mut journal = Journal::new(Limits::default());
        journal.note(s(0), 10, 1);
        assert_eq!(journal.ack(-1), Err(AckError::Negative(-1)));
        assert_eq!(journal.ack(11), Err(AckError::BeyondHead { seq: 11, head: 1 }));
        assert_eq!(journal.len(), 1);
        assert_eq!((journal.ack(1), journal.ack(1), journal.ack(0)), (Ok(()), Ok(()), Ok(())));
    }

    #[test]
    fn an_overflow_is_said_once_and_for_ever() {
        let mut journal = Journal::new(Limits { bytes: 100, ..Limits::default() });
        assert_eq!(journal.note(s(0), 100, 1), Noted::Numbered(1));
        assert_eq!(journal.note(s(1), 1, 2), Noted::Overflow);
        assert_eq!((journal.next(), journal.bytes(), journal.head()), (None, 0, 1));
        assert_eq!(journal.note(s(900), 1, 3), Noted::Unnumbered);
        assert_eq!(numbers(&mut journal, 900, 1), Err(ReplayError::Overflowed));
        assert_eq!(numbers(&mut journal, 900, 2), Err(ReplayError::BeyondHead { seq: 2, head: 1 }));
        assert_eq!(journal.ack(1), Ok(()));
        let mut huge = Journal::new(Limits::default());
        assert_eq!(huge.note(s(0), usize::MAX, 1), Noted::Overflow);
    }

    proptest! {
        #[test]
        fn it_keeps_what_a_list_of_all_events_would_keep(
            steps in prop::collection::vec((0u8..4, 0u64..30, 1usize..30), 0..60),
        ) {
            let mut journal = Journal::new(Limits { age: s(60), bytes: 120 });
            let (mut all, mut acked, mut now, mut over) = (Vec::<(u64, usize)>::new(), 0u64, 0u64, false);
            for (what, wait, size) in steps {
                now += wait;
                let kept = |all: &[(u64, usize)], acked: u64, now: u64| -> Vec<u64> {
                    let live = |(index, e): (usize, &(u64, usize))| {
                        (index as u64 + 1 > acked && now - e.0 <= 60).then_some(index as u64 + 1)
                    };
                    all.iter().enumerate().filter_map(live).collect()
                };
                if what < 2 {
                    let bytes: usize = kept(&all, acked, now).iter().map(|n| all[*n as usize - 1].1).sum();
                    let noted = journal.note(s(now), size, all.len() as u64 + 1);
                    if over {
                        prop_assert_eq!(noted, Noted::Unnumbered);
                    } else if bytes + size > 120 {
                        prop_assert_eq!(noted, Noted::Overflow);
                        over = true;
                    } else {
                        all.push((now, size));
                        prop_assert_eq!(noted, Noted::Numbered(all.len() as u64));
                    }
                } else if what == 2 {
                    let seq = size as u64;
                    prop_assert_eq!(journal.ack(seq as i64).is_ok(), seq <= all.len() as u64);
                    if seq <= all.len() as u64 {
                        acked = acked.max(seq);
                    }
                }
                prop_assert!(journal.bytes() <= 120);
                if over {
                    continue;
                }
                let kept = kept(&all, acked, now);
                let first = kept.first().copied().unwrap_or(all.len() as u64 + 1);
                for seq in 0..=all.len() as u64 {
                    let want: Vec<_> = (seq + 1..=all.len() as u64).collect();
                    match numbers(&mut journal, now, seq as i64) {
                        Ok(got) => { prop_assert!(seq + 1 >= first); prop_assert_eq!(got, want) }
                        Err(e) => prop_assert_eq!((e, seq + 1 < first), (ReplayError::Gap { seq, oldest: first }, true)),
                    }
                }
            }
        }
    }
}
