//! Limits of the routes over HTTP.

use std::time::Duration;

/// Limits of all requests. The keys of graph files that set them are named beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub json_bytes: usize,
    /// Bytes of all bodies together that have arrived and are not done with.
    pub bodies_bytes: usize,
    /// The longest that a body may pause while it arrives.
    pub body_pause: Duration,
    /// The longest that one write may be blocked by a reader that does not read: `serve.write-stall`.
    pub write_stall: Duration,
    /// The longest wait for the next part of an answer: `OMNI_FLOW_ASYNC_OUTPUT_TIMEOUT`.
    pub output_wait: Duration,
    /// Characters of `instructions`: `serve.speech.max-instructions-chars`.
    pub instructions_chars: usize,
    /// Bytes of the text of one speech.
    pub input_bytes: usize,
    /// Seconds of audio of one clip that is made whole, so that no request holds more memory than that.
    pub clip_seconds: u32,
    /// Items of a batch: `serve.speech.batch-max-items`.
    pub batch_items: usize,
    /// Values of a speaker embedding.
    pub embedding: usize,
    /// Wait for the first message of a speech socket: `serve.speech-ws.first-message`.
    pub ws_first_message: Duration,
    /// Longest pause between two messages of it: `serve.speech-ws.idle`.
    pub ws_idle: Duration,
    /// Bytes of its configuration: `serve.speech-ws.max-config-bytes`.
    pub ws_config_bytes: usize,
    /// Bytes of any other message: `serve.speech-ws.max-message-bytes`.
    pub ws_message_bytes: usize,
    /// Bytes of an uploaded voice: `serve.voices.max-bytes`.
    pub voice_bytes: usize,
    /// Uploaded voices: `serve.voices.max-uploaded`.
    pub voices: usize,
    /// Whether a voice that is there is overwritten, or the upload refused: `serve.voices.policy`.
    pub voices_immutable: bool,
    /// Bytes of all uploaded voices together where there is no folder for them.
    pub voices_memory: usize,
    /// Bytes of a recording to transcribe: `serve.transcriptions.max-bytes`.
    pub transcription_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: 32 << 20,
            bodies_bytes: 256 << 20,
            body_pause: Duration::from_secs(30),
            write_stall: Duration::from_secs(30),
            output_wait: Duration::from_secs(600),
            instructions_chars: 500,
            input_bytes: 256 << 10,
            clip_seconds: 600,
            batch_items: 32,
            embedding: 8192,
            ws_first_message: Duration::from_secs(10),
            ws_idle: Duration::from_secs(30),
            ws_config_bytes: 4 << 20,
            ws_message_bytes: 128 << 10,
            voice_bytes: 10 << 20,
            voices: 1000,
            voices_immutable: false,
            voices_memory: 256 << 20,
            transcription_bytes: 25 << 20,
        }
    }
}
