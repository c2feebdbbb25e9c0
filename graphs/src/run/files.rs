//! `--input` and `--output` for graphs that read or write files themselves: they become the `path` of the graph's
//! `file.in` and `file.out`.

use std::path::{Path, PathBuf};

use omni_flow::{GraphFile, Medium, Registry};
use serde_json::{Map, Value, json};

use super::ends::{self, named};
use crate::failure::Failure;
use crate::load;

/// Takes out of `inputs` and `outputs` what is meant for file nodes, and gives it as an override of the graph; with
/// `no_pace` the files are read as fast as the graph takes them.
///
/// A word with a file node's name goes to that node; a word without a name goes to the only file node where the graph
/// has no client end that could be meant.
pub fn paths(
    file: &GraphFile,
    registry: &Registry,
    inputs: &mut Vec<String>,
    outputs: &mut Vec<String>,
    no_pace: bool,
) -> Result<Option<String>, Failure> {
    if inputs.is_empty() && outputs.is_empty() && !no_pace {
        return Ok(None);
    }
    let (readers, writers) = (of_type(file, "file.in"), of_type(file, "file.out"));
    let asks = |wanted: &str| !of_type(file, wanted).is_empty();
    // A graph that is wrong is reported later; here it has the ends that its text shows.
    let speaks = match load::check(file, registry) {
        Ok((plan, _)) => ends::of(&plan).1.iter().any(|e| e.kind.medium == Medium::Audio),
        Err(_) => false,
    };
    let mut nodes = Map::new();
    take(inputs, &readers, !asks("session.in"), "standard input", &mut nodes)?;
    take(outputs, &writers, !speaks, "standard output", &mut nodes)?;
    for writer in writers.iter().filter(|w| file.get(&format!("nodes.{w}.format")).is_none()) {
        if let Some(path) = nodes.get(writer).and_then(|n| n["path"].as_str()) {
            ends::writable(Path::new(path))?;
        }
    }
    for reader in readers.iter().filter(|_| no_pace) {
        let node = nodes.entry(reader.as_str()).or_insert_with(|| json!({}));
        node["pace"] = json!(false);
    }
    Ok((!nodes.is_empty()).then(|| json!({ "nodes": nodes }).to_string()))
}

fn take(
    words: &mut Vec<String>,
    nodes: &[String],
    alone: bool,
    dash: &str,
    set: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let mut left = Vec::new();
    for word in words.drain(..) {
        let (node, path) = match (named(&word, nodes), nodes) {
            ((Some(node), path), _) => (node.to_owned(), path),
            ((None, path), [only]) if alone => (only.clone(), path),
            _ => {
                left.push(word);
                continue;
            }
        };
        if path == "-" {
            return Err(Failure::usage(
                format!("`{node}` works on files here, not on {dash}"),
                "give it a file, or write `path: \"-\"` into the graph",
            ));
        }
        // The path is meant from where the program was started, not from the graph's folder.
        let path = std::path::absolute(Path::new(path)).unwrap_or_else(|_| path.into());
        let path = path.to_str().map(str::to_owned);
        let Some(path) = path else {
            return Err(Failure::usage(format!("the path for `{node}` is not UTF-8"), "rename it"));
        };
        if set.insert(node.clone(), json!({ "path": path })).is_some() {
            return Err(Failure::usage(format!("the path of `{node}` is given twice"), "keep one of them"));
        }
    }
    *words = left;
    Ok(())
}

/// The paths of the graph's own `file.in` and `file.out`, the latter with their nodes.
pub fn of(file: &GraphFile) -> (Vec<PathBuf>, Vec<(String, PathBuf)>) {
    let path = |node: &String| {
        let text = file.get(&format!("nodes.{node}.path")).and_then(|t| t.as_text().map(str::to_owned));
        text.filter(|t| t != "-").map(|t| (node.clone(), file.folder().join(t)))
    };
    let (readers, writers) = (of_type(file, "file.in"), of_type(file, "file.out"));
    (readers.iter().filter_map(path).map(|(_, p)| p).collect(), writers.iter().filter_map(path).collect())
}

/// Names of the nodes of one type, as the text says.
fn of_type(file: &GraphFile, wanted: &str) -> Vec<String> {
    let nodes = file.get("nodes").and_then(|n| n.as_map()).unwrap_or_default();
    let is = |e: &&omni_flow::Entry| e.value.get("use").and_then(|u| u.as_text()) == Some(wanted);
    nodes.iter().filter(is).map(|e| e.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(yaml: &str, inputs: &[&str], outputs: &[&str]) -> (Option<String>, Vec<String>, Vec<String>) {
        let file = GraphFile::parse("g.yaml", yaml).unwrap();
        let own = |w: &[&str]| w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let (mut i, mut o) = (own(inputs), own(outputs));
        let set = paths(&file, &Registry::base(), &mut i, &mut o, false).unwrap();
        (set, i, o)
    }

    #[test]
    fn the_only_file_nodes_take_the_unnamed_words() {
        let (set, i, o) =
            taken("graph: g\nnodes: { a: { use: file.in }, b: { use: file.out, in: a } }", &["/x"], &["/y"]);
        let set: Value = serde_json::from_str(&set.unwrap()).unwrap();
        assert_eq!(set, json!({ "nodes": { "a": { "path": "/x" }, "b": { "path": "/y" } } }));
        assert!(i.is_empty() && o.is_empty());
    }
    #[test]
    fn words_for_client_ends_are_left_alone() {
        let yaml = "graph: g\nnodes: { mic: { use: session.in, kind: text }, a: { use: file.in }, s: { use: session.out, in: mic } }";
        let (set, i, _) = taken(yaml, &["x.wav", "a=/y"], &[]);
        assert_eq!(i, ["x.wav"]);
        assert_eq!(set.unwrap(), r#"{"nodes":{"a":{"path":"/y"}}}"#);
    }
}
