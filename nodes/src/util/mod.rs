//! Nodes that look at no payload, or only keep it: branches, gates, delays, taps, recordings.

pub mod delay;
pub mod gate;
pub mod record;
pub mod recording;
pub mod replay;
pub(crate) mod select;
pub mod tap;
pub mod tee;

use omni_flow::{Kind, Medium};

pub(crate) fn any() -> Kind {
    Kind::of(Medium::Any)
}
