//! Which answer a chunk belongs to: by the epoch it was asked under, and by the segments that have ended.
//!
//! A graph that answers by itself is not asked: its answers get their names as they begin.

use std::collections::VecDeque;

/// One answer that was asked for, or that the graph began.
#[derive(Clone, Debug)]
pub(super) struct One {
    pub(super) key: u64,
    epoch: u32,
    /// Streams that have not ended for it.
    open: u8,
    /// Streams whose pieces hold all so far, and what of them was given on: bytes of text, samples of audio.
    whole: u8,
    given: [usize; 2],
    /// The graph has said how it comes.
    announced: bool,
}

/// Streams that an answer comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Text = 1,
    Audio = 2,
}

/// How an answer comes, as a graph may say before it gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    /// It has no words.
    pub(super) wordless: bool,
    /// Its pieces of text hold all so far.
    pub(super) whole_text: bool,
    /// Its pieces of audio do.
    pub(super) whole_audio: bool,
}

/// The answers under way.
#[derive(Debug, Default)]
pub(super) struct Asked {
    all: VecDeque<One>,
    /// The newest epoch, and the newest name.
    epoch: u32,
    key: u64,
    /// The streams of an answer that nobody asks for; none if the graph has to be asked.
    unasked: u8,
}

fn set(streams: &[Stream]) -> u8 {
    streams.iter().fold(0, |all, s| all | *s as u8)
}

impl Asked {
    /// Nothing is under way. `unasked` are the streams of a graph that answers by itself.
    pub(super) fn new(unasked: &[Stream]) -> Self {
        Self { unasked: set(unasked), ..Self::default() }
    }
    /// An answer was asked for under `epoch`; it comes in these streams.
    pub(super) fn ask(&mut self, key: u64, epoch: u32, streams: &[Stream]) {
        self.fence(epoch);
        self.push(key, epoch, set(streams));
    }
    fn push(&mut self, key: u64, epoch: u32, open: u8) {
        self.key = self.key.max(key);
        self.all.push_back(One { key, epoch, open, whole: 0, given: [0; 2], announced: false });
    }
    fn begin(&mut self, epoch: u32) -> bool {
        let begins = self.unasked != 0 && epoch >= self.epoch;
        if begins {
            self.epoch = epoch;
            self.push(self.key + 1, epoch, self.unasked);
        }
        begins
    }
    /// The answer that a chunk of `stream` under `epoch` is part of.
    pub(super) fn of(&mut self, stream: Stream, epoch: u32) -> Option<&mut One> {
        let find = |one: &One| one.epoch == epoch && one.open & stream as u8 != 0;
        if !self.all.iter().any(find) && !self.begin(epoch) {
            return None;
        }
        self.all.iter_mut().find(|one| find(one))
    }
    /// The answer that is told about under `epoch`: the one whose words come, else the one that is spoken.
    pub(super) fn told(&mut self, epoch: u32) -> Option<u64> {
        let find = |bit: u8| self.all.iter().find(|one| one.epoch == epoch && one.open & bit != 0).map(|one| one.key);
        if let Some(key) = find(Stream::Text as u8).or_else(|| find(Stream::Audio as u8)) {
            return Some(key);
        }
        self.begin(epoch).then_some(self.key)
    }
    /// The graph says how its next answer under `epoch` comes.
    pub(super) fn announce(&mut self, epoch: u32, how: Announced) {
        if !self.all.iter().any(|one| one.epoch == epoch && !one.announced) && !self.begin(epoch) {
            return;
        }
        if let Some(one) = self.all.iter_mut().find(|one| one.epoch == epoch && !one.announced) {
            one.announced = true;
            let bit = |on: bool, stream: Stream| if on { stream as u8 } else { 0 };
            one.whole = bit(how.whole_text, Stream::Text) | bit(how.whole_audio, Stream::Audio);
            if how.wordless && one.open & Stream::Audio as u8 != 0 {
                one.open &= !(Stream::Text as u8);
            }
        }
    }
    /// False if what comes next on `stream` is of a later answer than the one that is being given, which goes first.
    pub(super) fn takes(&self, stream: Stream) -> bool {
        self.unasked == 0 || self.all.front().is_none_or(|one| one.open & stream as u8 != 0)
    }
    /// A segment of `stream` under `epoch` has ended. The answer that is over with it.
    pub(super) fn ended(&mut self, stream: Stream, epoch: u32) -> Option<u64> {
        let one = self.all.iter_mut().find(|one| one.epoch == epoch && one.open & stream as u8 != 0)?;
        one.open &= !(stream as u8);
        let (key, over) = (one.key, one.open == 0);
        if over {
            self.over(key);
        }
        over.then_some(key)
    }
    /// No more comes of an answer.
    pub(super) fn over(&mut self, key: u64) {
        self.all.retain(|one| one.key != key);
    }
    /// No more comes of any answer so far.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }
    /// Everything under an older epoch is void.
    pub(super) fn fence(&mut self, epoch: u32) {
        self.epoch = self.epoch.max(epoch);
        self.all.retain(|one| one.epoch >= epoch);
    }
}

impl One {
    /// Where in a piece of `stream` of this length that begins which was not given yet.
    pub(super) fn fresh(&mut self, stream: Stream, len: usize) -> usize {
        if self.whole & stream as u8 == 0 {
            return 0;
        }
        let given = &mut self.given[usize::from(stream == Stream::Audio)];
        let from = (*given).min(len);
        *given = len.max(*given);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::Stream::{Audio, Text};
    use super::*;

    fn of(a: &mut Asked, stream: Stream, epoch: u32) -> Option<u64> {
        a.of(stream, epoch).map(|one| one.key)
    }

    #[test]
    fn text_may_run_ahead_of_the_audio_of_the_answer_before() {
        let mut a = Asked::default();
        a.ask(1, 0, &[Text, Audio]);
        a.ask(2, 0, &[Text, Audio]);
        assert_eq!((of(&mut a, Text, 0), of(&mut a, Audio, 0)), (Some(1), Some(1)));
        assert_eq!(a.ended(Text, 0), None);
        assert_eq!((of(&mut a, Text, 0), of(&mut a, Audio, 0)), (Some(2), Some(1)));
        assert_eq!(a.ended(Text, 0), None);
        assert_eq!((a.ended(Audio, 0), of(&mut a, Audio, 0)), (Some(1), Some(2)));
        assert_eq!((a.ended(Audio, 0), a.ended(Audio, 0)), (Some(2), None));
    }
    #[test]
    fn what_an_older_epoch_asked_is_void() {
        let mut a = Asked::default();
        a.ask(1, 0, &[Text, Audio]);
        a.ask(2, 3, &[Text]);
        assert_eq!((of(&mut a, Text, 0), of(&mut a, Text, 3)), (None, Some(2)));
        assert_eq!(a.ended(Text, 3), Some(2));
        a.ask(3, 3, &[Text, Audio]);
        a.fence(4);
        assert_eq!((of(&mut a, Text, 3), a.told(3)), (None, None));
    }
    #[test]
    fn a_graph_that_answers_by_itself_names_its_answers() {
        let mut a = Asked::new(&[Text, Audio]);
        a.announce(0, Announced { wordless: true, whole_audio: true, ..Announced::default() });
        assert!(!a.takes(Text) && a.takes(Audio), "the next answer's words wait");
        assert_eq!(a.of(Audio, 0).map(|one| (one.key, one.fresh(Audio, 3), one.fresh(Audio, 5))), Some((1, 0, 3)));
        assert_eq!((a.ended(Audio, 0), of(&mut a, Text, 0), a.told(0)), (Some(1), Some(2), Some(2)));
        a.fence(1);
        assert_eq!((of(&mut a, Audio, 0), of(&mut a, Audio, 1)), (None, Some(3)));
        a.over(3);
        assert_eq!(a.told(1), Some(4));
    }
}
