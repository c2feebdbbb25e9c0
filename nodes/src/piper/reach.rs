//! How many frames of context a decoder needs on each side, read from its convolutions.
//!
//! Promises that a frame's audio depends on no latent frame outside the answer: the interval of samples of each
//! tensor that one output frame can see is followed backwards through every operator, in whole numbers. Operators
//! that it does not know make it refuse rather than guess.

use std::collections::HashMap;

use super::onnx::{OnnxGraph, OnnxNode};

/// Context of a decoder and its expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    /// Samples that one latent frame becomes.
    pub(super) hop: usize,
    /// Frames needed on the worse of the two sides.
    pub(super) context: usize,
}

/// Follows `output` back to `split`.
///
/// # Errors
/// Says which operator stands in the way.
pub(super) fn reach(graph: &OnnxGraph<'_>, split: &str, output: &str) -> Result<Reach, String> {
    let makers = graph.makers();
    // Tensors between split and output, found forwards: the file order is topological.
    let mut rate: HashMap<&str, i64> = HashMap::from([(split, 1)]);
    for node in &graph.nodes {
        let Some(r) = node.inputs.iter().find_map(|i| rate.get(i).copied()) else { continue };
        let r = r.saturating_mul(if node.op == "ConvTranspose" { first(node, "strides", 1) } else { 1 });
        if !(1..=1 << 16).contains(&r) {
            return Err(format!("operator {} expands by {r}", node.op));
        }
        rate.extend(node.outputs.iter().map(|o| (*o, r)));
    }
    let hop = *rate.get(output).ok_or_else(|| format!("`{output}` does not follow from `{split}`"))?;

    // A frame in the middle of a long signal: far enough from zero that integer division needs no care about signs.
    let middle = 1i64 << 20;
    let mut seen: HashMap<&str, (i64, i64)> = HashMap::from([(output, (middle * hop, middle * hop + hop - 1))]);
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        let Some(&span) = node.outputs.iter().find_map(|o| seen.get(o)) else { continue };
        if node.outputs.contains(&split) {
            continue;
        }
        let moved = backwards(node, span, graph)?;
        for input in node.inputs.iter().filter(|i| rate.contains_key(**i)) {
            if *input != split && makers.get(*input).is_some_and(|m| *m >= index) {
                return Err("the operators are not in order".into());
            }
            let entry = seen.entry(input).or_insert(moved);
            *entry = (entry.0.min(moved.0), entry.1.max(moved.1));
        }
    }
    let &(low, high) = seen.get(split).ok_or_else(|| format!("`{output}` does not use `{split}`"))?;
    Ok(Reach { hop: hop as usize, context: (middle - low).max(high - middle).max(0) as usize })
}

/// The input samples that output samples `a..=b` of an operator depend on.
fn backwards(node: &OnnxNode<'_>, (a, b): (i64, i64), graph: &OnnxGraph<'_>) -> Result<(i64, i64), String> {
    match node.op {
        "Conv" | "ConvTranspose" => {}
        "LeakyRelu" | "Relu" | "Tanh" | "Sigmoid" | "Add" | "Sub" | "Mul" | "Div" | "Identity" | "Cast"
        | "Unsqueeze" | "Squeeze" | "Sin" | "Pow" | "Exp" | "Neg" | "Clip" => return Ok((a, b)),
        op => return Err(format!("the reach of operator {op} is not known")),
    }
    let auto = node.strings.get("auto_pad").copied().unwrap_or("NOTSET");
    if !matches!(auto, "NOTSET" | "") {
        return Err(format!("{} pads by `{auto}`", node.op));
    }
    let shape = node.inputs.get(1).and_then(|w| graph.weights.get(w)).and_then(|w| w.dims.last().copied());
    let kernel = node.ints.get("kernel_shape").and_then(|k| k.first().copied()).or(shape);
    let kernel = kernel.ok_or_else(|| format!("{} has no kernel size", node.op))?;
    let (stride, dilation) = (first(node, "strides", 1), first(node, "dilations", 1));
    let pad = first(node, "pads", 0);
    if !(1..=1 << 12).contains(&kernel)
        || !(1..=1 << 12).contains(&dilation)
        || !(1..=1 << 12).contains(&stride)
        || !(0..=1 << 16).contains(&pad)
    {
        return Err(format!("{} has impossible sizes", node.op));
    }
    let span = (kernel - 1) * dilation;
    Ok(if node.op == "Conv" {
        if stride != 1 {
            return Err("a convolution with a stride shortens the signal".into());
        }
        (a - pad, b - pad + span)
    } else {
        // Output o = i · stride − pad + j · dilation for taps j in 0..kernel.
        ((a + pad - span).div_euclid(stride) + i64::from((a + pad - span).rem_euclid(stride) != 0), (b + pad) / stride)
    })
}

fn first(node: &OnnxNode<'_>, name: &str, default: i64) -> i64 {
    node.ints.get(name).and_then(|v| v.first().copied()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::super::onnx::tests::{write_model, write_node};
    use super::*;

    #[test]
    fn one_convolution_reaches_half_its_kernel() {
        let file = write_model(
            &[write_node("Conv", &["z", "w"], "output", &[("kernel_shape", &[7]), ("pads", &[3, 3])])],
            "output",
        );
        let graph = OnnxGraph::parse(&file).unwrap();
        assert_eq!(reach(&graph, "z", "output"), Ok(Reach { hop: 1, context: 3 }));
    }

    #[test]
    fn a_vocoder_of_three_stages() {
        // The sizes of a "medium" Piper decoder: its measured reach is 11 frames.
        let mut nodes = vec![write_node("Conv", &["z"], "x0", &[("kernel_shape", &[7]), ("pads", &[3, 3])])];
        let mut last = "x0".to_string();
        for (stage, (stride, kernel)) in [(8u8, 16u8), (8, 16), (4, 8)].into_iter().enumerate() {
            let up = format!("up{stage}");
            let pad = (kernel - stride) / 2;
            let ints: [(&str, &[u8]); 3] = [("kernel_shape", &[kernel]), ("strides", &[stride]), ("pads", &[pad, pad])];
            nodes.push(write_node("ConvTranspose", &[&last], &up, &ints));
            let mut sum = up.clone();
            for (k, dilations) in [(3u8, [1u8, 2]), (5, [2, 6]), (7, [3, 12])] {
                let mut x = up.clone();
                for d in dilations {
                    let (c, y) = (format!("c{stage}{k}{d}"), format!("y{stage}{k}{d}"));
                    let p = (k - 1) * d / 2;
                    let ints: [(&str, &[u8]); 3] = [("kernel_shape", &[k]), ("dilations", &[d]), ("pads", &[p, p])];
                    nodes.push(write_node("Conv", &[&x], &c, &ints));
                    nodes.push(write_node("Add", &[&c, &x], &y, &[]));
                    x = y;
                }
                let next = format!("s{stage}{k}");
                nodes.push(write_node("Add", &[&sum, &x], &next, &[]));
                sum = next;
            }
            last = sum;
        }
        nodes.push(write_node("Conv", &[&last], "post", &[("kernel_shape", &[7]), ("pads", &[3, 3])]));
        nodes.push(write_node("Tanh", &["post"], "output", &[]));
        let file = write_model(&nodes, "output");
        let graph = OnnxGraph::parse(&file).unwrap();
        assert_eq!(reach(&graph, "z", "output"), Ok(Reach { hop: 256, context: 11 }));
    }

    #[test]
    fn unknown_operators_are_refused() {
        let file = write_model(&[write_node("Softmax", &["z"], "output", &[])], "output");
        let graph = OnnxGraph::parse(&file).unwrap();
        assert!(reach(&graph, "z", "output").unwrap_err().contains("Softmax"));
        assert!(reach(&graph, "nothing", "output").is_err());
    }
}
