//! Server-sent events from bytes, whatever the cuts.
//!
//! Gives the `data` of each event (WHATWG HTML §9.2). Lines may end with CR, LF or CRLF. A line or an event longer than
//! the bound is an error; memory never exceeds it by more than one piece.

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line or an event is too long.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// A line is not UTF-8.
    #[error("a line is not UTF-8")]
    NotUtf8,
}

/// The state of one stream.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    line: Vec<u8>,
    data: Option<String>,
    after_cr: bool,
    started: bool,
}

impl SseParser {
    /// `limit`: longest line and longest event, in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), data: None, after_cr: false, started: false }
    }

    /// Adds bytes and appends the data of all events that are complete now to `out`.
    ///
    /// # Errors
    /// [`SseError`]; the stream must not be used any more.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<String>) -> Result<(), SseError> {
        for &b in bytes {
            match b {
                b'\n' if std::mem::take(&mut self.after_cr) => {}
                b'\n' | b'\r' => {
                    self.after_cr = b == b'\r';
                    self.end_line(out)?;
                }
                _ => {
                    self.after_cr = false;
                    if self.line.len() >= self.limit {
                        return Err(SseError::TooLong(self.limit));
                    }
                    self.line.push(b);
                }
            }
        }
        Ok(())
    }

    /// The stream is over; an event without its blank line counts, as some servers forget it.
    ///
    /// # Errors
    /// As [`SseParser::push`].
    pub fn finish(&mut self, out: &mut Vec<String>) -> Result<(), SseError> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        out.extend(self.data.take());
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<String>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let text = std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8)?;
        let text = match std::mem::replace(&mut self.started, true) {
            true => text,
            false => text.strip_prefix('\u{feff}').unwrap_or(text),
        };
        if text.is_empty() {
            out.extend(self.data.take());
        } else if let Some(value) = text.strip_prefix("data").filter(|v| v.is_empty() || v.starts_with(':')) {
            let value = value.strip_prefix(':').unwrap_or("");
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.into()),
            }
            if self.data.as_ref().is_some_and(|d| d.len() > self.limit) {
                return Err(SseError::TooLong(self.limit));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Result<Vec<String>, SseError> {
        let (mut p, mut out) = (SseParser::new(64), vec![]);
        for piece in pieces {
            p.push(piece, &mut out)?;
        }
        p.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn any_cut_gives_the_same_events() {
        let text =
            "\u{feff}data: é😀\r\n\r\n: ping\n\nevent: x\rdata:a\rdata: b\r\rdata\n\ndatabase: no\n\ndata: [DONE]";
        let want = ["é😀", "a\nb", "", "[DONE]"];
        let bytes = text.as_bytes();
        assert_eq!(all(&[bytes]).unwrap(), want);
        for i in 0..=bytes.len() {
            assert_eq!(all(&[&bytes[..i], &bytes[i..]]).unwrap(), want, "cut at {i}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(all(&single).unwrap(), want);
    }

    #[test]
    fn bounds_hold() {
        assert_eq!(all(&[&[b'x'; 65]]), Err(SseError::TooLong(64)));
        let many = b"data: 0123456789012345678901234567890\n".repeat(3);
        assert_eq!(all(&[&many]), Err(SseError::TooLong(64)));
        assert_eq!(all(&[b"data: \xff\n"]), Err(SseError::NotUtf8));
    }
}
