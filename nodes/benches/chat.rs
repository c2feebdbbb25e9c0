//! Milliseconds per token of the in-process language model, with its matrices in blocks and as f32, beside a copy of the
//! same bytes in the same round; and the memory that each keeps. Needs SmolLM2-135M in the cache.
//!
//! `cargo bench -p omni-flow-nodes --bench chat`. Medians over rounds, as these machines are noisy.

use std::{
    fs::File,
    hint::black_box,
    io::{Read, Seek},
    path::Path,
    time::Instant,
};

use omni_flow_nodes::{
    catalogue::cache_root,
    chat::{LanguageModel, decoder::Decoder, gguf::Gguf, weights::Weights},
};

const ROUNDS: usize = 5;
const PROMPT: usize = 64;
const ANSWER: usize = 12;

fn main() {
    let file = cache_root().map(|root| root.join("models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"));
    let Some(path) = file.ok().filter(|f| f.is_file()) else {
        println!("skipped: the cache has no SmolLM2-135M-Instruct.Q4_1.gguf");
        return;
    };
    for expand in [false, true] {
        let before = resident();
        let weights = load(&path);
        let weights = if expand { weights.expanded() } else { weights };
        let decoder = Decoder::new(weights);
        let kept = resident().saturating_sub(before);
        let mb = |bytes: usize| bytes as f64 / 1e6;
        let name = if expand { "f32" } else { "blocks" };
        println!("{name}: {:.0} MB of weights, resident memory {:+.0} MB", mb(decoder.bytes()), mb(kept));
        measure(&decoder);
    }
}

fn measure(decoder: &Decoder) {
    let source = vec![1u8; decoder.bytes()];
    let mut copy = vec![0u8; decoder.bytes()];
    let tokens: Vec<u32> = (0..PROMPT as u32).map(|i| 1000 + i * 97 % 5000).collect();
    let chunks = [1, 4, 16, 32, 64];
    let mut prefill = vec![Vec::new(); chunks.len()];
    let (mut decode, mut copies, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (chunk, times) in chunks.iter().zip(&mut prefill) {
            let mut state = decoder.new_state();
            // Sixteen tokens suffice where a pass takes few.
            let tokens = &tokens[..PROMPT.min(chunk * 16)];
            let t = Instant::now();
            for part in tokens.chunks(*chunk) {
                black_box(decoder.forward(&mut *state, part).expect("a prompt"));
            }
            times.push(ms(t) / tokens.len() as f64);
        }
        let mut state = decoder.new_state();
        let mut logits = decoder.forward(&mut *state, &tokens).expect("a prompt");
        for _ in 0..ANSWER {
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap_or(0);
            let t = Instant::now();
            copy.copy_from_slice(black_box(&source));
            let floor = ms(t);
            let t = Instant::now();
            logits = decoder.forward(&mut *state, &[best as u32]).expect("a token");
            decode.push(ms(t));
            copies.push(floor);
            ratios.push(ms(t) / floor);
        }
        black_box(&copy);
    }
    for (chunk, times) in chunks.iter().zip(prefill) {
        println!("  prompt in passes of {chunk:>2}: {:7.2} ms per token", median(times));
    }
    println!("  answer after {PROMPT} tokens: {:7.2} ms per token", median(decode));
    println!("  a copy of the weights:   {:7.2} ms; answer / copy {:.2}", median(copies), median(ratios));
}

fn load(path: &Path) -> Weights {
    let mut file = File::open(path).expect("the model can be opened");
    let len = file.metadata().expect("the model has a size").len();
    let mut bytes = Vec::new();
    let header = loop {
        file.by_ref().take(4 << 20).read_to_end(&mut bytes).expect("the model can be read");
        if let Some(header) = Gguf::parse(&bytes, len).expect("the model has a header") {
            break header;
        }
    };
    file.rewind().expect("the model can be read again");
    Weights::load(path, &mut file, &header, u64::MAX).expect("the model can be loaded")
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// Resident memory of this process, bytes; 0 where `/proc` is missing.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|p| p.parse::<usize>().ok()).unwrap_or(0) * 4096
}
