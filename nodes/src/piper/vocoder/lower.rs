//! From operators of a file to steps of a program.
//!
//! Promises that what is accepted computes what the operators say: scalings and activations wait until the convolution
//! that reads them, sums are joined to the convolution that makes their later part, if nobody else reads that. Whatever
//! does not fit is refused with the operator and the tensor.

use std::collections::HashMap;

use omni_flow_kernels::conv::{Conv, ConvSize};

use super::super::onnx::{OnnxGraph, OnnxNode};
use super::super::weights::{Refusal, Weight, Weights};
use super::program::{Condition, Convolution, Op, Program, Tensor};

/// Name of the input that says which speaker.
const SPEAKER: &str = "sid";
/// Largest kernel, dilation or stride; larger ones are damage.
const MOST: i64 = 1 << 12;

/// What a name of the graph stands for.
#[derive(Debug, Clone)]
enum Known {
    /// A tensor, to be scaled and then bent by a leaky slope.
    Rows { tensor: usize, scale: f32, slope: Option<f32> },
    /// The number of the speaker.
    Speaker,
    /// The numbers of all speakers, of which the right ones are meant.
    Embedding(String),
    /// Something that a convolution makes of those: its node.
    Condition(usize),
}

struct Lowering<'g, 'a> {
    graph: &'g OnnxGraph<'a>,
    weights: Weights<'g, 'a>,
    known: HashMap<&'g str, Known>,
    /// How many operators read a name.
    uses: HashMap<&'g str, usize>,
    tensors: Vec<Tensor>,
    /// The step that makes each tensor.
    made_by: Vec<usize>,
    ops: Vec<Op>,
}

/// Reads all that follows from `latents`, up to the first output.
///
/// # Errors
/// [`Refusal`].
pub(super) fn lower(graph: &OnnxGraph<'_>, latents: &str) -> Result<Program, Refusal> {
    let output = graph.outputs.first().copied().unwrap_or_default();
    let mut uses = HashMap::new();
    for name in graph.nodes.iter().flat_map(|n| &n.inputs).chain(&graph.outputs) {
        *uses.entry(*name).or_default() += 1;
    }
    let mut lowering = Lowering {
        graph,
        weights: Weights::new(graph),
        known: HashMap::from([(SPEAKER, Known::Speaker)]),
        uses,
        tensors: Vec::new(),
        made_by: Vec::new(),
        ops: Vec::new(),
    };
    let first = graph.nodes.iter().find(|n| n.op == "Conv" && n.inputs.first() == Some(&latents));
    let first = first.and_then(|n| n.inputs.get(1)).ok_or_else(|| Refusal::unknown("no convolution of the latents"))?;
    let &[_, width, _] = &lowering.weights.read(first)?.dims[..] else {
        return Err(Refusal::unknown(format!("`{first}` is not the weight of a convolution over time")));
    };
    lowering.tensor(width, 1);
    // A name that the file cannot have is harmless: nothing reads it.
    let latents = graph.nodes.iter().flat_map(|n| &n.inputs).copied().find(|i| *i == latents).unwrap_or_default();
    lowering.known.insert(latents, Known::Rows { tensor: 0, scale: 1.0, slope: None });
    for (index, node) in graph.nodes.iter().enumerate() {
        if !node.outputs.contains(&latents) {
            lowering.node(index, node)?;
        }
    }
    let Some(&Known::Rows { tensor, scale: 1.0, slope: None }) = lowering.known.get(output) else {
        return Err(Refusal::unknown(format!("`{output}` is no plain result of the operators")));
    };
    if tensor == 0 || lowering.tensors[tensor].channels != 1 {
        return Err(Refusal::unknown(format!("`{output}` is not one channel of audio")));
    }
    let mut program = Program { tensors: lowering.tensors, ops: lowering.ops, last: tensor };
    program.assign_slots();
    Ok(program)
}

impl<'g> Lowering<'g, '_> {
    fn tensor(&mut self, channels: usize, rate: i64) -> usize {
        self.tensors.push(Tensor { channels, rate, slot: 0 });
        self.made_by.push(self.ops.len());
        self.tensors.len() - 1
    }

    fn node(&mut self, index: usize, node: &'g OnnxNode<'_>) -> Result<(), Refusal> {
        let known: Vec<&Known> = node.inputs.iter().filter_map(|i| self.known.get(*i)).collect();
        let Some(output) = node.outputs.first().copied().filter(|_| !known.is_empty()) else { return Ok(()) };
        let of_rows = known.iter().any(|k| matches!(k, Known::Rows { .. }));
        let made = if of_rows { self.of_rows(node, output)? } else { self.of_speaker(index, node) };
        match made {
            Some(made) => drop(self.known.insert(output, made)),
            // What is made of the speaker alone may belong to the talker.
            None if !of_rows => {}
            None => return Err(Refusal::unknown(format!("operator {} (`{output}`) is not known", node.op))),
        }
        Ok(())
    }

    /// An operator on a tensor.
    fn of_rows(&mut self, node: &'g OnnxNode<'_>, output: &str) -> Result<Option<Known>, Refusal> {
        let input = |i: usize| node.inputs.get(i).and_then(|n| self.known.get(*n)).cloned();
        let (first, second) = (input(0), input(1));
        let refuse = |what: &str| Err(Refusal::unknown(format!("operator {} (`{output}`) {what}", node.op)));
        Ok(match (node.op, first, second) {
            ("Conv", Some(Known::Rows { tensor, scale, slope }), None) => {
                Some(self.convolution(node, output, tensor, scale, slope)?)
            }
            ("ConvTranspose", Some(Known::Rows { tensor, scale, slope }), None) => {
                Some(self.transposed(node, output, tensor, scale, slope)?)
            }
            ("LeakyRelu" | "Relu", Some(Known::Rows { tensor, scale, slope }), None) => {
                if slope.is_some() {
                    return refuse("follows another activation");
                }
                let default = if node.op == "Relu" { 0.0 } else { 0.01 };
                let slope = node.floats.get("alpha").copied().unwrap_or(default);
                if !slope.is_finite() {
                    return refuse("has a slope that is no number");
                }
                Some(Known::Rows { tensor, scale, slope: Some(slope) })
            }
            ("Div" | "Mul", Some(Known::Rows { tensor, scale, slope }), None) => {
                self.scaled(node, 1, tensor, scale, slope)?
            }
            ("Mul", None, Some(Known::Rows { tensor, scale, slope })) => self.scaled(node, 0, tensor, scale, slope)?,
            ("Add", Some(Known::Rows { tensor, scale: 1.0, slope: None }), Some(Known::Condition(condition)))
            | ("Add", Some(Known::Condition(condition)), Some(Known::Rows { tensor, scale: 1.0, slope: None })) => {
                self.condition(node, tensor, condition)?
            }
            (
                "Add",
                Some(Known::Rows { tensor: a, scale: 1.0, slope: None }),
                Some(Known::Rows { tensor: b, scale: 1.0, slope: None }),
            ) => {
                let names = [node.inputs[0], node.inputs[1]];
                if !self.same_shape(a, b) {
                    return refuse("adds tensors of different shapes");
                }
                Some(plain(self.add([a, b], names)))
            }
            ("Tanh", Some(Known::Rows { tensor, scale: 1.0, slope: None }), None) => {
                if tensor == 0 || self.uses.get(node.inputs[0]).copied() != Some(1) {
                    return refuse("bends a tensor that others read");
                }
                self.ops.push(Op::Tanh { x: tensor });
                Some(plain(tensor))
            }
            ("Identity", Some(rows), None) => Some(rows),
            // With one channel and one batch, where an axis of one is does not matter.
            ("Squeeze" | "Unsqueeze", Some(Known::Rows { tensor, scale, slope }), None)
                if self.tensors[tensor].channels == 1 =>
            {
                Some(Known::Rows { tensor, scale, slope })
            }
            _ => None,
        })
    }

    /// An operator on the speaker alone; `None` if it is not known.
    fn of_speaker(&self, index: usize, node: &OnnxNode<'_>) -> Option<Known> {
        let input = |i: usize| node.inputs.get(i).and_then(|n| self.known.get(*n));
        match (node.op, input(0), input(1)) {
            ("Gather", None, Some(Known::Speaker)) if int(node, "axis", 0) == 0 && self.weights.has(node.inputs[0]) => {
                Some(Known::Embedding(node.inputs[0].to_owned()))
            }
            ("Unsqueeze" | "Identity", Some(known @ (Known::Embedding(_) | Known::Speaker)), None) => {
                (node.op == "Identity" || matches!(known, Known::Embedding(_))).then(|| known.clone())
            }
            ("Conv", Some(Known::Embedding(_)), None) => Some(Known::Condition(index)),
            _ => None,
        }
    }

    fn convolution(
        &mut self,
        node: &OnnxNode<'_>,
        output: &str,
        x: usize,
        scale: f32,
        slope: Option<f32>,
    ) -> Result<Known, Refusal> {
        let (weight, bias, size) = self.kernel(node, x, false)?;
        let dilation = int(node, "dilations", 1);
        let [before, after] = pads(node);
        let around = (size.taps as i64 - 1) * dilation;
        let odd = int(node, "strides", 1) != 1 || before.checked_add(after) != Some(around);
        if odd || !(1..=MOST).contains(&dilation) || before < 0 || after < 0 {
            return Err(Refusal::unknown(format!("convolution `{output}` changes the length of its input")));
        }
        let conv = Conv::new(size, dilation as usize, &weight.values, bias.as_deref());
        let rate = self.tensors[x].rate;
        Ok(self.convolve(conv, [x, size.outputs], rate, (scale, slope), (before, 1)))
    }

    fn transposed(
        &mut self,
        node: &OnnxNode<'_>,
        output: &str,
        x: usize,
        scale: f32,
        slope: Option<f32>,
    ) -> Result<Known, Refusal> {
        let (weight, bias, size) = self.kernel(node, x, true)?;
        let (stride, more) = (int(node, "strides", 1), int(node, "output_padding", 0));
        let [before, after] = pads(node);
        let sizes = [before, after, more].iter().all(|n| (0..=MOST).contains(n)) && (2..=MOST).contains(&stride);
        if !sizes || int(node, "dilations", 1) != 1 || size.taps as i64 - before - after + more != stride {
            let what = format!("transposed convolution `{output}` does not multiply the length of its input");
            return Err(Refusal::unknown(what));
        }
        if node.ints.contains_key("output_shape") {
            return Err(Refusal::unknown(format!("transposed convolution `{output}` demands a shape")));
        }
        let conv = Conv::transposed(size, stride as usize, &weight.values, bias.as_deref());
        let rate = self.tensors[x].rate.saturating_mul(stride);
        if rate > 1 << 16 {
            return Err(Refusal::unknown(format!("a frame becomes {rate} samples")));
        }
        Ok(self.convolve(conv, [x, size.outputs], rate, (scale, slope), (before, stride)))
    }

    fn convolve(
        &mut self,
        conv: Conv,
        [x, channels]: [usize; 2],
        rate: i64,
        (scale, slope): (f32, Option<f32>),
        (pad, stride): (i64, i64),
    ) -> Known {
        let out = self.tensor(channels, rate);
        let slope = slope.unwrap_or(1.0);
        let (adds, condition) = ([None; 2], None);
        let convolution = Convolution { conv, x, out, scale, slope, pad, stride, adds, condition };
        self.ops.push(Op::Convolve(Box::new(convolution)));
        plain(out)
    }

    /// Weight, bias and sizes of a convolution, fitting its input.
    #[allow(clippy::type_complexity)]
    fn kernel(
        &self,
        node: &OnnxNode<'_>,
        x: usize,
        transposed: bool,
    ) -> Result<(Weight, Option<Vec<f32>>, ConvSize), Refusal> {
        let name = node.inputs.get(1).copied().unwrap_or_default();
        let weight = self.weights.read(name)?;
        if int(node, "group", 1) != 1 || !matches!(node.strings.get("auto_pad").copied(), None | Some("NOTSET" | "")) {
            return Err(Refusal::unknown(format!("the convolution with `{name}` has groups or pads by itself")));
        }
        let &[a, b, taps] = &weight.dims[..] else {
            return Err(Refusal::damaged(name, format!("has the shape {:?}, not that of a kernel", weight.dims)));
        };
        let (inputs, outputs) = if transposed { (a, b) } else { (b, a) };
        let channels = self.tensors[x].channels;
        if inputs != channels {
            let shape = &weight.dims;
            return Err(Refusal::damaged(
                name,
                format!("has the shape {shape:?}, but its input has {channels} channels"),
            ));
        }
        if outputs == 0 || inputs == 0 || !(1..=MOST).contains(&(taps as i64)) {
            return Err(Refusal::damaged(name, format!("has the shape {:?}, not that of a kernel", weight.dims)));
        }
        let said = int(node, "kernel_shape", taps as i64);
        if said != taps as i64 {
            return Err(Refusal::damaged(name, format!("has {taps} taps, but its operator says {said}")));
        }
        let bias = self.bias(node, outputs)?;
        Ok((weight, bias, ConvSize { inputs, outputs, taps }))
    }

    fn bias(&self, node: &OnnxNode<'_>, outputs: usize) -> Result<Option<Vec<f32>>, Refusal> {
        let Some(name) = node.inputs.get(2).filter(|n| !n.is_empty()) else { return Ok(None) };
        let bias = self.weights.read(name)?;
        if bias.values.len() != outputs {
            return Err(Refusal::damaged(name, format!("has {} numbers for {outputs} outputs", bias.values.len())));
        }
        Ok(Some(bias.values))
    }

    /// Times or divided by the one number that input `with` is.
    fn scaled(
        &self,
        node: &OnnxNode<'_>,
        with: usize,
        tensor: usize,
        scale: f32,
        slope: Option<f32>,
    ) -> Result<Option<Known>, Refusal> {
        let name = node.inputs.get(with).copied().unwrap_or_default();
        let &[by] = &self.weights.read(name)?.values[..] else { return Ok(None) };
        let by = if node.op == "Div" { 1.0 / by } else { by };
        let scale = scale * by;
        if !scale.is_finite() {
            return Err(Refusal::damaged(name, "is no factor"));
        }
        // A leaky slope and a factor may change places if the factor keeps the sign.
        Ok((slope.is_none() || by > 0.0).then_some(Known::Rows { tensor, scale, slope }))
    }

    fn same_shape(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.tensors[a], self.tensors[b]);
        (a.channels, a.rate) == (b.channels, b.rate)
    }

    /// The sum of two tensors, fused into the convolution that makes the later one, if possible.
    fn add(&mut self, parts: [usize; 2], names: [&str; 2]) -> usize {
        let later = usize::from(self.made_by[parts[1]] >= self.made_by[parts[0]]);
        let (tensor, other) = (parts[later], parts[1 - later]);
        let alone = tensor != other && tensor != 0 && self.uses.get(names[later]).copied() == Some(1);
        if alone
            && let Some(Op::Convolve(c)) = self.ops.get_mut(self.made_by[tensor])
            && c.stride == 1
            && let Some(free) = c.adds.iter_mut().find(|a| a.is_none())
        {
            *free = Some(other);
            return tensor;
        }
        let Tensor { channels, rate, .. } = self.tensors[tensor];
        let out = self.tensor(channels, rate);
        self.ops.push(Op::Sum { parts, out });
        out
    }

    /// Joins what a speaker adds to every row to the bias of the convolution that makes the rows.
    fn condition(&mut self, node: &OnnxNode<'_>, tensor: usize, by: usize) -> Result<Option<Known>, Refusal> {
        let by = &self.graph.nodes[by];
        let Some(Known::Embedding(table)) = by.inputs.first().and_then(|i| self.known.get(*i)) else { return Ok(None) };
        let (table_name, table) = (table, self.weights.read(table)?);
        let name = by.inputs.get(1).copied().unwrap_or_default();
        let weight = self.weights.read(name)?;
        let (&[_, numbers], &[outputs, inputs, 1]) = (&table.dims[..], &weight.dims[..]) else { return Ok(None) };
        if numbers == 0 || table.values.is_empty() || int(by, "group", 1) != 1 || pads(by) != [0, 0] {
            return Ok(None);
        }
        if numbers != inputs {
            let what = format!("has {inputs} inputs, but speakers (`{table_name}`) have {numbers} numbers");
            return Err(Refusal::damaged(name, what));
        }
        if outputs != self.tensors[tensor].channels {
            return Err(Refusal::damaged(
                name,
                format!("has {outputs} outputs for {} channels", self.tensors[tensor].channels),
            ));
        }
        let mut bias = self.bias(by, outputs)?.unwrap_or_else(|| vec![0.0; outputs]);
        let alone = node.inputs.iter().any(|i| {
            matches!(self.known.get(*i), Some(Known::Rows { tensor: t, .. }) if *t == tensor)
                && self.uses.get(*i) == Some(&1)
        });
        let made_by = self.made_by[tensor];
        match self.ops.get_mut(made_by) {
            Some(Op::Convolve(c)) if alone && tensor != 0 && c.stride == 1 && c.condition.is_none() => {
                bias.iter_mut().zip(c.conv.bias()).for_each(|(b, own)| *b += own);
                c.condition = Some(Condition { bias, speakers: table.values, numbers, weights: weight.values });
                Ok(Some(plain(tensor)))
            }
            _ => Ok(None),
        }
    }
}

fn plain(tensor: usize) -> Known {
    Known::Rows { tensor, scale: 1.0, slope: None }
}

fn int(node: &OnnxNode<'_>, name: &str, default: i64) -> i64 {
    node.ints.get(name).and_then(|v| v.first().copied()).unwrap_or(default)
}

fn pads(node: &OnnxNode<'_>) -> [i64; 2] {
    match node.ints.get("pads").map(Vec::as_slice) {
        Some(&[before, after]) => [before, after],
        None => [0, 0],
        // Not of one dimension: fits nothing.
        Some(_) => [-1, -1],
    }
}
