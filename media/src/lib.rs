//! Placeholder head; see ARCHITECTURE.md.

pub mod mel;
pub mod ogg_opus;
pub mod opus;
pub mod resample;
