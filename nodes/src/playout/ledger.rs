//! How much a listener has played, and until when the listener has something to play.
//!
//! Without acknowledgements a player is assumed that starts at the first chunk and waits when it runs dry:
//! `cursor = max(arrival, cursor) + length`. Once the listener acknowledges, its word counts, limited to what was
//! delivered; it never goes back.

use omni_flow::{MediaTime, Mono};
use std::time::Duration;

/// Gaps up to this long are not heard as such and not counted.
const GAP: Duration = Duration::from_millis(5);

/// The gaps of one stream, as a re-buffering player hears them, and the worst deficit of one that never pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Underruns {
    /// Gaps longer than 5 ms.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
    /// Chunks that came after their time for an anchored player (starts at the first chunk, never pauses).
    pub anchored_events: u64,
    /// The worst deficit of the anchored player: the start delay that would have avoided every gap.
    pub anchored_worst: Duration,
}

impl Underruns {
    /// Adds a gap heard; those up to 5 ms are ignored.
    pub fn gap(&mut self, gap: Duration) {
        if gap > GAP {
            self.count += 1;
            self.total = self.total.saturating_add(gap);
            self.longest = self.longest.max(gap);
        }
    }
}

/// What one listener of one answer has got and played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    delivered: MediaTime,
    start: Option<Mono>,
    cursor: Mono,
    /// The latest acknowledgement: position and time.
    acknowledged: Option<(MediaTime, Mono)>,
    underruns: Underruns,
}

impl Ledger {
    /// Takes note that `length` more media was delivered at `now`; returns the gap that was heard before it. Empty or
    /// negative lengths change nothing.
    pub fn delivered(&mut self, length: MediaTime, now: Mono) -> Duration {
        if length <= MediaTime::ZERO {
            return Duration::ZERO;
        }
        let mut gap = Duration::ZERO;
        if let Some(start) = self.start {
            gap = now.since(self.cursor);
            self.underruns.gap(gap);
            let deficit = now.since(start).saturating_sub(self.delivered.to_duration());
            self.underruns.anchored_events += u64::from(!deficit.is_zero());
            self.underruns.anchored_worst = self.underruns.anchored_worst.max(deficit);
        }
        self.start.get_or_insert(now);
        self.delivered += length;
        self.cursor = self.cursor.max(now).plus(length.to_duration());
        gap
    }
    /// Takes the listener's word that it has played up to `position`; limited to what was delivered, and a smaller one
    /// than before changes nothing. Returns the position that holds.
    pub fn acknowledge(&mut self, position: MediaTime, now: Mono) -> MediaTime {
        let position = position.min(self.delivered).max(MediaTime::ZERO);
        match self.acknowledged {
            Some((before, _)) if position <= before => before,
            _ => {
                self.acknowledged = Some((position, now));
                position
            }
        }
    }
    /// All that was delivered.
    pub const fn total(&self) -> MediaTime {
        self.delivered
    }
    /// What has been played at `now`: acknowledged if the listener acknowledges, else assumed.
    pub fn played(&self, now: Mono) -> MediaTime {
        match self.acknowledged {
            Some((position, _)) => position,
            None => {
                let left = MediaTime::from_duration(self.cursor.since(now));
                (self.delivered - left).max(MediaTime::ZERO)
            }
        }
    }
    /// Until when the listener has something to play; `None` before anything was delivered. After an acknowledgement
    /// it is that time plus what was not acknowledged by then, which takes in the listener's own delay.
    pub fn playable_until(&self) -> Option<Mono> {
        self.start?;
        Some(match self.acknowledged {
            Some((position, at)) => at.plus((self.delivered - position).to_duration()),
            None => self.cursor,
        })
    }
    /// Playable time left at `now`, negative by the time the listener has been waiting; zero before the first delivery.
    pub fn headroom(&self, now: Mono) -> MediaTime {
        match self.playable_until() {
            None => MediaTime::ZERO,
            Some(until) if until >= now => MediaTime::from_duration(until.since(now)),
            Some(until) => MediaTime::ZERO - MediaTime::from_duration(now.since(until)),
        }
    }
    /// The gaps so far, by assumed playback.
    pub const fn underruns(&self) -> Underruns {
        self.underruns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: i64) -> MediaTime {
        MediaTime::from_millis(ms)
    }
    const fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    #[test]
    fn the_cursor_waits_for_late_chunks() {
        let mut l = Ledger::default();
        assert_eq!(l.playable_until(), None);
        assert_eq!(l.delivered(ms(160), at(0)), Duration::ZERO);
        assert_eq!(l.delivered(ms(160), at(200)), Duration::from_millis(40));
        assert_eq!(l.playable_until(), Some(at(360)));
        assert_eq!((l.underruns().count, l.underruns().total), (1, Duration::from_millis(40)));
        assert_eq!(l.delivered(ms(80), at(365)), Duration::from_millis(5));
        assert_eq!(l.underruns().count, 1, "five milliseconds are not heard");
    }
    #[test]
    fn gaps_agree_with_the_definitions_of_the_benchmarks() {
        // Arrivals in ms of 500 ms each; anchored events and worst, gaps and their sum.
        let rows: [(&[u64], u64, u64, u64, u64); 5] = [
            (&[500, 1000, 1500], 0, 0, 0, 0),
            (&[500, 1000, 2000], 1, 500, 1, 500),
            (&[500, 1000, 2000, 2500], 2, 500, 1, 500),
            (&[500, 600, 700, 1900], 0, 0, 0, 0),
            (&[500, 600, 700, 2400], 1, 400, 1, 400),
        ];
        for (arrivals, events, worst, gaps, sum) in rows {
            let mut l = Ledger::default();
            for &t in arrivals {
                l.delivered(ms(500), at(t));
            }
            let u = l.underruns();
            assert_eq!((u.anchored_events, u.anchored_worst), (events, Duration::from_millis(worst)), "{arrivals:?}");
            assert_eq!((u.count, u.total), (gaps, Duration::from_millis(sum)), "{arrivals:?}");
        }
    }
    #[test]
    fn assumed_playing_follows_the_clock() {
        let mut l = Ledger::default();
        assert_eq!((l.played(at(9)), l.headroom(at(9))), (ms(0), ms(0)));
        l.delivered(ms(100), at(10));
        assert_eq!((l.played(at(40)), l.headroom(at(40))), (ms(30), ms(70)));
        assert_eq!((l.played(at(200)), l.headroom(at(200))), (ms(100), ms(-90)));
        l.delivered(ms(0), at(300));
        l.delivered(ms(-5), at(300));
        assert_eq!(l.total(), ms(100));
    }
    #[test]
    fn the_listener_s_word_counts_and_never_goes_back() {
        let mut l = Ledger::default();
        l.delivered(ms(1000), at(0));
        assert_eq!(l.acknowledge(ms(300), at(500)), ms(300));
        assert_eq!(l.acknowledge(ms(200), at(600)), ms(300));
        assert_eq!(l.played(at(10_000)), ms(300));
        assert_eq!(l.playable_until(), Some(at(1200)));
        assert_eq!(l.acknowledge(ms(9000), at(700)), ms(1000), "not beyond what was delivered");
        assert_eq!(l.acknowledge(ms(-9), at(800)), ms(1000));
    }
}
