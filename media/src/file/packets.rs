//! Files that symphonia reads, a packet at a time; it decodes them too, except Opus, which is ours.
//!
//! Packets that cannot be decoded are left out and counted; a file that ends inside a packet ends there. A panic inside
//! symphonia is caught and becomes the error of this file: its parsers are not ours, and no input may end the process.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;

use super::opus_track::OpusTrack;
use super::{AudioFileError, Input, checked};
use crate::opus::TICKS;
use crate::pcm::PcmSpec;

pub(super) struct Packets {
    format: Box<dyn FormatReader>,
    decoder: Codec,
    track: u32,
    spec: PcmSpec,
    total: Option<u64>,
    /// Samples of the first packet, decoded when the file was opened.
    first: Vec<f32>,
    scratch: Vec<f32>,
    frames: u64,
    damaged: u64,
    ended: bool,
}

enum Codec {
    Symphonia(Box<dyn AudioDecoder>),
    Opus(Box<OpusTrack>),
}

/// One attempt to get samples.
enum Got {
    Samples(PcmSpec),
    Nothing,
    End,
}

impl Packets {
    /// Finds the format and the audio track, and decodes up to the first samples, which tell rate and channels for sure.
    pub(super) fn new(input: Input, name: &str) -> Result<Self, AudioFileError> {
        let mut packets = guarded(name, || open(input, name))?;
        loop {
            match packets.advance(name)? {
                Got::Samples(spec) => {
                    packets.spec = spec;
                    packets.first = std::mem::take(&mut packets.scratch);
                    return Ok(packets);
                }
                Got::Nothing => {}
                Got::End => {
                    let what = "there is no audio in it that can be decoded".to_owned();
                    return Err(AudioFileError::Damaged { name: name.to_owned(), what });
                }
            }
        }
    }

    pub(super) fn spec(&self) -> PcmSpec {
        self.spec
    }

    pub(super) fn total_frames(&self) -> Option<u64> {
        if self.ended { Some(self.frames) } else { self.total }
    }

    /// Frames that the container states and that were not there, at the end. Less than a tenth of a second is no sign of
    /// a cut: encoders pad, and some containers count in coarse units.
    pub(super) fn missing_frames(&self) -> u64 {
        let missing = self.total.filter(|_| self.ended).map_or(0, |total| total.saturating_sub(self.frames));
        if missing > u64::from(self.spec.rate()) / 10 { missing } else { 0 }
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged
    }

    pub(super) fn next(&mut self, name: &str, out: &mut Vec<f32>) -> Result<usize, AudioFileError> {
        if self.first.is_empty() {
            loop {
                match self.advance(name)? {
                    Got::Samples(then) if then != self.spec => {
                        self.ended = true;
                        let (name, first) = (name.to_owned(), self.spec);
                        return Err(AudioFileError::FormatChanged { name, first, then });
                    }
                    Got::Samples(_) => break,
                    Got::Nothing => {}
                    Got::End => return Ok(0),
                }
            }
            out.extend_from_slice(&self.scratch);
            Ok(self.count(self.scratch.len()))
        } else {
            let first = std::mem::take(&mut self.first);
            out.extend_from_slice(&first);
            Ok(self.count(first.len()))
        }
    }

    fn count(&mut self, samples: usize) -> usize {
        let frames = samples / self.spec.channels();
        self.frames += frames as u64;
        frames
    }

    /// Takes one packet and decodes it into `scratch`.
    fn advance(&mut self, name: &str) -> Result<Got, AudioFileError> {
        if self.ended {
            return Ok(Got::End);
        }
        let got = guarded(name, AssertUnwindSafe(|| self.step(name)));
        self.ended = matches!(got, Ok(Got::End) | Err(_));
        got
    }

    fn step(&mut self, name: &str) -> Result<Got, AudioFileError> {
        let packet = match self.format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => return Ok(Got::End),
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Got::End),
            Err(Error::ResetRequired) => {
                (self.decoder, self.track, _) = track(self.format.as_ref(), name)?;
                return Ok(Got::Nothing);
            }
            Err(error) => return Err(typed(error, name)),
        };
        if packet.track_id != self.track {
            return Ok(Got::Nothing);
        }
        let decoder = match &mut self.decoder {
            Codec::Symphonia(decoder) => decoder,
            Codec::Opus(opus) => {
                let spec = checked(name, TICKS, opus.channels())?;
                if opus.decode(&packet.data, packet.trim_end.get(), &mut self.scratch).is_err() {
                    self.damaged += 1;
                    return Ok(Got::Nothing);
                }
                return Ok(if self.scratch.is_empty() { Got::Nothing } else { Got::Samples(spec) });
            }
        };
        match decoder.decode(&packet) {
            Ok(buffer) if buffer.frames() == 0 => Ok(Got::Nothing),
            Ok(buffer) => {
                let spec = checked(name, buffer.spec().rate(), buffer.spec().channels().count())?;
                buffer.copy_to_vec_interleaved(&mut self.scratch);
                Ok(Got::Samples(spec))
            }
            Err(Error::ResetRequired) => {
                decoder.reset();
                Ok(Got::Nothing)
            }
            Err(Error::DecodeError(_) | Error::IoError(_)) => {
                self.damaged += 1;
                Ok(Got::Nothing)
            }
            Err(error) => Err(typed(error, name)),
        }
    }
}

fn open(input: Input, name: &str) -> Result<Packets, AudioFileError> {
    let stream = MediaSourceStream::new(Box::new(input), MediaSourceStreamOptions::default());
    let format = symphonia::default::get_probe()
        .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        .map_err(|error| match error {
            // The probe reads to the end of a file of which it knows nothing.
            Error::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => unsupported(name, "its format"),
            Error::Unsupported(_) => unsupported(name, "its format"),
            error => typed(error, name),
        })?;
    let (decoder, id, total) = track(format.as_ref(), name)?;
    // A stand-in until the first packet says what it is.
    let spec = checked(name, TICKS, 1)?;
    let (first, scratch) = (Vec::new(), Vec::new());
    Ok(Packets { format, decoder, track: id, spec, total, first, scratch, frames: 0, damaged: 0, ended: false })
}

type Track = (Codec, u32, Option<u64>);

fn track(format: &dyn FormatReader, name: &str) -> Result<Track, AudioFileError> {
    let track = format.default_track(TrackType::Audio).ok_or_else(|| unsupported(name, "a file without audio"))?;
    let params = track.codec_params.as_ref().and_then(|p| p.audio()).ok_or_else(|| unsupported(name, "its codec"))?;
    if params.codec == CODEC_ID_OPUS {
        let opus = OpusTrack::new(params.extra_data.as_deref().unwrap_or_default(), name)?;
        // What the container states counts the pre-skip or comes in other units: the length is known at the end.
        return Ok((Codec::Opus(Box::new(opus)), track.id, None));
    }
    let decoder = symphonia::default::get_codecs()
        .make_audio_decoder(params, &AudioDecoderOptions::default())
        .map_err(|error| match error {
            Error::Unsupported(_) => unsupported(name, "its codec"),
            error => typed(error, name),
        })?;
    Ok((Codec::Symphonia(decoder), track.id, track.num_frames))
}

fn unsupported(name: &str, what: &str) -> AudioFileError {
    AudioFileError::Unsupported { name: name.to_owned(), what: what.to_owned() }
}

fn typed(error: Error, name: &str) -> AudioFileError {
    let name = name.to_owned();
    match error {
        Error::IoError(source) if source.kind() == ErrorKind::UnexpectedEof => {
            AudioFileError::Damaged { name, what: "it ends inside its header".into() }
        }
        // Some parsers report what they dislike as an error of reading without a system's number.
        Error::IoError(source) if source.raw_os_error().is_none() => {
            AudioFileError::Damaged { name, what: source.to_string() }
        }
        Error::IoError(source) => AudioFileError::Io { name, source },
        Error::Unsupported(what) => AudioFileError::Unsupported { name, what: what.to_owned() },
        error => AudioFileError::Damaged { name, what: error.to_string() },
    }
}

fn guarded<T>(name: &str, run: impl FnOnce() -> Result<T, AudioFileError>) -> Result<T, AudioFileError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(AudioFileError::Damaged { name: name.to_owned(), what: "its decoder failed on it".into() })
    })
}
