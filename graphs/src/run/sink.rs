//! Where an output's audio goes: a WAV file that is valid at any moment, or Ogg Opus for names that end in `.ogg`, `.opus`
//! or `.oga`. The file is tried before anything is loaded, and begun when the session is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use omni_flow::{Kind, Pcm};
use omni_flow_media::ogg_opus::{OggOpusEncoder, OpusTags};
use omni_flow_media::opus::EncoderConfig;
use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
use omni_flow_media::resample::Convert;
use omni_flow_media::wav::WavWriter;

use super::ends::is_ogg;

/// Rate of a file that never got audio and whose kind says none.
const RATE: u32 = 24_000;
/// Rates that Opus takes.
const OPUS_RATES: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];
/// Most audio in one page of an Ogg file: what a killed program may lose.
const PAGE_MS: u32 = 200;

/// A file that can be written, untouched so far. Dropped, it leaves no new empty file behind.
pub struct Target {
    path: PathBuf,
    file: Option<File>,
    new: bool,
}

impl Target {
    /// Makes sure that the file can be written.
    ///
    /// # Errors
    /// It cannot; the message names it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file =
            file.with_context(|| format!("cannot write `{}`; give another file with --output", path.display()))?;
        if file.metadata().is_ok_and(|m| m.is_file()) && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            anyhow::bail!("`{}` is being written by another program; give another file with --output", path.display());
        }
        Ok(Self { path: path.to_owned(), file: Some(file), new })
    }
    /// Makes it ready for audio of `kind`. What the file held stays until the first audio comes.
    ///
    /// # Errors
    /// It was made ready before.
    pub fn begin(mut self, kind: &Kind) -> anyhow::Result<Sink> {
        let name = self.path.display().to_string();
        let file = self.file.take().context("the output was begun twice")?;
        let ogg = is_ogg(&self.path);
        let format = (kind.rate.unwrap_or(RATE), kind.channels.unwrap_or(1));
        let coder = Coder::Waiting { file, ogg, new: self.new };
        Ok(Sink { name, coder, from: format, convert: None, frames: 0, scratch: Vec::new() })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.new && self.file.is_some() {
            // Made by us, never used. If it cannot be deleted, an empty file stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

enum Coder {
    /// No audio has come.
    Waiting {
        file: File,
        ogg: bool,
        new: bool,
    },
    Wav {
        writer: WavWriter<File>,
    },
    Ogg {
        encoder: Box<OggOpusEncoder>,
        file: File,
    },
    /// After a failure to begin.
    Closed,
}

/// A file that grows. Dropped, it ends as far as that goes.
pub struct Sink {
    name: String,
    coder: Coder,
    /// Rate and channels of the file, for WAV; what is encoded, for Ogg.
    from: (u32, u16),
    /// Set while what comes is of another format than the file.
    convert: Option<((u32, u16), Convert)>,
    /// Frames taken.
    frames: u64,
    scratch: Vec<f32>,
}

impl Coder {
    fn wav(file: File, name: &str, (rate, channels): (u32, u16)) -> anyhow::Result<Self> {
        let spec = PcmSpec::new(SampleFormat::I16, rate, Layout::of(channels))?;
        Ok(Self::Wav { writer: WavWriter::new(file, name, spec)? })
    }
    fn ogg(file: File, name: &str, (rate, channels): (u32, u16)) -> anyhow::Result<Self> {
        let rate = opus_rate(rate);
        let channels = u8::try_from(channels.clamp(1, 2)).unwrap_or(1);
        let config =
            EncoderConfig { rate, channels, bitrate: 32_000 * u32::from(channels), ..EncoderConfig::default() };
        let encoder = OggOpusEncoder::new(config, &OpusTags::default(), 1, PAGE_MS).with_context(|| name.to_owned())?;
        // The header goes out with the first audio: until then the format may change.
        Ok(Self::Ogg { encoder: Box::new(encoder), file })
    }
}

fn closed(name: &str) -> anyhow::Error {
    anyhow::anyhow!("`{name}` was closed after an earlier failure")
}

fn opus_rate(rate: u32) -> u32 {
    OPUS_RATES.into_iter().find(|r| *r >= rate).unwrap_or(48_000)
}

impl Sink {
    /// Writes a chunk. The first one decides the format of the file; later ones are converted to it.
    ///
    /// # Errors
    /// The file cannot be written (disk full); the message names it.
    pub fn write(&mut self, pcm: &Pcm) -> anyhow::Result<()> {
        if pcm.is_empty() {
            return Ok(());
        }
        let format = (pcm.rate(), pcm.channels());
        if self.frames == 0 {
            self.begin(format)?;
        }
        self.frames += pcm.frames() as u64;
        let target = match &self.coder {
            Coder::Wav { .. } => self.from,
            Coder::Ogg { .. } => (opus_rate(self.from.0), self.from.1.clamp(1, 2)),
            Coder::Waiting { .. } | Coder::Closed => return Err(closed(&self.name)),
        };
        if self.convert.as_ref().map(|(f, _)| *f) != (format != target).then_some(format) {
            self.end_conversion()?;
            if format != target {
                let wide = |(r, c): (u32, u16)| (r, usize::from(c));
                self.convert = Some((format, Convert::new(wide(format), wide(target))?));
            }
        }
        let samples = pcm.f32();
        match &mut self.convert {
            None => self.put(&samples),
            Some((_, c)) => {
                let mut out = std::mem::take(&mut self.scratch);
                out.clear();
                c.push(&samples, &mut out);
                let done = self.put(&out);
                self.scratch = out;
                done
            }
        }
    }
    /// Ends the file.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.end_conversion()?;
        match self.coder {
            // A file that was there before stays as it was.
            Coder::Waiting { new: false, .. } => {}
            Coder::Waiting { .. } => {
                self.begin(self.from)?;
                return self.finish();
            }
            Coder::Wav { writer } => drop(writer.finish()?),
            Coder::Ogg { encoder, mut file } => {
                let rest = encoder.finish().with_context(|| self.name.clone())?;
                file.write_all(&rest).with_context(|| format!("cannot write `{}`", self.name))?;
            }
            Coder::Closed => return Err(closed(&self.name)),
        }
        Ok(())
    }

    fn end_conversion(&mut self) -> anyhow::Result<()> {
        let Some((_, mut c)) = self.convert.take() else { return Ok(()) };
        let mut out = Vec::new();
        c.flush(&mut out);
        self.put(&out)
    }
    fn put(&mut self, samples: &[f32]) -> anyhow::Result<()> {
        match &mut self.coder {
            Coder::Wav { writer } => drop(writer.write(samples)?),
            Coder::Ogg { encoder, file } => {
                encoder.push(samples).with_context(|| self.name.clone())?;
                let bytes = encoder.take();
                file.write_all(&bytes).with_context(|| format!("cannot write `{}`", self.name))?;
            }
            Coder::Waiting { .. } | Coder::Closed => return Err(closed(&self.name)),
        }
        Ok(())
    }
    /// Begins the file: what it held is gone.
    fn begin(&mut self, format: (u32, u16)) -> anyhow::Result<()> {
        let name = self.name.clone();
        let Coder::Waiting { mut file, ogg, .. } = std::mem::replace(&mut self.coder, Coder::Closed) else {
            return Err(closed(&name));
        };
        if file.metadata().is_ok_and(|m| m.is_file()) {
            file.set_len(0).and_then(|()| file.rewind()).with_context(|| format!("cannot write `{name}`"))?;
        }
        self.coder = if ogg { Coder::ogg(file, &name, format)? } else { Coder::wav(file, &name, format)? };
        self.from = format;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(s: &str) -> Kind {
        s.parse().unwrap()
    }

    #[test]
    fn the_first_chunk_decides_the_format_and_others_are_converted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wav");
        let mut sink = Target::open(&path).unwrap().begin(&kind("audio")).unwrap();
        sink.write(&Pcm::mono(22_050, vec![0.25; 22_050])).unwrap();
        sink.write(&Pcm::mono(16_000, vec![0.25; 16_000])).unwrap();
        sink.finish().unwrap();
        let got = omni_flow_media::file::decode(&path, 1 << 20).unwrap();
        assert_eq!((got.rate, got.channels, got.samples.len()), (22_050, 1, 44_100));
        assert!((got.samples[30_000] - 0.25).abs() < 1e-3);
    }
    #[test]
    fn an_output_without_audio_is_a_valid_empty_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wav");
        std::fs::write(&path, "something old").unwrap();
        drop(Target::open(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"something old", "not begun, not touched");
        Target::open(&path).unwrap().begin(&kind("audio 8000")).unwrap().finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"something old", "no audio, not touched");
        let path = dir.path().join("new.wav");
        Target::open(&path).unwrap().begin(&kind("audio 8000")).unwrap().finish().unwrap();
        let got = omni_flow_media::file::decode(&path, 10).unwrap();
        assert_eq!((got.rate, got.samples.len()), (8000, 0));
    }
    #[test]
    fn a_file_that_another_writes_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wav");
        let first = Target::open(&path).unwrap();
        let e = Target::open(&path).err().unwrap();
        assert!(e.to_string().contains("another program"), "{e}");
        drop(first);
        assert!(Target::open(&path).is_ok());
    }
    #[test]
    fn a_target_that_is_not_used_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.wav");
        let t = Target::open(&path).unwrap();
        assert!(path.exists());
        drop(t);
        assert!(!path.exists());
        let e = Target::open(&dir.path().join("no/such/folder.wav")).err().unwrap();
        assert!(format!("{e:#}").contains("folder.wav"), "{e:#}");
    }
    #[test]
    fn ogg_holds_all_that_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ogg");
        let mut sink = Target::open(&path).unwrap().begin(&kind("audio")).unwrap();
        sink.write(&Pcm::mono(22_050, vec![0.1; 22_050])).unwrap();
        sink.finish().unwrap();
        let mut decoder = omni_flow_media::ogg_opus::OggOpusDecoder::new(24_000, 1).unwrap();
        let mut out = Vec::new();
        decoder.push(&std::fs::read(&path).unwrap(), &mut out).unwrap();
        decoder.finish(&mut out).unwrap();
        assert_eq!(out.len(), 24_000);
    }
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let full = Target::open(Path::new("/dev/full")).unwrap();
        let e = full
            .begin(&kind("audio 8000"))
            .and_then(|mut s| s.write(&Pcm::mono(8000, vec![0.0; 80_000])))
            .err()
            .unwrap();
        assert!(format!("{e:#}").contains("/dev/full"), "{e:#}");
    }
}
