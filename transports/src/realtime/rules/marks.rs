//! From played milliseconds to characters of text (Realtime protocol, playback, "from milliseconds to text").
//!
//! All arithmetic is on integers, products before the division, so that a value that is exact stays exact. Characters
//! are Unicode scalar values. Marks may come in any order and contradict each other; they are read as the longest text
//! said so far at each time.

use crate::realtime::wire::server::response::Mark;

/// Most marks of one answer. A longer answer keeps every second one: the text between two marks is interpolated anyway.
const MAX_MARKS: usize = 8192;

/// The marks of one answer, by time.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    marks: Vec<Mark>,
}

impl Marks {
    /// No marks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mark; of two at one time the longer one counts.
    pub fn push(&mut self, mark: Mark) {
        if self.marks.len() >= MAX_MARKS {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        let at = self.marks.partition_point(|m| m.audio_end_ms <= mark.audio_end_ms);
        self.marks.insert(at, mark);
    }

    /// Forgets those beyond a time.
    pub fn until(&mut self, ms: u64) {
        self.marks.retain(|m| m.audio_end_ms <= ms);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Characters of a text of `len` that are spoken after `t` of `total` ms.
    pub fn chars(&self, len: u64, t: u64, total: u64) -> u64 {
        // 1
        if t == 0 || total == 0 {
            return 0;
        }
        // 2
        if self.marks.is_empty() {
            return part(0, len, t.min(total), total);
        }
        // 3
        let (mut chars, mut ms) = (0, 0);
        let mut marks = self.marks.iter().peekable();
        while let Some(mark) = marks.next() {
            let mut next = chars.max(mark.text_chars.min(len));
            if mark.audio_end_ms < t {
                (chars, ms) = (next, mark.audio_end_ms);
                continue;
            }
            while let Some(twin) = marks.next_if(|m| m.audio_end_ms == mark.audio_end_ms) {
                next = next.max(twin.text_chars.min(len));
            }
            return part(chars, next, t - ms, mark.audio_end_ms - ms);
        }
        // 4
        if t >= total { len } else { part(chars, len, t - ms, total - ms) }
    }

    /// The part of `text` that was heard after `t` of `total` ms, without white space at its end. Text that the graph
    /// declares as not `aligned` with its audio is heard as a whole at the end of an answer that is `complete`, or not
    /// at all.
    pub fn heard<'a>(&self, text: &'a str, t: u64, total: u64, aligned: bool, complete: bool) -> &'a str {
        let len = text.chars().count() as u64;
        let chars = if aligned {
            self.chars(len, t, total)
        } else if complete && t >= total {
            len
        } else {
            0
        };
        let end =
            text.char_indices().nth(usize::try_from(chars).unwrap_or(usize::MAX)).map_or(text.len(), |(at, _)| at);
        text[..end].trim_end()
    }
}

/// `from + (to - from)·t / span`, rounded down, for `t <= span` and `span > 0`.
fn part(from: u64, to: u64, t: u64, span: u64) -> u64 {
    let grown = u128::from(to.saturating_sub(from)) * u128::from(t) / u128::from(span.max(1));
    from.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX)).min(to.max(from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks(list: &[(u64, u64)]) -> Marks {
        let mut marks = Marks::new();
        list.iter().for_each(|&(chars, ms)| marks.push(Mark { text_chars: chars, audio_end_ms: ms }));
        marks
    }

    #[test]
    fn the_worked_examples_hold() {
        let two = marks(&[(6, 1000), (11, 2000)]);
        assert_eq!([1200, 500, 1000, 2000].map(|t| two.chars(11, t, 2000)), [7, 3, 6, 11]);
        assert_eq!(marks(&[(6, 1000)]).chars(10, 1500, 2000), 8);
        let none = Marks::new();
        assert_eq!(none.heard("hello", 400, 1000, true, false), "he");
        assert_eq!(none.chars(11, 600, 1100), 6);
        assert_eq!(none.heard("It is sunny", 600, 1100, true, false), "It is");
    }

    #[test]
    fn a_mark_after_each_word_cuts_inside_the_fourth() {
        let text = "one two three four five six seven eight nine ten";
        let mut marks = Marks::new();
        let mut chars = 0;
        for (index, word) in text.split_inclusive(' ').enumerate() {
            chars += word.len() as u64;
            marks.push(Mark { text_chars: chars, audio_end_ms: 1000 * (index as u64 + 1) });
        }
        let heard = |t| marks.heard(text, t, 10_000, true, false);
        assert_eq!([3000, 3500, 0, 10_000].map(heard), ["one two three", "one two three fo", "", text]);
    }

    #[test]
    fn text_that_is_not_aligned_is_heard_as_a_whole_or_not_at_all() {
        let none = Marks::new();
        let heard = |t, complete| none.heard("hello ", t, 1000, false, complete);
        assert_eq!([heard(999, true), heard(1000, false), heard(1000, true)], ["", "", "hello"]);
    }

    #[test]
    fn characters_are_not_bytes() {
        assert_eq!(Marks::new().heard("äöü😀", 750, 1000, true, false), "äöü");
    }

    #[test]
    fn many_marks_are_thinned_and_stay_true() {
        let mut marks = Marks::new();
        (1..=100_000u64).for_each(|n| marks.push(Mark { text_chars: n, audio_end_ms: n * 10 }));
        assert!(marks.len() <= MAX_MARKS);
        assert_eq!(marks.chars(100_000, 500_000, 1_000_000), 50_000);
    }

    /// The rule in rational numbers: each candidate count is tried against the fractions, cross-multiplied.
    fn naive(list: &[(u64, u64)], len: u64, t: u64, total: u64) -> u64 {
        if t == 0 || total == 0 {
            return 0;
        }
        let mut line = vec![(0u64, 0u64)];
        let mut sorted: Vec<_> = list.to_vec();
        sorted.sort_by_key(|m| (m.1, m.0));
        for (c, m) in sorted {
            let high = line.last().unwrap().0.max(c.min(len));
            line.push((high, m));
        }
        let largest = |(c0, t0): (u64, u64), (c1, t1): (u64, u64)| {
            // The largest n with (n - c0)·(t1 - t0) <= (c1 - c0)·(t - t0).
            (c0..=c1).rev().find(|n| (n - c0) * (t1 - t0) <= (c1 - c0) * (t - t0)).unwrap_or(c0)
        };
        if list.is_empty() {
            return if t >= total { len } else { largest((0, 0), (len, total)) };
        }
        if let Some(index) = line.iter().position(|m| m.1 >= t) {
            let time = line[index].1;
            let high = line.iter().filter(|m| m.1 == time).map(|m| m.0).max().unwrap();
            return largest(line[index - 1], (high, time));
        }
        if t >= total { len } else { largest(*line.last().unwrap(), (len, total)) }
    }

    proptest! {
        #[test]
        fn chars_are_those_of_the_rule_in_fractions(
            list in prop::collection::vec((0u64..60, 0u64..40), 0..6), len in 0u64..50, t in 0u64..60, total in 0u64..50,
        ) {
            prop_assert_eq!(marks(&list).chars(len, t, total), naive(&list, len, t, total));
        }

        #[test]
        fn no_value_breaks_it_and_more_is_never_heard_than_there_is(
            list in prop::collection::vec((any::<u64>(), any::<u64>()), 0..6),
            text in ".{0,20}", t in any::<u64>(), total in any::<u64>(), len in any::<u64>(),
        ) {
            let marks = marks(&list);
            prop_assert!(marks.chars(len, t, total) <= len);
            prop_assert!(text.starts_with(marks.heard(&text, t, total, true, false)));
        }

        #[test]
        fn more_time_never_takes_text_away(
            list in prop::collection::vec((0u64..60, 0u64..40), 0..6), len in 0u64..50, t in 0u64..60, total in 0u64..40,
        ) {
            let marks = marks(&list);
            prop_assert!(marks.chars(len, t, total) <= marks.chars(len, t + 1, total));
        }
    }
}
