//! `step-budget`: steps that take too long are counted and reported, also while they run.

mod common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::*;
use omni_flow::*;
use tracing::field::{Field, Visit};
use tracing::span;

/// Keeps the texts of all warnings of this process.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);
struct Text<'a>(&'a mut String);
impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}
impl tracing::Subscriber for Warnings {
    fn enabled(&self, m: &tracing::Metadata<'_>) -> bool {
        *m.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, e: &tracing::Event<'_>) {
        let mut text = String::new();
        e.record(&mut Text(&mut text));
        self.0.lock().unwrap().push(text);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
impl Warnings {
    /// One for the whole process: steps run on several threads.
    fn all() -> &'static Self {
        static ALL: std::sync::OnceLock<Warnings> = std::sync::OnceLock::new();
        ALL.get_or_init(|| {
            let all = Warnings::default();
            tracing::subscriber::set_global_default(all.clone()).unwrap();
            all
        })
    }
    fn of(&self, node: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|t| t.contains(node)).cloned().collect()
    }
}

/// Lets the clock show that more than a millisecond has passed.
fn long() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2) {
        std::thread::yield_now();
    }
}
/// Until a warning about the node is there: what it says must be said before the work ends.
fn until_warned(node: &str) {
    let start = Instant::now();
    while Warnings::all().of(node).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody noticed {node}");
        std::thread::yield_now();
    }
}

fn act(text: &str) {
    match text.split_once(' ') {
        Some(("wait", node)) => until_warned(node),
        _ if text == "long" => long(),
        _ => {}
    }
}

struct Slow;
impl Step for Slow {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, x: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        act(&x);
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Slow {
    const NAME: &'static str = "test.slow";
    type Config = NoConfig;
    fn schema() -> Schema {
        texts("slow").example("x: { use: test.slow, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Slow))
    }
}

/// The same as a node that offloads, and as a stage.
struct Offload;
impl Node for Offload {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("out")?;
        loop {
            match input.next().await {
                Event::Data(stamp, x) => {
                    let work = x.clone();
                    cx.offload(&stamp, move || act(&work)).await?;
                    out.send(&stamp, x).await;
                }
                Event::Fence(_) => {}
                Event::End(_) => return Ok(()),
            }
        }
    }
}
impl Make for Offload {
    const NAME: &'static str = "test.offload";
    type Config = NoConfig;
    fn schema() -> Schema {
        Slow::schema().example("x: { use: test.offload, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Offload))
    }
}

struct SlowStage;
impl Make for SlowStage {
    const NAME: &'static str = "test.slow-stage";
    type Config = NoConfig;
    fn schema() -> Schema {
        Slow::schema().shared().example("x: { use: test.slow-stage, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(OneByOne { act }))
    }
}

async fn graph(engine: &Engine, name: &str, node: &str) -> Graph {
    let yaml = format!(
        "
graph: {name}
session: {{ mode: turn }}
nodes:
  ask: {{ use: session.in, kind: text }}
  a: {{ use: test.pass, in: ask }}
  n: {{ {node}, in: a }}
  say: {{ use: session.out, in: n }}
"
    );
    let mut r = registry();
    r.add::<Slow>().unwrap().add::<Offload>().unwrap().add::<SlowStage>().unwrap();
    let file = GraphFile::parse("g.yaml", &yaml).unwrap();
    engine.start(file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0).await.unwrap()
}

async fn through(graph: &Graph, texts: &[&str]) -> NodeStats {
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    for t in texts {
        ask.send(text(t)).await.unwrap();
    }
    ask.end();
    let (got, end) = collect(&mut say).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(got, texts);
    s.wait().await.unwrap();
    s.stats().nodes.into_iter().find(|n| n.name == "n").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_steps_are_counted_wherever_they_run_and_reported_once() {
    let warnings = Warnings::all();
    let engine = Engine::builder().threads(2).build().unwrap();
    for (name, node, hint) in [
        ("on-task", "use: test.slow", "`place: pool`"),
        ("on-pool", "use: test.slow, place: pool", "smaller chunks"),
        ("on-thread", "use: test.slow, place: thread", "smaller chunks"),
        ("by-node", "use: test.offload", "`place: pool`"),
        ("in-stage", "use: test.slow-stage", "smaller chunks"),
    ] {
        let g = graph(&engine, name, &format!("{node}, step-budget: 1ms")).await;
        let n = through(&g, &["long", "long", "long"]).await;
        assert!(n.over_budget >= 3, "{name}: {n:?}");
        let said = warnings.of(&format!("{name}/n"));
        assert_eq!(said.len(), 1, "at most one in five seconds: {said:?}");
        for words in ["a step took", "its budget is 1ms", hint] {
            assert!(said[0].contains(words), "{said:?} says {words}");
        }
        // The figures of a node that keeps its budget, and of one that has none.
        for (i, keys) in ["step-budget: 1h", "lane: main"].iter().enumerate() {
            let g = graph(&engine, &format!("quiet-{name}-{i}"), &format!("{node}, {keys}")).await;
            assert_eq!(through(&g, &["long"]).await.over_budget, 0);
        }
    }
    assert_eq!(warnings.of("quiet"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_still_runs_is_reported() {
    let warnings = Warnings::all();
    let engine = Engine::builder().threads(2).build().unwrap();
    for (name, node) in [
        ("task-runs", "use: test.slow"),
        ("pool-runs", "use: test.slow, place: pool"),
        ("node-runs", "use: test.offload"),
        ("stage-runs", "use: test.slow-stage"),
    ] {
        let g = graph(&engine, name, &format!("{node}, step-budget: 1ms")).await;
        // The step ends only when it has been reported.
        let n = through(&g, &[&format!("wait {name}/n")]).await;
        let said = warnings.of(&format!("{name}/n"));
        assert!(n.over_budget >= 1, "{n:?}, {said:?}");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("a step still runs after"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fused_chain_watches_only_the_node_that_asks() {
    let _ = Warnings::all();
    let engine = Engine::new().unwrap();
    let g = graph(&engine, "chain", "use: test.slow, step-budget: 1ms").await;
    let mut s = g.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    ask.send(text("long")).await.unwrap();
    ask.end();
    collect(&mut say).await;
    let over: Vec<u64> = s.stats().nodes.iter().map(|n| n.over_budget).collect();
    assert_eq!(over, [0, 0, 1, 0]);
}
