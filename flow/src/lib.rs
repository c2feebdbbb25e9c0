//! Realtime voice and video AI as one backpressured dataflow graph.
#![warn(missing_docs)]

mod amount;
mod chunk;
mod file;
mod lane;
mod node;
mod plan;
pub mod pool;
mod registry;
mod schema;
pub mod shared;
mod sync;
mod time;

pub use amount::Amount;
pub use chunk::{
    Buf, Chunk, DeviceMemory, Dtype, Frame, Item, Kind, KindError, Medium, Packet, Payload, Pcm, PcmError, PixelFormat,
    SampleType, Signal, Stamp, Tensor, Tokens, TurnEnd,
};
pub use lane::{Epoch, Epochs, Lane, MAX_LANES};
pub use node::{Body, BuildCx, BuildError, Emit, Step, StepError};
pub use plan::{EdgeClass, Mode, Place, Plan, PlanEdge, PlanNode, Policy, SessionPlan};
pub use registry::{Configured, Make, OptionError, Registry};
pub use schema::{Client, Opt, Port, Schema, Weight};
pub use time::{MediaTime, Mono, TICKS_PER_SECOND};
