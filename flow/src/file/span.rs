//! Where something stands in a graph file, and the texts that places refer to.
//!
//! Every layer of a graph (the file, what it extends, an override, an environment variable) is one source, so a place
//! always says which layer it is in. Lines and columns count from 1; columns count characters.

use std::sync::Arc;

/// A place in one of the [`Sources`] of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Index of the source.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte in characters, from 1.
    pub column: u32,
}

/// Which layer of the configuration a source is, from the one that wins to the one that yields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// `--set` or `--override`.
    Override,
    /// A flag of the command line.
    Flag,
    /// An environment variable.
    Environment,
    /// The file's `platforms` section, with the platform's name.
    Platform(String),
    /// The file itself.
    File,
    /// A file that it extends.
    Parent,
    /// The default of the engine or of the node type.
    Default,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Override => f.write_str("override"),
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::Platform(p) => write!(f, "platforms.{p}"),
            Self::File => f.write_str("file"),
            Self::Parent => f.write_str("extends"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file, flag or variable.
    pub name: String,
    /// Its text; secrets are masked once they are known to be such.
    pub text: Arc<str>,
    /// Its layer.
    pub layer: Layer,
}

/// All texts of one graph.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Adds a text and gives its index.
    pub(crate) fn add(&mut self, name: &str, text: &str, layer: Layer) -> u32 {
        self.0.push(Source { name: clean(name).into_owned(), text: super::secrets::veil(text).into(), layer });
        (self.0.len() - 1) as u32
    }
    /// The source at `file`.
    pub fn get(&self, file: u32) -> Option<&Source> {
        self.0.get(file as usize)
    }
    /// All, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }
    /// Replaces the text at `span` by stars, so that no message shows it. Columns stay as they are.
    pub(crate) fn mask(&mut self, span: Span) {
        let Some(s) = self.0.get_mut(span.file as usize) else { return };
        let (a, b) = (span.start as usize, span.end as usize);
        let Some(secret) = s.text.get(a..b) else { return };
        // One star per byte: the length in bytes stays, so all other places still hold.
        let stars: String = secret
            .chars()
            .flat_map(|c| std::iter::repeat_n(if c == '\n' { '\n' } else { '*' }, c.len_utf8()))
            .collect();
        s.text = format!("{}{stars}{}", &s.text[..a], &s.text[b..]).into();
    }
}

/// A text as it may go to a terminal: control characters, and those that change the direction of writing, are escaped.
/// Line ends and tabs stay.
pub(crate) fn clean(text: &str) -> std::borrow::Cow<'_, str> {
    let bad = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if bad(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out.into()
}

/// Byte offsets of characters, and of lines: turns the parser's character positions into places.
pub(crate) struct Index<'a> {
    text: &'a str,
    /// Byte offset of each character; empty if the text is ASCII.
    chars: Vec<u32>,
    /// Byte offset of each line's start.
    lines: Vec<u32>,
}

impl<'a> Index<'a> {
    pub fn new(text: &'a str) -> Self {
        let chars = if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(i, _)| i as u32).collect() };
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i as u32 + 1)).collect();
        Self { text, chars, lines }
    }
    /// Byte offset of the character at `index`.
    pub fn byte(&self, index: usize) -> u32 {
        let end = self.text.len() as u32;
        if self.chars.is_empty() { (index as u32).min(end) } else { self.chars.get(index).copied().unwrap_or(end) }
    }
    /// The place of a range of bytes, cut to its first line and without blanks at its end.
    pub fn span(&self, file: u32, start: u32, end: u32) -> Span {
        let start = start.min(self.text.len() as u32);
        let end = end.clamp(start, self.text.len() as u32);
        let raw = self.text.get(start as usize..end as usize).unwrap_or("");
        let first = raw.split('\n').next().unwrap_or("").trim_end();
        let line = self.lines.partition_point(|l| *l <= start).max(1);
        let begin = self.lines[line - 1];
        // Characters before `start` in its line, without walking over a line that may be the whole file.
        let count =
            |byte: u32| if self.chars.is_empty() { byte } else { self.chars.partition_point(|c| *c < byte) as u32 };
        let column = count(start) - count(begin);
        Span { file, start, end: start + first.len() as u32, line: line as u32, column: column + 1 }
    }
}
