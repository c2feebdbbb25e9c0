//! The watermark of frames handed on, for a producer that may be preempted and compute frames again.

use std::ops::Range;
use thiserror::Error;

/// A recomputing producer went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WatermarkError {
    /// Frames between the watermark and the first one offered were never made; resume at `expected`.
    #[error("frames {expected} to {got} are missing: resume the producer at frame {expected}")]
    Gap {
        /// The first frame that has not been handed on.
        expected: u64,
        /// The first frame offered.
        got: u64,
    },
}

/// Counts the frames handed on; what is recomputed at or below it is not sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    handed: u64,
}

impl Watermark {
    /// How many frames have been handed on.
    pub const fn handed(&self) -> u64 {
        self.handed
    }
    /// Offers frames `first` … `first + count − 1` and commits the new ones: returns which of the offered frames (by
    /// index into the offer) are to be sent. Empty if all were sent before.
    ///
    /// # Errors
    /// [`WatermarkError::Gap`] if frames are left out; nothing changes.
    pub fn offer(&mut self, first: u64, count: usize) -> Result<Range<usize>, WatermarkError> {
        if first > self.handed {
            return Err(WatermarkError::Gap { expected: self.handed, got: first });
        }
        let old = usize::try_from(self.handed - first).unwrap_or(usize::MAX).min(count);
        self.handed = self.handed.max(first.saturating_add(count as u64));
        Ok(old..count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gap_is_refused_and_changes_nothing() {
        let mut w = Watermark::default();
        assert_eq!(w.offer(0, 4), Ok(0..4));
        assert_eq!(w.offer(5, 1), Err(WatermarkError::Gap { expected: 4, got: 5 }));
        assert_eq!(w.handed(), 4);
        assert_eq!(w.offer(2, 0), Ok(0..0));
        assert_eq!(w.offer(1, 5), Ok(3..5));
    }
    proptest! {
        #[test]
        fn every_frame_goes_once_whatever_is_recomputed(back in proptest::collection::vec((0u64..20, 0usize..30), 1..60)) {
            let mut w = Watermark::default();
            let mut sent = Vec::new();
            for (back, count) in back {
                let first = w.handed().saturating_sub(back);
                let fresh = w.offer(first, count).unwrap();
                sent.extend(fresh.map(|i| first + i as u64));
            }
            prop_assert!(sent.iter().copied().eq(0..sent.len() as u64));
            prop_assert_eq!(w.handed(), sent.len() as u64);
        }
    }
}
