//! The conversation of a graph that runs by itself: what was asked, what was answered, how much of that was heard.
//!
//! Pure state. It is told what the person said, the pieces of the answer's text as they are given out, the audio made of
//! them, how much was played, and interruptions; it gives the messages of the next prompt. An interrupted answer is kept
//! as far as it was heard:
//!
//! - Where audio is told (`spoken`), its segments are those of the text's pieces, in order (a sentence and its audio): a
//!   piece whose audio was played is kept whole, and the one in which the interruption fell in proportion to the audio
//!   that it had by then. What has no audio yet was not heard.
//! - Without, text and time are not aligned: the text that was given out is kept whole if any of it was played, and not at
//!   all if nothing was. Where not even playing is told, what was given out counts as heard.

use omni_flow::MediaTime;

use super::{
    history::History,
    message::{Message, Role},
};

/// So much less than all of a piece's audio is all of it: a frame that is being heard, a resampler's tail.
const SLACK: MediaTime = MediaTime::from_millis(50);

/// A conversation and the answer in hand.
#[derive(Debug, Clone)]
pub struct Turns {
    history: History,
    max_turns: usize,
    answer: Answer,
    /// Audio is told.
    aligned: bool,
    /// All audio since the last interruption.
    made: MediaTime,
    /// How much of it was played; `None` while nobody tells.
    played: Option<MediaTime>,
}

/// The newest answer; it can still be cut.
#[derive(Debug, Clone, Default)]
struct Answer {
    pieces: Vec<String>,
    /// Ends of the pieces whose audio is whole.
    ends: Vec<MediaTime>,
    /// Where its audio begins.
    start: Option<MediaTime>,
    /// Its text is whole.
    done: bool,
    interrupted: bool,
}

impl Turns {
    /// A conversation with a fixed beginning, of which the newest `max_turns` turns are kept. `aligned`: audio will be
    /// told; `heard`: playing will.
    pub fn new(fixed: Vec<Message>, max_turns: usize, aligned: bool, heard: bool) -> Self {
        Self {
            history: History::new(fixed),
            max_turns,
            answer: Answer::default(),
            aligned,
            made: MediaTime::ZERO,
            played: heard.then_some(MediaTime::ZERO),
        }
    }

    /// The person said this: the messages of the prompt that answers it.
    pub fn asked(&mut self, text: &str) -> Vec<Message> {
        let said = self.kept();
        // Without audio, an answer is heard once more is played than before it.
        self.answer = Answer { start: self.played.filter(|_| !self.aligned), ..Answer::default() };
        self.history.push_assistant(&said);
        self.history.push_user(text);
        // The number of turns alone decides here; what is too long for the model is the model's to say.
        let Ok(_) = self.history.fit(usize::MAX, self.max_turns, |_| Ok::<_, std::convert::Infallible>(0));
        self.history.messages()
    }

    /// The model gave this piece of its answer.
    pub fn said(&mut self, piece: &str, last: bool) {
        if self.answer.done || self.answer.interrupted {
            // Of an answer that nobody here asked for, or behind an interruption.
            return;
        }
        if !piece.is_empty() {
            self.answer.pieces.push(piece.to_owned());
        }
        self.answer.done = last;
    }

    /// So much audio of the answer was made; `last` ends that of a piece.
    pub fn spoken(&mut self, len: MediaTime, last: bool) {
        self.answer.start.get_or_insert(self.made);
        self.made += len;
        if last {
            self.answer.ends.push(self.made);
        }
    }

    /// So much was played since the last interruption.
    pub fn played(&mut self, until: MediaTime) {
        if let Some(played) = &mut self.played {
            *played = (*played).max(until);
        }
    }

    /// The answer was interrupted. How much was played of it may still be told.
    pub fn interrupted(&mut self) {
        self.answer.interrupted = true;
    }

    /// Whether an answer is in the making.
    pub fn answering(&self) -> bool {
        !self.answer.done
            && !self.answer.interrupted
            && self.history.turns().last().is_some_and(|m| m.role == Role::User)
    }

    /// What is kept of the newest answer.
    fn kept(&mut self) -> String {
        let answer = &self.answer;
        let gap = if self.aligned { " " } else { "" };
        let whole = answer.pieces.join(gap);
        if !answer.interrupted {
            return whole;
        }
        let played = self.played;
        let kept = match played {
            None => whole,
            Some(played) if self.aligned => answer.heard(played, self.made),
            Some(played) if played > answer.start.unwrap_or_default() => whole,
            Some(_) => String::new(),
        };
        // Whoever plays begins anew at an interruption.
        self.made = MediaTime::ZERO;
        self.played = played.map(|_| MediaTime::ZERO);
        kept
    }
}

impl Answer {
    /// The text whose audio ends by `played`, and a part of the piece in which that falls; `made` is the end of all audio.
    fn heard(&self, played: MediaTime, made: MediaTime) -> String {
        let Some(mut from) = self.start else { return String::new() };
        let mut out = String::new();
        // A piece whose audio is being made has so far what there is of it.
        let part_made = self.ends.last().is_none_or(|end| made > *end).then_some(&made);
        for (piece, end) in self.pieces.iter().zip(self.ends.iter().chain(part_made)) {
            let gap = if out.is_empty() { "" } else { " " };
            if played + SLACK >= *end && played > from {
                out.push_str(gap);
                out.push_str(piece);
                from = *end;
                continue;
            }
            let (span, part) = ((*end - from).ticks(), (played - from).ticks().max(0));
            let chars = piece.chars().count() as i128 * i128::from(part) / i128::from(span.max(1));
            let part: String = piece.chars().take(usize::try_from(chars).unwrap_or(0)).collect();
            if !part.trim().is_empty() {
                out.push_str(gap);
                out.push_str(part.trim_end());
            }
            break;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> MediaTime {
        MediaTime::from_millis(ms)
    }

    /// What is kept of an answer that was interrupted when so much was played.
    fn kept(aligned: bool, pieces: &[(&str, i64)], played: i64) -> Option<String> {
        let mut t = Turns::new(vec![Message::system("s")], 9, aligned, true);
        t.asked("q");
        for (text, len) in pieces {
            t.said(text, false);
            if *len > 0 && aligned {
                t.spoken(ms(*len / 2), false);
                t.spoken(ms(*len - *len / 2), true);
            }
        }
        t.played(ms(played));
        t.interrupted();
        let all = t.asked("q2");
        let answer = all.iter().find(|m| m.role == Role::Assistant);
        answer.map(|m| m.content.clone())
    }

    #[test]
    fn a_whole_answer_is_kept_whole() {
        let mut t = Turns::new(vec![Message::system("s")], 9, false, false);
        assert_eq!(t.asked("Hi"), [Message::system("s"), Message::user("Hi")]);
        assert!(t.answering());
        t.said("Good ", false);
        t.said("day.", false);
        t.said("", true);
        assert!(!t.answering());
        t.said("Of nobody's question.", true);
        let want = [Message::system("s"), Message::user("Hi"), Message::assistant("Good day."), Message::user("So?")];
        assert_eq!(t.asked("So?"), want);
        // Without an answer the questions become one; what was given out counts as heard.
        t.said("Well, ", false);
        t.interrupted();
        t.said("late", true);
        assert_eq!(t.asked("And?")[4..], [Message::assistant("Well, "), Message::user("And?")]);
        t.interrupted();
        assert_eq!(t.asked("Why?")[5], Message::user("And?\nWhy?"));
    }

    #[test]
    fn an_interrupted_answer_is_cut_to_what_was_heard() {
        let pieces = [("One two.", 1000), ("Three four.", 2000), ("Five.", 0)];
        for (played, want) in [
            (0, None),
            (100, None),
            (130, Some("O")),
            (500, Some("One")),
            (600, Some("One")),
            (700, Some("One t")),
            (960, Some("One two.")),
            (1000, Some("One two.")),
            (1500, Some("One two. Th")),
            (2990, Some("One two. Three four.")),
            (9000, Some("One two. Three four.")),
        ] {
            assert_eq!(kept(true, &pieces, played).as_deref(), want, "{played}");
        }
        // Without audio it is all or nothing.
        assert_eq!(kept(false, &[("a ", 0), ("b", 0)], 1), Some("a b".into()));
        assert_eq!(kept(false, &[("a ", 0), ("b", 0)], 0), None);
    }

    #[test]
    fn a_piece_that_is_being_made_counts_by_what_there_is() {
        let mut t = Turns::new(Vec::new(), 9, true, true);
        t.asked("q");
        t.said("0123456789", false);
        t.spoken(ms(1000), false);
        t.played(ms(400));
        t.interrupted();
        assert_eq!(t.asked("q2")[1], Message::assistant("0123"));
        // Positions begin anew after an interruption, and go on from answer to answer without one.
        t.said("abcdefghij", false);
        t.spoken(ms(1000), true);
        t.said("", true);
        t.played(ms(1000));
        assert_eq!(t.asked("q3")[3], Message::assistant("abcdefghij"));
        t.said("klmnopqrst", false);
        t.spoken(ms(1000), true);
        t.said("", true);
        t.played(ms(1300));
        t.interrupted();
        assert_eq!(t.asked("q4")[5], Message::assistant("klm"));
    }

    #[test]
    fn old_turns_go() {
        let mut t = Turns::new(vec![Message::system("s")], 2, false, false);
        for i in 0..5 {
            t.asked(&format!("q{i}"));
            t.said(&format!("a{i}"), true);
        }
        let all = t.asked("q5");
        let want = [Message::system("s"), Message::user("q4"), Message::assistant("a4"), Message::user("q5")];
        assert_eq!(all, want);
    }
}
