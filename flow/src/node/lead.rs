//! How early a node must work for its listener: measured, so that it grows with the load.

use std::time::Duration;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::{Epoch, Mono};

/// How long before its listener hears of it a node must do its work: as long as it took from the node's first work on
/// an answer to that answer's first audio.
#[derive(Default)]
pub(crate) struct Lead {
    /// The answer's epoch on the node's lane, and when the node began with it.
    begun: Mutex<Option<(Epoch, Mono)>>,
    /// As it was measured last.
    known: AtomicU64,
}

impl Lead {
    /// The node works on the answer of `epoch`, of which nothing has been heard.
    pub(crate) fn begin(&self, epoch: Epoch, now: Mono) {
        let mut begun = self.begun.lock();
        if begun.is_none_or(|(e, _)| e != epoch) {
            *begun = Some((epoch, now));
        }
    }
    /// The node works on the answer of `epoch`, whose first audio went out at `heard`.
    pub(crate) fn of(&self, epoch: Epoch, heard: Mono) -> Duration {
        let begun = self.begun.lock().take_if(|(e, _)| *e == epoch);
        if let Some((_, at)) = begun {
            self.known.store(heard.since(at).as_nanos() as u64, Relaxed);
        }
        Duration::from_nanos(self.known.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_way_from_first_work_to_first_audio() {
        let (lead, ms) = (Lead::default(), |n: u64| Mono(n * 1_000_000));
        assert_eq!(lead.of(Epoch(0), ms(50)), Duration::ZERO, "nothing was measured");
        lead.begin(Epoch(1), ms(100));
        lead.begin(Epoch(1), ms(130));
        assert_eq!(lead.of(Epoch(1), ms(400)), Duration::from_millis(300));
        assert_eq!(lead.of(Epoch(1), ms(900)), Duration::from_millis(300), "measured once per answer");
        lead.begin(Epoch(2), ms(1000));
        assert_eq!(lead.of(Epoch(1), ms(1500)), Duration::from_millis(300), "a late unit of an answer that is over");
        assert_eq!(lead.of(Epoch(2), ms(1100)), Duration::from_millis(100));
    }
}
