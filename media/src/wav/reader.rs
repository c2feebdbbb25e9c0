//! The WAV parser: bytes in pieces of any size, whole frames out.

use super::WavError;
use super::chunk::{DS64_USED, FMT_LEAST, FMT_USED, KNOWN_CHUNKS, parse_ds64, parse_fmt};
use crate::pcm::{FrameSplitter, PcmSpec};

/// Where the bytes come from; decides what may be concluded from sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WavOrigin {
    /// Anything whose length is not known. The duration is unknown until the end of the payload is seen.
    Pipe,
    /// A file of so many bytes. The duration follows from the bytes present.
    File {
        /// Length of the whole file.
        len: u64,
    },
    /// A stream of pieces of which any may bring a WAV header of its own (see [`WavReader::push_piece`]). The duration is
    /// unknown until the end.
    Pieces,
}

/// What was found, once the end of the stream has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavSummary {
    /// Format of the samples.
    pub spec: PcmSpec,
    /// Whole frames given out.
    pub frames: u64,
    /// Bytes of a cut last frame, dropped.
    pub truncated_bytes: u64,
    /// Bytes that the header stated and that never came; 0 where it stated no size, or one that stands for "unknown".
    pub missing_bytes: u64,
}

/// An incremental WAV parser. Holds at most 40 bytes of a header and one cut frame; memory never follows what a header
/// claims. The result does not depend on how the bytes were cut. After an error every call gives that error again.
#[derive(Clone, Debug)]
pub struct WavReader {
    origin: WavOrigin,
    state: State,
    /// Bytes of the header field in work.
    held: Vec<u8>,
    /// Bytes of the stream taken into `held`, skipped or given out.
    position: u64,
    spec: Option<PcmSpec>,
    /// Size of the payload from a `ds64` chunk.
    size64: Option<u64>,
    splitter: FrameSplitter,
    frames: u64,
    /// Whole frames of the payload, where they can be told ahead.
    announced: Option<u64>,
    /// Size of the payload as the header in force states it; bytes of it that are not there.
    stated: Option<u64>,
    missing: u64,
    /// Whether the payload of the header in force, and that of any header, has begun.
    payload_begun: bool,
    any_payload: bool,
    failed: Option<WavError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `RIFF`, size, `WAVE`.
    Riff,
    /// Name and size of a chunk.
    Chunk,
    Fmt {
        size: u32,
    },
    Ds64 {
        size: u32,
    },
    Skip {
        left: u64,
    },
    /// A `data` chunk of size 0: empty if one of the known chunks follows, or, in a file, anything printable whose size
    /// fits; else of unknown length.
    ZeroData,
    /// Inside the payload; `None` is until the end of the stream.
    Data {
        left: Option<u64>,
        padded: bool,
    },
    /// Behind the payload.
    Tail,
}

impl WavReader {
    /// A parser for a new stream.
    pub fn new(origin: WavOrigin) -> Self {
        Self {
            origin,
            state: State::Riff,
            held: Vec::with_capacity(FMT_USED),
            position: 0,
            spec: None,
            size64: None,
            splitter: FrameSplitter::new(1),
            frames: 0,
            announced: None,
            stated: None,
            missing: 0,
            payload_begun: false,
            any_payload: false,
            failed: None,
        }
    }

    /// Takes the next bytes and appends whole frames, as stored, to `out`. [`WavReader::spec`] is known as soon as
    /// anything was appended. An error is final; what was appended before it is good.
    ///
    /// # Errors
    /// [`WavError`]; every later call gives the same one.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WavError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.parse(bytes, out);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    /// As [`WavReader::push`], for one piece of a stream of [`WavOrigin::Pieces`], as its sender cut it: a piece that
    /// begins with `RIFF....WAVE` starts with a header, which is removed; its payload continues the one before. A piece
    /// of another format is [`WavError::FormatChanged`], and nothing of it is given out.
    ///
    /// # Errors
    /// As [`WavReader::push`]; [`WavError::FormatChanged`].
    pub fn push_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), WavError> {
        let headed = piece.len() >= 12 && is_riff(&piece[..4]) && &piece[8..12] == b"WAVE";
        if headed && self.origin == WavOrigin::Pieces && self.spec.is_some() {
            self.flush_zero(out);
            self.restart();
        }
        self.push(piece, out)
    }

    /// Says that the stream has ended. Appends what was still undecided (at most eight bytes) to `out`.
    ///
    /// # Errors
    /// [`WavError::Truncated`] if the stream ended before its samples began; the error of an earlier call.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<WavSummary, WavError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.flush_zero(out);
        // A file may have grown since its length was taken.
        self.missing = match (self.state, self.stated) {
            (State::Data { left: Some(left), .. }, Some(stated)) if !is_placeholder(stated) => left,
            _ => 0,
        };
        let (true, Some(spec)) = (self.any_payload, self.spec) else {
            self.failed = Some(WavError::Truncated);
            return Err(WavError::Truncated);
        };
        self.splitter.clear();
        self.state = State::Tail;
        self.announced = Some(self.frames);
        let (frames, truncated_bytes) = (self.frames, self.splitter.dropped_bytes());
        Ok(WavSummary { spec, frames, truncated_bytes, missing_bytes: self.missing })
    }

    /// Format of the samples, once the `fmt ` chunk is complete.
    pub fn spec(&self) -> Option<PcmSpec> {
        self.spec
    }

    /// Whether the header is behind and the next byte is a sample, or the payload is over.
    pub fn at_samples(&self) -> bool {
        matches!(self.state, State::Data { .. } | State::Tail)
    }

    /// Whole frames of the stream, if known: for a file as soon as its header is read, for a pipe when the end of the
    /// payload was seen. Never computed from a placeholder.
    pub fn total_frames(&self) -> Option<u64> {
        self.announced
    }

    /// Whole frames given out so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of the payload that the header stated and that are not there: for a file as soon as its header is read, else
    /// at the end. A size that writers use where they do not know it states nothing.
    pub fn missing_bytes(&self) -> u64 {
        self.missing
    }

    fn parse(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WavError> {
        while !bytes.is_empty() {
            match self.state {
                State::Riff => self.riff(&mut bytes)?,
                State::Chunk => self.chunk(&mut bytes)?,
                State::Fmt { size } => self.fmt(size, &mut bytes)?,
                State::Ds64 { size } => {
                    let used = DS64_USED.min(size as usize);
                    if self.fill(used, &mut bytes) {
                        self.size64 = parse_ds64(&self.held);
                        self.skip(padded(size) - used as u64);
                    }
                }
                State::Skip { left } => {
                    let n = left.min(bytes.len() as u64);
                    self.take(n as usize, &mut bytes);
                    self.skip(left - n);
                }
                State::ZeroData => self.zero_data(&mut bytes, out),
                State::Data { left, padded } => self.data(left, padded, &mut bytes, out),
                State::Tail => {
                    self.take(bytes.len(), &mut bytes);
                }
            }
        }
        Ok(())
    }

    fn riff(&mut self, bytes: &mut &[u8]) -> Result<(), WavError> {
        let complete = self.fill(12, bytes);
        let name = &self.held[..self.held.len().min(4)];
        if name == b"RIFX" {
            return Err(WavError::UnsupportedFormat { what: "the big-endian form RIFX".into() });
        }
        let form = self.held.get(8..).unwrap_or_default();
        if !(is_riff(name) || b"RIFX".starts_with(name)) || !b"WAVE".starts_with(form) {
            return Err(WavError::NotWav);
        }
        if complete {
            self.next_chunk();
        }
        Ok(())
    }

    fn chunk(&mut self, bytes: &mut &[u8]) -> Result<(), WavError> {
        if !self.fill(8, bytes) {
            return Ok(());
        }
        let Some((name, size)) = head(&self.held) else { return Ok(()) };
        if is_riff(&name) && self.origin == WavOrigin::Pieces && self.payload_begun {
            // Joined without a seam that we were told of: the eight bytes are the start of the next header.
            let held = std::mem::take(&mut self.held);
            self.restart();
            self.held = held;
            return Ok(());
        }
        self.held.clear();
        match &name {
            b"fmt " if size < FMT_LEAST => {
                return Err(WavError::Malformed { what: "its `fmt ` chunk is shorter than 16 bytes" });
            }
            b"fmt " => self.state = State::Fmt { size },
            b"ds64" => self.state = State::Ds64 { size },
            // One header, one payload: a second `data` chunk is skipped like any other.
            b"data" if self.payload_begun => self.skip(padded(size)),
            b"data" => {
                let Some(spec) = self.spec else {
                    return Err(WavError::Malformed { what: "its samples come before its `fmt ` chunk" });
                };
                self.begin_data(spec, size);
            }
            _ => self.skip(padded(size)),
        }
        Ok(())
    }

    fn fmt(&mut self, size: u32, bytes: &mut &[u8]) -> Result<(), WavError> {
        let used = FMT_USED.min(size as usize);
        if !self.fill(used, bytes) {
            return Ok(());
        }
        let then = parse_fmt(&self.held)?;
        match self.spec {
            Some(first) if first != then => return Err(WavError::FormatChanged { first, then }),
            Some(_) => {}
            None => {
                self.spec = Some(then);
                self.splitter = FrameSplitter::new(then.frame_bytes());
            }
        }
        self.skip(padded(size) - used as u64);
        Ok(())
    }

    fn begin_data(&mut self, spec: PcmSpec, size: u32) {
        self.payload_begun = true;
        self.any_payload = true;
        let declared = match size {
            0 => return self.state = State::ZeroData,
            0xFFFF_FFFF => self.size64,
            0x7FFF_FFFF => None,
            size => Some(u64::from(size)),
        };
        self.stated = declared;
        self.announce(spec, declared);
        self.state = State::Data { left: declared, padded: declared.is_some_and(|n| n % 2 == 1) };
    }

    fn announce(&mut self, spec: PcmSpec, declared: Option<u64>) {
        if let WavOrigin::File { len } = self.origin {
            let present = len.saturating_sub(self.position);
            self.missing = declared.filter(|n| !is_placeholder(*n)).map_or(0, |n| n.saturating_sub(present));
            self.announced = Some(declared.unwrap_or(u64::MAX).min(present) / spec.frame_bytes() as u64);
        }
    }

    fn zero_data(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) {
        if !self.fill(4, bytes) {
            return;
        }
        let known = KNOWN_CHUNKS.iter().any(|known| self.held.starts_with(*known));
        let empty = match self.origin {
            WavOrigin::File { len } if !known => {
                if !self.fill(8, bytes) {
                    return;
                }
                head(&self.held).is_some_and(|(name, size)| {
                    let printable = name.iter().all(|b| (0x20..0x7F).contains(b));
                    printable && self.position.saturating_add(u64::from(size)) <= len
                })
            }
            WavOrigin::Pieces => known || is_riff(&self.held),
            _ => known,
        };
        if empty {
            // What is held begins the head of the next chunk.
            self.payload_over(State::Chunk);
        } else {
            self.flush_zero(out);
        }
    }

    /// Decides for samples until the end of the stream, and gives out what was held.
    fn flush_zero(&mut self, out: &mut Vec<u8>) {
        let (State::ZeroData, Some(spec)) = (self.state, self.spec) else { return };
        let held = std::mem::take(&mut self.held);
        self.position -= held.len() as u64;
        self.announce(spec, None);
        self.position += held.len() as u64;
        self.state = State::Data { left: None, padded: false };
        self.give(&held, out);
    }

    fn data(&mut self, left: Option<u64>, padded: bool, bytes: &mut &[u8], out: &mut Vec<u8>) {
        let n = left.map_or(bytes.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len()));
        let payload = self.take(n, bytes);
        self.give(payload, out);
        let left = left.map(|left| left - n as u64);
        self.state = State::Data { left, padded };
        if left == Some(0) {
            self.payload_over(if padded { State::Skip { left: 1 } } else { State::Chunk });
        }
    }

    /// Only a stream of pieces looks at what follows a payload.
    fn payload_over(&mut self, next: State) {
        if self.origin == WavOrigin::Pieces {
            self.state = next;
        } else {
            self.held.clear();
            self.state = State::Tail;
            self.announced = Some(self.frames);
        }
    }

    fn give(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        self.splitter.push(payload, out);
        if let Some(spec) = self.spec {
            self.frames += ((out.len() - before) / spec.frame_bytes()) as u64;
        }
    }

    /// Moves bytes into `held` until it has `need`.
    fn fill(&mut self, need: usize, bytes: &mut &[u8]) -> bool {
        let n = need.saturating_sub(self.held.len()).min(bytes.len());
        let taken = self.take(n, bytes);
        self.held.extend_from_slice(taken);
        self.held.len() >= need
    }

    fn take<'a>(&mut self, n: usize, bytes: &mut &'a [u8]) -> &'a [u8] {
        let (head, rest) = bytes.split_at(n);
        *bytes = rest;
        self.position += n as u64;
        head
    }

    fn skip(&mut self, left: u64) {
        self.held.clear();
        self.state = State::Skip { left };
        if left == 0 {
            self.next_chunk();
        }
    }

    fn next_chunk(&mut self) {
        self.held.clear();
        self.state = State::Chunk;
    }

    /// Expects a new header; format, frames and the bytes of a cut frame stay.
    fn restart(&mut self) {
        self.held.clear();
        self.size64 = None;
        self.payload_begun = false;
        self.state = State::Riff;
    }
}

/// Whether writers that do not know a size put this one there: all ones, the largest signed number, or two thousand
/// million, each perhaps less the header and rounded down to a block.
fn is_placeholder(size: u64) -> bool {
    const NEAR: u64 = 64 << 10;
    let below = |top: u64| (top - NEAR..=top).contains(&size);
    size == 0 || below(0x8000_0000) || below(0xFFFF_FFFF) || below(2_000_000_000) || size >= 1 << 62
}

fn is_riff(name: &[u8]) -> bool {
    [b"RIFF", b"RF64", b"BW64"].iter().any(|riff| riff.starts_with(name))
}

fn head(held: &[u8]) -> Option<([u8; 4], u32)> {
    Some((*held.first_chunk()?, u32::from_le_bytes(*held.get(4..)?.first_chunk()?)))
}

/// Size of a chunk body with its pad byte.
fn padded(size: u32) -> u64 {
    u64::from(size) + u64::from(size % 2)
}
