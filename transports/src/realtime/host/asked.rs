//! Which answer a chunk belongs to: by the epoch it was asked under, and by the segments that have ended.

use std::collections::VecDeque;

/// One answer that was asked for.
#[derive(Clone, Debug)]
struct One {
    key: u64,
    epoch: u32,
    /// Streams that have not ended for it.
    open: u8,
}

/// Streams that an answer comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Text = 1,
    Audio = 2,
}

/// The answers under way.
#[derive(Debug, Default)]
pub(super) struct Asked(VecDeque<One>);

impl Asked {
    /// An answer was asked for under `epoch`; it comes in these streams.
    pub(super) fn ask(&mut self, key: u64, epoch: u32, streams: &[Stream]) {
        self.0.retain(|one| one.epoch >= epoch);
        let open = streams.iter().fold(0, |all, s| all | *s as u8);
        self.0.push_back(One { key, epoch, open });
    }
    /// The answer that a chunk of `stream` under `epoch` is part of.
    pub(super) fn of(&self, stream: Stream, epoch: u32) -> Option<u64> {
        self.0.iter().find(|one| one.epoch == epoch && one.open & stream as u8 != 0).map(|one| one.key)
    }
    /// A segment of `stream` under `epoch` has ended. The answer that is over with it.
    pub(super) fn ended(&mut self, stream: Stream, epoch: u32) -> Option<u64> {
        let one = self.0.iter_mut().find(|one| one.epoch == epoch && one.open & stream as u8 != 0)?;
        one.open &= !(stream as u8);
        let (key, over) = (one.key, one.open == 0);
        if over {
            self.0.retain(|one| one.key != key);
        }
        over.then_some(key)
    }
    /// Everything under an older epoch is void.
    pub(super) fn fence(&mut self, epoch: u32) {
        self.0.retain(|one| one.epoch >= epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::Stream::{Audio, Text};
    use super::*;

    #[test]
    fn text_may_run_ahead_of_the_audio_of_the_answer_before() {
        let mut a = Asked::default();
        a.ask(1, 0, &[Text, Audio]);
        a.ask(2, 0, &[Text, Audio]);
        assert_eq!((a.of(Text, 0), a.of(Audio, 0)), (Some(1), Some(1)));
        assert_eq!(a.ended(Text, 0), None);
        assert_eq!((a.of(Text, 0), a.of(Audio, 0)), (Some(2), Some(1)));
        assert_eq!(a.ended(Text, 0), None);
        assert_eq!((a.ended(Audio, 0), a.of(Audio, 0)), (Some(1), Some(2)));
        assert_eq!((a.ended(Audio, 0), a.ended(Audio, 0)), (Some(2), None));
    }
    #[test]
    fn what_an_older_epoch_asked_is_void() {
        let mut a = Asked::default();
        a.ask(1, 0, &[Text, Audio]);
        a.ask(2, 3, &[Text]);
        assert_eq!((a.of(Text, 0), a.of(Text, 3)), (None, Some(2)));
        assert_eq!(a.ended(Text, 3), Some(2));
        a.ask(3, 3, &[Text, Audio]);
        a.fence(4);
        assert_eq!(a.of(Text, 3), None);
    }
}
