//! `chunked: false`: each edge behind a producer of segments carries a segment as one chunk.

use std::time::Duration;

use omni_flow::sim::Sim;
use omni_flow::*;

use crate::common::{NoConfig, registry, text};

/// Gives a text letter by letter; the last letter of a segment's last text is marked.
struct Letters;
impl Step for Letters {
    type In = std::sync::Arc<str>;
    type Out = std::sync::Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Self::In, out: &mut Emit<Self::Out>) -> Result<(), StepError> {
        let n = x.chars().count();
        for (i, c) in x.chars().enumerate() {
            out.put(&stamp.last(false), stamp.pts, MediaTime::from_millis(1), c.to_string().into());
            if i + 1 == n && stamp.last {
                let all: Vec<_> = out.drain().collect();
                for (j, (s, t)) in all.into_iter().enumerate() {
                    out.push(s.last(j + 1 == n), t);
                }
            }
        }
        Ok(())
    }
}
impl Make for Letters {
    const NAME: &'static str = "test.letters";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("spells")
            .input(Port::new("in", Kind::of(Medium::Text), "text"))
            .output(Port::new("out", Kind::of(Medium::Text), "letters").segments())
            .example("x: { use: test.letters, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Letters))
    }
}

/// Sends `texts` (a `.` at the end of one ends a segment, `!` alone fences), and tells what comes out.
fn run(window: &str, chunked: bool, texts: &[&str]) -> Vec<String> {
    let yaml = format!(
        "
graph: whole
chunked: {chunked}
session: {{ mode: duplex }}
lanes: [reply]
nodes:
  ask: {{ use: session.in, kind: text }}
  letters: {{ use: test.letters, lane: reply, in: ask }}
  pass: {{ use: test.pass, lane: reply, in: {{ from: letters, window: {window} }} }}
  out: {{ use: session.out, lane: reply, in: pass }}
"
    );
    let mut r = registry();
    r.add::<Letters>().unwrap();
    let file = GraphFile::parse("whole.yaml", &yaml).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
    let mut sim = Sim::new(7);
    let handle = sim.handle();
    sim.run(async move {
        let engine = Engine::builder().sim(handle.clone()).build().unwrap();
        let graph = engine.start(plan).await.unwrap();
        let mut s = graph.open().unwrap();
        let (mut ask, mut out) = (s.input("ask").unwrap(), s.output("out").unwrap());
        let (control, clock) = (s.handle(), handle.clock());
        handle.spawn(async move {
            for t in texts {
                if t == "!" {
                    control.fence(Lane::new(1).unwrap());
                } else if t.ends_with('.') {
                    ask.send_last(text(&t)).await.unwrap();
                } else {
                    ask.send(text(&t)).await.unwrap();
                }
                clock.sleep(Duration::from_millis(1)).await;
            }
            ask.end();
        });
        let mut got = Vec::new();
        loop {
            match out.next().await {
                Event::Data(stamp, Payload::Text(t)) => {
                    let len = stamp.len.as_millis();
                    got.push(format!("{t} {len} ms{}", if stamp.last { ", last" } else { "" }));
                }
                Event::Fence(_) => got.push("fence".to_owned()),
                Event::End(Terminal::End) => break,
                e => panic!("{e:?}"),
            }
        }
        for e in s.stats().edges {
            assert_eq!((e.used, e.depth), (Amount::ZERO, 0), "credit lost on {}", e.name);
        }
        got
    })
    .unwrap()
}

#[test]
fn a_segment_is_one_chunk() {
    // Far more letters than the edge's window has items, and one chunk longer than its media time.
    let long = "abcdefghij".repeat(9);
    let got = run("{ items: 2, span: 20ms }", false, &[&long, "xy.", "z."]);
    assert_eq!(got, [format!("{long}xy. 93 ms, last"), "z. 2 ms, last".to_owned()]);
    assert_eq!(run("{ items: 2 }", true, &["ab", "."]), ["a 1 ms", "b 1 ms", ". 1 ms, last"]);
}
#[test]
fn a_fence_ends_the_part_that_is_kept() {
    let got = run("{ items: 2 }", false, &["abc", "!", "xyz."]);
    assert_eq!(got, ["fence", "xyz. 4 ms, last"]);
}
#[test]
fn the_end_lets_go_of_what_is_kept() {
    assert_eq!(run("{ items: 2 }", false, &["abc.", "de"]), ["abc. 4 ms, last", "de 2 ms"]);
}
#[test]
fn more_than_the_edge_may_hold_goes_in_parts() {
    let got = run("{ items: 2, bytes: 4B }", false, &["abcdefgh", "i."]);
    assert_eq!(got, ["abcde 5 ms", "fghi. 5 ms, last"]);
}
