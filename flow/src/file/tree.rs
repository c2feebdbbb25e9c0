//! A value of a graph file with its place.
//!
//! Scalars are kept as they are written: `no`, `1.10`, `012` and `22:30` are that text until somebody asks for a number
//! or a yes/no. The dialect is YAML 1.2 core.

use super::span::Span;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// What it is.
    pub value: Value,
    /// Where it stands; for lists and maps, their first line.
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text as written.
    Scalar(Scalar),
    /// A list.
    Seq(Vec<Tree>),
    /// A map, in file order, without duplicates.
    Map(Vec<Entry>),
}

/// Text as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text, without quotes.
    pub text: String,
    /// True if it was written without quotes, so that it may also be a number, a yes/no or nothing.
    pub plain: bool,
}

/// One key of a map with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Tree,
}

impl Tree {
    /// A plain scalar.
    pub fn scalar(text: impl Into<String>, plain: bool, span: Span) -> Self {
        Self { value: Value::Scalar(Scalar { text: text.into(), plain }), span }
    }
    /// An empty map.
    pub fn empty(span: Span) -> Self {
        Self { value: Value::Map(Vec::new()), span }
    }
    /// Its entries if it is a map.
    pub fn as_map(&self) -> Option<&[Entry]> {
        if let Value::Map(m) = &self.value { Some(m) } else { None }
    }
    /// Its items if it is a list.
    pub fn as_seq(&self) -> Option<&[Tree]> {
        if let Value::Seq(s) = &self.value { Some(s) } else { None }
    }
    /// Its text if it is a scalar other than null.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(s) if !self.is_null() => Some(&s.text),
            _ => None,
        }
    }
    /// True for a plain `null`, `~` or nothing.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(s) if s.plain && matches!(s.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
    /// The entry of a map under `key`; `_` and `-` are alike.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_map()?.iter().find(|e| same_key(&e.key, key))
    }
    /// The value of a map under `key`; `_` and `-` are alike.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.entry(key).map(|e| &e.value)
    }
    /// The value under a dotted path, `session.max-sessions` or `nodes.a.in.0`.
    pub fn find(&self, path: &str) -> Option<&Tree> {
        path.split('.').try_fold(self, |t, part| match &t.value {
            Value::Seq(s) => part.parse::<usize>().ok().and_then(|i| s.get(i)),
            _ => t.get(part),
        })
    }
    /// `text`, `list`, `map` or `nothing`, for messages.
    pub fn shape(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar(_) => "text",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
    /// The value in JSON, with numbers and yes/no recognised where the text is exactly how one would write them.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as J;
        match &self.value {
            _ if self.is_null() => J::Null,
            Value::Scalar(s) if !s.plain => J::String(s.text.clone()),
            Value::Scalar(s) => match plain(&s.text) {
                Plain::Bool(b) => J::Bool(b),
                Plain::Int(i) => J::from(i),
                Plain::Float(x) => J::from(x),
                Plain::Text => J::String(s.text.clone()),
            },
            Value::Seq(v) => J::Array(v.iter().map(Self::to_json).collect()),
            Value::Map(m) => J::Object(m.iter().map(|e| (e.key.clone(), e.value.to_json())).collect()),
        }
    }
    /// Number of values in it, itself included.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.value {
            Value::Scalar(_) => 0,
            Value::Seq(v) => v.iter().map(Self::size).sum(),
            Value::Map(m) => m.iter().map(|e| e.value.size()).sum(),
        }
    }
    /// Moves all places to another source.
    pub(crate) fn retag(&mut self, file: u32) {
        self.span.file = file;
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::Seq(v) => v.iter_mut().for_each(|t| t.retag(file)),
            Value::Map(m) => m.iter_mut().for_each(|e| {
                e.key_span.file = file;
                e.value.retag(file);
            }),
        }
    }
}

/// What a plain scalar is when nobody says what it should be.
pub(crate) enum Plain {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text,
}

/// A number only if it is written as one would print it, so that `1.10`, `012` and `1e3` stay text.
pub(crate) fn plain(text: &str) -> Plain {
    match text {
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        _ => {}
    }
    if let Ok(i) = text.parse::<i64>()
        && i.to_string() == text
    {
        return Plain::Int(i);
    }
    if let Ok(x) = text.parse::<f64>()
        && x.is_finite()
        && (x.to_string() == text || format!("{x:?}") == text)
    {
        return Plain::Float(x);
    }
    Plain::Text
}

/// True if the keys are the same but for `_` and `-`.
pub(crate) fn same_key(a: &str, b: &str) -> bool {
    let norm = |c: u8| if c == b'_' { b'-' } else { c };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(x, y)| norm(x) == norm(y))
}

/// The key with `-` for `_`.
pub(crate) fn kebab(key: &str) -> String {
    key.replace('_', "-")
}
