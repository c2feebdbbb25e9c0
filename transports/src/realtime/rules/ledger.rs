//! How much of one answer's audio was made, sent, played and counts (Realtime protocol, playback, "ledger").
//!
//! Samples are summed first and converted to milliseconds once, rounded down. Nothing here knows text: see
//! [`answer`](super::answer). All values only grow, but for the committed one under a cut.

use crate::realtime::wire::server::session::Playback;

/// An acknowledgement (`playback.ack`), in whole ms; see [`whole_ms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Played so far.
    pub played_ms: u64,
    /// Counts so far.
    pub committed_ms: u64,
    /// Whether the rest is cut off for good.
    pub truncate: bool,
}

/// The ledger of one response.
#[derive(Debug, Clone)]
pub struct Ledger {
    rate: u32,
    generated: u64,
    sent: u64,
    played_ms: u64,
    committed_ms: u64,
    cap_ms: Option<u64>,
    acked: bool,
    complete: bool,
    cancelled: bool,
}

impl Ledger {
    /// An empty one for audio of so many samples per second; 0 is taken as 1.
    pub fn new(rate: u32) -> Self {
        Self {
            rate: rate.max(1),
            generated: 0,
            sent: 0,
            played_ms: 0,
            committed_ms: 0,
            cap_ms: None,
            acked: false,
            complete: false,
            cancelled: false,
        }
    }

    /// So many more samples were made.
    pub fn generate(&mut self, samples: u64) {
        self.generated = self.generated.saturating_add(samples);
    }

    /// So many more samples were accepted into the output path.
    pub fn send(&mut self, samples: u64) {
        self.sent = self.sent.saturating_add(samples);
    }

    /// So many samples left the output path again without being written: they were never sent.
    pub fn take_back(&mut self, samples: u64) {
        self.sent = self.sent.saturating_sub(samples);
    }

    /// The answer has all its audio. No effect after [`Ledger::cancel`].
    pub fn complete(&mut self) {
        self.complete = !self.cancelled;
    }

    /// The answer was cut short or failed; it is never complete from now on, whatever is acknowledged.
    pub fn cancel(&mut self) {
        self.cancelled = true;
        self.complete = false;
    }

    /// Takes an acknowledgement. A smaller value changes nothing, except that a cut moves the committed value to where
    /// the client says, within what there is, and no later acknowledgement gets beyond the smallest cut.
    pub fn ack(&mut self, ack: Ack) {
        self.acked = true;
        self.played_ms = self.played_ms.max(ack.played_ms);
        self.committed_ms = self.committed_ms.max(ack.committed_ms);
        if ack.truncate {
            self.committed_ms = ack.committed_ms.min(self.total_ms());
            self.cap_ms = Some(self.cap_ms.map_or(ack.committed_ms, |cap| cap.min(ack.committed_ms)));
        }
    }

    /// All audio there is, in ms.
    pub fn total_ms(&self) -> u64 {
        self.ms(self.generated.max(self.sent))
    }

    /// Audio accepted into the output path, in ms.
    pub fn sent_ms(&self) -> u64 {
        self.ms(self.sent)
    }

    /// The committed time within the smallest cut, in ms.
    pub fn counted_ms(&self) -> u64 {
        self.under_cap(self.committed_ms)
    }

    /// A time within the smallest cut.
    pub fn under_cap(&self, ms: u64) -> u64 {
        self.cap_ms.map_or(ms, |cap| ms.min(cap))
    }

    /// Whether the answer was cut by the client.
    pub fn is_cut(&self) -> bool {
        self.cap_ms.is_some()
    }

    /// Whether anything was acknowledged, zero included.
    pub fn is_acked(&self) -> bool {
        self.acked
    }

    /// Whether the answer has all its audio.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether nothing more is awaited: a complete answer of which all was acknowledged.
    pub fn is_settled(&self) -> bool {
        self.complete && self.acked && self.committed_ms >= self.total_ms()
    }

    /// The numbers for the client.
    pub fn playback(&self) -> Playback {
        Playback {
            generated_ms: self.ms(self.generated),
            sent_ms: self.sent_ms(),
            played_ms: self.played_ms,
            committed_ms: self.committed_ms,
        }
    }

    fn ms(&self, samples: u64) -> u64 {
        u64::try_from(u128::from(samples) * 1000 / u128::from(self.rate)).unwrap_or(u64::MAX)
    }
}

/// A number of milliseconds from a client as whole ones, rounded down. Below zero and what is no number: nothing.
pub fn whole_ms(number: f64) -> u64 {
    // A cast of a float saturates, and takes what is no number as 0.
    number as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ack(ms: u64, truncate: bool) -> Ack {
        Ack { played_ms: ms, committed_ms: ms, truncate }
    }

    #[test]
    fn samples_are_summed_before_they_become_milliseconds() {
        let mut ledger = Ledger::new(24_000);
        (0..1000).for_each(|_| ledger.generate(7)); // 0.29 ms each
        assert_eq!(ledger.playback().generated_ms, 291);
    }

    #[test]
    fn a_smaller_acknowledgement_changes_nothing() {
        let mut ledger = Ledger::new(1000);
        ledger.generate(1000);
        ledger.ack(ack(600, false));
        ledger.ack(Ack { played_ms: 700, committed_ms: 100, truncate: false });
        let want = Playback { generated_ms: 1000, sent_ms: 0, played_ms: 700, committed_ms: 600 };
        assert_eq!(ledger.playback(), want);
    }

    #[test]
    fn a_cut_is_for_good_and_the_smallest_counts() {
        let mut ledger = Ledger::new(1000);
        ledger.generate(1000);
        ledger.ack(ack(600, true));
        ledger.ack(ack(400, true));
        ledger.ack(ack(800, true));
        ledger.ack(ack(1000, false));
        assert_eq!((ledger.counted_ms(), ledger.playback().committed_ms), (400, 1000));
    }

    #[test]
    fn a_cut_beyond_the_end_commits_what_there_is() {
        let mut ledger = Ledger::new(1000);
        ledger.send(500);
        ledger.ack(ack(9000, true));
        assert_eq!(ledger.playback().committed_ms, 500);
    }

    #[test]
    fn a_cancelled_answer_is_never_complete() {
        let mut ledger = Ledger::new(1000);
        ledger.generate(300);
        ledger.cancel();
        ledger.ack(ack(300, false));
        ledger.complete();
        assert!(!ledger.is_complete() && !ledger.is_settled());
        let mut whole = Ledger::new(1000);
        whole.generate(300);
        whole.complete();
        whole.ack(ack(299, false));
        assert!(!whole.is_settled());
        whole.ack(ack(300, false));
        assert!(whole.is_settled());
    }

    #[test]
    fn numbers_of_clients_become_whole_milliseconds() {
        let numbers = [-1.0, f64::NAN, 0.9, 1200.5, f64::INFINITY];
        assert_eq!(numbers.map(whole_ms), [0, 0, 0, 1200, u64::MAX]);
    }

    proptest! {
        #[test]
        fn all_values_are_those_of_a_list_of_what_happened(
            steps in prop::collection::vec((0u8..5, 0u64..2000), 0..40),
        ) {
            let mut ledger = Ledger::new(1000);
            let (mut made, mut sent, mut acks) = (vec![0], vec![0], Vec::<Ack>::new());
            for (what, n) in steps {
                match what {
                    0 => { ledger.generate(n); made.push(n) }
                    1 => { ledger.send(n); sent.push(n) }
                    _ => {
                        let ack = ack(n, what == 4);
                        let before = ledger.playback();
                        ledger.ack(ack);
                        acks.push(ack);
                        let after = ledger.playback();
                        prop_assert!(after.played_ms >= before.played_ms);
                        prop_assert!(ack.truncate || after.committed_ms >= before.committed_ms);
                    }
                }
                let (made, sent) = (made.iter().sum::<u64>(), sent.iter().sum::<u64>());
                let now = ledger.playback();
                prop_assert_eq!((now.generated_ms, now.sent_ms), (made, sent));
                prop_assert_eq!(now.played_ms, acks.iter().map(|a| a.played_ms).max().unwrap_or(0));
                if let Some(cap) = acks.iter().filter(|a| a.truncate).map(|a| a.committed_ms).min() {
                    prop_assert!(ledger.counted_ms() <= cap);
                }
                if acks.last().is_some_and(|a| a.truncate) && what == 4 {
                    prop_assert_eq!(now.committed_ms, n.min(made.max(sent)));
                }
            }
        }
    }
}
