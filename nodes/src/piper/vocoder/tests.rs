use std::path::PathBuf;
use std::sync::Arc;

use omni_flow_kernels::Tier;
use proptest::prelude::*;
use rten::{Model, NodeId, ValueOrView};
use rten_tensor::NdTensor;

use super::super::onnx::OnnxGraph;
use super::super::onnx::tests::bytes_field;
use super::super::split::{Split, find_split};
use super::super::talker::Scales;
use super::super::voice::{Voice, VoiceOptions, floats};
use super::super::weights::Refusal;
use super::Vocoder;

/// Sizes of a made-up generator.
#[derive(Debug, Clone)]
struct Spec {
    width: usize,
    channels: usize,
    /// Kernel and stride of each up-sampling.
    ups: Vec<(usize, usize)>,
    /// Kernel and dilations of each residual block.
    blocks: Vec<(usize, Vec<usize>)>,
    /// Two convolutions per dilation, the second without one.
    double: bool,
    /// Speakers, and the numbers of one.
    speakers: Option<(usize, usize)>,
}

impl Spec {
    fn small() -> Self {
        let blocks = vec![(3, vec![1, 2]), (5, vec![2, 6])];
        Self { width: 6, channels: 12, ups: vec![(8, 4), (4, 2)], blocks, double: false, speakers: None }
    }
}

/// Writes a model.
#[derive(Default)]
struct Writer {
    nodes: Vec<u8>,
    weights: Vec<u8>,
    count: usize,
    noise: u32,
}

impl Writer {
    fn name(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}.{}", self.count)
    }

    /// A weight of noise, such that sums stay of the size of their inputs.
    fn weight(&mut self, dims: &[usize]) -> String {
        let name = self.name("weight");
        let fan = dims.iter().skip(1).product::<usize>().max(1) as f32;
        let values: Vec<f32> = (0..dims.iter().product())
            .map(|_| {
                self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((self.noise >> 8) as f32 / (1 << 23) as f32 - 1.0) * (2.0 / fan).sqrt()
            })
            .collect();
        self.stored(&name, dims, &values);
        name
    }

    fn stored(&mut self, name: &str, dims: &[usize], values: &[f32]) {
        let mut tensor: Vec<u8> = dims.iter().flat_map(|d| [vec![8], varint(*d as u64)].concat()).collect();
        tensor.extend([0x10, 1]);
        tensor.extend(bytes_field(8, name.as_bytes()));
        tensor.extend(bytes_field(9, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()));
        self.weights.extend(bytes_field(5, &tensor));
    }

    fn node(&mut self, op: &str, inputs: &[&str], ints: &[(&str, &[usize])], alpha: Option<f32>) -> String {
        let output = self.name(op);
        self.named(op, inputs, &output, ints, alpha);
        output
    }

    fn named(&mut self, op: &str, inputs: &[&str], output: &str, ints: &[(&str, &[usize])], alpha: Option<f32>) {
        let mut node: Vec<u8> = inputs.iter().flat_map(|i| bytes_field(1, i.as_bytes())).collect();
        node.extend(bytes_field(2, output.as_bytes()));
        node.extend(bytes_field(4, op.as_bytes()));
        for (name, values) in ints {
            // One by one, as exporters write them; the last field says of what kind the attribute is.
            let values: Vec<u8> = values.iter().flat_map(|v| [vec![0x40], varint(*v as u64)].concat()).collect();
            let attribute = [bytes_field(1, name.as_bytes()), values, vec![0xa0, 1, 7]].concat();
            node.extend(bytes_field(5, &attribute));
        }
        if let Some(alpha) = alpha {
            let value = [&[0x15][..], &alpha.to_le_bytes(), &[0xa0, 1, 1]].concat();
            node.extend(bytes_field(5, &[bytes_field(1, b"alpha"), value].concat()));
        }
        self.nodes.extend(bytes_field(1, &node));
    }

    fn conv(&mut self, x: &str, [inputs, outputs]: [usize; 2], taps: usize, dilation: usize) -> String {
        let (w, b) = (self.weight(&[outputs, inputs, taps]), self.weight(&[outputs]));
        let pad = (taps - 1) * dilation / 2;
        let ints: [(&str, &[usize]); 3] =
            [("kernel_shape", &[taps]), ("dilations", &[dilation]), ("pads", &[pad, (taps - 1) * dilation - pad])];
        self.node("Conv", &[x, &w, &b], &ints, None)
    }

    fn leaky(&mut self, x: &str) -> String {
        self.node("LeakyRelu", &[x], &[], Some(0.1))
    }

    fn file(self, output: &str) -> Vec<u8> {
        let mut graph = [self.nodes, self.weights].concat();
        for name in ["z", "sid"] {
            graph.extend(bytes_field(11, &bytes_field(1, name.as_bytes())));
        }
        graph.extend(bytes_field(12, &bytes_field(1, output.as_bytes())));
        [vec![8, 8], bytes_field(7, &graph), bytes_field(8, &[0x10, 15])].concat()
    }
}

fn varint(mut v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
    out
}

/// A generator from `z` to `output`.
fn generator(spec: &Spec, last: &str) -> Vec<u8> {
    let mut w = Writer::default();
    let mut x = w.conv("z", [spec.width, spec.channels], 7, 1);
    if let Some((speakers, numbers)) = spec.speakers {
        let table = w.weight(&[speakers, numbers]);
        let row = w.node("Gather", &[&table, "sid"], &[], None);
        let row = {
            // As opset 13 has it: the axes are a tensor of int64.
            let name = w.name("axes");
            let tensor =
                [vec![8, 1, 0x10, 7], bytes_field(8, name.as_bytes()), bytes_field(9, &(-1i64).to_le_bytes())].concat();
            w.weights.extend(bytes_field(5, &tensor));
            w.node("Unsqueeze", &[&row, &name], &[], None)
        };
        let condition = w.conv(&row, [numbers, spec.channels], 1, 1);
        x = w.node("Add", &[&x, &condition], &[], None);
    }
    w.stored("blocks", &[], &[spec.blocks.len() as f32]);
    let mut channels = spec.channels;
    for &(kernel, stride) in &spec.ups {
        let a = w.leaky(&x);
        let (weight, bias) = (w.weight(&[channels, channels / 2, kernel]), w.weight(&[channels / 2]));
        let pad = (kernel - stride) / 2;
        let ints: [(&str, &[usize]); 3] =
            [("kernel_shape", &[kernel]), ("strides", &[stride]), ("pads", &[pad, kernel - stride - pad])];
        let up = w.node("ConvTranspose", &[&a, &weight, &bias], &ints, None);
        channels /= 2;
        let mut sum: Option<String> = None;
        for (taps, dilations) in &spec.blocks {
            let mut y = up.clone();
            for &dilation in dilations {
                let a = w.leaky(&y);
                let mut c = w.conv(&a, [channels; 2], *taps, dilation);
                if spec.double {
                    let a = w.leaky(&c);
                    c = w.conv(&a, [channels; 2], *taps, 1);
                }
                y = w.node("Add", &[&c, &y], &[], None);
            }
            sum = Some(match sum {
                Some(sum) => w.node("Add", &[&sum, &y], &[], None),
                None => y,
            });
        }
        x = w.node("Div", &[&sum.unwrap_or(up), "blocks"], &[], None);
    }
    let a = w.node("LeakyRelu", &[&x], &[], None);
    let post = w.conv(&a, [channels, 1], 7, 1);
    w.named(last, &[&post], "output", &[], None);
    w.file("output")
}

fn split(graph: &OnnxGraph<'_>) -> Split {
    find_split(graph).expect("the generator can be split off")
}

fn read(file: &[u8], tier: Tier) -> Result<(Vocoder, usize), Refusal> {
    let graph = OnnxGraph::parse(file).expect("a model");
    let split = split(&graph);
    Vocoder::read(&graph, &split, tier).map(|v| (v, split.reach.context))
}

/// What the library makes of `z`, frame-major.
fn library(file: &[u8], z: &[f32], width: usize, speaker: Option<i32>) -> Vec<f32> {
    let model = Model::load(file.to_vec()).expect("the library loads it");
    let frames = z.len() / width;
    let columns: Vec<f32> = (0..width * frames).map(|i| z[i % frames * width + i / frames]).collect();
    let id = |name| model.find_node(name).expect("a tensor");
    let mut inputs: Vec<(NodeId, ValueOrView<'_>)> =
        vec![(id("z"), NdTensor::from_data([1, width, frames], columns).into())];
    if let Some(speaker) = speaker {
        inputs.push((id("sid"), NdTensor::from_data([1], vec![speaker]).into()));
    }
    let [audio] = model.run_n(inputs, [id("output")], None).expect("the library runs it");
    floats(audio).expect("audio")
}

fn noise(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| ((i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32) - 1.0)
        .collect()
}

fn snr(got: &[f32], reference: &[f32]) -> f64 {
    assert_eq!(got.len(), reference.len());
    let (mut error, mut power) = (0.0, 0.0);
    for (a, b) in got.iter().zip(reference) {
        error += (f64::from(*a) - f64::from(*b)).powi(2);
        power += f64::from(*b).powi(2);
    }
    assert!(power > 0.0, "silence");
    10.0 * (power / error).log10()
}

#[test]
fn generators_of_all_kinds_equal_the_library() {
    let small = Spec::small();
    let three = vec![(3, vec![1, 3, 5]), (7, vec![1, 3, 5]), (11, vec![1, 3, 5])];
    let specs = [
        small.clone(),
        Spec { double: true, blocks: three.clone(), ..small.clone() },
        Spec { speakers: Some((3, 5)), ..small.clone() },
        Spec {
            ups: vec![(16, 8), (16, 8), (4, 2), (4, 2)],
            channels: 32,
            speakers: Some((2, 4)),
            double: true,
            ..small.clone()
        },
        Spec { ups: vec![(3, 2), (5, 3), (7, 3)], channels: 40, width: 9, ..small.clone() },
        Spec { blocks: vec![(1, vec![1])], ups: vec![(2, 2)], ..small.clone() },
        Spec { blocks: vec![(3, vec![4]), (3, vec![2]), (5, vec![1]), (7, vec![2])], ..small },
    ];
    for spec in specs {
        let file = generator(&spec, "Tanh");
        for frames in [1, 2, 13] {
            let z = noise(frames * spec.width, 1);
            for speaker in 0..spec.speakers.map_or(1, |s| s.0) {
                let expected = library(&file, &z, spec.width, spec.speakers.map(|_| speaker as i32));
                for &tier in Tier::available() {
                    let (vocoder, _) = read(&file, tier).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
                    assert_eq!((vocoder.width(), vocoder.speakers()), (spec.width, spec.speakers.map(|s| s.0)));
                    let audio = vocoder.run(&z, speaker, 0..frames);
                    let snr = snr(&audio, &expected);
                    assert!(snr > 100.0, "{spec:?}, {frames} frames, speaker {speaker}, {tier}: {snr} dB");
                }
            }
        }
    }
}

#[test]
fn nothing_becomes_nothing_and_no_number_stays_visible() {
    let spec = Spec { speakers: Some((2, 3)), ..Spec::small() };
    for &tier in Tier::available() {
        let (vocoder, context) = read(&generator(&spec, "Tanh"), tier).unwrap();
        assert!(vocoder.run(&[], 0, 0..0).is_empty());
        let mut z = noise(40 * spec.width, 1);
        assert!(vocoder.run(&z, 0, 7..7).is_empty());
        assert_eq!(vocoder.run(&z, 9, 0..40), vocoder.run(&z, 1, 0..40));
        z[20 * spec.width] = f32::NAN;
        let audio = vocoder.run(&z, 0, 0..40);
        assert!(audio[20 * 8..21 * 8].iter().any(|v| v.is_nan()));
        let hop = audio.len() / 40;
        assert!(audio[..(20 - context) * hop].iter().all(|v| v.is_finite()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_piece_is_what_it_is_in_the_whole(
        double: bool, frames in 1usize..60, from in 0usize..60, len in 0usize..60, more in 0usize..3, seed: u32,
        ups in prop::sample::select(vec![vec![(8, 4), (4, 2)], vec![(3, 2), (5, 3)], vec![(16, 8), (16, 8), (8, 4)]]),
    ) {
        let spec = Spec { double, ups, channels: 16, ..Spec::small() };
        let file = generator(&spec, "Tanh");
        let z = noise(frames * spec.width, seed);
        let from = from.min(frames);
        let to = (from + len).min(frames);
        for &tier in Tier::available() {
            let (vocoder, context) = read(&file, tier).unwrap();
            let whole = vocoder.run(&z, 0, 0..frames);
            let hop = whole.len() / frames;
            let (low, high) = (from.saturating_sub(context + more), (to + context + more).min(frames));
            let part = vocoder.run(&z[low * spec.width..high * spec.width], 0, from - low..to - low);
            prop_assert!(part == whole[from * hop..to * hop], "{tier}");
        }
    }

    #[test]
    fn no_damage_panics(at in any::<prop::sample::Index>(), with: u8, cut in any::<prop::sample::Index>()) {
        let mut file = generator(&Spec { speakers: Some((2, 3)), ..Spec::small() }, "Tanh");
        let at = at.index(file.len());
        file[at] = with;
        for bytes in [&file[..], &file[..cut.index(file.len())]] {
            let Some(graph) = OnnxGraph::parse(bytes) else { continue };
            let Ok(split) = find_split(&graph) else { continue };
            if let Ok(vocoder) = Vocoder::read(&graph, &split, Tier::PLAIN) {
                vocoder.run(&noise(3 * vocoder.width(), 1), 0, 0..3);
            }
        }
    }
}

#[test]
fn what_is_not_known_is_left_to_the_library() {
    let error = read(&generator(&Spec::small(), "Relu"), Tier::PLAIN).err().unwrap();
    assert!(matches!(&error, Refusal::Unknown(why) if why.contains("`output` is no plain result")), "{error}");
    // A weight that is computed, as where norms are not folded in.
    let file = generator(&Spec::small(), "Tanh");
    let mut graph = OnnxGraph::parse(&file).unwrap();
    let (split, name) = (split(&graph), graph.nodes.iter().find(|n| n.op == "ConvTranspose").unwrap().inputs[1]);
    graph.weights.remove(name);
    let error = Vocoder::read(&graph, &split, Tier::PLAIN).err().unwrap();
    assert!(matches!(&error, Refusal::Unknown(why) if why.contains(name) && why.contains("computed")), "{error}");
}

#[test]
fn a_damaged_weight_is_named() {
    let file = generator(&Spec::small(), "Tanh");
    let graph = OnnxGraph::parse(&file).unwrap();
    let split = split(&graph);
    let name = graph.nodes.iter().find(|n| n.op == "ConvTranspose").unwrap().inputs[1];
    let read = |graph: &OnnxGraph<'_>| Vocoder::read(graph, &split, Tier::PLAIN).err();
    let damaged = |change: &dyn Fn(&mut super::super::onnx::OnnxTensor<'_>)| {
        let mut graph = OnnxGraph::parse(&file).unwrap();
        change(graph.weights.get_mut(name).unwrap());
        match read(&graph) {
            Some(Refusal::Damaged { tensor, what }) => {
                assert_eq!(tensor, name);
                what
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(&graph), None);
    assert!(damaged(&|t| t.data = Some(&t.data.unwrap()[4..])).contains("bytes for"));
    assert!(damaged(&|t| t.dims.swap(0, 1)).contains("its input has 12 channels"));
    assert!(damaged(&|t| t.dims.swap(1, 2)).contains("taps, but its operator says"));
    assert!(damaged(&|t| t.dims.push(1)).contains("not that of a kernel"));
    let nan = vec![0xff; 12 * 6 * 8 * 4];
    assert!(damaged(&|t| t.data = Some(Box::leak(nan.clone().into_boxed_slice()))).contains("NaN at 0"));
}

/// The files of the voice that is shipped with, if the cache has them.
fn real() -> Option<(PathBuf, PathBuf)> {
    let onnx = crate::catalogue::cache_root().ok()?.join("models/piper-joe/en_US-joe-medium.onnx");
    let json = onnx.with_extension("onnx.json");
    (onnx.is_file() && json.is_file()).then_some((onnx, json))
}

#[test]
fn a_real_voice_equals_the_library_on_every_tier() {
    let Some((onnx, json)) = real() else {
        println!("skipped: the cache has no models/piper-joe (omni-flow models pull piper-joe)");
        return;
    };
    let voice = Voice::load_with(&onnx, &json, VoiceOptions { library: true, ..VoiceOptions::default() }).unwrap();
    let ids = voice.utterance("The capital of Italy is Rome, and it has been so since the year 1871.").unwrap().ids;
    let z = voice.talk(&ids, Scales::of(voice.config()), 0, 7).unwrap();
    let (rows, width, frames) = (z.rows(), z.width(), z.frames());
    let expected = voice.vocode(rows, width, 0, 0..frames).unwrap();
    let file = std::fs::read(onnx).unwrap();
    for &tier in Tier::available() {
        let (vocoder, context) = read(&file, tier).unwrap();
        assert_eq!((vocoder.width(), context, vocoder.speakers()), (192, 11, None));
        let whole = vocoder.run(rows, 0, 0..frames);
        let snr = snr(&whole, &expected);
        println!("{tier}: {frames} frames, {snr:.1} dB beside the library, {} bytes of weights", vocoder.bytes());
        assert!(snr >= 100.0, "{tier}: {snr} dB");
        for (from, to) in [(0, 22), (22, 86), (frames - 9, frames), (100, 101)] {
            let (low, high) = (from - context.min(from), (to + context).min(frames));
            let part = vocoder.run(&rows[low * width..high * width], 0, from - low..to - low);
            assert!(part == whole[from * 256..to * 256], "{tier}: frames {from} to {to}");
        }
        // Several sessions at once.
        let (vocoder, whole) = (Arc::new(vocoder), &whole);
        std::thread::scope(|s| {
            for i in 0..3 {
                let vocoder = vocoder.clone();
                s.spawn(move || {
                    let (low, high) = (i * 20, 60 + i * 20);
                    let part = vocoder.run(&rows[low * width..high * width], 0, 20..40);
                    assert!(part == whole[(low + 20) * 256..(low + 40) * 256], "{tier}, session {i}");
                });
            }
        });
    }
}
