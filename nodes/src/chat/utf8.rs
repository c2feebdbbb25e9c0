//! Bytes that arrive in pieces become whole characters.
//!
//! Up to three bytes of an unfinished character wait for the next piece; an invalid byte becomes U+FFFD at once and
//! never stalls what follows; a leftover at the end gives one U+FFFD. Joined pieces equal the lossy decoding of the
//! whole.

/// State of one stream.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Adds bytes, returns the characters that are complete now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut out = String::new();
        let mut rest = std::mem::take(&mut self.pending);
        loop {
            match std::str::from_utf8(&rest) {
                Ok(text) => {
                    out.push_str(text);
                    return out;
                }
                Err(e) => {
                    let good = e.valid_up_to();
                    out.push_str(&String::from_utf8_lossy(&rest[..good]));
                    match e.error_len() {
                        Some(bad) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            rest.drain(..good + bad);
                        }
                        None => {
                            rest.drain(..good);
                            self.pending = rest;
                            return out;
                        }
                    }
                }
            }
        }
    }

    /// The stream is over: an unfinished character becomes one U+FFFD.
    pub fn finish(&mut self) -> Option<char> {
        (!std::mem::take(&mut self.pending).is_empty()).then_some(char::REPLACEMENT_CHARACTER)
    }

    /// Forgets an unfinished character (a fence, a new turn).
    pub fn reset(&mut self) {
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn field_case_character_cut_between_tokens() {
        let mut s = Utf8Stream::default();
        let deltas: Vec<String> =
            [0xf0, 0x9f, 0x98, 0x80, 0xc3, 0xa9].iter().map(|b| s.push(&[*b])).filter(|d| !d.is_empty()).collect();
        assert_eq!(deltas, ["😀", "é"]);
        assert_eq!(s.finish(), None);
        assert_eq!(s.push(&[0xf0, 0x9f]), "");
        assert_eq!(s.finish(), Some('\u{fffd}'));
        assert_eq!(s.push(&[0xff, 0x41]), "\u{fffd}A");
        s.push(&[0xf0]);
        s.reset();
        assert_eq!(s.push(b"x"), "x");
    }

    proptest! {
        #[test]
        fn pieces_join_to_the_lossy_whole(bytes: Vec<u8>, cuts: Vec<u8>) {
            let mut s = Utf8Stream::default();
            let (mut out, mut rest) = (String::new(), &bytes[..]);
            for c in cuts {
                let (a, b) = rest.split_at((c as usize).min(rest.len()));
                out.push_str(&s.push(a));
                rest = b;
            }
            out.push_str(&s.push(rest));
            out.extend(s.finish());
            prop_assert_eq!(out, String::from_utf8_lossy(&bytes));
        }
    }
}
