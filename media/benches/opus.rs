//! Opus encode at complexity 0, 5 and 10, and decode: 20 ms frames, 32 kbit/s, 48 kHz mono, speech-like sound.
//!
//! `cargo bench -p omni-flow-media --bench opus`; throughput is samples per second, so 48,000 elem/s is real time. With
//! `--features libopus` the same runs on the C library.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use omni_flow_media::opus::{EncoderConfig, OpusDecoder, OpusEncoder, backend};

const FRAME: usize = 960;

fn speech() -> Vec<f32> {
    let mut state = 1u32;
    (0..48_000)
        .map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 8) as f32 / (1 << 24) as f32 - 0.5;
            let t = n as f32 / 48_000.0;
            let pitch = (t * 800.0 + (t * 9.0).sin()).sin() + 0.5 * (t * 1_600.0).sin() + 0.3 * (t * 4_100.0).sin();
            0.2 * pitch * (0.6 + 0.4 * (t * 25.0).sin()) + 0.02 * noise
        })
        .collect()
}

fn opus(c: &mut Criterion) {
    let input = speech();
    let mut group = c.benchmark_group(format!("opus/{}", backend::NAME));
    group.throughput(Throughput::Elements(input.len() as u64)).sample_size(20);
    for complexity in [0, 5, 10] {
        let config = EncoderConfig { complexity, ..EncoderConfig::default() };
        let mut encoder = OpusEncoder::new(config).expect("legal settings");
        group.bench_function(format!("encode, complexity {complexity}"), |b| {
            b.iter(|| {
                for frame in input.chunks_exact(FRAME) {
                    black_box(encoder.encode(black_box(frame)).expect("whole frame"));
                }
            });
        });
    }
    let mut encoder = OpusEncoder::new(EncoderConfig::default()).expect("legal settings");
    let packets: Vec<_> = input.chunks_exact(FRAME).map(|f| encoder.encode(f).expect("whole frame")).collect();
    let mut decoder = OpusDecoder::new(48_000, 1).expect("legal rate");
    let mut out = Vec::new();
    group.bench_function("decode", |b| {
        b.iter(|| {
            for packet in &packets {
                out.clear();
                decoder.decode(black_box(packet), &mut out).expect("own packet");
            }
        });
    });
    group.finish();
}

criterion_group!(benches, opus);
criterion_main!(benches);
