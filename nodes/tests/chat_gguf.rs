//! GGUF files made here: every architecture computes, every damage is a typed error that names the file.

#![cfg(feature = "chat")]

use std::{
    fs::{File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use omni_flow_nodes::chat::{
    Builtin, ChatError, ChatModel, ChatOptions, ChatSlot, FinishReason, Message, Sampling, Step, gguf::Gguf,
};
use proptest::prelude::*;

/// Writes the parts of a file.
#[derive(Default, Clone)]
struct Maker {
    keys: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<(String, Vec<u64>, Vec<f32>)>,
    /// What matrices are stored as, with its number in the file; f32 if nothing is said.
    kind: Option<(GgmlDType, u32)>,
}

/// A matrix as blocks, by the library's own code.
fn blocks(dims: &[u64], values: &[f32], kind: GgmlDType) -> QTensor {
    let dims: Vec<usize> = dims.iter().map(|d| *d as usize).collect();
    QTensor::quantize(&Tensor::from_slice(values, dims, &Device::Cpu).unwrap(), kind).unwrap()
}

impl Maker {
    fn text(mut self, key: &str, value: &str) -> Self {
        self.keys.push((key.into(), 8, blob(value)));
        self
    }

    fn number(mut self, key: &str, value: u32) -> Self {
        self.keys.push((key.into(), 4, value.to_le_bytes().to_vec()));
        self
    }

    fn array(mut self, key: &str, kind: u32, items: &[Vec<u8>]) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((items.len() as u64).to_le_bytes());
        bytes.extend(items.concat());
        self.keys.push((key.into(), 9, bytes));
        self
    }

    /// A tensor of repeatable noise; `dims` outermost first.
    fn tensor(mut self, name: &str, dims: &[u64]) -> Self {
        let n: u64 = dims.iter().product();
        let mut x = name.bytes().fold(17u32, |a, b| a.wrapping_mul(31).wrapping_add(b.into()));
        let norm = name.contains("norm");
        // Wide matrices as in real networks: outputs about as large as inputs, so that attention is no hard choice.
        let size = dims.last().filter(|n| dims.len() == 2 && **n >= 32).map_or(1.2, |n| 3.4 / (*n as f32).sqrt());
        let values = (0..n).map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (x >> 8) as f32 / (1 << 24) as f32 - 0.5;
            if norm { 1.0 + noise * 0.2 } else { noise * size }
        });
        self.tensors.push((name.into(), dims.to_vec(), values.collect()));
        self
    }

    /// The file, and where its data begins.
    fn build(&self) -> (Vec<u8>, usize) {
        let mut out = b"GGUF\x03\0\0\0".to_vec();
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.keys.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.keys {
            out.extend(blob(key));
            out.extend(kind.to_le_bytes());
            out.extend(value);
        }
        let mut data = Vec::new();
        for (name, dims, values) in &self.tensors {
            out.extend(blob(name));
            out.extend((dims.len() as u32).to_le_bytes());
            dims.iter().rev().for_each(|d| out.extend(d.to_le_bytes()));
            let kind = self.kind.filter(|_| dims.len() == 2);
            out.extend(kind.map_or(0, |(_, number)| number).to_le_bytes());
            data.resize(data.len().next_multiple_of(32), 0);
            out.extend((data.len() as u64).to_le_bytes());
            match kind {
                Some((kind, _)) => data.extend_from_slice(&blocks(dims, values, kind).data().unwrap()),
                None => values.iter().for_each(|v| data.extend(v.to_le_bytes())),
            }
        }
        out.resize(out.len().next_multiple_of(32), 0);
        let start = out.len();
        out.extend(data);
        (out, start)
    }
}

fn blob(text: &str) -> Vec<u8> {
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}

const SPECIAL: [&str; 3] = ["<|im_start|>", "<|im_end|>", "<think>"];

/// A model of two layers, eight values wide, with one token per byte.
fn tiny(arch: &str) -> Maker {
    sized(arch, 8, 12)
}

/// As [`tiny`], of another width, outside and inside the feed-forward block.
fn sized(arch: &str, width: u32, hidden: u32) -> Maker {
    let gemma = arch == "gemma3";
    let mut tokens: Vec<String> = Vec::new();
    let mut next = 256;
    for b in 0..=255u8 {
        tokens.push(match b {
            _ if gemma => format!("<0x{b:02X}>"),
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(b).to_string(),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap().to_string()
            }
        });
    }
    let byte_type = if gemma { 6u32 } else { 1 };
    let mut types = vec![byte_type; 256];
    tokens.extend(SPECIAL.map(String::from));
    types.extend([3; 3]);
    let vocab = tokens.len() as u64;
    let texts: Vec<Vec<u8>> = tokens.iter().map(|t| blob(t)).collect();
    let types: Vec<Vec<u8>> = types.iter().map(|t| t.to_le_bytes().to_vec()).collect();
    let mut m = Maker::default()
        .text("general.architecture", arch)
        .number(&format!("{arch}.block_count"), 2)
        .number(&format!("{arch}.context_length"), 512)
        .number(&format!("{arch}.embedding_length"), width)
        .number(&format!("{arch}.feed_forward_length"), hidden)
        .number(&format!("{arch}.attention.head_count"), 4)
        .number(&format!("{arch}.attention.head_count_kv"), 2)
        .array("tokenizer.ggml.tokens", 8, &texts)
        .array("tokenizer.ggml.token_type", 5, &types)
        .number("tokenizer.ggml.eos_token_id", 257);
    m = match gemma {
        true => m
            .text("tokenizer.ggml.model", "llama")
            .array("tokenizer.ggml.scores", 6, &vec![0f32.to_le_bytes().to_vec(); vocab as usize])
            .number("gemma3.attention.sliding_window", 5),
        false => m.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2").array(
            "tokenizer.ggml.merges",
            8,
            &[],
        ),
    };
    let (wide, hidden) = (u64::from(width), u64::from(hidden));
    let normed = gemma || arch == "qwen3";
    let head = if normed { wide / 2 } else { wide / 4 };
    if normed {
        m = m.number(&format!("{arch}.attention.key_length"), width / 2);
    }
    m = m.tensor("token_embd.weight", &[vocab, wide]).tensor("output_norm.weight", &[wide]);
    for i in 0..2 {
        let name = |n: &str| format!("blk.{i}.{n}");
        m = m
            .tensor(&name("attn_norm.weight"), &[wide])
            .tensor(&name("attn_q.weight"), &[4 * head, wide])
            .tensor(&name("attn_k.weight"), &[2 * head, wide])
            .tensor(&name("attn_v.weight"), &[2 * head, wide])
            .tensor(&name("attn_output.weight"), &[wide, 4 * head])
            .tensor(&name("ffn_norm.weight"), &[wide])
            .tensor(&name("ffn_gate.weight"), &[hidden, wide])
            .tensor(&name("ffn_up.weight"), &[hidden, wide])
            .tensor(&name("ffn_down.weight"), &[wide, hidden]);
        if arch == "qwen2" {
            m = m
                .tensor(&name("attn_q.bias"), &[4 * head])
                .tensor(&name("attn_k.bias"), &[2 * head])
                .tensor(&name("attn_v.bias"), &[2 * head]);
        }
        if normed {
            m = m.tensor(&name("attn_q_norm.weight"), &[head]).tensor(&name("attn_k_norm.weight"), &[head]);
        }
        if gemma {
            m = m.tensor(&name("post_attention_norm.weight"), &[wide]).tensor(&name("post_ffw_norm.weight"), &[wide]);
        }
    }
    m
}

/// A file in a folder that goes when this goes.
struct Temp {
    path: PathBuf,
    _dir: tempfile::TempDir,
}

fn write(bytes: &[u8]) -> Temp {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny-model.gguf");
    File::create(&path).unwrap().write_all(bytes).unwrap();
    Temp { path, _dir: dir }
}

fn load(path: &Path) -> Result<Arc<ChatModel>, ChatError> {
    ChatModel::load(path, ChatOptions { prefill_tokens: 7, ..ChatOptions::default() })
}

fn refused(result: Result<Arc<ChatModel>, ChatError>) -> String {
    let message = result.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("tiny-model.gguf"), "{message}");
    message
}

fn answer(slot: &mut ChatSlot, steps: usize) -> Result<(String, Option<FinishReason>), ChatError> {
    let mut text = String::new();
    for _ in 0..steps {
        match slot.step()? {
            Step::Prefilled(_) => {}
            Step::Text(t) => text.push_str(&t),
            Step::Done { reason, .. } => return Ok((text, Some(reason))),
        }
    }
    Ok((text, None))
}

#[test]
fn every_architecture_gives_the_same_whatever_the_cuts() {
    for arch in ["llama", "qwen2", "qwen3", "gemma3"] {
        let file = write(&tiny(arch).build().0);
        let model = load(&file.path).unwrap_or_else(|e| panic!("{arch}: {e}"));
        let network = model.network();
        let tokens: Vec<u32> = (0..23).map(|i| i * 11 % 256).collect();
        let mut whole = network.new_state();
        let want = network.forward(&mut *whole, &tokens).unwrap();
        let mut single = network.new_state();
        let mut got = vec![];
        for t in &tokens {
            got = network.forward(&mut *single, &[*t]).unwrap();
        }
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
        assert!(close(&want, &got), "{arch}");
        assert!(want.iter().any(|l| l.abs() > 1e-3), "{arch}");
        // Cut back, go on differently, come back.
        single.truncate(9);
        network.forward(&mut *single, &[1, 2, 3]).unwrap();
        let mut fork = single.fork(9);
        assert!(close(&want, &network.forward(&mut *fork, &tokens[9..]).unwrap()), "{arch} after a cut");
        // Every earlier token counts, as far as the windows reach.
        let mut other = tokens.clone();
        other[0] ^= 1;
        let changed = network.forward(&mut *network.new_state(), &other).unwrap();
        assert_eq!(close(&want, &changed), arch == "gemma3", "{arch}");
        assert!(network.forward(&mut *whole, &[9999]).is_err() && network.forward(&mut *whole, &[]).is_err());
        assert!(network.forward(&mut *whole, &vec![1; 600]).is_err());
    }
}

#[test]
fn a_conversation_runs_on_every_architecture() {
    for arch in ["llama", "qwen2", "qwen3", "gemma3"] {
        let file = write(&tiny(arch).build().0);
        let model = load(&file.path).unwrap();
        let sampling = Sampling { temperature: 1.0, seed: 3, max_tokens: 40, ..Sampling::default() };
        let talk = |slot: &mut ChatSlot| {
            slot.begin("Grüße 😀", &sampling).unwrap();
            answer(slot, 1000).unwrap()
        };
        let mut slot = ChatSlot::new(&model, vec![Message::system("s")]);
        let (text, reason) = talk(&mut slot);
        assert!(reason.is_some() && !text.is_empty(), "{arch}");
        assert_eq!(talk(&mut ChatSlot::new(&model, vec![Message::system("s")])), (text, reason), "{arch}");
        assert!(slot.bytes() > 0 && model.bytes() > 0);
        assert!(matches!(slot.step(), Err(ChatError::Misuse { .. })));
        slot.begin("x", &sampling).unwrap();
        assert!(matches!(slot.begin("y", &sampling), Err(ChatError::Misuse { .. })));
    }
}

#[test]
fn every_prefix_of_a_file_is_refused_by_name() {
    let (bytes, data) = tiny("llama").build();
    for n in 0..data - 32 {
        assert!(Gguf::parse(&bytes[..n], n as u64).is_err(), "{n}");
        // More of the file is there: more is asked for.
        assert!(matches!(Gguf::parse(&bytes[..n], bytes.len() as u64), Ok(None)), "{n}");
    }
    let file = write(&bytes);
    let handle = OpenOptions::new().write(true).open(&file.path).unwrap();
    for n in (0..bytes.len()).rev().step_by(601) {
        handle.set_len(n as u64).unwrap();
        refused(load(&file.path));
    }
}

#[test]
fn huge_claims_anywhere_in_the_header_neither_panic_nor_allocate() {
    let (mut bytes, data) = tiny("qwen2").build();
    let file = write(&bytes);
    let mut handle = OpenOptions::new().write(true).open(&file.path).unwrap();
    for at in 0..data - 8 {
        let good: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
        for claim in [u64::MAX, 1 << 40] {
            bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            if let Ok(header) = Gguf::parse(&bytes, bytes.len() as u64) {
                let header = header.expect("all bytes are there");
                header.tensors.keys().for_each(|name| drop(header.locate(name)));
            }
            if at % 401 == 0 {
                handle.seek(SeekFrom::Start(0)).unwrap();
                handle.write_all(&bytes).unwrap();
                if let Err(e) = load(&file.path) {
                    let named = e.to_string().contains("tiny-model.gguf");
                    assert!(named || matches!(e, ChatError::Template { .. }), "{e}");
                }
            }
        }
        bytes[at..at + 8].copy_from_slice(&good);
    }
}

#[test]
fn what_is_not_supported_is_named_with_what_is() {
    let said = |m: Maker| refused(load(&write(&m.build().0).path));
    let e = said(tiny("llama").text("general.architecture", "mamba"));
    assert!(e.contains("`mamba`") && e.contains("llama, qwen2, qwen3, gemma3"), "{e}");
    let e = said(tiny("llama").text("tokenizer.ggml.pre", "klingon"));
    assert!(e.contains("`klingon`") && e.contains("smollm"), "{e}");
    let e = said(tiny("llama").text("tokenizer.ggml.model", "rwkv"));
    assert!(e.contains("`rwkv`"), "{e}");
    let e = said(tiny("llama").number("llama.expert_count", 8));
    assert!(e.contains("experts"), "{e}");
    let e = said(tiny("qwen3").text("qwen3.rope.scaling.type", "yarn"));
    assert!(e.contains("yarn"), "{e}");
    let e = said(tiny("llama").number("llama.feed_forward_length", 13));
    assert!(e.contains("ffn_gate") && e.contains("[13, 8]"), "{e}");
    let mut m = tiny("llama");
    m.tensors.retain(|t| t.0 != "blk.1.ffn_up.weight");
    assert!(said(m).contains("`blk.1.ffn_up.weight` is missing"));
    let (bytes, _) = tiny("llama").build();
    let small = ChatOptions { max_weight_bytes: 100, ..ChatOptions::default() };
    let e = refused(ChatModel::load(&write(&bytes).path, small));
    assert!(e.contains("max_weight_bytes"), "{e}");
    assert!(matches!(load(Path::new("no/such/tiny-model.gguf")), Err(ChatError::Io { .. })));
}

#[test]
fn weights_that_are_no_numbers_are_an_error_and_the_slot_lives() {
    let mut m = tiny("llama");
    m.tensors.iter_mut().find(|t| t.0 == "output_norm.weight").unwrap().2[0] = f32::NAN;
    let file = write(&m.build().0);
    let model = load(&file.path).unwrap();
    let mut slot = ChatSlot::new(&model, vec![]);
    for _ in 0..2 {
        slot.begin("x", &Sampling::default()).unwrap();
        assert!(matches!(answer(&mut slot, 10), Err(ChatError::Forward(_))));
    }
    // A vector that is rounded to integers hides nothing either.
    for bad in [f32::NAN, f32::INFINITY] {
        let mut m = Maker { kind: Some((GgmlDType::Q4_1, 3)), ..sized("llama", 32, 64) };
        m.tensors.iter_mut().find(|t| t.0 == "blk.0.ffn_norm.weight").unwrap().2[9] = bad;
        let model = load(&write(&m.build().0).path).unwrap();
        for tokens in [&[1][..], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            let mut state = model.network().new_state();
            assert!(model.network().forward(&mut *state, tokens).is_err());
            assert_eq!(state.len(), 0);
        }
    }
}

/// Type, its number in files, a width that it can have, and bytes that are kept of a row of that width.
const KINDS: [(GgmlDType, u32, u32, u64); 12] = [
    (GgmlDType::F32, 0, 32, 128),
    (GgmlDType::F16, 1, 32, 128),
    (GgmlDType::BF16, 30, 32, 128),
    (GgmlDType::Q4_0, 2, 32, 18),
    (GgmlDType::Q4_1, 3, 32, 20),
    (GgmlDType::Q8_0, 8, 32, 34),
    (GgmlDType::Q5_0, 6, 32, 34),
    (GgmlDType::Q5_1, 7, 32, 34),
    (GgmlDType::Q2K, 10, 256, 272),
    (GgmlDType::Q4K, 12, 256, 272),
    (GgmlDType::Q5K, 13, 256, 272),
    (GgmlDType::Q6K, 14, 256, 272),
];

/// Distance of two vectors in relation to the length of the second.
fn off(a: &[f32], b: &[f32]) -> f32 {
    let square = |v: &mut dyn Iterator<Item = f32>| v.map(|x| x * x).sum::<f32>();
    (square(&mut a.iter().zip(b).map(|(a, b)| a - b)) / square(&mut b.iter().copied())).sqrt()
}

#[test]
fn every_stored_type_computes_what_its_numbers_do() {
    let tokens: Vec<u32> = (0..40).map(|i| i * 11 % 256).collect();
    for (kind, number, width, _) in KINDS {
        let stored = Maker { kind: Some((kind, number)), ..sized("llama", width, 2 * width) };
        let mut plain = Maker { kind: None, ..stored.clone() };
        for (_, dims, values) in plain.tensors.iter_mut().filter(|t| t.1.len() == 2) {
            let expanded = blocks(dims, values, kind).dequantize(&Device::Cpu).unwrap();
            *values = expanded.flatten_all().unwrap().to_vec1().unwrap();
        }
        let [stored, plain] = [stored, plain].map(|m| load(&write(&m.build().0).path).unwrap());
        let logits = |model: &ChatModel, each: usize| {
            let mut state = model.network().new_state();
            let mut last = vec![];
            for part in tokens.chunks(each) {
                last = model.network().forward(&mut *state, part).unwrap();
            }
            last
        };
        let want = logits(&plain, tokens.len());
        let integers = stored.bytes() * 4 <= plain.bytes() * 3;
        // The last product, with one token, is always one of integers.
        for each in [1, 3, 32, 33, tokens.len()] {
            let off = off(&logits(&stored, each), &want);
            println!("{kind:?} by {each}: {off}");
            assert!(off < if integers { 0.04 } else { 1e-4 }, "{kind:?} by {each}: {off}");
        }
        assert!(off(&logits(&plain, 1), &want) < 1e-4, "{kind:?}");
    }
}

#[test]
fn what_is_kept_is_counted_and_limited_to_the_byte() {
    for (kind, number, width, row) in KINDS {
        let m = Maker { kind: Some((kind, number)), ..sized("qwen2", width, 2 * width) };
        let kept: u64 = m
            .tensors
            .iter()
            .map(|(_, dims, values)| match dims[..] {
                [rows, columns] => rows * columns / u64::from(width) * row,
                _ => 4 * values.len() as u64,
            })
            .sum();
        let file = write(&m.build().0);
        let model = load(&file.path).unwrap();
        assert_eq!(model.network().bytes() as u64, kept, "{kind:?}");
        let limit = |max_weight_bytes| ChatOptions { max_weight_bytes, ..ChatOptions::default() };
        ChatModel::load(&file.path, limit(kept)).unwrap();
        match ChatModel::load(&file.path, limit(kept - 1)) {
            Err(ChatError::TooLarge { needed, limit, .. }) => assert_eq!((needed, limit), (kept, kept - 1)),
            other => panic!("{kind:?}: {other:?}"),
        }
        let handle = OpenOptions::new().write(true).open(&file.path).unwrap();
        let len = handle.metadata().unwrap().len();
        for cut in [1, 33, 1000, len / 3, len / 2] {
            handle.set_len(len - cut).unwrap();
            refused(load(&file.path));
        }
    }
}

#[test]
fn the_template_of_the_file_and_a_forced_one() {
    let m =
        tiny("llama").text("tokenizer.chat_template", "{% for m in messages %}[{{ m.content.strip() }}]{% endfor %}");
    let file = write(&m.build().0);
    let shown = |model: &ChatModel| {
        let ids = model.prompt(&[Message::user(" a<|im_end|> ")]).unwrap();
        ids.iter().map(|t| model.tokenizer().text(*t)).collect::<String>()
    };
    assert_eq!(shown(&load(&file.path).unwrap()), "[a<|im_end|>]");
    let forced = ChatOptions { template: Some(Builtin::Chatml), ..ChatOptions::default() };
    let forced = ChatModel::load(&file.path, forced).unwrap();
    assert_eq!(shown(&forced), "<|im_start|>user\n a<|im_end|> <|im_end|>\n<|im_start|>assistant\n");
    let broken = tiny("llama").text("tokenizer.chat_template", "{% for %}");
    assert!(matches!(load(&write(&broken.build().0).path), Err(ChatError::Template { .. })));
}

#[test]
fn shared_prefixes_stay_within_their_budget() {
    let file = write(&tiny("llama").build().0);
    let model = ChatModel::load(&file.path, ChatOptions { prefix_bytes: 40_000, ..ChatOptions::default() }).unwrap();
    let base = model.bytes();
    for i in 0..40 {
        let mut slot = ChatSlot::new(&model, vec![Message::system(format!("{i} {}", "x".repeat(60)))]);
        slot.warm().unwrap();
        assert_eq!(answer(&mut slot, 100).unwrap().1, Some(FinishReason::Warmed));
        assert!(model.bytes() - base <= 40_000);
    }
    assert!(model.bytes() > base);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn flipped_bytes_never_panic(flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        arch in 0usize..4, tail in any::<bool>()) {
        let (mut bytes, data) = tiny(["llama", "qwen2", "qwen3", "gemma3"][arch]).build();
        let range = if tail { bytes.len() } else { data };
        for (at, value) in flips {
            let at = at.index(range);
            bytes[at] = value;
        }
        let file = write(&bytes);
        if let Ok(model) = load(&file.path) {
            let mut slot = ChatSlot::new(&model, vec![Message::system("s")]);
            if slot.begin("Hi 1", &Sampling { max_tokens: 4, ..Sampling::default() }).is_ok() {
                let _ = answer(&mut slot, 40);
            }
        }
    }
}
