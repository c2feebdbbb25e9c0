//! Text and events as lines for people. Pure: it gives what is to be written next. Text that is streamed stays on one
//! line until its segment ends; control characters of a model's text never reach the terminal.

use omni_flow::{MediaTime, Signal, TurnEnd};

/// Knows which line is open.
#[derive(Debug, Default)]
pub struct Printer {
    open: Option<String>,
}

impl Printer {
    /// A piece of text of the output `label`; `last` ends the line.
    pub fn text(&mut self, label: &str, text: &str, last: bool) -> String {
        let mut out = String::new();
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if self.open.as_deref() != Some(label) {
            // Nothing to say: no line is begun for it.
            if clean.trim().is_empty() {
                return out;
            }
            out = self.close();
            out.push_str(&format!("{label}: {}", clean.trim_start()));
            self.open = Some(label.to_owned());
        } else {
            out.push_str(&clean);
        }
        if last {
            out.push_str(&self.close());
        }
        out
    }
    /// A whole line.
    pub fn line(&mut self, text: &str) -> String {
        format!("{}{text}\n", self.close())
    }
    /// The output `label` was fenced: what it was saying ends here.
    pub fn fence(&mut self, label: &str) -> String {
        if self.open.as_deref() == Some(label) { format!(" [interrupted]{}", self.close()) } else { String::new() }
    }
    /// Ends an open line.
    pub fn close(&mut self) -> String {
        if self.open.take().is_some() { "\n".to_owned() } else { String::new() }
    }
}

/// How an output's node is called in print: `said-out` says `said`.
pub fn label(node: &str) -> &str {
    node.strip_suffix("-out").filter(|s| !s.is_empty()).unwrap_or(node)
}

/// An event in a few words.
pub fn signal(s: &Signal) -> String {
    let at = |t: &MediaTime| format!("{:.2} s", t.as_secs_f64());
    match s {
        Signal::SpeechStarted { at: t } => format!("speech from {}", at(t)),
        Signal::SpeechStopped { at: t } => format!("speech until {}", at(t)),
        Signal::TurnEnded { start, speech_end, reason, .. } => {
            format!("turn of {} to {} ({})", at(start), at(speech_end), turn_end(*reason))
        }
        Signal::Played { until } => format!("played {}", at(until)),
        Signal::Gap { items, len } => format!("gap of {items} chunks, {}", at(len)),
        Signal::Named { name, data } => format!("{name} {data}").chars().filter(|c| !c.is_control()).collect(),
        _ => "event".to_owned(),
    }
}

/// The same as an object.
pub fn signal_json(s: &Signal) -> serde_json::Value {
    use serde_json::json;
    let at = |t: &MediaTime| t.as_secs_f64();
    match s {
        Signal::SpeechStarted { at: t } => json!({ "type": "speech_started", "at": at(t) }),
        Signal::SpeechStopped { at: t } => json!({ "type": "speech_stopped", "at": at(t) }),
        Signal::TurnEnded { start, speech_end, end, reason } => json!({ "type": "turn_ended", "start": at(start),
            "speech_end": at(speech_end), "end": at(end), "reason": turn_end(*reason) }),
        Signal::Played { until } => json!({ "type": "played", "until": at(until) }),
        Signal::Gap { items, len } => json!({ "type": "gap", "items": items, "len": at(len) }),
        Signal::Named { name, data } => json!({ "type": "named", "name": **name, "data": **data }),
        _ => json!({ "type": "other" }),
    }
}

fn turn_end(r: TurnEnd) -> &'static str {
    match r {
        TurnEnd::Silence => "silence",
        TurnEnd::TooLong => "too long",
        TurnEnd::InputEnded => "input ended",
        TurnEnd::Committed => "committed",
        _ => "ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streamed_text_stays_on_one_line() {
        let mut p = Printer::default();
        let all = [
            p.text("heard", "Hello.", true),
            p.text("said", " Hi", false),
            p.text("said", " there", false),
            p.text("said", "", true),
            p.text("said", "", true),
        ];
        assert_eq!(all.concat(), "heard: Hello.\nsaid: Hi there\n");
    }
    #[test]
    fn another_voice_and_a_fence_end_the_line() {
        let mut p = Printer::default();
        let all = [
            p.text("said", "One", false),
            p.text("heard", "Stop.", true),
            p.text("said", "two", false),
            p.fence("heard"),
            p.fence("said"),
            p.fence("said"),
            p.line("done"),
        ];
        assert_eq!(all.concat(), "said: One\nheard: Stop.\nsaid: two [interrupted]\ndone\n");
    }
    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let got = Printer::default().text("said", "a\x1b[2Jb\nc", true);
        assert_eq!(got, "said: a [2Jb c\n");
        let s = Signal::Named { name: "x".into(), data: "\u{7}1".into() };
        assert_eq!(signal(&s), "x 1");
    }
    #[test]
    fn labels_are_short() {
        assert_eq!((label("said-out"), label("speaker"), label("-out")), ("said", "speaker", "-out"));
    }
}
