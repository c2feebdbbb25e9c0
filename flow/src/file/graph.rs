//! A graph file with all that stands above and below it, merged, each value still knowing where it came from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::layers::{self, Layers, merge};
use super::parse::{MAX_BYTES, parse};
use super::span::{Index, Layer, Sources, Span};
use super::tree::{Tree, Value, kebab};

/// Most files in a chain of `extends`.
const MAX_EXTENDS: usize = 16;

/// Names that a platform may have, of this machine or of another.
const PLATFORMS: [&str; 9] = ["cpu", "cuda", "linux", "macos", "windows", "x86_64", "amd64", "aarch64", "arm64"];
/// Keys of the part of a graph that stands below a platform.
const PARTS: [&str; 13] = [
    "graph",
    "lanes",
    "nodes",
    "session",
    "serve",
    "scheduler",
    "placement",
    "places",
    "defaults",
    "env",
    "variant",
    "chunked",
    "about",
];

/// A graph file, read but not yet checked.
#[derive(Clone, Debug)]
pub struct GraphFile {
    pub(crate) root: Tree,
    pub(crate) sources: Arc<Sources>,
    /// Findings that did not stop the reading; errors among them stop the check.
    pub(crate) found: Vec<Diagnostic>,
    folder: PathBuf,
}

/// One value, and which layer set it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Explained {
    /// The key, as a dotted path.
    pub key: String,
    /// The value.
    pub value: serde_json::Value,
    /// The layer: `override`, `flag`, `environment`, `platforms.NAME`, `file`, `extends`.
    pub layer: String,
    /// `file:line:column`.
    pub at: String,
}

impl GraphFile {
    /// Reads a file and what it extends.
    ///
    /// # Errors
    /// All that is wrong with the texts, if no tree can be made of them.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        Self::load(path, &Layers::default())
    }
    /// Reads a file, what it extends, and the layers above it.
    ///
    /// # Errors
    /// As [`GraphFile::read`]; also overrides and variables that cannot be used.
    pub fn load(path: impl AsRef<Path>, over: &Layers) -> Result<Self, Diagnostics> {
        let path = path.as_ref();
        let mut r = Reader::default();
        let tree = r.chain(path, None, Layer::File, &mut Vec::new());
        r.finish(tree, path.parent().unwrap_or(Path::new("")), over)
    }
    /// Reads a text. `name` is used in messages; relative paths start at its folder.
    ///
    /// # Errors
    /// As [`GraphFile::read`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::parse_with(name, text, &Layers::default())
    }
    /// Reads a text with the layers above it.
    ///
    /// # Errors
    /// As [`GraphFile::load`].
    pub fn parse_with(name: &str, text: &str, over: &Layers) -> Result<Self, Diagnostics> {
        let mut r = Reader::default();
        let path = Path::new(name);
        let tree = r.one(path, text, Layer::File, &mut vec![path.to_owned()]);
        r.finish(tree, path.parent().unwrap_or(Path::new("")), over)
    }
    /// The folder of the file: relative paths in options start here.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// The merged value under a dotted path, `session.max-sessions`.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.root.find(key)
    }
    /// A whole section as a type of the caller's; `None` if the file has none.
    ///
    /// # Errors
    /// What does not fit, with its place.
    pub fn section<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Diagnostics> {
        let Some(tree) = self.get(key) else { return Ok(None) };
        super::de::from_tree(tree).map(Some).map_err(|d| Diagnostics::new(vec![d], self.sources.clone()))
    }
    /// The value under a dotted path and the layer that set it; `None` if no layer has it.
    pub fn explain(&self, key: &str) -> Option<Explained> {
        let tree = self.get(key)?;
        let source = self.sources.get(tree.span.file)?;
        Some(Explained {
            key: key.to_owned(),
            value: super::secrets::shown(key, tree.to_json()),
            layer: source.layer.to_string(),
            at: format!("{}:{}:{}", source.name, tree.span.line, tree.span.column),
        })
    }
    /// As [`GraphFile::explain`]; where no layer has the key, the default of the engine or of the node type.
    pub fn explain_with(&self, registry: &crate::Registry, key: &str) -> Option<Explained> {
        self.explain(key).or_else(|| super::defaults::default_of(self, registry, key))
    }
    /// The texts it was read from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}

#[derive(Default)]
struct Reader {
    sources: Sources,
    out: Vec<Diagnostic>,
}

impl Reader {
    /// Reads one file and, below it, what it extends.
    fn chain(&mut self, path: &Path, from: Option<Span>, layer: Layer, seen: &mut Vec<PathBuf>) -> Option<Tree> {
        let fail = |code, message: String, hint: &str| {
            let d = match from {
                Some(s) => Diagnostic::error(code, s, message),
                None => Diagnostic::nowhere(code, message),
            };
            d.hint(hint)
        };
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if seen.contains(&key) || seen.len() >= MAX_EXTENDS {
            let what = if seen.contains(&key) { "extends itself" } else { "is beyond 16 levels of `extends`" };
            self.out.push(fail(Code::Extends, format!("`{}` {what}", path.display()), "break the chain of `extends`"));
            return None;
        }
        seen.push(key);
        let bytes = match read_limited(path) {
            Ok(b) => b,
            Err(e) => {
                let d = fail(Code::Unreadable, format!("`{}` cannot be read: {e}", path.display()), "check the path");
                self.out.push(d);
                return None;
            }
        };
        let text = match std::str::from_utf8(&bytes) {
            Ok(t) => t,
            // The reading stopped at the limit, perhaps within a character.
            Err(e) if bytes.len() > MAX_BYTES => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or(""),
            Err(e) => {
                let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
                let d = fail(
                    Code::NotUtf8,
                    format!("`{}` is not UTF-8 in line {line} (byte {})", path.display(), e.valid_up_to()),
                    "save the file as UTF-8",
                );
                self.out.push(d);
                return None;
            }
        };
        if bytes.len() > MAX_BYTES {
            let d = format!("`{}` has more than {MAX_BYTES} bytes", path.display());
            self.out.push(fail(Code::TooLarge, d, "put large texts into files of their own"));
            return None;
        }
        self.one(path, text, layer, seen)
    }
    fn one(&mut self, path: &Path, text: &str, layer: Layer, seen: &mut Vec<PathBuf>) -> Option<Tree> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let file = self.sources.add(&path.display().to_string(), text, layer);
        let mut tree = parse(file, text, &mut self.out)?;
        let Value::Map(entries) = &mut tree.value else {
            let d = Diagnostic::error(Code::NotMap, tree.span, format!("the file is {}, not a map", tree.shape()));
            self.out.push(d.hint("a graph file begins with `graph: NAME` and `nodes:`"));
            return None;
        };
        let Some(at) = entries.iter().position(|e| e.key == "extends") else { return Some(tree) };
        let extends = entries.remove(at);
        let Some(parent) = extends.value.as_text() else {
            let d = Diagnostic::error(Code::WrongType, extends.value.span, "`extends` takes the path of a file");
            self.out.push(d.hint("write `extends: base.yaml`"));
            return Some(tree);
        };
        let parent = path.parent().unwrap_or(Path::new("")).join(parent);
        if let Some(mut base) = self.chain(&parent, Some(extends.value.span), Layer::Parent, seen) {
            merge(&mut base, tree, "", &mut self.out);
            return Some(base);
        }
        Some(tree)
    }
    /// Puts the upper layers on. A file without a tree gives its findings at once.
    fn finish(mut self, tree: Option<Tree>, folder: &Path, over: &Layers) -> Result<GraphFile, Diagnostics> {
        let Some(mut root) = tree else {
            return Err(Diagnostics::new(self.out, Arc::new(self.sources)));
        };
        self.platforms(&mut root, &over.platforms);
        let mut upper = Vec::new();
        for (name, value) in &over.env {
            upper.extend(layers::variable(&mut self.sources, &root, name, value, &mut self.out));
        }
        for (name, path, value) in &over.flags {
            upper.extend(layers::flag(&mut self.sources, name, path, value, &mut self.out));
        }
        for text in &over.overrides {
            upper.extend(layers::json(&mut self.sources, text, &mut self.out));
        }
        for text in &over.sets {
            upper.extend(layers::set(&mut self.sources, text, &mut self.out));
        }
        for tree in upper {
            merge(&mut root, tree, "", &mut self.out);
        }
        super::secrets::mask(&root, &mut self.sources);
        Ok(GraphFile { root, sources: Arc::new(self.sources), found: self.out, folder: folder.to_owned() })
    }
    fn platforms(&mut self, root: &mut Tree, names: &[String]) {
        let Value::Map(entries) = &mut root.value else { return };
        let Some(at) = entries.iter().position(|e| e.key == "platforms") else { return };
        let section = entries.remove(at);
        let Value::Map(all) = section.value.value else {
            let d = Diagnostic::error(Code::WrongType, section.value.span, "`platforms` takes a map");
            self.out.push(d.hint("write `platforms: { cuda: { nodes: ... } }`"));
            return;
        };
        for e in &all {
            if !PLATFORMS.contains(&e.key.as_str()) && !names.contains(&e.key) {
                let m = format!("there is no platform `{}`", e.key);
                self.out.push(Diagnostic::error(Code::UnknownKey, e.key_span, m).nearest(&e.key, PLATFORMS));
            }
            for part in e.value.as_map().unwrap_or_default() {
                if !PARTS.contains(&kebab(&part.key).as_str()) && !part.key.starts_with("x-") {
                    let m = format!("unknown key `{}` of a part of a graph", part.key);
                    let d = Diagnostic::error(Code::UnknownKey, part.key_span, m);
                    self.out.push(d.nearest(&part.key, PARTS));
                }
            }
            if e.value.as_map().is_none() {
                let d = Diagnostic::error(Code::WrongType, e.value.span, "a platform is a part of a graph, a map");
                self.out.push(d.hint("write for instance `cuda: { nodes: { asr: { slots: 8 } } }`"));
            }
        }
        for name in names {
            let Some(e) = all.iter().find(|e| e.key == *name && e.value.as_map().is_some()) else { continue };
            let Some(source) = self.sources.get(e.key_span.file).cloned() else { continue };
            let file = self.sources.add(&source.name, &source.text, Layer::Platform(name.clone()));
            let mut tree = e.value.clone();
            tree.retag(file);
            merge(root, tree, "", &mut self.out);
        }
    }
}

impl GraphFile {
    /// True if reading already found an error.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }
    /// A place that stands for the whole file.
    pub(crate) fn top(&self) -> Span {
        let file = self.root.span.file;
        self.sources
            .get(file)
            .map_or(self.root.span, |s| Index::new(&s.text).span(file, self.root.span.start, self.root.span.end))
    }
}

/// At most one byte more than a graph file may have.
fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
