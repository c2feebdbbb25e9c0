//! When a producer hands frames on: the chunk policies of a port.
//!
//! A producer makes frames (codec frames, token rows) one by one or in bursts; a [`Chunker`] says when the frames held
//! become a chunk. Every policy has one rule in common: the next boundary is the smallest one above what has been
//! emitted, and when it is reached *all* new frames go out as one chunk. So no frame goes twice and none is lost,
//! whatever the burst. The machines count frames; they never hold payload, read no clock and cannot block.
//!
//! Beside the policies: the padding filter, the watermark of a producer that recomputes, the reference frames put before
//! chunk 0, and the check whether a ramp can be played without a gap.

mod adaptive;
mod chunker;
mod config;
mod continuity;
mod initial;
pub mod node;
mod padding;
mod port;
mod reference;
mod streams;
mod watermark;

pub use adaptive::{Adaptive, Headroom};
pub use chunker::{Chunker, Emission, StreamStart};
pub use config::{ChunkConfig, ChunkConfigError, ChunkWarning, Initial, Policy};
pub use continuity::{RampReport, RampStep, check_ramp, ramp_limit};
pub use initial::{Load, dynamic_initial, initial_for, largest_step};
pub use padding::PaddingFilter;
pub use port::{in_words, of_port, option_error};
pub use reference::{DEFAULT_REFERENCE_FRAMES, ReferenceFrames};
pub use streams::{Active, Streams};
pub use watermark::{Watermark, WatermarkError};
