//! Audio nodes: sources, conversion, levels, mixing, framing and Opus.
//!
//! All work on the format that each chunk carries: a change of rate or channels in a stream ends the state that was and
//! begins a new one, never a guess. What they give is interleaved `f32`.

pub mod convert;
pub mod frame;
pub mod gain;
pub mod mix;
pub mod opus_decode;
pub mod opus_encode;
pub mod resample;
pub mod tone;

use std::time::Duration;

use omni_flow::{Buf, Kind, MediaTime, Medium, OptionError, Pcm, PcmError, SampleType};

/// Audio with what is known of its format; samples are `f32`.
pub(crate) fn f32_audio(rate: Option<u32>, channels: Option<u16>) -> Kind {
    Kind { rate, channels, sample: Some(SampleType::F32), ..Kind::of(Medium::Audio) }
}

/// Audio of any format.
pub(crate) fn any_audio() -> Kind {
    Kind::of(Medium::Audio)
}

pub(crate) fn pcm(rate: u32, channels: u16, samples: Vec<f32>) -> Result<Pcm, PcmError> {
    Pcm::new(rate, channels, SampleType::F32, Buf::from_f32(samples))
}

pub(crate) fn check_rate(rate: u32) -> Result<(), OptionError> {
    if (1_000..=768_000).contains(&rate) {
        return Ok(());
    }
    Err(OptionError::new("rate", format!("is {rate} Hz, outside 1000 to 768000"), "write for instance `rate: 16000`"))
}

pub(crate) fn check_channels(channels: u16) -> Result<(), OptionError> {
    if (1..=32).contains(&channels) {
        return Ok(());
    }
    Err(OptionError::new("channels", format!("is {channels}, outside 1 to 32"), "write `channels: 1` or `channels: 2`"))
}

pub(crate) fn check_db(option: &str, db: f64) -> Result<(), OptionError> {
    if (-120.0..=60.0).contains(&db) {
        return Ok(());
    }
    Err(OptionError::new(option, format!("is {db} dB, outside -120 to 60"), "write for instance `-6`"))
}

/// Samples of a frame of `span` at `rate` Hz; refused unless between 1 ms and 1 s.
pub(crate) fn check_frame(option: &str, span: Duration) -> Result<(), OptionError> {
    if (Duration::from_millis(1)..=Duration::from_secs(1)).contains(&span) {
        return Ok(());
    }
    Err(OptionError::new(option, format!("is {span:?}, outside 1ms to 1s"), "write for instance `20ms`"))
}

/// Samples per channel in `span`, at least one.
pub(crate) fn samples_in(span: Duration, rate: u32) -> usize {
    MediaTime::from_duration(span).to_samples(rate).max(1) as usize
}

/// Whether a chunk at `pts` does not follow what ended at `expected`: more than a millisecond off.
pub(crate) fn jumps(expected: MediaTime, pts: MediaTime) -> bool {
    (pts - expected).ticks().abs() > MediaTime::from_millis(1).ticks()
}
