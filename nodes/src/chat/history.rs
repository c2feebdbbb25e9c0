//! What was said, kept within a budget by a written rule.
//!
//! The rule: the fixed part (system text and examples) and the newest user message always stay. When the prompt is
//! over the budget, or there are more turns than allowed, the oldest turns (a user message and the answers behind it)
//! go until the prompt is within three quarters of the budget, so that the next turns find their prefix in the cache
//! again. Nothing is cut inside a message, except the last answer, to what was really heard.

use super::message::{Message, Role};

/// A conversation.
#[derive(Debug, Clone, Default)]
pub struct History {
    fixed: Vec<Message>,
    turns: Vec<Message>,
}

impl History {
    /// A conversation that begins with the system text and example messages.
    pub fn new(fixed: Vec<Message>) -> Self {
        Self { fixed, turns: Vec::new() }
    }

    /// System text and examples.
    pub fn fixed(&self) -> &[Message] {
        &self.fixed
    }

    /// What was said so far.
    pub fn turns(&self) -> &[Message] {
        &self.turns
    }

    /// All messages of the next prompt.
    pub fn messages(&self) -> Vec<Message> {
        self.fixed.iter().chain(&self.turns).cloned().collect()
    }

    /// Adds what the person said. Two in a row become one message, as templates refuse them.
    pub fn push_user(&mut self, text: &str) {
        match self.turns.last_mut() {
            Some(m) if m.role == Role::User => {
                m.content.push('\n');
                m.content.push_str(text);
            }
            _ => self.turns.push(Message::user(text)),
        }
    }

    /// Adds what the model said; an empty answer is not kept.
    pub fn push_assistant(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.turns.push(Message::assistant(text));
        }
    }

    /// Replaces everything said so far.
    pub fn replace(&mut self, turns: Vec<Message>) {
        self.turns = turns;
    }

    /// Cuts the last answer to its first `chars` characters, with spaces at the new end removed; nothing left: the
    /// message goes. `false` if the last message is no answer or is not longer.
    pub fn truncate_last_assistant(&mut self, chars: usize) -> bool {
        let Some(m) = self.turns.last_mut().filter(|m| m.role == Role::Assistant) else { return false };
        let Some((end, _)) = m.content.char_indices().nth(chars) else { return false };
        m.content.truncate(end);
        m.content.truncate(m.content.trim_end().len());
        if m.content.is_empty() {
            self.turns.pop();
        }
        true
    }

    /// Drops turns by the rule above. `count` gives the tokens of a prompt. Returns the tokens of what is left; more
    /// than `budget` if even the shortest prompt is.
    ///
    /// # Errors
    /// Those of `count`; the history is then as before.
    pub fn fit<E>(
        &mut self,
        budget: usize,
        max_turns: usize,
        mut count: impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let starts: Vec<usize> =
            (0..self.turns.len()).filter(|&i| i == 0 || self.turns[i].role == Role::User).collect();
        let mut drop = 0;
        let mut used = count(&self.messages())?;
        let mut target = budget;
        while drop + 1 < starts.len() && (used > target || starts.len() - drop > max_turns.max(1)) {
            target = budget / 4 * 3;
            drop += 1;
            let kept: Vec<Message> = self.fixed.iter().chain(&self.turns[starts[drop]..]).cloned().collect();
            used = count(&kept)?;
        }
        if drop > 0 {
            self.turns.drain(..starts[drop]);
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(m: &[Message]) -> Result<usize, ()> {
        Ok(m.iter().map(|m| m.content.split_whitespace().count()).sum())
    }

    #[test]
    fn oldest_turns_go_and_the_fixed_part_stays() {
        let mut h = History::new(vec![Message::system("a b"), Message::user("c"), Message::assistant("d")]);
        for i in 0..5 {
            h.push_user(&format!("q{i} x"));
            h.push_assistant(&format!("a{i} y"));
        }
        h.push_user("last");
        assert_eq!(h.fit(25, 100, words), Ok(25));
        assert_eq!(h.turns().len(), 11);
        // 24 is too little: down to at most 18, which is three turns of four words and `last` on four fixed ones.
        assert_eq!(h.fit(24, 100, words), Ok(17));
        assert_eq!(h.turns()[0].content, "q2 x");
        assert_eq!(h.fixed().len(), 3);
        assert_eq!(h.fit(100, 2, words), Ok(9));
        assert_eq!(h.turns()[0].content, "q4 x");
        // The newest message stays, whatever the budget.
        assert_eq!(h.fit(2, 100, words), Ok(5));
        assert_eq!(h.turns(), [Message::user("last")]);
    }

    #[test]
    fn an_answer_is_cut_to_what_was_heard() {
        let mut h = History::default();
        h.push_user("x");
        assert!(!h.truncate_last_assistant(1));
        h.push_assistant("one twé three fo");
        assert!(!h.truncate_last_assistant(100));
        assert!(h.truncate_last_assistant(8));
        assert_eq!(h.turns()[1].content, "one twé");
        assert!(h.truncate_last_assistant(0));
        assert_eq!(h.turns().len(), 1);
        h.push_user("y");
        assert_eq!(h.turns(), [Message::user("x\ny")]);
    }
}
