//! Seeded schedules: a four-node graph with fences under [`sim::Sim`], which picks who runs next.
//!
//! 500 seeds by default, `OMNI_FLOW_SEEDS` for more, `OMNI_FLOW_SEED` for one. A failure prints its seed.

mod common;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::*;
use omni_flow::sim::{Sim, SimHandle};
use omni_flow::*;

const GRAPH: &str = "
graph: sched
session: { mode: duplex }
lanes: [reply]
nodes:
  ask: { use: session.in, kind: text }
  turn: { use: test.asks, fences: reply, in: { from: ask, window: { items: 3 } } }
  pass: { use: test.pass, in: turn }
  echo: { use: test.faulty, in: { from: pass, window: { items: 1 } } }
  speak: { use: test.answers, lane: reply, in: { from: echo, window: { items: 2 } }, place: shared }
  heard: { use: session.out, in: { from: echo, window: { items: 2 } } }
  say: { use: session.out, lane: reply, in: { from: speak, window: { items: 2 } } }
";

/// What the world knows of the run, beside the engine: it runs on one thread, so this is exact.
#[derive(Default)]
struct Log {
    /// Questions that the turn node has passed on.
    asked: usize,
    /// Each fence: its epoch, and how many questions came before it.
    fences: Vec<(u32, usize)>,
}
thread_local! {
    static LOG: RefCell<Log> = RefCell::default();
}
fn newest() -> u32 {
    LOG.with_borrow(|l| l.fences.last().map_or(0, |f| f.0))
}
fn reply() -> Lane {
    Lane::new(1).unwrap()
}
/// How many chunks question `q` is answered with.
fn answers(q: usize) -> usize {
    1 + q % 4
}
/// The number of a question: "12:fault" is 12.
fn number(text: &str) -> usize {
    text.split([':', '.']).next().unwrap().parse().unwrap()
}

/// Fences at "!"; what follows is stamped with the new epoch, everything else inherits.
struct Asks;
impl Node for Asks {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        let mut mine = Epochs::FIRST;
        loop {
            match input.next().await {
                Event::Data(_, text) if &*text == "!" => {
                    let (lane, epoch) = cx.fence().expect("the file names a lane");
                    mine = mine.with(lane, epoch);
                    LOG.with_borrow_mut(|l| l.fences.push((epoch.0, l.asked)));
                }
                Event::Data(mut stamp, text) => {
                    assert!(!text.ends_with(":turn"), "told to");
                    stamp.epochs = stamp.epochs.join(&mine);
                    LOG.with_borrow_mut(|l| l.asked += 1);
                    if out.send(&stamp, text).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}
impl Make for Asks {
    const NAME: &'static str = "test.asks";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("fences at !").fences().example("x: { use: test.asks, fences: reply, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Asks))
    }
}

/// Passes text on; panics or fails where the text says so.
struct Faulty;
impl Step for Faulty {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        assert!(!x.ends_with(":echo"), "told to");
        if x.ends_with(":fail") {
            return Err("told to fail".into());
        }
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Faulty {
    const NAME: &'static str = "test.faulty";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("passes text on").example("x: { use: test.faulty, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Faulty))
    }
}

/// A shared stage: answers question `q` with the chunks `q.0`, `q.1`, ..., one per unit.
struct Answers;
#[derive(Default)]
struct Answering {
    text: String,
    next: usize,
    until: usize,
    stamp: Stamp,
}
impl shared::Stage for Answers {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = Answering;
    fn open(&self, _: shared::SlotId) -> Result<Answering, shared::StageError> {
        Ok(Answering::default())
    }
    fn slot_bytes(&self, slot: &Answering) -> u64 {
        slot.text.len() as u64
    }
    fn accept(&self, slot: &mut Answering, stamp: &Stamp, input: Arc<str>) -> Result<(), shared::StageError> {
        *slot = Answering { text: input.to_string(), next: 0, until: answers(number(&input)), stamp: *stamp };
        Ok(())
    }
    fn ready(&self, slot: &Answering) -> bool {
        slot.next < slot.until
    }
    fn unit(&self, m: &mut shared::Member<Self>) -> Result<(), shared::StageError> {
        let slot = m.slot();
        if slot.next == slot.until {
            return Ok(());
        }
        assert!(!(slot.text.ends_with(":stage") && slot.next + 1 == slot.until), "told to");
        let (stamp, text) = (slot.stamp, format!("{}.{}", number(&slot.text), slot.next));
        slot.next += 1;
        m.emit(stamp, text.into());
        Ok(())
    }
    fn fence(&self, slot: &mut Answering) {
        *slot = Answering::default();
    }
}
impl Make for Answers {
    const NAME: &'static str = "test.answers";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("answers").shared().example("x: { use: test.answers, in: y, place: shared }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(Answers))
    }
}

/// SplitMix64, for the script; the schedule has its own.
#[derive(Clone)]
struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// How a run is driven.
#[derive(Clone, Copy, Debug)]
struct Drive {
    seed: u64,
    fuse: bool,
    /// After every action, wait until all is quiet; readers never dawdle.
    settle: bool,
    /// Panics, errors, drops and aborts happen.
    faults: bool,
    /// The stage works on one stream at a time: the edge into it has a gate.
    gated: bool,
    /// Nodes are made anew after a fault, as often as they need.
    restart: bool,
}

/// What one reader saw.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    events: Vec<String>,
    /// `None`: it was dropped before its terminal.
    end: Option<String>,
}

/// All that a client can see of a run, and what the engine counted.
#[derive(Clone, Debug, PartialEq)]
struct Trace {
    say: Seen,
    heard: Seen,
    session: String,
    chunks: Vec<u64>,
    steps: Vec<u64>,
}

fn shown(t: &Terminal) -> String {
    match t {
        Terminal::End => "end".to_owned(),
        Terminal::Error(e) => format!("{} at {:?}", e.kind().code(), e.node()),
    }
}

/// Reads to the terminal, or drops the end after `stop` events; checks each event as it comes.
async fn read(mut out: In<Payload>, lane: Lane, stop: Option<usize>, mut dawdle: Option<Rng>, clock: Clock) -> Seen {
    let mut seen = Seen::default();
    let mut told = 0;
    loop {
        if stop.is_some_and(|n| seen.events.len() >= n) {
            return seen;
        }
        if let Some(rng) = &mut dawdle {
            match rng.below(4) {
                0 => clock.sleep(Duration::from_millis(rng.below(20))).await,
                1 => clock.sleep(Duration::from_micros(rng.below(500))).await,
                _ => {}
            }
        }
        match out.next().await {
            Event::Data(stamp, Payload::Text(t)) => {
                if lane != Lane::MAIN {
                    let epoch = stamp.epochs.of(lane).0;
                    assert!(epoch >= newest(), "{t} of epoch {epoch} came after fence {}", newest());
                    assert_eq!(epoch, told, "{t}: its fence comes first, and only once");
                    let q = number(&t);
                    LOG.with_borrow(|l| {
                        for (e, before) in l.fences.iter().filter(|(e, _)| *e <= told) {
                            assert!(q >= *before, "{t} was asked before fence {e} and became audible after it");
                        }
                    });
                }
                seen.events.push(t.to_string());
            }
            Event::Data(_, p) => panic!("{p:?}"),
            Event::Fence(e) => {
                assert!(lane != Lane::MAIN, "main is never fenced");
                assert!(e.0 > told && e.0 <= newest(), "fence {e} after {told}, newest {}", newest());
                told = e.0;
                seen.events.push(format!("|{e}"));
            }
            Event::End(t) => {
                seen.end = Some(shown(&t));
                for _ in 0..2 {
                    assert!(matches!(out.next().await, Event::End(Terminal::End)), "one terminal, then quiet");
                }
                return seen;
            }
        }
    }
}

fn whole(stats: &SessionStats) {
    for e in &stats.edges {
        assert_eq!((e.used, e.depth), (Amount::ZERO, 0), "credit lost on {}: {e:?}", e.name);
    }
}

async fn drive(d: Drive, sim: SimHandle) -> Trace {
    let clock = sim.clock();
    let engine = Engine::builder().sim(sim.clone()).fuse(d.fuse).build().unwrap();
    let mut r = registry();
    r.add::<Asks>().unwrap().add::<Faulty>().unwrap().add::<Answers>().unwrap();
    let again = "restart: { on-fault: { max: 100, window: 1h } }, in:";
    let text_of = |keys: &str| GRAPH.replace("fences: reply, in:", &format!("fences: reply, {keys}"));
    let yaml = if d.restart {
        text_of(again)
            .replace("test.faulty, in:", &format!("test.faulty, {again}"))
            .replace("lane: reply, in: { from: echo", &format!("lane: reply, {again} {{ from: echo"))
    } else {
        GRAPH.to_owned()
    };
    assert_eq!(yaml.matches("restart").count(), if d.restart { 3 } else { 0 });
    let place = if d.gated { "place: shared, active-streams: 1" } else { "place: shared" };
    let file = GraphFile::parse("sched.yaml", &yaml.replace("place: shared", place)).unwrap_or_else(|e| panic!("{e}"));
    let plan = file.check(&r, &CheckCx::default()).unwrap_or_else(|e| panic!("{e}")).0;
    let graph = engine.start(plan).await.unwrap();
    let mut rng = Rng(d.seed);
    let mut session = Some(graph.open().unwrap());
    let s = session.as_mut().unwrap();
    let handle = s.handle();
    let mut ask = Some(s.input("ask").unwrap());
    let done: Arc<Mutex<Vec<(bool, Seen)>>> = Arc::default();
    // A run has one who fences: the turn node, or the client from outside.
    let outside = rng.below(3) == 0;
    let mut dropped = false;
    for (name, lane) in [("say", reply()), ("heard", Lane::MAIN)] {
        let out = s.output(name).unwrap();
        let stop = (d.faults && !d.settle && rng.below(8) == 0).then(|| rng.below(12) as usize);
        dropped |= stop.is_some();
        let dawdle = (!d.settle).then(|| Rng(rng.next()));
        let (done, clock) = (done.clone(), clock.clone());
        sim.spawn(async move {
            let seen = read(out, lane, stop, dawdle, clock).await;
            done.lock().unwrap().push((lane == reply(), seen));
        });
    }
    let mut sent: Vec<String> = Vec::new();
    let mut broken = dropped;
    for _ in 0..rng.below(24) {
        match rng.below(if d.faults { 28 } else { 24 }) {
            0..=11 => {
                let fault = if d.restart {
                    rng.below(16)
                } else if d.faults {
                    rng.below(60)
                } else {
                    99
                };
                let fault = ["turn", "echo", "fail", "stage"].get(fault as usize);
                broken |= fault.is_some() && !d.restart;
                let q = fault.map_or(sent.len().to_string(), |f| format!("{}:{f}", sent.len()));
                if let Some(ask) = &mut ask {
                    ask.send(text(&q)).await.unwrap();
                    sent.push(q);
                }
            }
            12..=16 if outside => {
                let epoch = handle.fence(reply());
                let before = sent.len();
                LOG.with_borrow_mut(|l| l.fences.push((epoch.0, before)));
            }
            12..=16 => {
                if let Some(ask) = &mut ask {
                    ask.send(text("!")).await.unwrap();
                }
            }
            17..=20 => clock.sleep(Duration::from_micros(rng.below(5000))).await,
            21..=23 => {
                // All is quiet in virtual time: no reader dawdles so long.
                clock.sleep(Duration::from_secs(10)).await;
                whole(&handle.stats());
            }
            24 => {
                handle.cancel();
                broken = true;
            }
            25 => {
                drop(session.take());
                broken = true;
            }
            26 => {
                // Dropped without an end: the graph hears of it as a fault.
                drop(ask.take());
                broken = true;
            }
            _ => {
                if let Some(s) = session.take() {
                    s.abort().await.unwrap();
                    broken = true;
                }
            }
        }
        if d.settle {
            clock.sleep(Duration::from_secs(10)).await;
        }
    }
    if let Some(ask) = ask {
        ask.end();
    }
    let ended = clock.timeout(Duration::from_secs(600), handle.ended()).await;
    assert!(ended.is_some(), "the session hangs: {:?}", handle.stats());
    clock.sleep(Duration::from_secs(60)).await;
    let mut done = done.lock().unwrap().clone();
    assert_eq!(done.len(), 2, "every reader ends");
    done.sort_by_key(|(say, _)| !say);
    let (say, heard) = (done[0].1.clone(), done[1].1.clone());
    let stats = handle.stats();
    whole(&stats);
    assert!(stats.edges.iter().all(|e| e.ended), "every stream has its terminal: {stats:?}");
    assert_eq!(graph.stages()[0].1.leased, 0, "the slot is back");
    let end = match session {
        Some(s) => s.wait().await.map_or_else(|e| shown(&Terminal::Error(e)), |()| "end".to_owned()),
        None => "gone".to_owned(),
    };
    let fails = |name: &str, words: &[&str]| {
        let n = sent.iter().filter(|q| words.iter().any(|w| q.ends_with(w))).count() as u64;
        let node = stats.nodes.iter().find(|n| n.name == name).unwrap();
        let lost = stats.edges.iter().find(|e| e.name.ends_with(&format!("->{name}.in"))).unwrap().counts.lost;
        (n, node.restarts, lost)
    };
    if !broken && d.restart {
        assert_eq!((say.end.as_deref(), heard.end.as_deref(), &*end), (Some("end"), Some("end"), "end"));
        let kept: Vec<String> = sent.iter().filter(|q| !q.contains(':') || q.ends_with(":stage")).cloned().collect();
        assert_eq!(heard.events, kept, "what a failing node had in hand is lost, and nothing else");
        for (name, words) in [("turn", &[":turn"][..]), ("echo", &[":echo", ":fail"])] {
            let (n, restarts, lost) = fails(name, words);
            assert_eq!((restarts, lost), (n, n), "{name}: each fault is one restart and one chunk");
        }
        let (n, restarts, lost) = fails("speak", &[":stage"]);
        assert!(restarts == lost && restarts <= n, "an answer that a fence ended does not fail");
    } else if !broken {
        assert_eq!((say.end.as_deref(), heard.end.as_deref(), &*end), (Some("end"), Some("end"), "end"));
        assert_eq!(heard.events, sent, "the transcript is kept, whatever was interrupted");
        // What was asked after the last fence is answered in full.
        let from = LOG.with_borrow(|l| l.fences.last().map_or(0, |f| f.1));
        let expect = (from..sent.len()).flat_map(|q| (0..answers(q)).map(move |i| format!("{q}.{i}")));
        let last: Vec<String> = say.events.rsplit(|e| e.starts_with('|')).next().unwrap_or(&[]).to_vec();
        assert_eq!(last, expect.collect::<Vec<_>>(), "the last turn is whole");
    } else if !d.restart {
        assert_eq!(heard.events, sent[..heard.events.len()], "what was heard, was heard in order");
    }
    let chunks = stats.edges.iter().map(|e| e.counts.chunks).collect();
    let steps = stats.nodes.iter().map(|n| n.steps).collect();
    Trace { say, heard, session: end, chunks, steps }
}

fn run(d: Drive) -> Trace {
    LOG.set(Log::default());
    let out = catch_unwind(AssertUnwindSafe(|| {
        let mut sim = Sim::new(d.seed);
        let handle = sim.handle();
        sim.run(drive(d, handle)).unwrap_or_else(|e| panic!("{e}"))
    }));
    out.unwrap_or_else(|panic| {
        eprintln!("failed under {d:?}: run with OMNI_FLOW_SEED={} to see it again", d.seed);
        resume_unwind(panic)
    })
}

fn seeds() -> std::ops::Range<u64> {
    let var = |name| std::env::var(name).ok().and_then(|v: String| v.parse::<u64>().ok());
    match var("OMNI_FLOW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..var("OMNI_FLOW_SEEDS").unwrap_or(500),
    }
}

/// The faults that the test asks for are not worth a line each.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let old = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>().is_none_or(|s| *s != "told to") {
                old(info);
            }
        }));
    });
}

#[test]
fn interruptions_in_any_order_keep_every_promise() {
    for seed in seeds() {
        let drive =
            Drive { seed, fuse: seed % 2 == 0, settle: false, faults: false, gated: seed % 3 == 0, restart: false };
        let a = run(drive);
        let b = run(Drive { fuse: !drive.fuse, ..drive });
        assert_eq!(a.heard, b.heard, "seed {seed}: fused or not, the same is heard");
    }
}

#[test]
fn panics_drops_and_aborts_at_any_point_leave_one_terminal_per_stream() {
    quiet();
    for seed in seeds() {
        run(Drive { seed, fuse: seed % 2 == 0, settle: false, faults: true, gated: seed % 3 == 0, restart: false });
    }
}

#[test]
fn fused_and_unfused_traces_are_equal() {
    quiet();
    for seed in seeds() {
        for faults in [false, true] {
            let d = Drive { seed, fuse: true, settle: true, faults, gated: seed % 3 == 0, restart: false };
            let (a, b) = (run(d), run(Drive { fuse: false, ..d }));
            assert_eq!(a, b, "seed {seed}, faults {faults}");
        }
    }
}

#[test]
fn nodes_made_anew_keep_every_promise() {
    quiet();
    for seed in seeds() {
        // Half of the runs with nothing but faults of nodes and fences: these must end well.
        for faults in [false, true] {
            run(Drive {
                seed,
                fuse: seed % 2 == 0,
                settle: seed % 3 == 0,
                faults,
                gated: seed % 5 == 0,
                restart: true,
            });
        }
    }
}

#[test]
fn a_seed_is_a_run() {
    for seed in 0..20 {
        let d = Drive { seed, fuse: true, settle: false, faults: false, gated: false, restart: false };
        assert_eq!(run(d), run(d));
    }
}
