//! What a speech cost. Graphs of text to speech count no tokens, so these are counted from what goes in and comes out: a
//! word or a mark of the text is one, and so are 20 ms of audio.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::request::Speak;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::api) struct Usage {
    pub(in crate::api) text: u64,
    pub(in crate::api) audio: u64,
    pub(in crate::api) output: u64,
}

/// Words and marks of a text.
fn tokens(text: &str) -> u64 {
    let (mut count, mut inside) = (0, false);
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '\'';
        if !c.is_whitespace() && (!word || !inside) {
            count += 1;
        }
        inside = word;
    }
    count
}

impl Usage {
    pub(in crate::api) fn of(speak: &Speak, frames: usize, rate: u32) -> Self {
        let text = tokens(&speak.input) + speak.instructions.as_deref().map_or(0, tokens);
        let output = (frames as u64).div_ceil(u64::from(rate / 50).max(1));
        Self { text, audio: 0, output }
    }
    pub(in crate::api) fn json(self) -> Value {
        let input = self.text + self.audio;
        json!({"input_tokens": input, "output_tokens": self.output, "total_tokens": input + self.output,
            "input_token_details": {"text_tokens": self.text, "audio_tokens": self.audio}})
    }
    /// Under both names, that of the reference and ours.
    pub(in crate::api) fn headers(self, headers: &mut HeaderMap) {
        let input = self.text + self.audio;
        let named = [
            ("input-tokens", input),
            ("output-tokens", self.output),
            ("total-tokens", input + self.output),
            ("input-text-tokens", self.text),
            ("input-audio-tokens", self.audio),
        ];
        for prefix in ["x-vllm-omni-", "x-omni-flow-"] {
            for (name, count) in named {
                if let Ok(name) = HeaderName::try_from(format!("{prefix}{name}")) {
                    headers.insert(name, HeaderValue::from(count));
                }
            }
        }
    }
}
