//! The models as nodes: thin wrappers that load a runtime once and give each session a slot of it.

#[cfg(feature = "chat")]
mod chat;
#[cfg(feature = "piper")]
mod code2wav;
mod files;
#[cfg(feature = "chat")]
mod prompts;
#[cfg(feature = "chat")]
mod remote;
#[cfg(feature = "piper")]
mod talker;
#[cfg(feature = "chat")]
mod turns;
#[cfg(feature = "whisper")]
mod whisper;

#[cfg(feature = "chat")]
pub use chat::ModelChat;
#[cfg(feature = "piper")]
pub use code2wav::ModelCode2wav;
pub use files::fetch;
#[cfg(any(feature = "silero", feature = "whisper", feature = "chat", feature = "piper"))]
pub(crate) use files::look;
#[cfg(feature = "silero")]
pub(crate) use files::onnx;
#[cfg(feature = "piper")]
pub use talker::ModelTalker;
#[cfg(feature = "chat")]
pub use turns::ChatTurns;
#[cfg(feature = "whisper")]
pub use whisper::ModelWhisper;
