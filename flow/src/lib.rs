//! Realtime voice and video AI as one backpressured dataflow graph.
#![warn(missing_docs)]

mod amount;
mod chunk;
mod lane;
mod time;

pub use amount::Amount;
pub use chunk::{
    Buf, Chunk, DeviceMemory, Dtype, Frame, Item, Kind, KindError, Medium, Packet, Payload, Pcm, PcmError, PixelFormat,
    SampleType, Signal, Stamp, Tensor, Tokens, TurnEnd,
};
pub use lane::{Epoch, Epochs, Lane, MAX_LANES};
pub use time::{MediaTime, Mono, TICKS_PER_SECOND};
