//! Sessions as an embedder sees them: open, drain, abort, fail; fences; shared stages.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use omni_flow::*;

const CHAIN: &str = "
graph: chain
session: { mode: turn }
nodes:
  ask: { use: session.in, kind: text }
  a: { use: test.pass, in: ask }
  b: { use: test.repeat, times: 2, in: a }
  c: { use: test.repeat, times: 1, in: b }
  say: { use: session.out, in: c }
";

const DUPLEX: &str = "
graph: duplex
session: { mode: duplex }
lanes: [reply]
nodes:
  ask: { use: session.in, kind: text }
  turn: { use: test.turns, fences: reply, in: ask }
  echo: { use: test.pass, in: turn }
  speak: { use: test.speller, lane: reply, in: echo, place: shared }
  heard: { use: session.out, in: echo }
  say: { use: session.out, lane: reply, in: speak }
";

#[tokio::test]
async fn runs_dry_and_ends_well_fused_or_not() {
    let mut traces = Vec::new();
    for fuse in [true, false] {
        let engine = Engine::builder().fuse(fuse).build().unwrap();
        let graph = start(&engine, CHAIN).await;
        let mut s = graph.open().unwrap();
        let mut ask = s.input("ask").unwrap();
        let mut say = s.output("say").unwrap();
        for t in ["x", "y"] {
            assert_eq!(ask.send(text(t)).await, Ok(Sent::Queued));
        }
        ask.end();
        let (got, end) = collect(&mut say).await;
        assert!(matches!(end, Terminal::End), "{end:?}");
        s.wait().await.unwrap();
        let stats = s.stats();
        let chunks: Vec<u64> = stats.edges.iter().map(|e| e.counts.chunks).collect();
        traces.push((got, chunks, stats.nodes.iter().map(|n| n.steps).collect::<Vec<_>>()));
    }
    assert_eq!(traces[0], traces[1], "fused and unfused give the same trace");
    assert_eq!(traces[0].0, ["x00", "x10", "y00", "y10", "flushed0", "flushed"]);
}

#[tokio::test]
async fn a_failing_node_names_itself_and_other_sessions_go_on() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, CHAIN).await;
    let mut good = graph.open().unwrap();
    for (word, kind, words) in [("panic", ErrorKind::Panic, "told to"), ("fail", ErrorKind::Node, "told to fail")] {
        let mut s = graph.open().unwrap();
        let mut ask = s.input("ask").unwrap();
        let mut say = s.output("say").unwrap();
        ask.send(text(word)).await.unwrap();
        let (got, end) = collect(&mut say).await;
        assert!(got.is_empty());
        let Terminal::Error(e) = end else { panic!("{word} ended well") };
        assert_eq!((e.kind(), e.message(), e.node()), (kind, words, "chain/b"));
        assert!(s.wait().await.unwrap_err().same(&e), "one error for all streams");
        while ask.send(text("more")).await == Ok(Sent::Queued) {}
    }
    let mut ask = good.input("ask").unwrap();
    let mut say = good.output("say").unwrap();
    ask.send(text("x")).await.unwrap();
    ask.end();
    assert_eq!(collect(&mut say).await.0.len(), 4);
    good.wait().await.unwrap();
}

#[tokio::test]
async fn a_barge_in_kills_the_answer_and_nothing_else() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, DUPLEX).await;
    let mut s = graph.open().unwrap();
    let mut ask = s.input("ask").unwrap();
    let mut say = s.output("say").unwrap();
    let mut heard = s.output("heard").unwrap();
    let long = "a".repeat(500);
    ask.send(text(&long)).await.unwrap();
    // The answer is under way, and nobody takes more than its first letters: it waits for credit.
    assert!(matches!(say.next().await, Event::Data(_, _)));
    ask.send(text("!")).await.unwrap();
    ask.send(text("bc")).await.unwrap();
    ask.end();
    let (rest, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    let fence = rest.iter().position(|t| t == "|").expect("the fence is told");
    assert_eq!(&rest[fence + 1..], ["b", "c"], "after the fence, the new answer alone");
    assert!(rest.len() < 100, "the old answer died: {}", rest.len());
    assert_eq!(collect(&mut heard).await.0, [&*long, "bc"], "the transcript is kept");
    s.wait().await.unwrap();
}

#[tokio::test]
async fn aborts_and_drops_leave_nothing_behind() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, DUPLEX).await;
    for i in 0..200 {
        let mut s = graph.open().unwrap();
        let mut ask = s.input("ask").unwrap();
        let mut say = s.output("say").unwrap();
        ask.send(text("hello")).await.unwrap();
        if i % 3 == 0 {
            say.next().await;
        }
        if i % 2 == 0 {
            s.abort().await.unwrap();
            let (_, end) = collect(&mut say).await;
            assert!(matches!(end, Terminal::Error(e) if e.kind() == ErrorKind::Aborted));
        }
    }
    // Dropped sessions end by themselves.
    for _ in 0..1000 {
        if graph.stages()[0].1.leased == 0 {
            break;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    assert_eq!(graph.stages()[0].1.leased, 0, "all slots are back");
}

#[tokio::test]
async fn a_panicking_unit_ends_its_own_session() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, DUPLEX).await;
    let mut s = graph.open().unwrap();
    let mut say = s.output("say").unwrap();
    let mut ask = s.input("ask").unwrap();
    ask.send(text("ab*c")).await.unwrap();
    let (got, end) = collect(&mut say).await;
    assert_eq!(got, ["a", "b"]);
    assert!(matches!(end, Terminal::Error(e) if e.node() == "duplex/speak" && e.kind() == ErrorKind::Panic));
    assert_eq!(s.wait().await.unwrap_err().kind(), ErrorKind::Panic);
}

#[tokio::test]
async fn drain_waits_and_names_who_holds_it_up() {
    let engine = Engine::builder().clock(Clock::tokio()).build().unwrap();
    let graph = start(&engine, CHAIN).await;
    let mut s = graph.open().unwrap();
    s.drain(Duration::from_secs(5)).await.unwrap();

    let mut s = graph.open().unwrap();
    let mut ask = s.input("ask").unwrap();
    let _say = s.output("say");
    ask.send(text("x")).await.unwrap();
    // The input is held open: nothing ends.
    let e = s.drain(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Stuck);
    assert!(e.message().contains('a'), "{e}");
}

#[tokio::test]
async fn admission_is_bounded() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, &CHAIN.replace("mode: turn", "mode: turn, max-sessions: 2")).await;
    let a = graph.open().unwrap();
    let _b = graph.open().unwrap();
    assert!(matches!(graph.open(), Err(OpenError::Full { limit: 2, .. })));
    drop(a);
    graph.open().unwrap();
}

#[tokio::test]
async fn an_input_refuses_what_it_does_not_take() {
    let engine = Engine::new().unwrap();
    let graph = start(&engine, CHAIN).await;
    let mut s = graph.open().unwrap();
    let mut ask = s.input("ask").unwrap();
    let e = ask.send(Pcm::mono(16_000, vec![0.0])).await.unwrap_err();
    assert_eq!(
        e.to_string(),
        "the input takes text, not audio 16000 mono f32: convert it first, or change `session.in` in the graph file"
    );
    assert_eq!(ask.send(text("x")).await, Ok(Sent::Queued), "nothing changed");
}

#[tokio::test]
async fn a_stream_node_stops_when_nobody_reads() {
    let engine = Engine::new().unwrap();
    let yaml = "
graph: counting
nodes:
  n: { use: test.count }
  out: { use: session.out, in: n }
";
    let graph = start(&engine, yaml).await;
    let mut s = graph.open().unwrap();
    let mut out = s.output("out").unwrap();
    for i in 1..=100 {
        match out.next().await {
            Event::Data(stamp, Payload::Text(t)) => assert_eq!((&*t, stamp.seq), (i.to_string().as_str(), i - 1)),
            e => panic!("{e:?}"),
        }
    }
    drop(out);
    s.wait().await.unwrap();
}

/// Takes a text and never comes back: at "hang" it waits for ever.
struct Hangs;
impl Node for Hangs {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        loop {
            match input.next().await {
                Event::Data(_, t) if &*t == "hang" => std::future::pending::<()>().await,
                Event::Data(stamp, t) if &*t == "say" => drop(out.send(&stamp, t).await),
                Event::Data(..) | Event::Fence(_) => {}
                Event::End(_) => return Ok(()),
            }
        }
    }
}
impl Make for Hangs {
    const NAME: &'static str = "test.hangs";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("hangs").example("x: { use: test.hangs, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Hangs))
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_nothing_to_say_is_waited_for_and_who_hangs_is_not() {
    let yaml = "
graph: quiet
session: { mode: duplex, idle-ttl: null }
nodes:
  ask: { use: session.in, kind: text }
  pass: { use: test.pass, in: ask }
  hangs: { use: test.hangs, in: pass }
  after: { use: test.repeat, times: 1, in: hangs }
  last: { use: test.pass, in: after }
  say: { use: session.out, in: last }
";
    let mut registry = registry();
    registry.add::<Hangs>().unwrap();
    for fuse in [true, false] {
        let engine = Engine::builder().clock(Clock::tokio()).inline().fuse(fuse).build().unwrap();
        let plan = GraphFile::parse("quiet.yaml", yaml).unwrap().check(&registry, &CheckCx::default()).unwrap().0;
        let mut s = engine.start(plan).await.unwrap().open().unwrap();
        let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
        let reader = tokio::spawn(async move { collect(&mut say).await });
        // Two hours without a word, then two hours of words that nobody answers, then one that is.
        tokio::time::sleep(Duration::from_secs(7200)).await;
        for _ in 0..7200 {
            ask.send(text("word")).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(ask.send(text("say")).await, Ok(Sent::Queued));
        tokio::time::sleep(Duration::from_secs(7200)).await;
        assert!(!reader.is_finished());
        let began = tokio::time::Instant::now();
        ask.send(text("hang")).await.unwrap();
        let (got, end) = reader.await.unwrap();
        assert_eq!(got, ["say0"]);
        let Terminal::Error(e) = end else { panic!("ended well") };
        assert_eq!((e.kind(), e.node()), (ErrorKind::InputTimeout, "quiet/hangs"), "fused {fuse}");
        let waited = began.elapsed().as_secs();
        assert!((600..=602).contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_producer_meets_the_deadline() {
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let yaml = CHAIN.replace("in: ask }", "in: { from: ask, deadline: 30s } }");
    let graph = start(&engine, &yaml).await;
    let mut s = graph.open().unwrap();
    let mut say = s.output("say").unwrap();
    let mut ask = s.input("ask").unwrap();
    ask.send(text("x")).await.unwrap();
    let began = tokio::time::Instant::now();
    let (got, end) = collect(&mut say).await;
    assert_eq!(got.len(), 2);
    let Terminal::Error(e) = end else { panic!("ended well") };
    assert_eq!((e.kind(), e.node()), (ErrorKind::InputTimeout, "chain/ask"));
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert_eq!(ask.send(text("y")).await, Ok(Sent::Gone), "the producer is cancelled");
}

const BACK: &str = "
graph: back
session: { mode: duplex }
lanes: [reply]
nodes:
  ask: { use: session.in, kind: text }
  turn: { use: test.turns, fences: reply, in: ask }
  heard: { use: session.out, in: turn }
  back: { use: session.in, kind: text }
  speak: { use: test.pass, lane: reply, in: back }
  say: { use: session.out, lane: reply, in: speak }
  near: { use: session.in, kind: text, lane: reply }
  say-near: { use: session.out, lane: reply, in: near }
";

async fn stamp_of(out: &mut In<Payload>, want: &str) -> Stamp {
    match out.next().await {
        Event::Data(stamp, Payload::Text(t)) if &*t == want => stamp,
        e => panic!("{want}: {e:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_client_answers_is_stale_when_what_it_answers_is() {
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    let graph = start(&engine, BACK).await;
    let mut s = graph.open().unwrap();
    let (mut ask, mut back, mut near) = (s.input("ask").unwrap(), s.input("back").unwrap(), s.input("near").unwrap());
    let mut heard = s.output("heard").unwrap();
    let (mut say, mut say_near) = (s.output("say").unwrap(), s.output("say-near").unwrap());
    let pause = || tokio::time::sleep(Duration::from_secs(1));

    ask.send(text("one")).await.unwrap();
    let first = stamp_of(&mut heard, "one").await;
    pause().await;
    assert_eq!(back.answer_last(&first, text("fresh")).await, Ok(Sent::Queued));
    let said = stamp_of(&mut say, "fresh").await;
    assert_eq!((said.origin, said.epochs, said.last), (first.origin, first.epochs, true), "inherited");

    // The user speaks again: what answers the first question is void, wherever it enters.
    ask.send(text("!")).await.unwrap();
    ask.send(text("two")).await.unwrap();
    let second = stamp_of(&mut heard, "two").await;
    assert_eq!(near.answer(&first, text("late")).await, Ok(Sent::Stale));
    assert_eq!(back.answer(&first, text("late")).await, Ok(Sent::Queued), "its own lane was not fenced");
    assert_eq!(back.answer(&second, text("new")).await, Ok(Sent::Queued));
    assert_eq!(near.answer(&second, text("new")).await, Ok(Sent::Queued));
    for out in [&mut say, &mut say_near] {
        assert!(matches!(out.next().await, Event::Fence(_)));
        let stamp = stamp_of(out, "new").await;
        assert_eq!((stamp.origin, stamp.last), (second.origin, false));
    }
    // A client's own word is of this moment, whatever was fenced before.
    pause().await;
    back.send(text("own")).await.unwrap();
    assert_eq!(stamp_of(&mut say, "own").await.origin, engine.clock().now());
    for input in [ask, back, near] {
        input.end();
    }
    s.wait().await.unwrap();
}

/// Gives each text back on one output, and its length as a signal on the other, before and behind it.
struct Both;
impl shared::Stage for Both {
    type In = std::sync::Arc<str>;
    type Out = Payload;
    type Slot = Option<(Stamp, std::sync::Arc<str>)>;
    fn open(&self, _: shared::SlotId) -> Result<Self::Slot, shared::StageError> {
        Ok(None)
    }
    fn slot_bytes(&self, _: &Self::Slot) -> u64 {
        0
    }
    fn accept(
        &self,
        slot: &mut Self::Slot,
        stamp: &Stamp,
        input: std::sync::Arc<str>,
    ) -> Result<(), shared::StageError> {
        *slot = Some((*stamp, input));
        Ok(())
    }
    fn ready(&self, slot: &Self::Slot) -> bool {
        slot.is_some()
    }
    fn unit(&self, m: &mut shared::Member<Self>) -> Result<(), shared::StageError> {
        if let Some((stamp, text)) = m.slot().take() {
            let length = Signal::Named { name: "length".into(), data: text.len().to_string().into() };
            m.emit(stamp, Payload::Signal(length.clone()));
            m.emit(stamp, Payload::Text(text));
            m.emit(stamp, Payload::Signal(length));
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Self::Slot) {
        *slot = None;
    }
}
impl Make for Both {
    const NAME: &'static str = "test.both";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("gives texts and signals")
            .output(Port::new("lengths", Kind::of(Medium::Signal), "signals").optional())
            .shared()
            .example("x: { use: test.both, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(Both))
    }
}

#[tokio::test]
async fn a_stage_of_two_outputs_gives_each_what_it_takes() {
    let graph = |more: &str| {
        format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  ask: {{ use: session.in, kind: text }}\n  \
             both: {{ use: test.both, in: ask }}\n  say: {{ use: session.out, in: both.out }}\n{more}"
        )
    };
    let mut known = registry();
    known.add::<Both>().unwrap();
    for more in ["", "  lengths: { use: session.out, in: both.lengths }\n"] {
        let engine = Engine::new().unwrap();
        let file = GraphFile::parse("test.yaml", &graph(more)).unwrap_or_else(|d| panic!("{d}"));
        let plan = file.check(&known, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
        let mut s = engine.start(plan).await.unwrap().open().unwrap();
        let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
        let lengths = s.output("lengths");
        for t in ["a", "bcd"] {
            ask.send(text(t)).await.unwrap();
        }
        ask.end();
        let (got, end) = collect(&mut say).await;
        assert_eq!(got, ["a", "bcd"]);
        assert!(matches!(end, Terminal::End), "{end:?}");
        if let Some(mut lengths) = lengths {
            let mut data = Vec::new();
            while let Event::Data(_, Payload::Signal(Signal::Named { data: d, .. })) = lengths.next().await {
                data.push(d.to_string());
            }
            assert_eq!(data, ["1", "1", "3", "3"]);
        }
        s.wait().await.unwrap();
    }
}
