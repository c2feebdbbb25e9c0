//! `restart: { on-fault: ... }`: a node that fails is made anew in its session, on its edges, and nobody else notices.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use omni_flow::*;

const MOST: &str = "restart: { on-fault: { max: 2, window: 10s } }";

fn step(keys: &str) -> String {
    format!(
        "
graph: g
session: {{ mode: turn }}
nodes:
  ask: {{ use: session.in, kind: text }}
  a: {{ use: test.pass, in: ask }}
  b: {{ use: test.repeat, times: 1, in: a, {keys} }}
  c: {{ use: test.pass, in: b }}
  say: {{ use: session.out, in: c }}
"
    )
}

/// Sends each text when the one before it has been dealt with, then ends.
async fn through(
    graph: &Graph,
    clock: &Clock,
    texts: &[&str],
) -> (Vec<String>, Terminal, SessionStats, Result<(), RunError>) {
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    for t in texts {
        ask.send(text(t)).await.unwrap();
        clock.sleep(Duration::from_millis(1)).await;
    }
    ask.end();
    let (got, end) = collect(&mut say).await;
    let ended = s.wait().await;
    (got, end, s.stats(), ended)
}

fn whole(stats: &SessionStats) {
    for e in &stats.edges {
        assert_eq!((e.used, e.depth), (Amount::ZERO, 0), "credit lost on {}: {e:?}", e.name);
        assert!(e.ended, "{} has its terminal", e.name);
    }
}

fn paused() -> (Engine, Clock) {
    let clock = Clock::tokio();
    (Engine::builder().clock(clock.clone()).inline().build().unwrap(), clock)
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_or_panics_is_made_anew() {
    let (engine, clock) = paused();
    for place in ["task", "pool"] {
        let graph = start(&engine, &step(&format!("{MOST}, place: {place}"))).await;
        let (got, end, stats, ended) = through(&graph, &clock, &["x", "fail", "y", "panic", "z"]).await;
        assert!(matches!(end, Terminal::End), "{end:?}");
        ended.unwrap();
        assert_eq!(got, ["x0", "y0", "z0", "flushed"], "what was in hand is lost, and nothing else");
        whole(&stats);
        let b = &stats.nodes[2];
        assert_eq!((b.restarts, b.faults, b.panics), (2, 2, 1));
        let lost: Vec<u64> = stats.edges.iter().map(|e| e.counts.lost).collect();
        assert_eq!(lost, [0, 2, 0, 0], "a->b");
        let chunks: Vec<u64> = stats.edges.iter().map(|e| e.counts.chunks).collect();
        assert_eq!(chunks, [5, 5, 4, 4], "the numbers go on");
        assert_eq!(stats.nodes.iter().map(|n| n.restarts).sum::<u64>(), 2, "the others were left alone");
    }
}

#[tokio::test(start_paused = true)]
async fn the_session_ends_when_the_budget_is_used_up() {
    let (engine, clock) = paused();
    let graph = start(&engine, &step(MOST)).await;
    let (got, end, stats, ended) = through(&graph, &clock, &["x", "fail", "fail", "panic"]).await;
    assert_eq!(got, ["x0"]);
    let Terminal::Error(e) = end else { panic!("ended well") };
    assert!(ended.unwrap_err().same(&e));
    assert_eq!((e.kind(), e.node()), (ErrorKind::Panic, "g/b"));
    assert_eq!(e.message(), "told to (it was restarted 2 times, the last 2 of them within 10s)");
    assert_eq!((stats.nodes[2].restarts, stats.nodes[2].faults), (2, 3));
    whole(&stats);
}

#[tokio::test(start_paused = true)]
async fn restarts_of_long_ago_do_not_count() {
    let (engine, clock) = paused();
    let graph = start(&engine, &step(MOST)).await;
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    for _ in 0..5 {
        ask.send(text("fail")).await.unwrap();
        clock.sleep(Duration::from_secs(6)).await;
    }
    ask.send(text("x")).await.unwrap();
    ask.end();
    let (got, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(got, ["x0", "flushed"]);
    assert_eq!(s.stats().nodes[2].restarts, 5);
}

#[tokio::test(start_paused = true)]
async fn an_error_from_upstream_is_not_its_own() {
    let (engine, clock) = paused();
    let yaml =
        step("").replace("c: { use: test.pass", "c: { use: test.pass, restart: { on-fault: { max: 9, window: 1h } }");
    let graph = start(&engine, &yaml).await;
    let (_, end, stats, _) = through(&graph, &clock, &["fail"]).await;
    assert!(matches!(end, Terminal::Error(e) if e.node() == "g/b" && e.message() == "told to fail"));
    assert!(stats.nodes.iter().all(|n| n.restarts == 0));
    // Nor is an upstream that gives nothing within the edge's deadline.
    let yaml = yaml.replace("in: b", "in: { from: b, deadline: 1s }");
    let graph = start(&engine, &yaml).await;
    let mut s = graph.open().unwrap();
    let (_ask, mut say) = (s.input("ask"), s.output("say").unwrap());
    let (_, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::Error(e) if e.kind() == ErrorKind::InputTimeout && e.node() == "g/b"));
    assert!(s.stats().nodes.iter().all(|n| n.restarts == 0));
    // Nor is a session that is cancelled.
    let mut s = graph.open().unwrap();
    let (_ask, _say) = (s.input("ask"), s.output("say"));
    let handle = s.handle();
    s.abort().await.unwrap();
    assert!(handle.stats().nodes.iter().all(|n| n.restarts == 0));
}

/// Holds the credit of what it takes, wraps every error in its own words, and does as the text says.
struct Holder;
impl Node for Holder {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        input.hold_credit();
        loop {
            match input.next().await {
                Event::Data(stamp, text) => {
                    let amount = Amount::one(text.len() as u64, MediaTime::ZERO);
                    match &*text {
                        "keep" => continue,
                        "panic" => {
                            let _room = out.reserve(&stamp, amount).await;
                            panic!("told to");
                        }
                        "fail" => return Err("told to fail".into()),
                        "leave" => {
                            // Another task has the output now, and this one fails.
                            let held = Box::leak(Box::new(out));
                            return Err(format!("left {}", held.connected()).into());
                        }
                        "drop" => drop(out),
                        _ => {
                            input.release(amount);
                            out.send(&stamp, text).await;
                            continue;
                        }
                    }
                    // Without its output, until it fails.
                    cx.clock().sleep(Duration::from_secs(1)).await;
                    return Err("failed later".into());
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(format!("it broke: {}", e.message()).into()),
            }
        }
    }
}
impl Make for Holder {
    const NAME: &'static str = "test.holder";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("holds").example("x: { use: test.holder, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Holder))
    }
}

async fn holder(engine: &Engine) -> Graph {
    let yaml = format!(
        "
graph: g
session: {{ mode: turn }}
nodes:
  ask: {{ use: session.in, kind: text }}
  b: {{ use: test.holder, in: {{ from: ask, window: {{ items: 4 }} }}, {MOST} }}
  say: {{ use: session.out, in: b }}
"
    );
    let mut r = registry();
    r.add::<Holder>().unwrap();
    let file = GraphFile::parse("g.yaml", &yaml).unwrap();
    engine.start(file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_credit_that_a_node_held_comes_back() {
    let (engine, clock) = paused();
    let graph = holder(&engine).await;
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    let b = |s: &Session| s.stats().edges.iter().find(|e| e.name == "ask.out->b.in").cloned().unwrap();
    for t in ["x", "keep", "keep", "panic", "y", "keep"] {
        // Without the credit of the first instance the window of four would be full by now.
        let sent = clock.timeout(Duration::from_secs(1), ask.send(text(t))).await;
        assert_eq!(sent, Some(Ok(Sent::Queued)), "{t}");
        clock.sleep(Duration::from_millis(1)).await;
    }
    let now = b(&s);
    assert_eq!((now.counts.lost, now.used.items, now.depth), (3, 1, 0), "the second instance holds one");
    let out = s.stats().edges.iter().find(|e| e.name == "b.out->say.in").cloned().unwrap();
    assert_eq!((out.used.items, out.depth), (2, 2), "the permit is back");
    ask.end();
    let (got, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(got, ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_gave_up_stays_given_up() {
    let (engine, clock) = paused();
    let graph = holder(&engine).await;
    // It drops its output and goes on, so its stream is over, whatever comes after.
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    ask.send(text("drop")).await.unwrap();
    clock.sleep(Duration::from_millis(1500)).await;
    assert_eq!(ask.send(text("x")).await, Ok(Sent::Queued));
    let (got, end) = collect(&mut say).await;
    assert!(got.is_empty());
    assert!(matches!(end, Terminal::Error(e) if e.kind() == ErrorKind::ProducerGone));
    assert!(s.stats().nodes.iter().find(|n| n.name == "b").unwrap().restarts == 1, "it runs on without");
    s.abort().await.unwrap();
    // An end that it left elsewhere cannot be given to the next instance: the session ends with the error.
    let mut s = graph.open().unwrap();
    let (mut ask, _say) = (s.input("ask").unwrap(), s.output("say"));
    ask.send(text("leave")).await.unwrap();
    let e = s.wait().await.unwrap_err();
    assert_eq!((e.node(), e.message()), ("g/b", "left true"));
    assert_eq!(s.stats().nodes.iter().find(|n| n.name == "b").unwrap().restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_wraps_what_broke_it_is_not_made_anew() {
    let (engine, _) = paused();
    let graph = holder(&engine).await;
    let mut s = graph.open().unwrap();
    let (ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    drop(ask);
    let (_, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::Error(e) if e.message().starts_with("it broke:")), "the first to say so");
    assert!(s.stats().nodes.iter().all(|n| n.restarts == 0));
}

const STAGE: &str = "
graph: g
session: { mode: turn, max-sessions: 2 }
nodes:
  ask: { use: session.in, kind: text }
  speak: { use: test.speller, in: ask, slots: 2, restart: { on-fault: { max: 1, window: 1m } } }
  say: { use: session.out, in: speak }
";

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_stage_gets_a_new_slot() {
    let (engine, clock) = paused();
    let graph = start(&engine, STAGE).await;
    let other = graph.open().unwrap();
    let (got, end, stats, ended) = through(&graph, &clock, &["ab", "c*d", "ef"]).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    ended.unwrap();
    assert_eq!(got, ["a", "b", "c", "e", "f"], "all slots but its own are taken, and its own is free again");
    assert_eq!((stats.nodes[1].restarts, stats.edges[0].counts.lost), (1, 1));
    whole(&stats);
    assert_eq!(graph.stages()[0].1.leases, 3);
    assert_eq!(graph.stages()[0].1.leased, 1);
    let (_, end, _, _) = through(&graph, &clock, &["*", "*"]).await;
    assert!(
        matches!(end, Terminal::Error(e) if e.kind() == ErrorKind::Panic && e.message().contains("restarted 1 times"))
    );
    drop(other);
}

/// Text that is refused by a step from the second instance on: making one fails.
#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_be_made_ends_the_session_with_the_first_error() {
    struct Once;
    static MADE: AtomicUsize = AtomicUsize::new(0);
    impl Make for Once {
        const NAME: &'static str = "test.once";
        type Config = NoConfig;
        fn schema() -> Schema {
            texts("once").example("x: { use: test.once, in: y }")
        }
        fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
            Ok(Body::try_step(|| match MADE.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(Repeat(1)),
                1 => Err(BuildError::new("no more of them")),
                _ => panic!("told to"),
            }))
        }
    }
    let (engine, _) = paused();
    let mut r = registry();
    r.add::<Once>().unwrap();
    let yaml = step(MOST).replace("test.repeat, times: 1", "test.once");
    let plan =
        GraphFile::parse("g.yaml", &yaml).unwrap().check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let graph = engine.start(plan).await.unwrap();
    let mut s = graph.open().unwrap();
    let (mut ask, _say) = (s.input("ask").unwrap(), s.output("say"));
    ask.send(text("fail")).await.unwrap();
    let e = s.wait().await.unwrap_err();
    assert_eq!((e.node(), e.message()), ("g/b", "told to fail"));
    assert_eq!(s.stats().nodes[2].restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fails_at_once_does_not_spin() {
    struct Never;
    impl Node for Never {
        async fn run(self, _: Ctx) -> Result<(), NodeError> {
            Err("not today".into())
        }
    }
    impl Make for Never {
        const NAME: &'static str = "test.never";
        type Config = NoConfig;
        fn schema() -> Schema {
            Schema::new("never")
                .output(Port::new("out", Kind::of(Medium::Text), "text"))
                .example("x: { use: test.never }")
        }
        fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
            Ok(Body::node(|| Never))
        }
    }
    let (engine, _) = paused();
    let mut r = registry();
    r.add::<Never>().unwrap();
    let yaml = "
graph: g
nodes:
  n: { use: test.never, restart: { on-fault: { max: 100, window: 1h } } }
  out: { use: session.out, in: n }
";
    let plan =
        GraphFile::parse("g.yaml", yaml).unwrap().check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let graph = engine.start(plan).await.unwrap();
    let s = graph.open().unwrap();
    let e = s.wait().await.unwrap_err();
    assert!(e.message().starts_with("not today (it was restarted 100 times"), "{e}");
}
