//! Realtime voice and video AI as one backpressured dataflow graph.
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
    Code, Diagnostic, Diagnostics, Entry, Explained, GraphFile, Layer, Layers, Scalar, Severity, Source, Sources, Span,
    Tree, Value,
};
pub use lane::{Epoch, Epochs, Lane, MAX_LANES};
pub use metrics::{Family, LIST as METRICS, MetricType, describe_metrics};
pub use node::{Body, BuildCx, BuildError, Ctx, Emit, Env, Node, NodeError, PortError, Step, StepError};
pub use plan::{
    CheckCx, Described, DescribedEdge, DescribedNode, EdgeClass, Memory, Mode, Place, Plan, PlanEdge, PlanNode, Policy,
    SessionPlan, Warnings,
};
pub use playback::Playback;
pub use port::{Event, In, Out, Permit, Sent};
pub use probe::NodeStats;
pub use registry::{Configured, Make, OptionError, RESERVED, RegisterError, Registry};
pub use schema::{Client, Opt, Port, Schema, Weight};
pub use session::{
    ABORT_TIMEOUT, Input, InputError, OpenError, Session, SessionHandle, SessionIn, SessionOut, SessionStats,
};
pub use time::{MediaTime, Mono, TICKS_PER_SECOND};
