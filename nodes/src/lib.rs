//! Placeholder head; see ARCHITECTURE.md.

pub mod chunking;
pub mod turn;
