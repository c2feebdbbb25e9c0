//! Audio cut to exact frames, and several streams added on one time line.
//!
//! [`Framer`] makes frames of exactly N samples out of chunks of any size; [`Mixer`] adds streams by their positions
//! and treats one that is late as silence. Positions are exact sample counts; nothing is resampled and no clock is read.

mod framer;
mod mixer;

pub use framer::{Frame, Framer, FramerError, Tail};
pub use mixer::{MixError, Mixed, Mixer, MixerConfig};
