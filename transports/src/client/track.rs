//! Which events of a numbered stream have come, and when to tell the server so. Pure; given the time.

use std::time::Duration;

/// Numbered events after which an acknowledgement is due at once.
const EVENTS: u64 = 32;
/// After this long it is due in any case.
const WAIT: Duration = Duration::from_secs(1);

/// The numbers of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Track {
    last: u64,
    acknowledged: u64,
    /// Since when something is not acknowledged.
    since: Option<Duration>,
}

impl Track {
    /// An event has come. False: it came before, and is to be passed over.
    pub(super) fn see(&mut self, now: Duration, seq: Option<u64>) -> bool {
        let Some(seq) = seq else { return true };
        if seq <= self.last {
            return false;
        }
        self.last = seq;
        self.since.get_or_insert(now);
        true
    }
    /// The last number that has come.
    pub(super) fn last(&self) -> u64 {
        self.last
    }
    /// When an acknowledgement is due.
    pub(super) fn due(&self) -> Option<Duration> {
        let since = self.since?;
        Some(if self.last - self.acknowledged >= EVENTS { since } else { since + WAIT })
    }
    /// The number to acknowledge now, if one is due; it counts as acknowledged.
    pub(super) fn acknowledge(&mut self, now: Duration) -> Option<u64> {
        if self.due()? > now {
            return None;
        }
        (self.acknowledged, self.since) = (self.last, None);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn what_came_before_is_passed_over() {
        let mut t = Track::default();
        let fresh = [Some(1), Some(2), Some(2), Some(1), None, Some(5), Some(4)].map(|seq| t.see(S(0), seq));
        assert_eq!(fresh, [true, true, false, false, true, true, false]);
        assert_eq!(t.last(), 5);
    }
    #[test]
    fn acknowledgements_are_few_and_never_late() {
        let mut t = Track::default();
        assert_eq!((t.due(), t.acknowledge(S(9))), (None, None));
        t.see(S(10), Some(1));
        assert_eq!((t.acknowledge(S(10)), t.due()), (None, Some(S(11))));
        assert_eq!((t.acknowledge(S(11)), t.due()), (Some(1), None));
        let acks: Vec<_> = (2..=100)
            .filter_map(|n| {
                t.see(S(12), Some(n));
                t.acknowledge(S(12))
            })
            .collect();
        assert_eq!(acks, [33, 65, 97]);
    }
}
