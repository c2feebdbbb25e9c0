//! Every kernel on every tier of this machine, against the plain loop, on a block that stays in the cache.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use omni_flow_kernels::{Fade, Tier};
use std::hint::black_box;

/// 100 ms at 48 kHz.
const N: usize = 4800;

fn signal(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.057).sin() * 0.7).collect()
}

/// What `run` gives is kept from the optimiser by criterion.
fn each<R>(c: &mut Criterion, name: &str, mut run: impl FnMut(Tier) -> R) {
    let mut group: BenchmarkGroup<'_, WallTime> = c.benchmark_group(name);
    group.throughput(Throughput::Elements(N as u64));
    for &tier in Tier::available() {
        group.bench_function(BenchmarkId::from_parameter(tier), |b| b.iter(|| run(tier)));
    }
    group.finish();
}

fn pcm(c: &mut Criterion) {
    let x = signal(N);
    let mut out = vec![0.0f32; N];
    let mut i16s = vec![0i16; N];
    let mut i24s = vec![0u8; 3 * N];
    let mut i32s = vec![0i32; N];
    let mut u8s = vec![0u8; N];
    each(c, "f32_to_i16", |t| t.f32_to_i16(black_box(&x), &mut i16s));
    each(c, "i16_to_f32", |t| t.i16_to_f32(black_box(&i16s), black_box(&mut out)));
    each(c, "f32_to_i24", |t| t.f32_to_i24(black_box(&x), &mut i24s));
    each(c, "i24_to_f32", |t| t.i24_to_f32(black_box(&i24s), black_box(&mut out)));
    each(c, "f32_to_i32", |t| t.f32_to_i32(black_box(&x), &mut i32s));
    each(c, "i32_to_f32", |t| t.i32_to_f32(black_box(&i32s), black_box(&mut out)));
    each(c, "f32_to_u8", |t| t.f32_to_u8(black_box(&x), &mut u8s));
    let f64s: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    each(c, "f64_to_f32", |t| t.f64_to_f32(black_box(&f64s), &mut out));
}

fn signals(c: &mut Criterion) {
    let (x, y) = (signal(N), signal(N));
    let mut out = x.clone();
    each(c, "mix", |t| t.mix(&mut out, black_box(&y), 0.5));
    each(c, "gain_ramp", |t| t.gain_ramp(black_box(&mut out), 0.9, 1.0));
    each(c, "crossfade", |t| t.crossfade(black_box(&x), &y, &mut out, Fade::EqualPower));
    each(c, "level", |t| t.level(black_box(&x)));
    each(c, "dot", |t| t.dot(black_box(&x), &y));
    let taps = signal(64);
    let long = signal(N + 63);
    each(c, "fir_64", |t| t.fir(black_box(&long), &taps, black_box(&mut out)));
}

fn channels(c: &mut Criterion) {
    let (l, r) = (signal(N), signal(N));
    let mut frames = vec![0.0; 2 * N];
    each(c, "interleave_2", |t| t.interleave(&[black_box(&l), &r], black_box(&mut frames)));
    let (mut a, mut b) = (l.clone(), r.clone());
    each(c, "deinterleave_2", |t| t.deinterleave(black_box(&frames), &mut [&mut a, &mut b]));
    each(c, "downmix_2", |t| t.downmix(black_box(&frames), 2, &mut a));
}

criterion_group!(benches, pcm, signals, channels);
criterion_main!(benches);
