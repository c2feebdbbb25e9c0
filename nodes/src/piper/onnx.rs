//! Just enough of an ONNX file to know how its operators are joined: names, types, attributes, and where weights lie.
//!
//! Promises no panic and no allocation beyond the size of the input on any bytes; weights are borrowed, not copied.
//! Does not run or validate the graph. Field numbers are those of `onnx.proto3`, IR version 3 and later.

use std::collections::HashMap;

/// The graph of a model file.
#[derive(Debug, Default)]
pub(super) struct OnnxGraph<'a> {
    /// Operators in file order, which ONNX demands to be topological.
    pub(super) nodes: Vec<OnnxNode<'a>>,
    /// The weights by name.
    pub(super) weights: HashMap<&'a str, OnnxTensor<'a>>,
    /// Names of the graph's outputs.
    pub(super) outputs: Vec<&'a str>,
}

/// One operator.
#[derive(Debug, Default)]
pub(super) struct OnnxNode<'a> {
    pub(super) op: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    /// Attributes of kind INT and INTS.
    pub(super) ints: HashMap<&'a str, Vec<i64>>,
    /// Attributes of kind FLOAT.
    pub(super) floats: HashMap<&'a str, f32>,
    /// Attributes of kind STRING.
    pub(super) strings: HashMap<&'a str, &'a str>,
    /// Attributes of kind TENSOR.
    pub(super) tensors: HashMap<&'a str, OnnxTensor<'a>>,
}

/// Numbers in the file.
#[derive(Debug, Default, Clone)]
pub(super) struct OnnxTensor<'a> {
    pub(super) dims: Vec<i64>,
    /// Element type; 1 is f32.
    pub(super) kind: u64,
    /// Little-endian elements; `None` if they are not in one piece in this file.
    pub(super) data: Option<&'a [u8]>,
}

impl<'a> OnnxGraph<'a> {
    /// Reads the graph; `None` if the bytes are no ONNX model.
    pub(super) fn parse(file: &'a [u8]) -> Option<Self> {
        let mut graph = None;
        for field in Fields(file) {
            if let (7, Value::Bytes(bytes)) = field? {
                graph = Some(bytes);
            }
        }
        let mut out = Self::default();
        for field in Fields(graph?) {
            match field? {
                (1, Value::Bytes(bytes)) => out.nodes.push(node(bytes)?),
                (5, Value::Bytes(bytes)) => {
                    let (name, tensor) = tensor(bytes)?;
                    out.weights.insert(name, tensor);
                }
                (12, Value::Bytes(bytes)) => out.outputs.extend(string(bytes, 1)?),
                _ => {}
            }
        }
        Some(out)
    }

    /// Which operator makes which tensor.
    pub(super) fn makers(&self) -> HashMap<&'a str, usize> {
        let pairs = self.nodes.iter().enumerate().flat_map(|(i, n)| n.outputs.iter().map(move |o| (*o, i)));
        pairs.filter(|(name, _)| !name.is_empty()).collect()
    }
}

fn node(bytes: &[u8]) -> Option<OnnxNode<'_>> {
    let mut node = OnnxNode::default();
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(b)) => node.inputs.push(std::str::from_utf8(b).ok()?),
            (2, Value::Bytes(b)) => node.outputs.push(std::str::from_utf8(b).ok()?),
            (4, Value::Bytes(b)) => node.op = std::str::from_utf8(b).ok()?,
            (5, Value::Bytes(b)) => attribute(b, &mut node)?,
            _ => {}
        }
    }
    Some(node)
}

fn attribute<'a>(bytes: &'a [u8], node: &mut OnnxNode<'a>) -> Option<()> {
    let (mut name, mut ints, mut text, mut float, mut numbers) = ("", Vec::new(), None, None, None);
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(b)) => name = std::str::from_utf8(b).ok()?,
            (2, Value::Fixed(b)) => float = b.first_chunk().map(|b| f32::from_le_bytes(*b)),
            (3, Value::Int(v)) => ints.push(v as i64),
            (5, Value::Bytes(b)) => numbers = Some(tensor(b)?.1),
            (4, Value::Bytes(b)) => text = std::str::from_utf8(b).ok(),
            (8, value) => push_ints(&mut ints, value)?,
            _ => {}
        }
    }
    if let Some(text) = text {
        node.strings.insert(name, text);
    } else if !ints.is_empty() {
        node.ints.insert(name, ints);
    } else if let Some(float) = float {
        node.floats.insert(name, float);
    } else if let Some(numbers) = numbers {
        node.tensors.insert(name, numbers);
    }
    Some(())
}

fn tensor(bytes: &[u8]) -> Option<(&str, OnnxTensor<'_>)> {
    let (mut name, mut tensor) = ("", OnnxTensor::default());
    for field in Fields(bytes) {
        match field? {
            (1, value) => push_ints(&mut tensor.dims, value)?,
            (2, Value::Int(kind)) => tensor.kind = kind,
            // Packed floats are their own little-endian bytes.
            (4 | 9, Value::Bytes(b)) => tensor.data = Some(b),
            (8, Value::Bytes(b)) => name = std::str::from_utf8(b).ok()?,
            _ => {}
        }
    }
    Some((name, tensor))
}

/// A repeated integer comes one by one or packed.
fn push_ints(out: &mut Vec<i64>, value: Value<'_>) -> Option<()> {
    match value {
        Value::Int(v) => out.push(v as i64),
        Value::Bytes(mut b) => {
            while !b.is_empty() {
                out.push(varint(&mut b)? as i64);
            }
        }
        Value::Fixed(_) => {}
    }
    Some(())
}

fn string(bytes: &[u8], number: u64) -> Option<Option<&str>> {
    for field in Fields(bytes) {
        match field? {
            (n, Value::Bytes(b)) if n == number => return Some(std::str::from_utf8(b).ok()),
            _ => {}
        }
    }
    Some(None)
}

pub(super) enum Value<'a> {
    Int(u64),
    Bytes(&'a [u8]),
    Fixed(&'a [u8]),
}

/// Iterates over the fields of one protobuf message; an inner `None` is damage and ends it.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Int(varint(&mut self.0)?),
            2 => {
                let len = usize::try_from(varint(&mut self.0)?).ok()?;
                Value::Bytes(self.skip(len)?)
            }
            1 => Value::Fixed(self.skip(8)?),
            5 => Value::Fixed(self.skip(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn skip(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes one field with length-delimited content.
    pub(in super::super) fn bytes_field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut len = content.len();
        while len >= 0x80 {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend(content);
        out
    }

    /// Writes a node with attributes of kind INTS.
    pub(in super::super) fn write_node(op: &str, inputs: &[&str], output: &str, ints: &[(&str, &[u8])]) -> Vec<u8> {
        let mut node = Vec::new();
        for input in inputs {
            node.extend(bytes_field(1, input.as_bytes()));
        }
        node.extend(bytes_field(2, output.as_bytes()));
        node.extend(bytes_field(4, op.as_bytes()));
        for (name, values) in ints {
            node.extend(bytes_field(5, &[bytes_field(1, name.as_bytes()), bytes_field(8, values)].concat()));
        }
        bytes_field(1, &node)
    }

    /// Wraps nodes into a model with the output `output`.
    pub(in super::super) fn write_model(nodes: &[Vec<u8>], output: &str) -> Vec<u8> {
        let mut graph = nodes.concat();
        graph.extend(bytes_field(12, &bytes_field(1, output.as_bytes())));
        bytes_field(7, &graph)
    }

    fn sample() -> Vec<u8> {
        let nodes =
            [write_node("Conv", &["x", "w"], "y", &[("pads", &[3, 3])]), write_node("Tanh", &["y"], "output", &[])];
        write_model(&nodes, "output")
    }

    #[test]
    fn reads_what_was_written() {
        let file = sample();
        let graph = OnnxGraph::parse(&file).unwrap();
        assert_eq!(graph.nodes.len(), 2);
        assert_eq!((graph.nodes[0].op, &graph.nodes[0].inputs[..]), ("Conv", &["x", "w"][..]));
        assert_eq!(graph.nodes[0].ints["pads"], [3, 3]);
        assert_eq!((graph.outputs[0], graph.makers()["y"]), ("output", 0));
    }

    #[test]
    fn no_prefix_panics() {
        let file = sample();
        for n in 0..file.len() {
            let _ = OnnxGraph::parse(&file[..n]);
        }
        assert!(OnnxGraph::parse(b"").is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut noise in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..60, with in any::<u8>()) {
            let _ = OnnxGraph::parse(&noise);
            let mut file = sample();
            let at = at % file.len();
            file[at] = with;
            let _ = OnnxGraph::parse(&file);
            noise.splice(0..0, [0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f]);
            prop_assert!(OnnxGraph::parse(&noise).is_none());
        }
    }
}
