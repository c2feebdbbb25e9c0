//! What a session was asked to be.
//!
//! [`SessionConfig::open`] and [`SessionConfig::update`] read a client's object, all or nothing;
//! [`SessionConfig::to_json`] shows the effective values. Both spellings of a field are read, and both are shown.

pub mod capability;
pub(crate) mod echo;
pub mod facts;
pub mod format;
pub mod modality;
pub mod overlap;
mod read;
mod session;
pub mod turn;

pub use session::{Defaults, Phase, SessionConfig};

#[cfg(test)]
mod tests;
