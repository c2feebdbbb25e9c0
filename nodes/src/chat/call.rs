//! Tool calls in a stream of text, as local models write them.
//!
//! Known are `<tool_call>{...}</tool_call>` (Hermes, Qwen, SmolLM2; also a list of calls), `<|python_tag|>{...}` up to
//! the end of the answer, and, for Llama 3, an answer that is a JSON object with a name. Promises: however the stream is
//! cut, the same comes out; no character of a call is given as text; what only looked like the beginning of a call is
//! given as text in the end; what was meant as a call and is none comes out as [`Malformed`] with its text. White space
//! around calls is dropped, and an answer of nothing else.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::tool::ToolChoice;

/// Texts that begin a call. Tokens of these texts are part of the answer where tools may be called.
pub(super) const MARKERS: [&str; 2] = [HERMES, PYTHON];
const HERMES: &str = "<tool_call>";
const HERMES_END: &str = "</tool_call>";
const PYTHON: &str = "<|python_tag|>";

/// How a model writes calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallFormat {
    /// Between `<tool_call>` and `</tool_call>`.
    #[default]
    Hermes,
    /// As Llama 3 does: the answer is the call.
    Llama3,
}

impl CallFormat {
    /// The beginning of an answer that must call.
    pub(super) fn opening(self, choice: &ToolChoice) -> Option<String> {
        let open = match self {
            Self::Hermes => "<tool_call>\n{\"name\": ",
            Self::Llama3 => "{\"name\": ",
        };
        let key = if self == Self::Llama3 { "parameters" } else { "arguments" };
        match choice {
            ToolChoice::Required => Some(format!("{open}\"")),
            ToolChoice::Named(name) => {
                let name = serde_json::Value::from(name.as_str());
                Some(format!("{open}{name}, \"{key}\": "))
            }
            ToolChoice::Auto | ToolChoice::None => None,
        }
    }
}

/// What comes out of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Text that belongs to no call; never empty.
    Text(String),
    /// A whole call.
    Call {
        /// The tool.
        name: String,
        /// Its arguments: the text of a JSON object.
        arguments: String,
    },
    /// What was meant as a call and cannot be carried out.
    Malformed(Malformed),
}

/// A call that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The tool, if it says so.
    pub name: Option<String>,
    /// What came.
    pub raw: String,
    /// What is wrong with it.
    pub why: String,
}

/// The parser of one answer.
#[derive(Debug, Clone)]
pub struct CallParser {
    format: CallFormat,
    held: String,
    state: State,
    /// Nothing but white space since the beginning or the last call.
    lead: bool,
    /// Nothing but calls so far.
    bare: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Behind `<tool_call>`.
    Hermes,
    /// Behind `<|python_tag|>`.
    Python,
    /// At the brace of an object that may be a call.
    Object,
}

impl CallParser {
    /// A parser at the beginning of an answer.
    pub fn new(format: CallFormat) -> Self {
        Self { format, held: String::new(), state: State::Text, lead: true, bare: true }
    }

    /// Takes more of the answer and gives what is sure now.
    pub fn push(&mut self, text: &str) -> Vec<Parsed> {
        self.held.push_str(text);
        let mut out = Vec::new();
        while self.step(&mut out) {}
        out
    }

    /// The answer is over: gives what waited, and stands at the beginning of the next one.
    pub fn finish(&mut self) -> Vec<Parsed> {
        let mut out = Vec::new();
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Text => self.text(held, &mut out),
            State::Hermes | State::Python => read(&held, &mut out),
            State::Object if meant(&held) => out.push(malformed(None, &held, "the answer ended in the middle of it")),
            State::Object => out.push(Parsed::Text(held)),
        }
        *self = Self::new(self.format);
        out
    }

    /// Does what can be done with what is held; true if there may be more.
    fn step(&mut self, out: &mut Vec<Parsed>) -> bool {
        match self.state {
            State::Text => self.step_text(out),
            State::Hermes => {
                // A model that forgets to close a call begins the next.
                let ends = [HERMES_END, HERMES].iter().filter_map(|m| Some((self.held.find(m)?, *m))).min();
                let Some((at, marker)) = ends else { return false };
                let body = self.cut(at, marker.len());
                read(&body, out);
                if marker == HERMES_END {
                    (self.state, self.lead) = (State::Text, true);
                }
                true
            }
            State::Python => false,
            State::Object => {
                let Some(end) = object_end(&self.held) else { return false };
                let object = self.cut(end, 0);
                match one(&object) {
                    Parsed::Malformed(_) if !meant(&object) => {
                        (self.bare, self.lead) = (false, false);
                        out.push(Parsed::Text(object));
                    }
                    found => {
                        self.lead = true;
                        out.push(found);
                    }
                }
                self.state = State::Text;
                true
            }
        }
    }

    fn step_text(&mut self, out: &mut Vec<Parsed>) -> bool {
        if self.format == CallFormat::Llama3 && self.bare {
            let first = self.held.find(|c: char| !c.is_whitespace() && c != ';');
            match first.map(|at| (at, self.held.as_bytes()[at])) {
                Some((at, b'{')) => {
                    self.cut(at, 0);
                    self.state = State::Object;
                    return true;
                }
                None => return false,
                // What may still become a marker leaves everything open.
                Some((at, _))
                    if overlap(&self.held[at..], HERMES).max(overlap(&self.held[at..], PYTHON))
                        == self.held.len() - at =>
                {
                    return false;
                }
                Some(_) => {}
            }
        }
        let found = MARKERS.iter().filter_map(|m| Some((self.held.find(m)?, *m))).min();
        if let Some((at, marker)) = found {
            let before = self.cut(at, marker.len());
            self.text(before, out);
            self.state = if marker == HERMES { State::Hermes } else { State::Python };
            return true;
        }
        let keep = MARKERS.iter().map(|m| overlap(&self.held, m)).max().unwrap_or(0);
        let sure = self.held.len() - keep;
        if sure > 0 && !(self.lead && self.held[..sure].trim().is_empty()) {
            let before = self.cut(sure, 0);
            self.text(before, out);
        }
        false
    }

    /// Gives text, unless it is white space before or behind a call.
    fn text(&mut self, text: String, out: &mut Vec<Parsed>) {
        if text.is_empty() || (self.lead && text.trim().is_empty()) {
            return;
        }
        (self.bare, self.lead) = (false, false);
        out.push(Parsed::Text(text));
    }

    /// Takes the first `at` bytes, and drops `skip` more.
    fn cut(&mut self, at: usize, skip: usize) -> String {
        let rest = self.held.split_off(at + skip);
        let mut taken = std::mem::replace(&mut self.held, rest);
        taken.truncate(at);
        taken
    }
}

/// A call as it is written; either name is used for the arguments.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
}

/// The calls in what stands between markers: one after the other, or in lists.
fn read(body: &str, out: &mut Vec<Parsed>) {
    let between = |c: char| c.is_whitespace() || matches!(c, ';' | ',');
    let mut rest = body.trim_start_matches(between);
    if rest.is_empty() {
        out.push(malformed(None, body, "it is empty"));
    }
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
                Ok(list) => out.extend(list.iter().map(|v| one(v.get()))),
                Err(_) => out.push(one(value.get())),
            },
            Some(Err(e)) => {
                out.push(malformed(None, rest, &format!("it is not JSON: {e}")));
                return;
            }
            None => return,
        }
        rest = rest[values.byte_offset()..].trim_start_matches(between);
    }
}

/// The call that a JSON value is.
fn one(raw: &str) -> Parsed {
    let written: Written<'_> = match serde_json::from_str(raw) {
        Ok(w) => w,
        Err(e) => return malformed(None, raw, &format!("it is no call: {e}")),
    };
    let mut name = written.name;
    let mut given = written.arguments.or(written.parameters);
    if let Some(function) = written.function {
        // `{"function": "f"}` and `{"function": {"name": "f", "arguments": {}}}`.
        if let Ok(inner) = serde_json::from_str::<Written<'_>>(function.get()) {
            name = name.or(inner.name);
            given = given.or(inner.arguments).or(inner.parameters);
        } else if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(function.get()) {
            name = name.or(Some(text));
        }
    }
    let Some(name) = name.map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()) else {
        return malformed(None, raw, "it names no tool");
    };
    match given.map_or(Some("{}".to_owned()), |g| arguments(g.get())) {
        Some(arguments) => Parsed::Call { name, arguments },
        None => malformed(Some(name), raw, "its arguments are no JSON object"),
    }
}

/// Arguments as the text of a JSON object: an object as it was written, the text of one, or nothing at all.
pub(super) fn arguments(raw: &str) -> Option<String> {
    match raw.trim() {
        "" | "null" | "\"\"" => Some("{}".to_owned()),
        object if object.starts_with('{') => {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(object).ok()?;
            Some(object.to_owned())
        }
        text => {
            let inner: String = serde_json::from_str(text).ok()?;
            inner.trim_start().starts_with('{').then(|| arguments(&inner))?
        }
    }
}

fn malformed(name: Option<String>, raw: &str, why: &str) -> Parsed {
    Parsed::Malformed(Malformed { name, raw: raw.trim().to_owned(), why: why.to_owned() })
}

/// Whether an object that is no call, or not whole, was meant as one: it begins with a name.
fn meant(object: &str) -> bool {
    let inside = object.trim_start_matches('{').trim_start();
    inside.starts_with("\"name\"") || (inside.starts_with("\"type\"") && inside.contains("\"name\""))
}

/// The end of the object that `text` begins with, if it is there.
fn object_end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Bytes of the longest end of `text` that begins `marker` and is not all of it.
fn overlap(text: &str, marker: &str) -> usize {
    (1..marker.len().min(text.len() + 1))
        .rev()
        .find(|&n| text.as_bytes().ends_with(&marker.as_bytes()[..n]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
