//! What a fence costs: 50 chunks queued on each of 10 edges, from the call to the last edge clean.
//!
//! `cargo bench -p omni-flow-benches --bench fence`

use std::time::Instant;

use omni_flow::*;
use omni_flow_benches::{median, plan};

fn main() {
    let mut y = "graph: fence\nsession: { mode: duplex }\nlanes: [reply]\nnodes:\n".to_owned();
    for i in 0..10 {
        y += &format!(
            "  a{i}: {{ use: session.in, kind: text }}\n  p{i}: {{ use: bench.pass, lane: reply, in: a{i} }}\n"
        );
        y += &format!(
            "  o{i}: {{ use: session.out, lane: reply, in: {{ from: p{i}, window: {{ items: 50, span: 10s }} }} }}\n"
        );
    }
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let times = rt.block_on(async {
        let engine = Engine::new().expect("an engine");
        let graph = engine.start(plan(&y)).await.expect("a graph");
        let Some(lane) = Lane::new(1) else { panic!("no lane") };
        let mut times = Vec::new();
        for _ in 0..200 {
            let mut s = graph.open().expect("a session");
            let mut ends: Vec<_> = (0..10).filter_map(|i| s.input(&format!("a{i}"))).collect();
            let _outs: Vec<_> = (0..10).filter_map(|i| s.output(&format!("o{i}"))).collect();
            for end in &mut ends {
                for _ in 0..50 {
                    end.send(std::sync::Arc::<str>::from("a chunk of an answer")).await.expect("text");
                }
            }
            let full =
                |s: &Session| s.stats().edges.iter().filter(|e| e.name.contains("->o")).map(|e| e.depth).sum::<u64>();
            while full(&s) < 500 {
                tokio::task::yield_now().await;
            }
            let t = Instant::now();
            s.fence(lane);
            times.push(t.elapsed().as_nanos() as f64 / 1e3);
            assert_eq!(full(&s), 0, "all edges are clean when the call returns");
            s.abort().await.expect("all let go");
        }
        times
    });
    // The floor: dropping 500 such chunks from plain queues.
    let chunk = Chunk { stamp: Stamp::default(), payload: Payload::Text("a chunk of an answer".into()) };
    let floor = (0..200)
        .map(|_| {
            let mut queues: Vec<std::collections::VecDeque<Chunk>> = (0..10)
                .map(|_| {
                    (0..50)
                        .map(|_| Chunk { payload: Payload::Text("a chunk of an answer".into()), ..chunk.clone() })
                        .collect()
                })
                .collect();
            let t = Instant::now();
            queues.iter_mut().for_each(std::collections::VecDeque::clear);
            t.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    println!(
        "fence of 10 edges x 50 chunks: {:.1} us (median of 200); dropping 500 chunks alone: {:.1} us",
        median(times),
        median(floor)
    );
}
