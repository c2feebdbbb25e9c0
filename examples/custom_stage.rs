//! A model that all sessions share: one copy of its weights, a slot per session, one unit of work at a time, so that a
//! long answer to one does not hold up a short answer to another.
//! `cargo run -p omni-flow-examples --example custom_stage`
//!
//! The "model" counts: asked for n, it gives 1 to n, one number per unit of work. A language model does the same with
//! tokens, and this is how `model.chat` is made.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Engine, Event, Graph, GraphFile, Kind, Make, MediaTime, Medium, Opt, Payload,
    Port, Registry, Schema, Stamp,
};

/// What all sessions share: the weights would be here.
struct Counter {
    effort: Duration,
}

/// What belongs to one session: a cache of keys and values would be here.
#[derive(Default)]
struct Counting {
    stamp: Stamp,
    next: u32,
    until: u32,
}

impl Stage for Counter {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = Counting;

    fn open(&self, _: SlotId) -> Result<Counting, StageError> {
        Ok(Counting::default())
    }
    fn slot_bytes(&self, _: &Counting) -> u64 {
        size_of::<Counting>() as u64
    }
    /// Takes the question. Cheap: no work is done here.
    fn accept(&self, slot: &mut Counting, stamp: &Stamp, input: Arc<str>) -> Result<(), StageError> {
        let until = input.trim().parse().map_err(StageError::failed)?;
        *slot = Counting { stamp: stamp.child(MediaTime::ZERO, MediaTime::ZERO), next: 1, until };
        Ok(())
    }
    fn ready(&self, slot: &Counting) -> bool {
        slot.next != 0
    }
    /// One number. The engine decides whose turn is next.
    fn unit(&self, member: &mut Member<Self>) -> Result<(), StageError> {
        // In place of a matrix product.
        std::thread::sleep(self.effort);
        let slot = member.slot();
        let (n, last) = (slot.next, slot.next >= slot.until);
        slot.next = if last { 0 } else { n + 1 };
        let stamp = slot.stamp.last(last);
        member.emit(stamp, n.to_string().into());
        Ok(())
    }
    /// The question is void: forget it.
    fn fence(&self, slot: &mut Counting) {
        *slot = Counting::default();
    }
}

/// The node type.
struct CountNode;

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Options {
    effort_ms: Option<u64>,
}

impl Make for CountNode {
    const NAME: &'static str = "custom.count";
    type Config = Options;
    fn schema() -> Schema {
        let text = Kind::of(Medium::Text);
        Schema::new("Counts, one number per unit of work")
            .input(Port::new("in", text.clone(), "how far to count"))
            .output(Port::new("out", text, "the numbers; the last one is marked"))
            .option(Opt::new("effort-ms", "integer", "2", "how long a number takes, ms"))
            .shared()
    }
    /// Runs once per graph: the weights are loaded here, whatever the number of sessions.
    fn build(options: &Options, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(Counter { effort: Duration::from_millis(options.effort_ms.unwrap_or(2)) }))
    }
}

const GRAPH: &str = "
graph: counting
session: { mode: turn, max-sessions: 2 }
nodes:
  ask:    { use: session.in, kind: text }
  count:  { use: custom.count, in: ask, slots: 2, effort-ms: 2 }
  answer: { use: session.out, in: count }
";

/// Asks one question in a session of its own; gives the numbers.
async fn ask(graph: &Graph, how_far: &str) -> anyhow::Result<Vec<String>> {
    let mut session = graph.open()?;
    let mut question = session.input("ask").expect("the graph has an `ask`");
    let mut answer = session.output("answer").expect("the graph has an `answer`");
    question.send(Arc::<str>::from(how_far)).await?;
    question.end();
    let mut numbers = Vec::new();
    while let Event::Data(_, Payload::Text(n)) = answer.next().await {
        numbers.push(n.to_string());
    }
    println!("asked to count to {how_far}: {} numbers, the last is {:?}", numbers.len(), numbers.last());
    session.wait().await?;
    Ok(numbers)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut registry = Registry::base();
    registry.add::<CountNode>()?;
    let (plan, _) = GraphFile::parse("counting.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
    // One compute thread, so that both sessions must share it.
    let graph = Engine::builder().threads(1).build()?.start(plan).await?;
    // The short answer is ready long before the long one, though it was asked second.
    let (long, short) = tokio::try_join!(ask(&graph, "300"), ask(&graph, "5"))?;
    assert_eq!((long.len(), short.len()), (300, 5));
    for (name, stats) in graph.stages() {
        println!("`{name}`: {stats:?}");
    }
    Ok(())
}
