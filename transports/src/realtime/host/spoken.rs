//! How much of an answer's text has been said by when: from what a graph tells of its pieces (`speech.spoken`).
//!
//! Words run ahead of their sound. A graph that tells which piece of the text ends where in the audio lets an answer that is
//! cut off be kept as far as it was heard; of a piece whose end is not known yet, nothing counts as said.

use std::collections::VecDeque;

/// Answers whose audio has not ended, the one that is being spoken first.
#[derive(Debug, Default)]
pub(super) struct Spoken(VecDeque<One>);

#[derive(Debug, Default)]
struct One {
    epoch: u32,
    text: String,
    texted: bool,
    told: bool,
    /// Pieces that were told before all of their text was there.
    early: VecDeque<(String, f64)>,
    /// Where in the text the pieces found so far end: bytes.
    found: usize,
    /// Ends of pieces: ms of audio, and characters of text.
    marks: Vec<(f64, u64)>,
    /// Audio given on, ms.
    given: f64,
}

impl Spoken {
    /// What belongs to an older epoch is void.
    fn fence(&mut self, epoch: u32) {
        self.0.retain(|one| one.epoch >= epoch);
    }
    /// The first answer under `epoch` that is not finished in this respect; begun if there is none.
    fn open(&mut self, epoch: u32, done: impl Fn(&One) -> bool) -> &mut One {
        self.fence(epoch);
        let at = self.0.iter().position(|one| one.epoch == epoch && !done(one)).unwrap_or_else(|| {
            self.0.push_back(One { epoch, ..One::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
    /// More text of an answer; `last` ends it.
    pub(super) fn text(&mut self, epoch: u32, text: &str, last: bool) {
        let one = self.open(epoch, |one| one.texted);
        one.text.push_str(text);
        one.texted = last;
        one.find();
    }
    /// A piece of an answer has audio until here; `last` ends the answer.
    pub(super) fn piece(&mut self, epoch: u32, text: String, until_ms: f64, last: bool) {
        let one = self.open(epoch, |one| one.told);
        one.early.push_back((text, until_ms));
        one.told = last;
        one.find();
    }
    /// Audio of an answer is given on; `last` ends it. The characters said at its end.
    pub(super) fn audio(&mut self, epoch: u32, ms: f64, last: bool) -> u64 {
        let one = self.open(epoch, |_| false);
        one.given += ms;
        let said = one.said(one.given);
        if last {
            self.0.pop_front();
        }
        said
    }
}

impl One {
    fn find(&mut self) {
        while let Some((piece, until)) = self.early.front() {
            let piece = piece.trim();
            let rest = self.text.get(self.found..).unwrap_or_default();
            self.found += match rest.find(piece) {
                Some(at) => at + piece.len(),
                // The rest of the piece has not come.
                None if !self.texted => return,
                // It was put in other words for the voice: as long as it is, as far as there is text.
                None => floor(rest, piece.len()),
            };
            self.marks.push((*until, self.text.get(..self.found).unwrap_or_default().chars().count() as u64));
            self.early.pop_front();
        }
    }
    /// Characters said after so much audio: between the ends of two pieces in proportion.
    fn said(&self, ms: f64) -> u64 {
        // A resampler's tail, a frame's rounding: an end is reached a little before it.
        let at = self.marks.partition_point(|(end, _)| *end <= ms + 5.0);
        let (from, said) = at.checked_sub(1).map_or((0.0, 0), |i| self.marks[i]);
        match self.marks.get(at) {
            Some((to, all)) if to > &from => {
                said + ((all - said) as f64 * ((ms - from) / (to - from)).clamp(0.0, 1.0)) as u64
            }
            _ => said,
        }
    }
}

/// The largest boundary between characters of `text` up to `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_as_its_sound_is_given_on() {
        let mut s = Spoken::default();
        s.text(0, "One two. Three", false);
        assert_eq!(s.audio(0, 100.0, false), 0, "nothing is known yet");
        s.piece(0, "One two.".to_owned(), 800.0, false);
        assert_eq!(s.audio(0, 300.0, false), 4, "half of the first piece");
        assert_eq!(s.audio(0, 400.0, false), 8);
        assert_eq!(s.audio(0, 200.0, false), 8, "the second has no end yet");
        // Told before its text was whole.
        s.piece(0, "Three four.".to_owned(), 1800.0, true);
        assert_eq!(s.audio(0, 300.0, false), 8);
        s.text(0, " four.", true);
        // The next answer's words come while this one is spoken.
        s.text(0, "Five.", true);
        s.piece(0, "Five.".to_owned(), 500.0, true);
        assert_eq!(s.audio(0, 500.0, true), 20);
        assert_eq!(s.audio(0, 250.0, false), 2);
    }
    #[test]
    fn other_words_and_other_epochs() {
        let mut s = Spoken::default();
        s.text(1, "It is 5 €. Yes.", true);
        s.piece(1, "It is five euros.".to_owned(), 1000.0, false);
        s.piece(1, "Yes.".to_owned(), 1500.0, true);
        assert!(s.audio(1, 1000.0, false) <= 15);
        assert_eq!(s.audio(1, 500.0, false), 15);
        assert_eq!(s.audio(2, 500.0, false), 0, "a fence made the rest void");
        assert_eq!(s.0.len(), 1);
    }
}
