//! An ONNX file without its second half: what is left computes one inner tensor.
//!
//! Promises that operators which do not follow from that tensor stay as they are, byte for byte; only weights that no
//! remaining operator reads are left out. So the library does not hold weights that it never uses.

use std::collections::HashSet;

use super::onnx::{Fields, OnnxGraph, Value};

/// The bytes of `file` with `tensor` as the only output and without all that follows from it. `graph` is what
/// [`OnnxGraph::parse`] found in `file`. `None` if the bytes are no ONNX model.
pub(super) fn cut(file: &[u8], graph: &OnnxGraph<'_>, tensor: &str) -> Option<Vec<u8>> {
    let mut after: HashSet<&str> = HashSet::from([tensor]);
    let mut dropped = Vec::with_capacity(graph.nodes.len());
    let (mut used, mut unused) = (HashSet::new(), HashSet::new());
    for node in &graph.nodes {
        let follows = node.inputs.iter().any(|i| after.contains(i));
        if follows {
            after.extend(node.outputs.iter().filter(|o| **o != tensor && !o.is_empty()));
        }
        dropped.push(follows);
        if follows { &mut unused } else { &mut used }.extend(node.inputs.iter().copied());
    }
    let keep = |name: &str| used.contains(name) || !unused.contains(name);
    let mut out = Vec::new();
    let mut fields = Fields(file);
    while let Some((raw, number, value)) = next(&mut fields)? {
        match (number, value) {
            (7, Value::Bytes(bytes)) => {
                let parts = parts(bytes, &dropped, keep)?;
                let output = [key(1, tensor.len()), tensor.as_bytes().to_vec()].concat();
                let output = [key(12, output.len()), output].concat();
                let len = parts.iter().map(|p| p.len()).sum::<usize>() + output.len();
                // Nearly all of the file is in here: it is copied once, into a buffer of its size.
                out.reserve_exact(len + 64);
                out.extend(key(7, len));
                parts.iter().for_each(|p| out.extend_from_slice(p));
                out.extend(output);
            }
            _ => out.extend_from_slice(raw),
        }
    }
    Some(out)
}

/// The fields of a graph that stay, as they are, but for its outputs.
fn parts<'a>(graph: &'a [u8], dropped: &[bool], keep: impl Fn(&str) -> bool) -> Option<Vec<&'a [u8]>> {
    let mut parts = Vec::new();
    let (mut fields, mut node) = (Fields(graph), 0);
    while let Some((raw, number, value)) = next(&mut fields)? {
        let stays = match (number, value) {
            (1, Value::Bytes(_)) => {
                node += 1;
                !dropped.get(node - 1).copied().unwrap_or(false)
            }
            (5, Value::Bytes(bytes)) => name(bytes).is_none_or(&keep),
            (12, _) => false,
            _ => true,
        };
        if stays {
            parts.push(raw);
        }
    }
    Some(parts)
}

/// The next field as it stands in the file, its number and its value; an outer `None` is damage.
#[allow(clippy::type_complexity)]
fn next<'a>(fields: &mut Fields<'a>) -> Option<Option<(&'a [u8], u64, Value<'a>)>> {
    let before = fields.0;
    let Some(field) = fields.next() else { return Some(None) };
    let (number, value) = field?;
    Some(Some((&before[..before.len() - fields.0.len()], number, value)))
}

/// Name of a weight.
fn name(tensor: &[u8]) -> Option<&str> {
    Fields(tensor).find_map(|field| match field {
        Some((8, Value::Bytes(b))) => std::str::from_utf8(b).ok(),
        _ => None,
    })
}

/// The beginning of a length-delimited field.
fn key(number: u8, mut len: usize) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out
}

#[cfg(test)]
mod tests {
    use super::super::onnx::tests::{bytes_field, write_node};
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let weight =
            |name: &str| bytes_field(5, &[bytes_field(8, name.as_bytes()), bytes_field(9, &[0; 200])].concat());
        let mut graph = [
            write_node("Conv", &["x", "both"], "z", &[]),
            write_node("Conv", &["z", "second"], "a", &[]),
            write_node("Add", &["a", "both"], "b", &[]),
            write_node("Tanh", &["b"], "output", &[]),
            weight("both"),
            weight("second"),
            weight("nobody's"),
        ]
        .concat();
        graph.extend(bytes_field(12, &bytes_field(1, b"output")));
        [bytes_field(7, &graph), vec![8, 8]].concat()
    }

    #[test]
    fn what_follows_is_left_out_and_nothing_else() {
        let file = sample();
        let rest = cut(&file, &OnnxGraph::parse(&file).unwrap(), "z").unwrap();
        let graph = OnnxGraph::parse(&rest).unwrap();
        assert_eq!(graph.nodes.iter().map(|n| n.outputs[0]).collect::<Vec<_>>(), ["z"]);
        assert_eq!(graph.outputs, ["z"]);
        let mut names: Vec<_> = graph.weights.keys().copied().collect();
        names.sort_unstable();
        assert_eq!(names, ["both", "nobody's"]);
        assert!(rest.ends_with(&[8, 8]) && graph.weights["both"].data == Some(&[0; 200]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(noise in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..900, with in any::<u8>()) {
            let mut file = sample();
            let at = at % file.len();
            file[at] = with;
            for bytes in [&noise[..], &file, &file[..at]] {
                if let Some(graph) = OnnxGraph::parse(bytes) {
                    let rest = cut(bytes, &graph, "z");
                    prop_assert!(rest.is_some_and(|r| OnnxGraph::parse(&r).is_some()));
                }
            }
        }
    }
}
