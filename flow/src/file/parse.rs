//! From text to [`Tree`], with the limits of a graph file enforced while it is read.
//!
//! At most 1 MiB, 64 levels, 10 000 values out of aliases; an alias costs what it expands to before anything is copied,
//! so a file of nested aliases is refused at once. Duplicate keys, tags, merge keys and several documents are findings.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::code::Code;
use super::diagnostic::Diagnostic;
use super::span::{Index, Span};
use super::tree::{Entry, Scalar, Tree, Value};

/// Most bytes of one file.
pub const MAX_BYTES: usize = 1 << 20;
/// Most levels of lists and maps.
pub const MAX_DEPTH: usize = 64;
/// Most values that all aliases of a file stand for.
pub const MAX_ALIASED: usize = 10_000;
/// Most values in anchored values: each is kept until the end of the file.
const MAX_ANCHORED: usize = 100_000;

/// Reads the text of source number `file`. The tree is there if the text could be understood at all; findings other
/// than syntax errors leave it usable, so that later checks can go on.
pub(crate) fn parse(file: u32, text: &str, out: &mut Vec<Diagnostic>) -> Option<Tree> {
    let index = Index::new(text);
    let whole = index.span(file, 0, 0);
    if text.len() > MAX_BYTES {
        out.push(
            Diagnostic::error(
                Code::TooLarge,
                whole,
                format!("the file has {} bytes, more than {MAX_BYTES}", text.len()),
            )
            .hint("put large texts into files of their own and name these in options"),
        );
        return None;
    }
    Builder {
        file,
        index,
        whole,
        out,
        frames: Vec::new(),
        anchors: HashMap::new(),
        aliased: 0,
        anchored: 0,
        root: None,
    }
    .run(text)
}

struct Frame {
    tree: Tree,
    /// For maps: a key that waits for its value. `None` inside: the key was refused, its value is dropped.
    key: Option<Option<(String, Span)>>,
    /// For maps: keys so far, with their places.
    seen: HashMap<String, Span>,
    anchor: usize,
    start: u32,
}

impl Frame {
    fn new(value: Value, span: Span, anchor: usize, start: u32) -> Self {
        Self { tree: Tree { value, span }, key: None, seen: HashMap::new(), anchor, start }
    }
}

struct Builder<'a, 'o> {
    file: u32,
    index: Index<'a>,
    whole: Span,
    out: &'o mut Vec<Diagnostic>,
    frames: Vec<Frame>,
    /// Finished anchored values with their size and depth.
    anchors: HashMap<usize, (Tree, usize, usize)>,
    aliased: usize,
    anchored: usize,
    root: Option<Tree>,
}

impl Builder<'_, '_> {
    fn run(mut self, text: &str) -> Option<Tree> {
        let mut documents = 0;
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, at) = match next {
                Ok(x) => x,
                Err(e) => {
                    self.syntax(text, e.info(), e.marker().index());
                    return None;
                }
            };
            let (start, end) = (self.index.byte(at.start.index()), self.index.byte(at.end.index()));
            let span = self.index.span(self.file, start, end);
            match event {
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        self.out.push(
                            Diagnostic::error(Code::Documents, span, "a second document begins here")
                                .hint("put each graph into a file of its own"),
                        );
                        return None;
                    }
                }
                Event::Alias(id) => self.alias(id, span)?,
                Event::Scalar(text, style, anchor, tag) => {
                    let mut plain = style == ScalarStyle::Plain;
                    if let Some(t) = tag {
                        plain &= !self.tag(&t, span);
                    }
                    let tree = Tree { value: Value::Scalar(Scalar { text: text.into_owned(), plain }), span };
                    self.put(tree, anchor)?;
                }
                Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag)
                    if self.frames.len() >= MAX_DEPTH =>
                {
                    let _ = (anchor, tag);
                    self.out.push(
                        Diagnostic::error(
                            Code::TooDeep,
                            span,
                            format!("more than {MAX_DEPTH} levels of lists and maps"),
                        )
                        .hint("flatten the value"),
                    );
                    return None;
                }
                Event::SequenceStart(anchor, tag) => {
                    if let Some(t) = tag {
                        self.tag(&t, span);
                    }
                    self.frames.push(Frame::new(Value::Seq(Vec::new()), span, anchor, start));
                }
                Event::MappingStart(anchor, tag) => {
                    if let Some(t) = tag {
                        self.tag(&t, span);
                    }
                    self.frames.push(Frame::new(Value::Map(Vec::new()), span, anchor, start));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let Some(mut frame) = self.frames.pop() else { continue };
                    frame.tree.span = self.index.span(self.file, frame.start, end.max(frame.start));
                    self.put(frame.tree, frame.anchor)?;
                }
            }
        }
        match self.root {
            Some(t) => Some(t),
            None => {
                self.out.push(
                    Diagnostic::error(Code::NotMap, self.whole, "the file is empty")
                        .hint("a graph file begins with `graph: NAME` and `nodes:`"),
                );
                None
            }
        }
    }
    /// Puts a finished value where it belongs.
    fn put(&mut self, tree: Tree, anchor: usize) -> Option<()> {
        if anchor > 0 {
            let size = tree.size();
            self.anchored = self.anchored.saturating_add(size);
            if self.anchored > MAX_ANCHORED {
                let d = Diagnostic::error(
                    Code::AliasBomb,
                    tree.span,
                    format!("anchors hold more than {MAX_ANCHORED} values"),
                );
                self.out.push(d.hint("anchor only what is used again"));
                return None;
            }
            let depth = depth(&tree);
            self.anchors.insert(anchor, (tree.clone(), size, depth));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(tree);
            return Some(());
        };
        match &mut frame.tree.value {
            Value::Seq(items) => items.push(tree),
            Value::Scalar(_) => {}
            Value::Map(entries) => match frame.key.take() {
                None => {
                    let text = match &tree.value {
                        Value::Scalar(s) if !tree.is_null() => Some(s.text.clone()),
                        _ => None,
                    };
                    let span = tree.span;
                    frame.key = Some(None);
                    let Some(text) = text else {
                        self.out.push(
                            Diagnostic::error(Code::BadKey, span, format!("a key is {}, not text", tree.shape()))
                                .hint("write `key: value`"),
                        );
                        return Some(());
                    };
                    if text == "<<" {
                        self.out.push(
                            Diagnostic::error(Code::MergeKey, span, "`<<` is not part of YAML 1.2")
                                .hint("use `extends`, or give the anchored value as a whole: `key: *name`"),
                        );
                    } else if let Some(first) = frame.seen.get(&text) {
                        self.out.push(
                            Diagnostic::error(Code::DuplicateKey, span, format!("`{text}` is given twice"))
                                .label(*first, format!("first given in line {}", first.line))
                                .hint("remove or rename one of them"),
                        );
                    } else {
                        frame.seen.insert(text.clone(), span);
                        frame.key = Some(Some((text, span)));
                    }
                }
                Some(None) => {}
                Some(Some((key, key_span))) => entries.push(Entry { key, key_span, value: tree }),
            },
        }
        Some(())
    }
    fn alias(&mut self, id: usize, span: Span) -> Option<()> {
        let Some((tree, size, deep)) = self.anchors.get(&id) else {
            self.out.push(
                Diagnostic::error(Code::AliasLoop, span, "this alias stands within the value that it names")
                    .hint("give the value an end before it is used again"),
            );
            return None;
        };
        self.aliased = self.aliased.saturating_add(*size);
        if self.aliased > MAX_ALIASED {
            self.out.push(
                Diagnostic::error(Code::AliasBomb, span, format!("aliases stand for more than {MAX_ALIASED} values"))
                    .hint("write out what is meant, or share less"),
            );
            return None;
        }
        if self.frames.len() + deep > MAX_DEPTH {
            self.out.push(
                Diagnostic::error(Code::TooDeep, span, format!("more than {MAX_DEPTH} levels with this alias"))
                    .hint("flatten the value"),
            );
            return None;
        }
        let mut tree = tree.clone();
        // A finding in an aliased value is shown where the value is written; the value itself where it is used.
        if matches!(tree.value, Value::Scalar(_)) {
            tree.span = span;
        }
        self.put(tree, 0)
    }
    /// True if the tag keeps a word as text; a finding for any other.
    fn tag(&mut self, tag: &saphyr_parser::Tag, span: Span) -> bool {
        if tag.is_yaml_core_schema() && tag.suffix == "str" || tag.handle.is_empty() && tag.suffix == "!" {
            return true;
        }
        self.out.push(
            Diagnostic::error(Code::Tag, span, format!("the tag `{tag}` has no meaning here"))
                .hint("leave the tag out: the node type says what its options are"),
        );
        false
    }
    fn syntax(&mut self, text: &str, info: &str, at: usize) {
        let start = self.index.byte(at);
        let end = text[start as usize..].chars().next().map_or(start, |c| start + c.len_utf8() as u32);
        let span = self.index.span(self.file, start, end);
        let line = text.lines().nth(span.line as usize - 1).unwrap_or("");
        let blank: &str = &line[..line.len() - line.trim_start().len()];
        if let Some(tab) = blank.find('\t') {
            let begin = start
                - text[..start as usize].len().saturating_sub(text[..start as usize].rfind('\n').map_or(0, |i| i + 1))
                    as u32;
            let span = self.index.span(self.file, begin + tab as u32, begin + tab as u32 + 1);
            self.out
                .push(Diagnostic::error(Code::Tab, span, "a tab is used for indentation").hint("indent with spaces"));
            return;
        }
        let message = info.trim();
        if message.contains("recursion") {
            let d = Diagnostic::error(Code::TooDeep, span, format!("more than {MAX_DEPTH} levels of lists and maps"));
            self.out.push(d.hint("flatten the value"));
            return;
        }
        if message.contains("unknown anchor") {
            let d = Diagnostic::error(Code::Syntax, span, "this alias names no anchor before it");
            self.out.push(d.hint("anchors are set with `&name` before they are used"));
            return;
        }
        let d = Diagnostic::error(Code::Syntax, span, format!("not YAML: {message}"));
        self.out.push(d.hint("check indentation, quotes, brackets, and the blank after each `:`"));
    }
}

fn depth(t: &Tree) -> usize {
    match &t.value {
        Value::Scalar(_) => 0,
        Value::Seq(v) => 1 + v.iter().map(depth).max().unwrap_or(0),
        Value::Map(m) => 1 + m.iter().map(|e| depth(&e.value)).max().unwrap_or(0),
    }
}
