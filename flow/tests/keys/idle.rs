//! `session.idle-ttl`: a session in which nothing happens ends, and says so.

use std::time::Duration;

use omni_flow::sim::Sim;
use omni_flow::*;

use crate::common::{start, text};

fn yaml(ttl: &str) -> String {
    format!(
        "
graph: idle
session: {{ mode: duplex, idle-ttl: {ttl} }}
nodes:
  ask: {{ use: session.in, kind: text }}
  pass: {{ use: test.pass, in: ask }}
  out: {{ use: session.out, in: pass }}
"
    )
}

#[test]
fn a_session_ends_when_nothing_happens_for_long_enough() {
    let mut sim = Sim::new(3);
    let handle = sim.handle();
    sim.run(async move {
        let clock = handle.clock();
        let engine = Engine::builder().sim(handle.clone()).build().unwrap();
        let graph = start(&engine, &yaml("10s")).await;
        let mut s = graph.open().unwrap();
        let (mut ask, mut out) = (s.input("ask").unwrap(), s.output("out").unwrap());
        for i in 0..5 {
            clock.sleep(Duration::from_secs(8)).await;
            if i % 2 == 0 {
                ask.send(text("still here")).await.unwrap();
                assert!(matches!(out.next().await, Event::Data(..)));
            } else {
                s.touch();
            }
        }
        let begun = clock.now();
        let Event::End(Terminal::Error(e)) = out.next().await else { panic!("it ends in error") };
        assert_eq!((e.kind(), e.kind().code()), (ErrorKind::Idle, "idle_ttl_expired"));
        assert!(e.message().contains("10s") && e.message().contains("idle-ttl"), "{e}");
        let waited = clock.now().since(begun);
        assert!(waited >= Duration::from_secs(9) && waited <= Duration::from_secs(11), "{waited:?}");
        assert_eq!(s.wait().await.unwrap_err().kind(), ErrorKind::Idle);
    })
    .unwrap();
}
#[test]
fn without_a_limit_it_waits_for_ever() {
    let mut sim = Sim::new(4);
    let handle = sim.handle();
    sim.run(async move {
        let clock = handle.clock();
        let engine = Engine::builder().sim(handle.clone()).build().unwrap();
        let graph = start(&engine, &yaml("null")).await;
        let mut s = graph.open().unwrap();
        let (ask, out) = (s.input("ask").unwrap(), s.output("out").unwrap());
        clock.sleep(Duration::from_secs(500)).await;
        assert!(s.stats().edges.iter().all(|e| !e.ended));
        ask.end();
        drop(out);
        s.wait().await.unwrap();
    })
    .unwrap();
}
