//! The audio of an answer: one format throughout, at the rate that was asked for, as bytes.

use axum::http::StatusCode;
use omni_flow::{Buf, Pcm, PcmError, SampleType};
use omni_flow_media::encode::{ClipError, ClipFormat};
use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
use omni_flow_media::resample::{Quality, Resampler};
use omni_flow_media::wav::WavPipe;

use super::run::Fail;
use crate::door::HttpError;

/// The format of a name.
///
/// # Errors
/// 400 that names those that there are.
pub(super) fn format(name: &str, param: &str) -> Result<ClipFormat, HttpError> {
    let name = if name == "pcm16" { "pcm" } else { name };
    ClipFormat::named(name).filter(|f| f.built_in()).ok_or_else(|| {
        let shown: String = name.chars().take(32).collect();
        let known: Vec<_> = ClipFormat::BUILT_IN.iter().map(|f| f.name()).collect();
        HttpError::bad(format!("`{shown}` is not available; use one of {}", known.join(", "))).about(param)
    })
}

/// A format that a stream can have.
///
/// # Errors
/// 400.
pub(super) fn streams(format: ClipFormat, param: &str) -> Result<(), HttpError> {
    match format {
        ClipFormat::Pcm | ClipFormat::Wav => Ok(()),
        other => {
            let message = format!("`{}` cannot be streamed; use pcm or wav", other.name());
            Err(HttpError::bad(message).about(param))
        }
    }
}

/// A clip of this rate can be written.
///
/// # Errors
/// 400.
pub(super) fn takes(format: ClipFormat, rate: u32) -> Result<(), HttpError> {
    format.check(rate, 1).map_err(|e| HttpError::bad(format!("{e}; choose another `sample_rate`")).about("sample_rate"))
}

/// Brings the audio of a graph to one rate.
pub(super) struct Shape {
    want: Option<u32>,
    from: Option<(u32, u16)>,
    resampler: Option<Resampler>,
}

impl Shape {
    /// To `want` Hz, or as the graph makes it.
    pub(super) fn new(want: Option<u32>) -> Self {
        Self { want, from: None, resampler: None }
    }
    /// Rate and channels of what comes out, once the first audio has gone in.
    pub(super) fn spec(&self) -> Option<(u32, u16)> {
        self.from.map(|(rate, channels)| (self.want.unwrap_or(rate), channels))
    }
    /// Appends what `pcm` becomes.
    ///
    /// # Errors
    /// [`Fail::Odd`]: its format is not that of the audio before, or cannot be brought to the rate.
    pub(super) fn push(&mut self, pcm: &Pcm, out: &mut Vec<f32>) -> Result<(), Fail> {
        let format = (pcm.rate(), pcm.channels());
        if self.from.is_some_and(|f| f != format) {
            return Err(Fail::Odd("the format of the audio changed on its way".to_owned()));
        }
        if self.from.replace(format).is_none()
            && let Some(want) = self.want.filter(|w| *w != pcm.rate())
        {
            let made = Resampler::new(pcm.rate(), want, usize::from(pcm.channels()), Quality::Best);
            self.resampler = Some(made.map_err(|e| {
                Fail::Refused(HttpError::bad(format!("no audio of {want} Hz: {e}")).about("sample_rate"))
            })?);
        }
        match &mut self.resampler {
            Some(r) => drop(r.push(&pcm.f32(), out)),
            None => out.extend_from_slice(&pcm.f32()),
        }
        Ok(())
    }
    /// Appends what is left.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        if let Some(r) = &mut self.resampler {
            r.flush(out);
        }
    }
}

/// Samples as a graph takes them.
///
/// # Errors
/// A rate or channel count that is none.
pub(super) fn pcm(samples: &[f32], rate: u32, channels: u16, sample: SampleType) -> Result<Pcm, PcmError> {
    let buf = match sample {
        SampleType::F32 => Buf::from_f32(samples.to_vec()),
        SampleType::I16 => {
            Buf::from_i16(samples.iter().map(|s| (s * 32768.0).round().clamp(-32768.0, 32767.0) as i16).collect())
        }
    };
    Pcm::new(rate, channels, sample, buf)
}

/// 16-bit samples.
pub(super) fn bytes(samples: &[f32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(samples.len() * 2);
    SampleFormat::I16.encode(samples, &mut out);
    out
}

/// What goes before the samples of a stream.
pub(super) fn head(format: ClipFormat, rate: u32, channels: u16) -> Vec<u8> {
    match (format, PcmSpec::new(SampleFormat::I16, rate, Layout::of(channels))) {
        (ClipFormat::Wav, Ok(spec)) => WavPipe::<Vec<u8>>::header(&spec),
        _ => Vec::new(),
    }
}

/// The media type of a stream.
pub(super) fn media_type(format: ClipFormat, rate: u32, channels: u16) -> String {
    match format {
        ClipFormat::Pcm => format!("audio/pcm; rate={rate}; channels={channels}"),
        other => other.media_type().to_owned(),
    }
}

/// A whole clip at a speed, as a file. On a thread for such work.
pub(super) async fn clip(
    format: ClipFormat,
    samples: Vec<f32>,
    (rate, channels): (u32, u16),
    speed: f64,
) -> Result<(Vec<u8>, usize), Fail> {
    let work = tokio::task::spawn_blocking(move || {
        let channels = usize::from(channels);
        let samples =
            if speed == 1.0 { samples } else { omni_flow_media::stretch::stretch(&samples, channels, rate, speed) };
        (format.encode(&samples, rate, channels), samples.len() / channels.max(1))
    });
    match work.await {
        Ok((Ok(file), frames)) => Ok((file, frames)),
        Ok((Err(e @ (ClipError::Rate { .. } | ClipError::Channels { .. } | ClipError::Spec(_))), _)) => {
            let message = format!("{e}; choose another format or `sample_rate`");
            Err(Fail::Refused(HttpError::new(StatusCode::BAD_REQUEST, message).about("response_format")))
        }
        Ok((Err(e), _)) => Err(Fail::Odd(e.to_string())),
        Err(_) => Err(Fail::Odd("the encoder panicked".to_owned())),
    }
}
