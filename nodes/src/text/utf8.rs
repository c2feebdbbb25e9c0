//! UTF-8 that arrives in pieces cut anywhere.
//!
//! Promises that the joined output equals the whole input decoded at once: up to three bytes of an unfinished
//! character wait for the rest, what can never become a character gives U+FFFD at once.

/// The unfinished character at the end of a stream of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Utf8Tail {
    tail: Vec<u8>,
}

impl Utf8Tail {
    /// A stream with nothing pending.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes and returns the characters that are complete; may be empty.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.tail.is_empty() {
            bytes
        } else {
            joined = [&self.tail, bytes].concat();
            self.tail.clear();
            &joined
        };
        let mut out = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    out.push_str(text);
                    return out;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    // Checked just above, so nothing is replaced here.
                    out.push_str(&String::from_utf8_lossy(good));
                    let Some(len) = error.error_len() else {
                        self.tail = bad.to_vec();
                        return out;
                    };
                    out.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[len..];
                }
            }
        }
    }

    /// Ends the stream: an unfinished character becomes one U+FFFD.
    pub fn finish(&mut self) -> Option<char> {
        (!std::mem::take(&mut self.tail).is_empty()).then_some(char::REPLACEMENT_CHARACTER)
    }

    /// Forgets an unfinished character, as a fence asks.
    pub fn reset(&mut self) {
        self.tail.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_cut_between_chunks_stay_whole() {
        let mut tail = Utf8Tail::new();
        let deltas: Vec<String> =
            [0xf0u8, 0x9f, 0x98, 0x80, 0xc3, 0xa9].iter().map(|b| tail.push(&[*b])).filter(|s| !s.is_empty()).collect();
        assert_eq!(deltas, ["😀", "é"]);
        assert_eq!(tail.finish(), None);
    }

    #[test]
    fn leftovers_and_damage_become_one_replacement() {
        let mut tail = Utf8Tail::new();
        assert_eq!(tail.push(&[0xf0, 0x9f]), "");
        assert_eq!(tail.finish(), Some('\u{fffd}'));
        assert_eq!(tail.push(&[0xff, 0x41]), "\u{fffd}A");
        tail.push(&[0xf0]);
        tail.reset();
        assert_eq!((tail.push(b"a").as_str(), tail.finish()), ("a", None));
    }

    proptest! {
        #[test]
        fn any_chunking_equals_the_whole(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80u8..0xf5], 0..60),
                                         cuts in prop::collection::vec(1usize..5, 0..60)) {
            let mut tail = Utf8Tail::new();
            let (mut out, mut rest, mut cuts) = (String::new(), &bytes[..], cuts.into_iter());
            while !rest.is_empty() {
                let (head, more) = rest.split_at(cuts.next().unwrap_or(3).min(rest.len()));
                out.push_str(&tail.push(head));
                prop_assert!(tail.tail.len() <= 3);
                rest = more;
            }
            out.extend(tail.finish());
            prop_assert_eq!(out, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
