//! The convolutions of a voice decoder on every tier of this machine, beside the plain loop over channels first that one
//! would write down. Throughput counts products.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use omni_flow_kernels::Tier;
use omni_flow_kernels::conv::{Conv, ConvInput, ConvOutput, ConvSize};
use std::hint::black_box;

fn noise(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.057).sin() * 0.1).collect()
}

/// `x` and `y` are channels of samples.
fn loops(size: ConvSize, dilation: usize, w: &[f32], x: &[f32], y: &mut [f32]) {
    let len = y.len() / size.outputs;
    let long = x.len() / size.inputs;
    for (o, y) in y.chunks_exact_mut(len).enumerate() {
        y.fill(0.0);
        for (i, x) in x.chunks_exact(long).enumerate() {
            for j in 0..size.taps {
                let w = w[(o * size.inputs + i) * size.taps + j];
                for (y, x) in y.iter_mut().zip(&x[j * dilation..]) {
                    *y += w * x;
                }
            }
        }
    }
}

fn convolutions(c: &mut Criterion) {
    for (inputs, outputs, taps, dilation, rows) in [
        (192, 256, 7, 1, 86),
        (128, 128, 7, 12, 688),
        (64, 64, 5, 6, 4128),
        (32, 32, 3, 2, 16512),
        (32, 1, 7, 1, 16512),
    ] {
        let size = ConvSize { inputs, outputs, taps };
        let weights = noise(size.weights());
        let conv = Conv::new(size, dilation, &weights, None);
        let long = rows + (taps - 1) * dilation;
        let (x, mut y) = (noise(long * inputs), vec![0.0; rows * outputs]);
        let mut group = c.benchmark_group(format!("conv_{inputs}_{outputs}_{taps}x{dilation}"));
        group.throughput(Throughput::Elements((rows * size.weights()) as u64)).sample_size(20);
        let mut scratch = Vec::new();
        for &tier in Tier::available() {
            group.bench_function(BenchmarkId::new("kernel", tier), |b| {
                b.iter(|| {
                    let x = ConvInput { rows: black_box(&x), first: 0, scale: 1.0, slope: 0.1 };
                    let out = ConvOutput { rows: &mut y, first: 0, bias: None, adds: [None; 2] };
                    conv.run_on(tier, x, out, &mut scratch)
                })
            });
        }
        group.bench_function("loops", |b| b.iter(|| loops(size, dilation, &weights, black_box(&x), &mut y)));
        group.finish();
    }
}

criterion_group!(benches, convolutions);
criterion_main!(benches);
