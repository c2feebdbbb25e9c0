//! Findings about a graph file: all at once, each with a stable code, its place, one cause and one hint.

use std::fmt;
use std::sync::Arc;

use codespan_reporting::diagnostic as cs;
use codespan_reporting::term;
use serde::Serialize;

use super::code::Code;
use super::excerpt::{Excerpt, brief};
use super::span::{Sources, Span, clean};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The graph runs, and there is a better way to write it.
    Note,
    /// The graph runs, but probably not as meant.
    Warning,
    /// The graph is refused.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The cause, in one line.
    pub message: String,
    /// Where.
    pub span: Option<Span>,
    /// Other places that belong to it, with what they are.
    pub labels: Vec<(Span, String)>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            span: Some(span),
            labels: Vec::new(),
            hint: None,
        }
    }
    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }
    /// A note at `span`.
    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, span, message) }
    }
    /// An error of no place in a text.
    pub fn nowhere(code: Code, message: impl Into<String>) -> Self {
        Self { span: None, ..Self::error(code, Span::default(), message) }
    }
    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Adds a hint naming the nearest of `known`, or all of them if they are few and none is near.
    #[must_use]
    pub fn nearest<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match nearest(word, known.iter().copied()) {
            Some(n) => self.hint(format!("did you mean `{n}`?")),
            None if known.is_empty() => self,
            None if known.len() <= 12 => self.hint(format!("known here: {}", ticks(&known))),
            None => self,
        }
    }
    /// Adds a second place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }
}

/// The nearest of `known` to `word`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    let limit = (word.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .take(512)
        .map(|k| (strsim::damerau_levenshtein(&word, &k.replace('_', "-")), k))
        .filter(|(d, k)| *d <= limit && *d < k.chars().count())
        .min()
        .map(|(_, k)| k)
}

/// "`a`, `b`, `c`".
pub(crate) fn ticks<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|w| format!("`{}`", w.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Most findings that are written out for people; machines get all.
const MAX_SHOWN: usize = 200;

/// Findings with the texts that they speak of, in the order of their places.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    sources: Arc<Sources>,
}

impl Diagnostics {
    /// Findings about `sources`.
    pub fn new(mut list: Vec<Diagnostic>, sources: Arc<Sources>) -> Self {
        list.sort_by_key(|d| (d.span.map(|s| (s.file, s.start)), d.code));
        list.dedup();
        for d in &mut list {
            // A key or value of a mebibyte is quoted in what is said about it.
            let brief = |text: String| brief(clean(&text).into_owned());
            d.message = brief(std::mem::take(&mut d.message));
            d.hint = d.hint.take().map(brief);
            d.labels.iter_mut().for_each(|(_, text)| *text = brief(std::mem::take(text)));
        }
        Self { list, sources }
    }
    /// All findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// True if one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }
    /// The texts.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
    /// `file:line:column` of a place.
    pub fn at(&self, span: Span) -> String {
        let name = self.sources.get(span.file).map_or("?", |s| s.name.as_str());
        format!("{name}:{}:{}", span.line, span.column)
    }
    /// The text for people, with ANSI colours if `colour`. Long lines are cut to what is around the places.
    pub fn render(&self, colour: bool) -> String {
        let config = term::Config { start_context_lines: 1, end_context_lines: 1, ..term::Config::default() };
        let mut all = String::new();
        for d in self.list.iter().take(MAX_SHOWN) {
            let mut buffer = if colour { term::termcolor::Buffer::ansi() } else { term::termcolor::Buffer::no_color() };
            let styles = term::Styles::default();
            let mut out = term::StylesWriter::new(&mut buffer, &styles);
            // Writing into memory does not fail, and places are kept within their texts.
            let (lines, finding) = self.codespan(d);
            let _ = term::emit_to_write_style(&mut out, &config, &lines, &finding);
            let text = String::from_utf8_lossy(buffer.as_slice());
            // The renderer ends with an empty line, which would part the hint from its cause.
            all.push_str(text.strip_suffix("\n\n").unwrap_or(text.trim_end_matches('\n')));
            all.push('\n');
            if let Some(h) = &d.hint {
                all.push_str(&format!("hint: {h}\n"));
            }
            all.push('\n');
        }
        if self.list.len() > MAX_SHOWN {
            all.push_str(&format!("... and {} more\n", self.list.len() - MAX_SHOWN));
        }
        all
    }
    fn codespan(&self, d: &Diagnostic) -> (Excerpt<'_>, cs::Diagnostic<usize>) {
        let severity = match d.severity {
            Severity::Error => cs::Severity::Error,
            Severity::Warning => cs::Severity::Warning,
            Severity::Note => cs::Severity::Note,
        };
        let spans: Vec<Span> = d.span.into_iter().chain(d.labels.iter().map(|(s, _)| *s)).collect();
        let (lines, places) = Excerpt::new(&self.sources, &spans);
        let mut places = spans.iter().map(|s| s.file as usize).zip(places);
        let primary = d.span.and_then(|_| places.next()).map(|(file, at)| cs::Label::primary(file, at));
        let rest = places.zip(&d.labels).map(|((file, at), (_, t))| cs::Label::secondary(file, at).with_message(t));
        let finding = cs::Diagnostic::new(severity)
            .with_code(d.code.id())
            .with_message(&d.message)
            .with_labels(primary.into_iter().chain(rest).collect());
        (lines, finding)
    }
    /// The same for machines: a list of objects.
    pub fn to_json(&self) -> serde_json::Value {
        let place = |s: Span| {
            serde_json::json!({
                "file": self.sources.get(s.file).map(|f| f.name.as_str()),
                "line": s.line, "column": s.column, "start": s.start, "end": s.end,
            })
        };
        self.list
            .iter()
            .map(|d| {
                serde_json::json!({
                    "code": d.code, "severity": d.severity, "message": d.message, "hint": d.hint,
                    "at": d.span.map(place),
                    "related": d.labels.iter().map(|(s, t)| serde_json::json!({"at": place(*s), "message": t}))
                        .collect::<Vec<_>>(),
                })
            })
            .collect()
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(s)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}
