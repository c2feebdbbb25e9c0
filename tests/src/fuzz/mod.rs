//! Bodies of the fuzz targets: one per parser of bytes from outside.
//!
//! A body takes any bytes, panics if the parser breaks a promise (a panic of its own, a result that depends on how the
//! bytes were cut, more out than came in), and returns else. It reads no file and no clock, and is deterministic.

mod media;
mod models;
mod realtime;
mod text;

pub use media::{audio_file, ogg_opus, opus_packet, samples, wav};
pub use models::{ct2, gguf, onnx};
pub use realtime::{client_audio, client_event};
pub use text::{catalogue, graph, recording, sse, voice_config};

/// A target: bytes to nothing, or a panic.
pub type Body = fn(&[u8]);

/// All targets by name, in the order of the alphabet. Each is a binary of `fuzz/` and a test of `tests/tests/short_fuzz`.
pub const ALL: [(&str, Body); 15] = [
    ("audio_file", audio_file),
    ("catalogue", catalogue),
    ("client_audio", client_audio),
    ("client_event", client_event),
    ("ct2", ct2),
    ("gguf", gguf),
    ("graph", graph),
    ("ogg_opus", ogg_opus),
    ("onnx", onnx),
    ("opus_packet", opus_packet),
    ("recording", recording),
    ("samples", samples),
    ("sse", sse),
    ("voice_config", voice_config),
    ("wav", wav),
];
