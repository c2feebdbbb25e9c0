//! Placeholder head; see ARCHITECTURE.md.

#[cfg(feature = "chat")]
pub mod chat;
