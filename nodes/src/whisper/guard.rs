//! Rules that end a transcription which the model would not end: repetition, and more tokens than anyone can speak.
//!
//! Pure: no model, no clock.

/// Most tokens that `samples` of 16 kHz speech may give. Fast English speech is about 4.5 words or 6 tokens per second;
/// twice that and some room for very short utterances.
pub fn token_cap(samples: usize) -> usize {
    16 + samples * 12 / 16_000
}

/// Sees the tokens come and says when their end is a loop.
///
/// A loop is the same run of `p` tokens, `p` up to 24, several times in a row: three times for `p` of four or more,
/// more often for shorter ones ("no, no, no, no" is something that people say).
#[derive(Debug, Default, Clone)]
pub struct RepetitionGuard {
    tokens: Vec<u32>,
}

const LONGEST: usize = 24;

impl RepetitionGuard {
    /// Takes the next token. When the end has become a loop, gives the number of tokens to keep: up to the end of the
    /// loop's first round.
    pub fn push(&mut self, token: u32) -> Option<usize> {
        self.tokens.push(token);
        let n = self.tokens.len();
        for period in 1..=LONGEST.min(n / 2) {
            let rounds = match period {
                1 => 8,
                2 | 3 => 5,
                _ => 3,
            };
            let span = period * rounds;
            if n >= span && self.tokens[n - span..n - period] == self.tokens[n - span + period..] {
                return Some(n - span + period);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_a_phrase_said_three_times() {
        let mut guard = RepetitionGuard::default();
        let phrase = [7, 8, 9, 10, 11];
        let mut tokens = vec![1, 2];
        tokens.extend(phrase.repeat(3));
        let hits: Vec<_> = tokens.iter().map(|&t| guard.push(t)).collect();
        assert!(hits[..hits.len() - 1].iter().all(Option::is_none));
        assert_eq!(hits.last().copied().flatten(), Some(7));
    }

    #[test]
    fn lets_people_repeat_themselves() {
        let mut guard = RepetitionGuard::default();
        assert!([5, 5, 5, 5, 6, 5, 5].iter().all(|&t| guard.push(t).is_none()));
    }

    proptest! {
        #[test]
        fn never_stops_distinct_tokens(n in 0u32..300) {
            let mut guard = RepetitionGuard::default();
            for t in 0..n {
                prop_assert_eq!(guard.push(t), None);
            }
        }

        #[test]
        fn stops_every_loop(lead in proptest::collection::vec(0u32..50, 0..20), p in 1usize..=24) {
            let mut guard = RepetitionGuard::default();
            let stopped = lead.iter().copied().chain((100..100 + p as u32).cycle().take(p * 8)).any(|t| guard.push(t).is_some());
            prop_assert!(stopped);
        }
    }
}
