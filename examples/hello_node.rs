//! A first own node: it greets. `cargo run -p omni-flow-examples --example hello_node`
use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Emit, Engine, Event, GraphFile, Kind, Make, Medium, Opt, Payload, Port,
    Registry, Schema, Stamp, Step, StepError,
};

/// The node itself: one text in, one text out. It knows no engine and no thread.
struct Greet {
    word: String,
}

impl Step for Greet {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, name: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        out.push(*stamp, format!("{}, {name}!", self.word).into());
        Ok(())
    }
}

/// Its options, as they stand in a graph file.
#[derive(serde::Deserialize)]
struct Options {
    word: Option<String>,
}

/// Its type: a name, what it takes and gives, how one is made.
impl Make for Greet {
    const NAME: &'static str = "hello.greet";
    type Config = Options;
    fn schema() -> Schema {
        let text = Kind::of(Medium::Text);
        Schema::new("Greets by name")
            .input(Port::new("in", text.clone(), "a name"))
            .output(Port::new("out", text, "a greeting"))
            .option(Opt::new("word", "text", "Hello", "how to greet"))
    }
    fn build(options: &Options, _: &BuildCx) -> Result<Body, BuildError> {
        let word = options.word.clone().unwrap_or_else(|| "Hello".into());
        Ok(Body::step(move || Greet { word: word.clone() }))
    }
}

const GRAPH: &str = "
graph: hello
session: { mode: turn }
nodes:
  name:   { use: session.in, kind: text }
  greet:  { use: hello.greet, word: Good morning, in: name }
  answer: { use: session.out, in: greet }
";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut registry = Registry::base();
    registry.add::<Greet>()?;
    // A typo in the graph would be shown here with its line and a hint.
    let (plan, _) = GraphFile::parse("hello.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
    let graph = Engine::new()?.start(plan).await?;

    let mut session = graph.open()?;
    let (mut name, mut answer) = (session.input("name").unwrap(), session.output("answer").unwrap());
    for who in ["Ada", "Grace"] {
        name.send(Arc::<str>::from(who)).await?;
    }
    name.end();
    while let Event::Data(_, Payload::Text(text)) = answer.next().await {
        println!("{text}");
    }
    Ok(session.wait().await?)
}
