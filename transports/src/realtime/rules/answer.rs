//! One answer of the assistant: its text, its marks, its ledger, and how much of it the model may remember (Realtime
//! protocol, playback, "history").
//!
//! What is remembered is a prefix of the text, decided anew by every acknowledgement until the next user input is
//! committed; then it is frozen. An answer without audio was not played but read, so it is remembered as a whole once it
//! is complete.

use super::{
    ledger::{Ack, Ledger},
    marks::Marks,
};
use crate::realtime::{config::overlap::CommitPolicy, wire::server::response::Mark};

/// Most bytes of one answer's text. More of it is still sent, but not remembered.
const MAX_TEXT: usize = 1 << 20;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not yet.
    Running,
    /// By itself.
    Completed,
    /// By the user, the client or another response.
    Cancelled,
    /// By a fault; nothing of it is remembered.
    Failed,
}

/// What is left of a text once it can change no more.
#[derive(Debug, Clone)]
struct Frozen {
    /// Bytes of the text that are kept.
    end: usize,
}

/// The answer of one response.
#[derive(Debug, Clone)]
pub struct Answer {
    response: String,
    policy: CommitPolicy,
    aligned: bool,
    spoken: bool,
    text: String,
    marks: Marks,
    ledger: Ledger,
    outcome: Outcome,
    frozen: Option<Frozen>,
}

impl Answer {
    /// An answer without text so far. `rate` is that of its audio, in samples per second; `spoken` says that it has an
    /// audio part, `aligned` that its text keeps step with the audio. The policy is the session's as the answer begins.
    pub fn new(response: impl Into<String>, policy: CommitPolicy, rate: u32, spoken: bool, aligned: bool) -> Self {
        Self {
            response: response.into(),
            policy,
            aligned,
            spoken,
            text: String::new(),
            marks: Marks::new(),
            ledger: Ledger::new(rate),
            outcome: Outcome::Running,
            frozen: None,
        }
    }

    /// The response's id.
    pub fn response(&self) -> &str {
        &self.response
    }

    /// All text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has an audio part.
    pub fn is_spoken(&self) -> bool {
        self.spoken
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How much was made, sent and played.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether a later user input was committed.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// More text. Nothing after the end.
    pub fn write(&mut self, text: &str) {
        if self.outcome != Outcome::Running {
            return;
        }
        let mut room = MAX_TEXT.saturating_sub(self.text.len()).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.text.push_str(&text[..room]);
    }

    /// A mark of the text against the audio.
    pub fn mark(&mut self, mark: Mark) {
        if self.outcome == Outcome::Running {
            self.marks.push(mark);
        }
    }

    /// So many more samples were made.
    pub fn generate(&mut self, samples: u64) {
        self.ledger.generate(samples);
    }

    /// So many more samples were accepted into the output path.
    pub fn send(&mut self, samples: u64) {
        self.ledger.send(samples);
    }

    /// So many samples did not go out after all, and of the text only the first `bytes` did.
    pub fn take_back(&mut self, samples: u64, bytes: usize) {
        if self.outcome != Outcome::Running {
            return;
        }
        self.ledger.take_back(samples);
        let mut end = bytes.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.truncate(end);
        self.marks.until(self.ledger.sent_ms());
    }

    /// The one end; a second one is ignored.
    pub fn end(&mut self, outcome: Outcome) {
        if self.outcome != Outcome::Running || outcome == Outcome::Running {
            return;
        }
        self.outcome = outcome;
        match outcome {
            Outcome::Completed => self.ledger.complete(),
            _ => self.ledger.cancel(),
        }
    }

    /// Takes an acknowledgement. False: it came after a later user input, and changed nothing.
    pub fn ack(&mut self, ack: Ack) -> bool {
        if self.frozen.is_some() {
            return false;
        }
        self.ledger.ack(ack);
        true
    }

    /// A later user input was committed: what counts now counts for ever.
    pub fn freeze(&mut self) {
        if self.frozen.is_none() {
            self.frozen = Some(Frozen { end: self.heard_now().len() });
            self.marks = Marks::new();
        }
    }

    /// What the model may remember; empty if nothing.
    pub fn heard(&self) -> &str {
        match &self.frozen {
            Some(frozen) => &self.text[..frozen.end],
            None => self.heard_now(),
        }
    }

    fn heard_now(&self) -> &str {
        let until = |ms| {
            let total = self.ledger.total_ms();
            let ms = self.ledger.under_cap(ms);
            self.marks.heard(&self.text, ms, total, self.aligned, self.ledger.is_complete())
        };
        match (self.outcome, self.policy) {
            // H6
            (Outcome::Failed, _) => "",
            // H1
            (Outcome::Completed, _) if self.ledger.total_ms() == 0 && !self.ledger.is_cut() => &self.text,
            (Outcome::Completed, CommitPolicy::CommitAllOnDone) if !self.ledger.is_cut() => &self.text,
            (Outcome::Completed, CommitPolicy::CommitAllOnDone) => until(self.ledger.total_ms()),
            // H2
            (Outcome::Cancelled, CommitPolicy::CommitAllOnDone) if !self.ledger.is_acked() => {
                until(self.ledger.sent_ms())
            }
            _ => until(self.ledger.counted_ms()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(policy: CommitPolicy, text: &str, ms: u64) -> Answer {
        let mut answer = Answer::new("r1", policy, 1000, true, true);
        answer.write(text);
        answer.generate(ms);
        answer.send(ms);
        answer
    }

    fn ack(answer: &mut Answer, ms: u64, truncate: bool) -> bool {
        answer.ack(Ack { played_ms: ms, committed_ms: ms, truncate })
    }

    #[test]
    fn a_completed_answer_counts_in_full_or_as_far_as_acknowledged() {
        let mut all = spoken(CommitPolicy::CommitAllOnDone, "hello", 1000);
        all.end(Outcome::Completed);
        assert_eq!(all.heard(), "hello");
        ack(&mut all, 400, false);
        assert_eq!(all.heard(), "hello");
        let mut only = spoken(CommitPolicy::AckOnly, "hello", 1000);
        only.end(Outcome::Completed);
        assert_eq!(only.heard(), "");
        ack(&mut only, 400, false);
        assert_eq!(only.heard(), "he");
        ack(&mut only, 1000, false);
        assert_eq!(only.heard(), "hello");
    }

    #[test]
    fn a_cancelled_answer_counts_as_far_as_acknowledged_else_as_far_as_sent() {
        let mut all = Answer::new("r1", CommitPolicy::CommitAllOnDone, 1000, true, true);
        all.write("hello");
        all.generate(1000);
        all.send(600);
        all.end(Outcome::Cancelled);
        assert_eq!(all.heard(), "hel");
        ack(&mut all, 400, false);
        assert_eq!(all.heard(), "he");
        ack(&mut all, 0, true);
        assert_eq!(all.heard(), "");
        let mut only = spoken(CommitPolicy::AckOnly, "hello", 1000);
        only.end(Outcome::Cancelled);
        assert_eq!(only.heard(), "");
    }

    #[test]
    fn a_cut_holds_against_every_later_acknowledgement() {
        let mut answer = spoken(CommitPolicy::CommitAllOnDone, "hello", 1000);
        answer.end(Outcome::Completed);
        ack(&mut answer, 400, true);
        ack(&mut answer, 1000, false);
        assert_eq!(answer.heard(), "he");
        ack(&mut answer, 1000, true);
        assert_eq!(answer.heard(), "he");
    }

    #[test]
    fn the_next_user_input_freezes_what_counts() {
        let mut answer = spoken(CommitPolicy::AckOnly, "hello", 1000);
        ack(&mut answer, 400, false);
        answer.end(Outcome::Cancelled);
        answer.freeze();
        assert!(!ack(&mut answer, 1000, false));
        answer.freeze();
        assert_eq!(answer.heard(), "he");
    }

    #[test]
    fn a_failed_answer_counts_for_nothing_and_has_one_end() {
        let mut answer = spoken(CommitPolicy::CommitAllOnDone, "hello", 1000);
        answer.end(Outcome::Failed);
        answer.end(Outcome::Completed);
        answer.write("more");
        assert_eq!((answer.heard(), answer.text(), answer.outcome()), ("", "hello", Outcome::Failed));
    }

    #[test]
    fn text_that_is_not_aligned_counts_only_whole() {
        let mut answer = Answer::new("r1", CommitPolicy::AckOnly, 1000, true, false);
        answer.write("hello");
        answer.generate(1000);
        ack(&mut answer, 1000, false);
        assert_eq!(answer.heard(), "");
        answer.end(Outcome::Completed);
        assert_eq!(answer.heard(), "hello");
    }

    #[test]
    fn what_was_taken_back_was_never_heard() {
        let mut answer = spoken(CommitPolicy::CommitAllOnDone, "hello", 1000);
        answer.mark(Mark { text_chars: 2, audio_end_ms: 400 });
        answer.mark(Mark { text_chars: 5, audio_end_ms: 1000 });
        answer.take_back(600, 2);
        answer.end(Outcome::Cancelled);
        assert_eq!((answer.heard(), answer.ledger().sent_ms(), answer.ledger().total_ms()), ("he", 400, 1000));
        ack(&mut answer, 1000, false);
        assert_eq!(answer.heard(), "he");
        answer.take_back(400, 0);
        assert_eq!(answer.heard(), "he", "it has ended");
    }

    #[test]
    fn a_written_answer_needs_no_playback() {
        for policy in [CommitPolicy::CommitAllOnDone, CommitPolicy::AckOnly] {
            let mut answer = Answer::new("r1", policy, 24_000, false, true);
            answer.write("hello");
            answer.end(Outcome::Completed);
            assert_eq!(answer.heard(), "hello");
        }
    }

    #[test]
    fn endless_text_is_cut_between_characters() {
        let mut answer = Answer::new("r1", CommitPolicy::CommitAllOnDone, 24_000, false, true);
        answer.write("a");
        answer.write(&"ä".repeat(MAX_TEXT));
        assert_eq!(answer.text().len(), MAX_TEXT - 1);
    }
}
