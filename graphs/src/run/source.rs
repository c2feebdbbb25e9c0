//! What feeds an input: an audio file or a text, opened before anything is loaded, then read on a thread of its own, a
//! few chunks ahead. Memory is bounded, whatever the length of the input.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use omni_flow::{Buf, Kind, Medium, Pcm, SampleType};
use omni_flow_media::file::{AudioFile, Input as MediaInput};
use omni_flow_media::resample::Convert;
use tokio::sync::mpsc;

use super::ends::Given;

/// Length of an audio chunk: that of most capture devices.
pub const CHUNK_MS: u32 = 20;
/// Most bytes of text in one chunk; a longer line goes in several.
const MOST_TEXT: usize = 1 << 20;
/// Chunks read ahead.
const AHEAD: usize = 16;

/// One thing to send.
#[derive(Debug)]
pub enum Item {
    /// Audio of the input's kind, with its samples as `f32` for the clock of speech.
    Audio(Pcm, Vec<f32>),
    /// A paragraph, or a line of standard input.
    Text(String),
}

/// An opened source.
pub enum Source {
    /// A file with what it becomes.
    Audio { file: AudioFile, to: Format },
    /// Paragraphs of a text file, or lines of standard input.
    Text { name: String, reader: Box<dyn Read + Send>, by_line: bool },
}

/// The audio that an input takes.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub rate: u32,
    pub channels: u16,
    pub sample: SampleType,
}

impl Source {
    /// Opens what was given for an input of `kind`. A file is looked into, so that an empty one is told at once.
    ///
    /// # Errors
    /// The file cannot be opened, is no audio that can be read, or holds nothing; the message names it.
    pub fn open(kind: &Kind, given: Given) -> anyhow::Result<Self> {
        if kind.medium == Medium::Text {
            return Self::text(given);
        }
        let file = match &given {
            Given::File(path) => {
                if path.is_file() && AudioFile::open(path)?.next(&mut Vec::new())? == 0 {
                    return Err(empty(&path.display().to_string()));
                }
                AudioFile::open(path)?
            }
            Given::Stdin => AudioFile::new(MediaInput::pipe(std::io::stdin()), "standard input")?,
            Given::Text(_) => bail!("text cannot feed an audio input"),
        };
        let spec = file.spec();
        let to = Format {
            rate: kind.rate.unwrap_or(spec.rate()),
            channels: kind.channels.unwrap_or(spec.channels().min(64) as u16),
            sample: kind.sample.unwrap_or(SampleType::F32),
        };
        Ok(Self::Audio { file, to })
    }
    fn text(given: Given) -> anyhow::Result<Self> {
        let (name, reader, by_line): (_, Box<dyn Read + Send>, _) = match given {
            Given::Text(t) => ("--text".to_owned(), Box::new(std::io::Cursor::new(t.into_bytes())), false),
            Given::Stdin => ("standard input".to_owned(), Box::new(std::io::stdin()), true),
            Given::File(path) => {
                let name = path.display().to_string();
                let open = || std::fs::File::open(&path).with_context(|| format!("cannot read `{name}`"));
                if path.is_file() && blank(open()?).with_context(|| format!("cannot read `{name}`"))? {
                    return Err(empty(&name));
                }
                let file = open()?;
                (name, Box::new(file), false)
            }
        };
        Ok(Self::Text { name, reader, by_line })
    }
    /// Rate and channels of what it will give, if it is audio.
    pub fn format(&self) -> Option<Format> {
        if let Self::Audio { to, .. } = self { Some(*to) } else { None }
    }
    /// Reads on a thread of its own. The last item is an error if the source could not be read to its end, or held
    /// nothing.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(self) -> anyhow::Result<mpsc::Receiver<anyhow::Result<Item>>> {
        let (tx, rx) = mpsc::channel(AHEAD);
        let read = move || {
            // A send fails when nobody feeds any more; then there is nothing left to do.
            let mut put = |item| tx.blocking_send(Ok(item)).is_ok();
            let name;
            let done = match self {
                Self::Audio { file, to } => {
                    name = file.name().to_owned();
                    audio(file, to, &mut put)
                }
                Self::Text { name: n, reader, by_line } => {
                    name = n;
                    text(&name, reader, by_line, &mut put)
                }
            };
            let end = match done {
                Ok(0) => Some(empty(&name)),
                Ok(_) => None,
                Err(e) => Some(e),
            };
            if let Some(e) = end {
                let _ = tx.blocking_send(Err(e));
            }
        };
        std::thread::Builder::new().name("input".to_owned()).spawn(read).context("cannot start the input's thread")?;
        Ok(rx)
    }
}

fn empty(name: &str) -> anyhow::Error {
    anyhow!("`{name}` is empty: there is nothing to hear or read in it")
}

/// True if a text has nothing but white space. Reads up to the first other byte.
fn blank(text: impl Read) -> std::io::Result<bool> {
    let mut reader = BufReader::new(text);
    let mut first = true;
    loop {
        let mut bytes = reader.fill_buf()?;
        let n = bytes.len();
        if n == 0 {
            return Ok(true);
        }
        if std::mem::take(&mut first) {
            bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        }
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        reader.consume(n);
    }
}

/// Decodes, converts and cuts; gives the number of chunks.
fn audio(mut file: AudioFile, to: Format, put: &mut impl FnMut(Item) -> bool) -> anyhow::Result<u64> {
    let spec = file.spec();
    let mut convert = Convert::new((spec.rate(), spec.channels()), (to.rate, usize::from(to.channels)))?;
    let size = (to.rate * CHUNK_MS / 1000).max(1) as usize * usize::from(to.channels);
    let (mut raw, mut ready, mut chunks, mut told) = (Vec::new(), Vec::new(), 0, false);
    loop {
        raw.clear();
        let ended = file.next(&mut raw)? == 0;
        // Known at once of a file on disk, at its end of others.
        if let (false, Some(missing)) = (told, file.missing()) {
            told = true;
            let ms = missing.as_millis().max(1);
            tracing::warn!(
                "`{}` was cut short: {ms} ms less than its header states; what is there is used",
                file.name()
            );
        }
        if ended {
            convert.flush(&mut ready);
        } else {
            convert.push(&raw, &mut ready);
        }
        let whole = if ended { ready.len() } else { ready.len() / size * size };
        for chunk in ready[..whole].chunks(size) {
            chunks += 1;
            if !put(Item::Audio(pcm(chunk, to)?, chunk.to_vec())) {
                return Ok(chunks);
            }
        }
        ready.drain(..whole);
        if ended {
            if file.damage() > 0 {
                tracing::warn!(
                    file = file.name(),
                    damage = file.damage(),
                    "parts that could not be decoded were left out"
                );
            }
            return Ok(chunks);
        }
    }
}

fn pcm(samples: &[f32], to: Format) -> anyhow::Result<Pcm> {
    let buf = match to.sample {
        SampleType::F32 => Buf::from_f32(samples.to_vec()),
        SampleType::I16 => {
            Buf::from_i16(samples.iter().map(|s| (s * 32768.0).round().clamp(-32768.0, 32767.0) as i16).collect())
        }
    };
    Ok(Pcm::new(to.rate, to.channels, to.sample, buf)?)
}

/// Reads lines; gives paragraphs (their lines joined) or, `by_line`, each line at once.
fn text(name: &str, reader: impl Read, by_line: bool, put: &mut impl FnMut(Item) -> bool) -> anyhow::Result<u64> {
    let mut reader = BufReader::new(reader);
    let (mut paragraph, mut line, mut at, mut pieces) = (String::new(), Vec::new(), 0, 0);
    loop {
        // What is left in `line` is the beginning of a character that the limit cut.
        let n = (&mut reader).take(MOST_TEXT as u64).read_until(b'\n', &mut line);
        let n = n.with_context(|| format!("cannot read `{name}`"))?;
        let whole = match std::str::from_utf8(&line) {
            Ok(s) => s,
            Err(e) if e.error_len().is_none() && n == MOST_TEXT => {
                std::str::from_utf8(&line[..e.valid_up_to()]).unwrap_or_default()
            }
            Err(e) => bail!("`{name}` is not UTF-8 at byte {}: save it as UTF-8", at + e.valid_up_to()),
        };
        let used = whole.len();
        at += used;
        let said = whole.trim().trim_start_matches('\u{feff}');
        if !said.is_empty() {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(said);
        }
        let blank = said.is_empty();
        line.drain(..used);
        let full = paragraph.len() >= MOST_TEXT / 2;
        if (by_line || blank || n == 0 || full) && !paragraph.is_empty() {
            pieces += 1;
            if !put(Item::Text(std::mem::take(&mut paragraph))) {
                return Ok(pieces);
            }
        }
        if n == 0 {
            return Ok(pieces);
        }
    }
}

/// The path of a source, to compare with those of outputs.
pub fn path(given: &Given) -> Option<&Path> {
    if let Given::File(p) = given { Some(p) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], by_line: bool) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        text("t", bytes, by_line, &mut |i| {
            if let Item::Text(t) = i {
                all.push(t);
            }
            true
        })?;
        Ok(all)
    }

    #[test]
    fn a_file_gives_paragraphs_and_a_terminal_lines() {
        let t = "\u{feff}One\nline.\r\n\n\n Two. \n";
        assert_eq!(read(t.as_bytes(), false).unwrap(), ["One line.", "Two."]);
        assert_eq!(read(t.as_bytes(), true).unwrap(), ["One", "line.", "Two."]);
        assert!(read(b" \n\n", false).unwrap().is_empty());
    }
    #[test]
    fn a_text_of_white_space_is_empty() {
        for t in ["", "\u{feff}", " \n\t\r\n", &" \n".repeat(20_000)] {
            assert!(blank(t.as_bytes()).unwrap(), "{t:?}");
        }
        assert!(!blank(format!("{}x", " ".repeat(20_000)).as_bytes()).unwrap());
    }
    #[test]
    fn bytes_that_are_no_text_are_named_by_their_place() {
        let e = read(b"ok\nab\xffc\n", false).unwrap_err().to_string();
        assert!(e.contains("not UTF-8 at byte 5"), "{e}");
    }
    #[test]
    fn a_line_of_a_mebibyte_goes_in_pieces() {
        let long = "word ".repeat(MOST_TEXT / 4);
        let got = read(long.as_bytes(), false).unwrap();
        assert!(got.len() >= 2 && got.iter().all(|p| p.len() <= 2 * MOST_TEXT), "{}", got.len());
        assert_eq!(got.iter().map(|p| p.split(' ').count()).sum::<usize>(), MOST_TEXT / 4 + got.len() - 1);
    }
    #[test]
    fn a_header_without_samples_is_an_empty_recording() {
        use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
        use omni_flow_media::wav::WavWriter;
        let spec = PcmSpec::new(SampleFormat::I16, 8000, Layout::MONO).unwrap();
        let mut bytes = std::io::Cursor::new(Vec::new());
        WavWriter::new(&mut bytes, "t", spec).unwrap().finish().unwrap();
        let file = AudioFile::new(MediaInput::memory(bytes.into_inner()), "t").unwrap();
        let to = Format { rate: 16_000, channels: 1, sample: SampleType::F32 };
        let mut rx = Source::Audio { file, to }.start().unwrap();
        let e = rx.blocking_recv().unwrap().unwrap_err().to_string();
        assert!(e.contains("is empty"), "{e}");
    }
}
