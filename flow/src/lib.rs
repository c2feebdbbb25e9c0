//! Realtime voice and video AI as one backpressured dataflow graph.
#![warn(missing_docs)]

mod amount;
mod chunk;
mod file;
mod lane;
mod node;
mod plan;
mod registry;
mod schema;
mod time;
pub mod units;

pub use amount::Amount;
pub use chunk::{
    Buf, Chunk, DeviceMemory, Dtype, Frame, Item, Kind, KindError, Medium, Packet, Payload, Pcm, PcmError, PixelFormat,
    SampleType, Signal, Stamp, Tensor, Tokens, TurnEnd,
};
pub use file::{
    Code, Diagnostic, Diagnostics, Entry, Explained, GraphFile, Layer, Layers, Scalar, Severity, Source, Sources, Span,
    Tree, Value,
};
pub use lane::{Epoch, Epochs, Lane, MAX_LANES};
pub use node::{Body, BuildCx, BuildError, Emit, Step, StepError};
pub use plan::{
    CheckCx, Described, DescribedEdge, DescribedNode, EdgeClass, Memory, Mode, Place, Plan, PlanEdge, PlanNode, Policy,
    SessionPlan, Warnings,
};
pub use registry::{Configured, Make, OptionError, RESERVED, RegisterError, Registry};
pub use schema::{Client, Opt, Port, Schema, Weight};
pub use time::{MediaTime, Mono, TICKS_PER_SECOND};
