//! Placeholder head; see ARCHITECTURE.md.

#[cfg(feature = "piper")]
pub mod piper;
pub mod text;
