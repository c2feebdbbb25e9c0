//! Where a Piper file divides into talker and vocoder, and where it draws its noise.
//!
//! Promises tensors that the operators justify, whatever they are called: the split is the input of the convolution
//! before the first up-sampling on the way to the output. What is found is still only a candidate until
//! [`Voice::load`](super::Voice::load) has run it.

use super::onnx::OnnxGraph;
use super::reach::{Reach, reach};

/// Names of tensors in a voice file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    /// The latents between talker and vocoder.
    pub(super) latents: String,
    /// How the vocoder expands them and what it needs around them.
    pub(super) reach: Reach,
}

/// A random tensor: the value whose shape it takes, and its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RandomTensor {
    pub(super) like: String,
    pub(super) output: String,
}

/// Name of the latents in the exports of the reference trainer.
const USUAL: &str = "/Mul_7_output_0";

/// Finds the split, or says what was searched for and why each attempt failed.
pub(super) fn find_split(graph: &OnnxGraph<'_>) -> Result<Split, String> {
    let Some(output) = graph.outputs.first().copied() else { return Err("the graph has no output".into()) };
    let mut candidates: Vec<(&str, &str)> = Vec::new();
    if let Some(tensor) = before_upsampling(graph, output) {
        candidates.push(("input of the convolution before the first ConvTranspose", tensor));
    }
    let named = graph.nodes.iter().find(|n| n.op == "Conv" && n.inputs.iter().any(|i| i.ends_with("conv_pre.weight")));
    if let Some(tensor) = named.and_then(|n| n.inputs.first()) {
        candidates.push(("input of the convolution with the weight `*.conv_pre.weight`", tensor));
    }
    if graph.makers().contains_key(USUAL) {
        candidates.push(("tensor by name", USUAL));
    }
    let mut searched = Vec::new();
    for (how, tensor) in &candidates {
        match reach(graph, tensor, output) {
            Ok(reach) => return Ok(Split { latents: (*tensor).to_owned(), reach }),
            Err(why) => searched.push(format!("{how}: `{tensor}`, but {why}")),
        }
    }
    if searched.is_empty() {
        searched.push(format!(
            "searched for a convolution before the first ConvTranspose on the way to `{output}`, for a weight \
             `*.conv_pre.weight` and for the tensor `{USUAL}`; none is there"
        ));
    }
    Err(searched.join("; "))
}

/// All tensors drawn at random, in the order in which they are drawn.
pub(super) fn random_tensors(graph: &OnnxGraph<'_>) -> Vec<RandomTensor> {
    let random = graph.nodes.iter().filter(|n| n.op == "RandomNormalLike");
    random
        .filter_map(|n| Some(RandomTensor { like: (*n.inputs.first()?).into(), output: (*n.outputs.first()?).into() }))
        .collect()
}

/// Walks from the output to the earliest ConvTranspose, then on to the convolution in front of it.
fn before_upsampling<'a>(graph: &OnnxGraph<'a>, output: &'a str) -> Option<&'a str> {
    let makers = graph.makers();
    let mut tensor = output;
    let mut upsampled = None;
    // The main path is the first input; a file cannot make this longer than its number of operators.
    for _ in 0..graph.nodes.len() {
        let Some(&index) = makers.get(tensor) else { break };
        let node = &graph.nodes[index];
        match node.op {
            "ConvTranspose" => upsampled = node.inputs.first().copied(),
            "Conv" | "LeakyRelu" | "Relu" | "Tanh" | "Add" | "Div" | "Mul" | "Unsqueeze" | "Squeeze" | "Identity" => {}
            _ => break,
        }
        tensor = node.inputs.first().copied()?;
    }
    let mut tensor = upsampled?;
    for _ in 0..8 {
        let node = &graph.nodes[*makers.get(tensor)?];
        match node.op {
            "Conv" => return node.inputs.first().copied(),
            "LeakyRelu" | "Relu" | "Add" | "Identity" => tensor = node.inputs.first().copied()?,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::onnx::tests::{write_model, write_node};
    use super::*;

    fn vocoder(latents: &str, pre: &str) -> Vec<u8> {
        let conv: [(&str, &[u8]); 2] = [("kernel_shape", &[7]), ("pads", &[3, 3])];
        let up: [(&str, &[u8]); 3] = [("kernel_shape", &[8]), ("strides", &[4]), ("pads", &[2, 2])];
        let nodes = [
            write_node("RandomNormalLike", &["mean"], "noise", &[]),
            write_node("Concat", &["mean", "noise"], "joined", &[]),
            write_node("Mul", &["joined", "mask"], latents, &[]),
            write_node(pre, &[latents, "w"], "pre", &conv),
            write_node("Add", &["pre", "speaker"], "conditioned", &[]),
            write_node("LeakyRelu", &["conditioned"], "a", &[]),
            write_node("ConvTranspose", &["a", "u"], "b", &up),
            write_node("Conv", &["b", "p"], "c", &conv),
            write_node("Add", &["c", "b"], "d", &[]),
            write_node("Tanh", &["d"], "output", &[]),
        ];
        write_model(&nodes, "output")
    }

    #[test]
    fn the_split_is_found_under_any_name() {
        let file = vocoder("some.name", "Conv");
        let graph = OnnxGraph::parse(&file).unwrap();
        let split = find_split(&graph).unwrap();
        assert_eq!((split.latents.as_str(), split.reach.hop), ("some.name", 4));
        let noise = random_tensors(&graph);
        assert_eq!(noise, [RandomTensor { like: "mean".into(), output: "noise".into() }]);
    }

    #[test]
    fn what_was_searched_is_said() {
        let file = vocoder("some.name", "MatMul");
        let error = find_split(&OnnxGraph::parse(&file).unwrap()).unwrap_err();
        assert!(error.contains(USUAL) && error.contains("ConvTranspose"), "{error}");
        let file = vocoder(USUAL, "MatMul");
        let error = find_split(&OnnxGraph::parse(&file).unwrap()).unwrap_err();
        assert!(error.contains("by name") && error.contains("MatMul"), "{error}");
    }
}
