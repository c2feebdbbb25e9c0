//! A matrix of blocks times one to four vectors, on every tier of this machine, beside an f32 product of the same matrix.
//!
//! The small matrix stays in the cache, so it shows the arithmetic; the large one does not, so it shows the memory.
//! Throughput counts weights once, whatever the number of vectors.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use omni_flow_kernels::Tier;
use omni_flow_kernels::blocks::{BLOCK, Format, Matrix, Rows, pack_row};
use std::hint::black_box;

/// Any bytes, with scales of about 2^-6.
fn filled(format: Format, rows: usize, columns: usize) -> Matrix {
    let mut m = Matrix::zeros(format, rows, columns);
    let mut x = 1u32;
    for block in m.bytes_mut().chunks_exact_mut(format.block_bytes()) {
        for b in block.iter_mut() {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *b = (x >> 24) as u8;
        }
        block[1] = 0x24;
        if format == Format::Q4_1 {
            block[3] = 0x24;
        }
    }
    m
}

fn vectors(n: usize, columns: usize) -> (Vec<f32>, Rows) {
    let x: Vec<f32> = (0..n * columns).map(|i| (i as f32 * 0.057).sin()).collect();
    let mut rows = Rows::new();
    rows.fill(&x, columns);
    (x, rows)
}

fn products(c: &mut Criterion) {
    // 0.2 MB as Q4_1, and 40 MB.
    for (place, rows, columns) in [("cache", 576, 576), ("memory", 42_000, 1536)] {
        let mut group = c.benchmark_group(format!("product_{place}"));
        group.throughput(Throughput::Elements((rows * columns) as u64)).sample_size(20);
        for format in Format::ALL {
            let m = filled(format, rows, columns);
            for n in [1, 4] {
                let (_, x) = vectors(n, columns);
                let mut out = vec![0.0; n * rows];
                for &tier in Tier::available() {
                    if tier == Tier::PLAIN && place == "memory" {
                        continue;
                    }
                    let id = BenchmarkId::new(format!("{format:?}_x{n}"), tier);
                    group.bench_function(id, |b| b.iter(|| tier.matvec(format, m.bytes(), black_box(&x), &mut out)));
                }
            }
        }
        let (x, _) = vectors(1, columns);
        let w: Vec<f32> = (0..rows * columns).map(|i| (i % 97) as f32 * 0.01).collect();
        let mut out = vec![0.0; rows];
        let tier = Tier::current();
        group.bench_function(BenchmarkId::new("f32_x1", tier), |b| {
            b.iter(|| {
                for (row, out) in w.chunks_exact(columns).zip(&mut out) {
                    *out = tier.dot(row, black_box(&x));
                }
            })
        });
        group.finish();
    }
}

fn rows(c: &mut Criterion) {
    let (x, mut packed) = vectors(1, 1536);
    let mut group = c.benchmark_group("rows");
    group.throughput(Throughput::Elements(1536));
    let mut bytes = vec![0; Format::Q8_0.row_bytes(1536)];
    let mut out = vec![0.0; 1536];
    for &tier in Tier::available() {
        group.bench_function(BenchmarkId::new("fill", tier), |b| b.iter(|| packed.fill_on(tier, black_box(&x), 1536)));
        for format in Format::ALL {
            let row = filled(format, 1, 1536);
            group.bench_function(BenchmarkId::new(format!("dequantize_{format:?}"), tier), |b| {
                b.iter(|| tier.dequantize_row(format, black_box(row.bytes()), &mut out))
            });
        }
    }
    group.bench_function("pack_row", |b| b.iter(|| pack_row(black_box(&x), &mut bytes)));
    group.finish();
    assert_eq!(x.len() % BLOCK, 0);
}

criterion_group!(benches, products, rows);
criterion_main!(benches);
