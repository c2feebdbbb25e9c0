//! Placeholder head; see ARCHITECTURE.md.

pub mod chunking;
pub mod frame;
pub mod playout;
pub mod turn;
