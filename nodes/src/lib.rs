//! The node library of omni-flow: audio, speech, text, utilities and models.
//!
//! [`registry::registry`] gives all node types by name; `omni-flow nodes` explains each. A program with types of its own
//! adds these to them with [`registry::add`].
//!
//! | module | node types | what is in it |
//! |---|---|---|
//! | [`audio`] | `audio.*` | tone, gain, mix, frames, resampling, Opus |
//! | [`speech`] | `speech.*` | detection, turns, speculation and playout, as nodes |
//! | [`turn`], [`playout`], [`frame`] | | their rules: when a turn ends, when audio is due, how streams are cut and mixed |
//! | [`scripted`] | `scripted.duplex` | a partner that answers as it is told, for tests |
//! | [`text`] | `text.*` | sentences out of a stream of text, and text as it is spoken |
//! | [`chunking`] | `util.chunk` | in what sizes one model feeds the next |
//! | [`util`], [`files`] | `util.*`, `file.*` | branches, gates, delays, recordings; files in and out |
//! | [`models`] | `model.*`, `chat.turns` | recognition, chat, voices, as nodes on shared stages; the conversation before a chat model |
//! | `silero`, `whisper`, `chat`, `piper` | | the runtimes behind them, one feature each |
//! | [`catalogue`] | | models by name, fetched and verified |
//!
//! Model runtimes and rules here know nothing of the engine: plain structs, one unit of work per call, no clock. The
//! nodes that put them into a graph are thin.
//!
//! ```
//! use omni_flow::{CheckCx, Engine, Event, GraphFile, Payload};
//!
//! const GRAPH: &str = "
//! graph: low-tone
//! nodes:
//!   tone: { use: audio.tone, freq: 440, duration: 100ms, rate: 24000, pace: false }
//!   low:  { use: audio.resample, rate: 8000, in: tone }
//!   ear:  { use: session.out, in: low }
//! ";
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let registry = omni_flow_nodes::registry::registry()?;
//!     let (plan, _) = GraphFile::parse("low-tone.yaml", GRAPH)?.check(&registry, &CheckCx::default())?;
//!     let mut session = Engine::new()?.start(plan).await?.open()?;
//!     let mut ear = session.output("ear").ok_or("no output `ear`")?;
//!     let mut samples = 0;
//!     while let Event::Data(_, Payload::Audio(audio)) = ear.next().await {
//!         assert_eq!(audio.rate(), 8000);
//!         samples += audio.frames();
//!     }
//!     assert_eq!(samples, 800);
//!     session.wait().await?;
//!     Ok(())
//! }
//! ```
#![warn(missing_docs)]

pub mod audio;
pub mod catalogue;
#[cfg(feature = "chat")]
pub mod chat;
pub mod chunking;
pub mod files;
pub mod frame;
pub mod models;
#[cfg(feature = "piper")]
pub mod piper;
pub mod playout;
pub mod registry;
pub mod scripted;
#[cfg(feature = "silero")]
pub mod silero;
pub mod speech;
#[cfg(test)]
mod testing;
pub mod text;
pub mod turn;
pub mod util;
#[cfg(feature = "whisper")]
pub mod whisper;
