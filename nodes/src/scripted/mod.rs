//! A conversation partner by script: the node `scripted.duplex` (`scripted_duplex`) answers as it is told, without a model,
//! and the same each time. Servers and clients are tested against it.
//!
//! [`Partner`] is the rule: what was heard, and what is said of it. It reads no clock; the node gives it its time.

mod config;
mod node;
mod script;

pub use config::{Answer, Level, Pieces, ScriptedConfig, Words};
pub use node::ScriptedDuplex;
pub use script::{Ask, Begun, Made, Partner, Speech};

/// Samples per second of what is heard, and of an echo.
pub const HEARD_RATE: u32 = 16_000;
/// Samples per second of the tone.
pub const TONE_RATE: u32 = 24_000;
