//! Numbers of a voice by the name of their tensor.
//!
//! Promises finite f32 numbers of a known shape, or a refusal that names the tensor. A refusal is of one of two kinds:
//! what is merely not known here may still run in the library; what is damaged must not be used at all.

use std::collections::HashMap;

use super::onnx::{OnnxGraph, OnnxTensor};

/// Why a vocoder cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// It has a part that is not known here.
    #[error("{0}")]
    Unknown(String),
    /// A tensor does not hold what it must.
    #[error("tensor `{tensor}` {what}")]
    Damaged { tensor: String, what: String },
}

impl Refusal {
    pub(super) fn unknown(what: impl Into<String>) -> Self {
        Self::Unknown(what.into())
    }

    pub(super) fn damaged(tensor: &str, what: impl Into<String>) -> Self {
        Self::Damaged { tensor: tensor.to_owned(), what: what.into() }
    }
}

/// A tensor of finite numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weight {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f32>,
}

/// Finds tensors that are weights of the graph, results of `Constant`, or those under another name.
pub(super) struct Weights<'g, 'a> {
    graph: &'g OnnxGraph<'a>,
    makers: HashMap<&'a str, usize>,
}

impl<'g, 'a> Weights<'g, 'a> {
    pub(super) fn new(graph: &'g OnnxGraph<'a>) -> Self {
        Self { graph, makers: graph.makers() }
    }

    /// Reads the tensor called `name`.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] if it is computed, of another type or outside of the file; [`Refusal::Damaged`] if its
    /// length does not fit its shape or a number is not finite.
    pub(super) fn read(&self, name: &str) -> Result<Weight, Refusal> {
        let tensor = self.find(name).ok_or_else(|| Refusal::unknown(format!("`{name}` is computed, not stored")))?;
        if tensor.kind != 1 {
            return Err(Refusal::unknown(format!("`{name}` is of element type {}, not f32", tensor.kind)));
        }
        let dims: Option<Vec<usize>> = tensor.dims.iter().map(|d| usize::try_from(*d).ok()).collect();
        let count = dims.as_ref().and_then(|d| d.iter().try_fold(1usize, |n, d| n.checked_mul(*d)));
        let (Some(dims), Some(count)) = (dims, count) else {
            return Err(Refusal::damaged(name, format!("has the impossible shape {:?}", tensor.dims)));
        };
        let Some(data) = tensor.data else {
            return Err(Refusal::unknown(format!("`{name}` is not stored in one piece in this file")));
        };
        let (numbers, rest) = data.as_chunks::<4>();
        if numbers.len() != count || !rest.is_empty() {
            let have = data.len();
            return Err(Refusal::damaged(name, format!("has {have} bytes for {count} numbers of the shape {dims:?}")));
        }
        let values: Vec<f32> = numbers.iter().map(|b| f32::from_le_bytes(*b)).collect();
        match values.iter().position(|v| !v.is_finite()) {
            Some(at) => Err(Refusal::damaged(name, format!("holds {} at {at}, which is no weight", values[at]))),
            None => Ok(Weight { dims, values }),
        }
    }

    /// Whether a tensor of this name is stored.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&'g OnnxTensor<'a>> {
        let mut name: &str = name;
        // Exporters give equal tensors one place and further names. A file cannot make the way longer than it is.
        for _ in 0..=self.graph.nodes.len() {
            if let Some(tensor) = self.graph.weights.get(name) {
                return Some(tensor);
            }
            let node = &self.graph.nodes[*self.makers.get(name)?];
            match node.op {
                "Constant" => return node.tensors.get("value"),
                "Identity" => name = node.inputs.first()?,
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piper::onnx::OnnxNode;

    fn tensor<'a>(dims: &[i64], kind: u64, data: Option<&'a [u8]>) -> OnnxTensor<'a> {
        OnnxTensor { dims: dims.to_vec(), kind, data }
    }

    #[test]
    fn tensors_are_found_under_all_their_names() {
        let data: Vec<u8> = [1.0f32, -2.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut graph = OnnxGraph::default();
        graph.weights.insert("w", tensor(&[2, 1], 1, Some(&data)));
        let node =
            |op, input, output| OnnxNode { op, inputs: vec![input], outputs: vec![output], ..Default::default() };
        graph.nodes = vec![node("Identity", "w", "v"), node("Identity", "v", "u"), node("Neg", "w", "n")];
        let mut constant = node("Constant", "", "c");
        constant.tensors.insert("value", tensor(&[2], 1, Some(&data)));
        graph.nodes.extend([constant, node("Identity", "loop", "loop")]);
        let weights = Weights::new(&graph);
        for name in ["w", "v", "u"] {
            assert_eq!(weights.read(name), Ok(Weight { dims: vec![2, 1], values: vec![1.0, -2.5] }));
        }
        assert_eq!(weights.read("c").unwrap().dims, [2]);
        for name in ["n", "loop", "nothing"] {
            assert!(matches!(weights.read(name), Err(Refusal::Unknown(why)) if why.contains(name)));
        }
    }

    #[test]
    fn damage_names_the_tensor() {
        let nan: Vec<u8> = [1.0f32, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
        let cases = [
            (tensor(&[2], 1, Some(&nan)), "NaN at 1"),
            (tensor(&[3], 1, Some(&nan)), "8 bytes for 3"),
            (tensor(&[2], 1, Some(&nan[..7])), "7 bytes for 2"),
            (tensor(&[-2], 1, Some(&nan)), "impossible shape [-2]"),
            (tensor(&[i64::MAX, 4], 1, Some(&nan)), "impossible shape"),
        ];
        for (tensor, what) in cases {
            let mut graph = OnnxGraph::default();
            graph.weights.insert("dec.w", tensor);
            let error = Weights::new(&graph).read("dec.w").unwrap_err();
            assert!(matches!(error, Refusal::Damaged { .. }), "{error}");
            assert!(error.to_string().contains(what) && error.to_string().contains("`dec.w`"), "{error}");
        }
        for tensor in [tensor(&[2], 10, Some(&nan)), tensor(&[2], 1, None)] {
            let mut graph = OnnxGraph::default();
            graph.weights.insert("dec.w", tensor);
            assert!(matches!(Weights::new(&graph).read("dec.w"), Err(Refusal::Unknown(_))));
        }
    }
}
