//! Realtime voice and video AI as one backpressured dataflow graph.
//!
//! This crate is the engine, and all that an embedder needs: it knows no codec, no model and no network. A program registers
//! node types, reads a graph from a YAML file, starts it once, and opens a [`Session`] for each client.
//!
//! # The words
//!
//! - A **graph** is a set of nodes joined by bounded edges, written as text ([`GraphFile`]) and checked whole before anything
//!   starts: all mistakes at once, with their places ([`Diagnostics`]). What passed is a [`Plan`].
//! - A **chunk** is the only thing that moves: a [`Payload`] (audio, video, text, tokens, tensors, packets, signals, values of
//!   your own) under a [`Stamp`] (position, length, when the input arrived that it answers). Chunks are cheap to clone.
//! - **Credit** is the only thing that lets a chunk move. An edge is bounded in items, bytes and media time, so a slow node
//!   slows who is before it, up to the caller of [`Input::send`]. Nothing is dropped unless the graph says so, and then it is
//!   counted.
//! - A **lane** is a named set of nodes whose output belongs to a turn. A **fence** ([`Session::fence`], [`Ctx::fence`], or
//!   `fences:` in a file) raises its [`Epoch`]: all that answered the old turn is void at that instant, wherever it is, and
//!   each consumer sees [`Event::Fence`] before the first chunk of the new one.
//! - Every stream **ends** once, with [`Terminal::End`] or the error of the node that failed ([`RunError`]).
//!
//! # Three ways to write a node
//!
//! | | for | where it runs |
//! |---|---|---|
//! | [`Step`] | one chunk in, some out, synchronous, plain fields as state | on a task, fused with its neighbours, or on the compute pool |
//! | [`Node`] | two things to wait for, a timer, a socket: a loop of its own over [`In`] and [`Out`] | on a task |
//! | [`Stage`](shared::Stage) | a model: one copy of the weights for all sessions, a slot for each, one unit of work at a time | on the compute pool, who is about to run out of audio first |
//!
//! A [`Body`] says which; [`Make`] gives it a name, a [`Schema`] (ports, options) and makes one per session.
//!
//! # A first node, a graph, a session
//!
//! ```
//! use std::sync::Arc;
//!
//! use omni_flow::{Body, BuildCx, BuildError, Emit, Kind, Make, Medium, Opt, Port, Schema, Stamp, Step, StepError};
//!
//! /// The node itself: one text in, one text out. It knows no engine and no thread.
//! struct Greet {
//!     word: String,
//! }
//!
//! impl Step for Greet {
//!     type In = Arc<str>;
//!     type Out = Arc<str>;
//!     fn step(&mut self, stamp: &Stamp, name: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
//!         out.push(*stamp, format!("{}, {name}!", self.word).into());
//!         Ok(())
//!     }
//! }
//!
//! /// Its options, as they stand in a graph file.
//! #[derive(serde::Deserialize)]
//! struct Options {
//!     word: Option<String>,
//! }
//!
//! /// Its type: a name, what it takes and gives, how one is made.
//! impl Make for Greet {
//!     const NAME: &'static str = "hello.greet";
//!     type Config = Options;
//!     fn schema() -> Schema {
//!         let text = Kind::of(Medium::Text);
//!         Schema::new("Greets by name")
//!             .input(Port::new("in", text.clone(), "a name"))
//!             .output(Port::new("out", text, "a greeting"))
//!             .option(Opt::new("word", "text", "Hello", "how to greet"))
//!     }
//!     fn build(options: &Options, _: &BuildCx) -> Result<Body, BuildError> {
//!         let word = options.word.clone().unwrap_or_else(|| "Hello".into());
//!         Ok(Body::step(move || Greet { word: word.clone() }))
//!     }
//! }
//!
//! const GRAPH: &str = "
//! graph: hello
//! session: { mode: turn }
//! nodes:
//!   name:   { use: session.in, kind: text }
//!   greet:  { use: hello.greet, word: Good morning, in: name }
//!   answer: { use: session.out, in: greet }
//! ";
//!
//! use omni_flow::{CheckCx, Engine, Event, GraphFile, Payload, Registry};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut registry = Registry::base();
//!     registry.add::<Greet>()?;
//!     // A typo in the graph ends here, with its line and a hint.
//!     let (plan, _warnings) = GraphFile::parse("hello.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
//!     let graph = Engine::new()?.start(plan).await?;
//!
//!     let mut session = graph.open()?;
//!     let mut name = session.input("name").ok_or("no input `name`")?;
//!     let mut answer = session.output("answer").ok_or("no output `answer`")?;
//!     for who in ["Ada", "Grace"] {
//!         name.send(Arc::<str>::from(who)).await?;
//!     }
//!     name.end();
//!     let mut greetings = Vec::new();
//!     while let Event::Data(_, Payload::Text(text)) = answer.next().await {
//!         greetings.push(text.to_string());
//!     }
//!     assert_eq!(greetings, ["Good morning, Ada!", "Good morning, Grace!"]);
//!     session.wait().await?;
//!     Ok(())
//! }
//! ```
//!
//! # Where to go on
//!
//! - [`shared`]: models for many sessions, their slots, and what runs next; [`pool`] is the order alone.
//! - [`sim`] and [`Clock`]: tests in virtual time, where the same seed gives the same run. Nothing but the clock reads time.
//! - [`carrier`] and [`link`]: edges to other processes, as a trait and as pure state.
//! - [`SessionStats`], [`GraphSnapshot`] and [`METRICS`]: what waited, what was dropped and why.
//! - [`Layers`]: what a command line and the environment may put above a graph file.
//! - The crate `omni-flow-nodes` has the nodes for audio, speech and models; the programs in `examples/` are short, and
//!   `ARCHITECTURE.md` says why things are as they are.
#![warn(missing_docs)]

mod amount;
pub mod carrier;
mod chunk;
mod clock;
mod credit;
mod edge;
mod engine;
mod error;
mod file;
mod lane;
mod lanes;
pub mod link;
mod metrics;
mod node;
mod owner;
mod plan;
mod playback;
pub mod pool;
mod port;
mod probe;
mod registry;
mod schema;
mod session;
pub mod shared;
pub mod sim;
mod sync;
mod time;
pub mod units;

pub use amount::Amount;
pub use chunk::{
    Buf, Chunk, DeviceMemory, Dtype, Frame, Item, Kind, KindError, Medium, Packet, Payload, Pcm, PcmError, PixelFormat,
    SampleType, Signal, Stamp, Tensor, Tokens, TurnEnd,
};
pub use clock::Clock;
pub use credit::Window;
pub use edge::{EdgeCounts, EdgeStats, Terminal};
pub use engine::{Engine, EngineBuilder, Graph, StartError};
pub use error::{ErrorKind, RunError};
pub use file::{
    Code, Diagnostic, Diagnostics, Entry, Explained, GraphFile, Layer, Layers, Scalar, SecretError, Severity, Source,
    Sources, Span, Tree, Value,
};
pub use lane::{Epoch, Epochs, Lane, MAX_LANES};
pub use metrics::{EdgeSnapshot, Family, GraphSnapshot, LIST as METRICS, MetricType, NodeSnapshot, describe_metrics};
pub use node::{Body, BuildCx, BuildError, Ctx, Emit, Env, Node, NodeError, PortError, RestartPolicy, Step, StepError};
pub use plan::{
    CheckCx, Described, DescribedEdge, DescribedNode, EdgeClass, Memory, Mode, Place, Plan, PlanEdge, PlanNode, Policy,
    SessionPlan, Warnings,
};
pub use playback::Playback;
pub use port::{Event, In, Out, Permit, Sent};
pub use probe::NodeStats;
pub use registry::{ChunkNotes, Configured, Make, OptionError, RESERVED, RegisterError, Registry};
pub use schema::{Client, Opt, Port, Schema, Weight};
pub use session::{
    ABORT_TIMEOUT, Input, InputError, OpenError, Session, SessionHandle, SessionIn, SessionOut, SessionStats,
};
pub use time::{MediaTime, Mono, TICKS_PER_SECOND};
