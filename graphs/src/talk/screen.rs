//! How a conversation is shown: as lines for people, or as JSON for machines.

use serde_json::json;

use super::turns::Shown;
use crate::output;

/// Standard output, with a line that may be open.
pub struct Screen {
    json: bool,
    open: bool,
    /// Bytes of a second of audio.
    rate: usize,
}

impl Screen {
    pub fn new(json: bool, rate: usize) -> Self {
        Self { json, open: false, rate }
    }
    /// Shows it.
    pub fn show(&mut self, shown: &Shown) {
        if self.json {
            return self.json(shown);
        }
        match shown {
            Shown::Heard { text, after } => {
                let after = after.map(|d| format!("  (heard {} ms)", d.as_millis())).unwrap_or_default();
                self.line(&format!("you: {}{after}", text.trim()));
            }
            Shown::Words(words) => {
                if !self.open {
                    output::put("it:  ");
                    self.open = true;
                }
                output::put(words);
            }
            Shown::Calls { name, arguments } => self.line(&format!("it calls {name}({arguments})")),
            Shown::Answer(answer) => self.line(&format!("     ({})", answer.line(self.rate))),
            Shown::Error(error) => {
                self.end();
                eprintln!("error: {error}");
            }
            Shown::Audio(_) | Shown::Interrupted => {}
        }
    }
    fn line(&mut self, text: &str) {
        self.end();
        output::put(&format!("{text}\n"));
    }
    /// Ends an open line.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            output::put("\n");
        }
    }
    fn json(&self, shown: &Shown) {
        let value = match shown {
            Shown::Heard { text, after } => {
                json!({"event": "heard", "text": text, "after_ms": after.map(|d| d.as_millis() as u64)})
            }
            Shown::Words(words) => json!({"event": "words", "text": words}),
            Shown::Interrupted => json!({"event": "interrupted"}),
            Shown::Calls { name, arguments } => json!({"event": "calls", "name": name, "arguments": arguments}),
            Shown::Answer(answer) => answer.to_json(self.rate),
            Shown::Error(error) => json!({"event": "refused", "message": error}),
            Shown::Audio(_) => return,
        };
        output::json_line(&value);
    }
    /// The last line.
    pub fn sum(&mut self, answers: u32, session: Option<&str>) {
        if std::mem::take(&mut self.open) {
            output::last("\n".into());
        }
        if self.json {
            output::last(format!("{}\n", json!({"event": "end", "answers": answers, "session": session})));
        }
    }
}
