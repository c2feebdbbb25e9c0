//! What sessions cost: CPU of 100 idle ones, memory of 1,000, and what is left after closing them.
//!
//! `cargo bench -p omni-flow-benches --bench sessions`

use std::time::Duration;

use omni_flow::*;
use omni_flow_benches::{cpu, plan, resident};

const GRAPH: &str = "
graph: talk
session: { mode: duplex, max-sessions: 2000 }
lanes: [reply]
nodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  a: { use: bench.pass, in: mic }
  b: { use: bench.pass, in: a }
  stage: { use: bench.mock, in: b, lane: reply, place: shared }
  c: { use: bench.pass, in: stage, lane: reply }
  out: { use: session.out, lane: reply, in: c }
";

fn main() {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    rt.block_on(async {
        let engine = Engine::new().expect("an engine");
        let graph = engine.start(plan(GRAPH)).await.expect("a graph");
        let idle: Vec<Session> = (0..100).map(|_| graph.open().expect("a session")).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = cpu();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let used = cpu() - before;
        println!(
            "100 idle sessions: {:.2} ms of CPU in 10 s ({:.3} % of a core)",
            used.as_secs_f64() * 1e3,
            used.as_secs_f64() * 10.0
        );
        drop(idle);

        let mut base = 0;
        for round in 0..4 {
            let before = resident();
            let mut sessions = Vec::new();
            for _ in 0..1000 {
                let mut s = graph.open().expect("a session");
                let (Some(mut mic), Some(mut out)) = (s.input("mic"), s.output("out")) else { panic!("no ends") };
                mic.send(Pcm::mono(16_000, vec![0.0; 320])).await.expect("audio");
                let Event::Data(..) = out.next().await else { panic!("ended early") };
                sessions.push((s, mic, out));
            }
            let full = resident();
            for (s, _mic, _out) in sessions {
                s.abort().await.expect("all let go");
            }
            let after = resident();
            if round == 0 {
                let each = full.saturating_sub(before) / 1000;
                println!("1,000 sessions: {each} bytes each");
                base = after;
            } else {
                println!("round {round}: {} KiB more than after the first closing", after.saturating_sub(base) / 1024);
            }
        }
    });
}
