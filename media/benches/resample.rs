//! The resampler against the plain loop over the same filter length and against rubato's FFT resampler, on 20 ms chunks.
//!
//! `cargo bench -p omni-flow-media --bench resample`; throughput is input samples per second, so 24,000 elem/s is real
//! time at 24 kHz.

use std::hint::black_box;

use audioadapter_buffers::direct::InterleavedSlice;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use omni_flow_media::resample::{Quality, Resampler};
use rubato::{Fft, FixedSync, Resampler as _};

const SECONDS: usize = 2;

fn speech(rate: u32) -> Vec<f32> {
    (0..rate as usize * SECONDS).map(|n| (n as f32 * 0.05).sin() * (n as f32 * 0.0003).cos()).collect()
}

/// One output after the other, the filter taken as a table of `up` rows.
fn plain(input: &[f32], rows: &[f32], up: usize, down: usize, taps: usize, out: &mut Vec<f32>) {
    let count = (input.len() - taps) * up / down;
    out.extend((0..count).map(|n| {
        let (base, phase) = (n * down / up, n * down % up);
        rows[phase * taps..][..taps].iter().zip(&input[base..]).map(|(c, x)| c * x).sum::<f32>()
    }));
}

fn resample(c: &mut Criterion) {
    for (from, to, up, down) in [(24_000u32, 16_000u32, 2, 3), (24_000, 48_000, 2, 1), (44_100, 16_000, 160, 441)] {
        let input = speech(from);
        let mut group = c.benchmark_group(format!("resample/{from}-{to}"));
        group.throughput(Throughput::Elements(input.len() as u64));
        for quality in [Quality::Fast, Quality::Good, Quality::Best] {
            let mut resampler = Resampler::new(from, to, 1, quality).expect("usual rates");
            let mut out = Vec::new();
            group.bench_function(format!("{quality:?}"), |b| {
                b.iter(|| {
                    for chunk in input.chunks(from as usize / 50) {
                        out.clear();
                        resampler.push(black_box(chunk), &mut out);
                    }
                });
            });
        }
        let taps = Resampler::new(from, to, 1, Quality::Good).expect("usual rates").taps();
        let rows = vec![0.01; up * taps];
        let mut out = Vec::new();
        group.bench_function("plain loop", |b| {
            b.iter(|| {
                out.clear();
                plain(black_box(&input), &rows, up, down, taps, &mut out);
            });
        });
        let block = from as usize / 50;
        let mut fft = Fft::<f32>::new(from as usize, to as usize, block, 1, FixedSync::Input).expect("usual rates");
        group.bench_function("rubato FFT", |b| {
            b.iter(|| {
                let size = fft.input_frames_next();
                for chunk in input.chunks_exact(size) {
                    let chunk = InterleavedSlice::new(black_box(chunk), 1, size).expect("whole chunk");
                    black_box(fft.process(&chunk, None).expect("whole chunk"));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, resample);
criterion_main!(benches);
