//! PCM as bytes: sample formats, channel layouts, and the splitter that turns pieces of any length into whole frames.
//!
//! All formats are little-endian. Samples in work are `f32`, interleaved, full scale [-1, 1]; the scale of each format is
//! the one of `omni_flow_kernels`. Nothing here resamples or guesses: a [`PcmSpec`] is stated, not found out.

mod format;
mod layout;
mod spec;
mod splitter;

pub use format::{SampleFormat, UnknownFormat};
pub use layout::Layout;
pub use spec::{MAX_CHANNELS, MAX_RATE, MIN_RATE, PcmSpec, SpecError};
pub use splitter::FrameSplitter;
