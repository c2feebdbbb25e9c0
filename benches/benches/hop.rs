//! What a hop costs: CPU per frame per hop, and the time of one frame in flight, beside a chain of bare tokio channels.
//!
//! `cargo bench -p omni-flow-benches --bench hop`

use std::time::{Duration, Instant};

use omni_flow::*;
use omni_flow_benches::{chain, cpu, median, plan};

/// 5 ms of 16 kHz f32 audio: 320 bytes, so that 32 of them fit an edge's 500 ms too.
fn frame() -> Pcm {
    Pcm::mono(16_000, vec![0.25; 80])
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let mut b = if workers == 0 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut b = tokio::runtime::Builder::new_multi_thread();
        b.worker_threads(workers);
        b
    };
    b.enable_all().build().expect("a runtime")
}

/// CPU nanoseconds per frame per hop, and the median of one frame in flight in microseconds.
type Cost = (f64, f64);

fn ours(n: usize, frames: usize, workers: usize, fuse: bool) -> Cost {
    runtime(workers).block_on(async {
        let engine = Engine::builder().fuse(fuse).build().expect("an engine");
        let graph = engine.start(plan(&chain(n, ""))).await.expect("a graph");
        let mut s = graph.open().expect("a session");
        let (Some(mut mic), Some(mut out)) = (s.input("mic"), s.output("out")) else { panic!("no ends") };
        let x = frame();
        let before = cpu();
        let feed = x.clone();
        let sender = tokio::spawn(async move {
            for _ in 0..frames {
                mic.send(feed.clone()).await.expect("the right kind");
            }
            mic
        });
        for _ in 0..frames {
            let Event::Data(..) = out.next().await else { panic!("ended early") };
        }
        let used = cpu() - before;
        let mut mic = sender.await.expect("the sender");
        let mut lat = Vec::new();
        for _ in 0..1000 {
            let t = Instant::now();
            mic.send(x.clone()).await.expect("the right kind");
            let Event::Data(..) = out.next().await else { panic!("ended early") };
            lat.push(t.elapsed().as_nanos() as f64 / 1e3);
        }
        (per_hop(used, frames, n), median(lat))
    })
}

/// The floor: tasks joined by bounded tokio channels that carry the same frames with an instant.
fn bare(n: usize, frames: usize, workers: usize) -> Cost {
    runtime(workers).block_on(async {
        let (tx, mut rx) = tokio::sync::mpsc::channel::<(Instant, Pcm)>(32);
        for _ in 0..n {
            let (t, r) = tokio::sync::mpsc::channel(32);
            let mut from = std::mem::replace(&mut rx, r);
            tokio::spawn(async move {
                while let Some(x) = from.recv().await {
                    if t.send(x).await.is_err() {
                        break;
                    }
                }
            });
        }
        let x = frame();
        let before = cpu();
        let (feed, t) = (x.clone(), tx.clone());
        tokio::spawn(async move {
            for _ in 0..frames {
                let _ = t.send((Instant::now(), feed.clone())).await;
            }
        });
        for _ in 0..frames {
            rx.recv().await;
        }
        let used = cpu() - before;
        let mut lat = Vec::new();
        for _ in 0..1000 {
            let t = Instant::now();
            let _ = tx.send((t, x.clone())).await;
            rx.recv().await;
            lat.push(t.elapsed().as_nanos() as f64 / 1e3);
        }
        (per_hop(used, frames, n), median(lat))
    })
}

fn per_hop(used: Duration, frames: usize, n: usize) -> f64 {
    used.as_nanos() as f64 / (frames * (n + 1)) as f64
}

fn main() {
    // One round of the first way alone: for a profiler.
    if std::env::var_os("OMNI_FLOW_BENCH_PROFILE").is_some() {
        println!("{:?}", ours(50, 4_000, 0, std::env::var_os("OMNI_FLOW_BENCH_UNFUSED").is_none()));
        return;
    }
    println!("median of 7 rounds; CPU ns per frame per hop, and one frame in flight (us, p50)\n");
    println!(
        "{:<4} {:<26} {:>8} {:>8} {:>7} {:>9} {:>9} {:>7}",
        "n", "way", "ours", "bare", "ratio", "ours us", "bare us", "ratio"
    );
    for n in [10usize, 50] {
        let frames = 400_000 / n;
        for (name, workers, fuse) in [
            ("fused, one task", 0, true),
            ("unfused, current thread", 0, false),
            ("unfused, 1 worker", 1, false),
            ("unfused, 2 workers", 2, false),
        ] {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in 0..7 {
                a.push(ours(n, frames, workers, fuse));
                b.push(bare(n, frames, workers));
            }
            let m = |v: &[Cost], f: fn(&Cost) -> f64| median(v.iter().map(f).collect());
            let (oc, bc, ol, bl) = (m(&a, |c| c.0), m(&b, |c| c.0), m(&a, |c| c.1), m(&b, |c| c.1));
            let (rc, rl) = (oc / bc, ol / bl);
            println!("{n:<4} {name:<26} {oc:>8.1} {bc:>8.1} {rc:>7.2} {ol:>9.1} {bl:>9.1} {rl:>7.2}");
        }
    }
}
