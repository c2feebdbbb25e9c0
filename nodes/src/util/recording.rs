//! Recordings: a stream of chunks with their stamps in a file, in a format that is small and says all.
//!
//! The file is the 8 bytes `OFREC\0\0\1`, then records: a `u32` length of what follows it, then kind `u8` (1 audio, 2 text,
//! 3 tokens, 4 tensor, 5 packet, 6 signal), flags `u8` (1 = last of its segment), `u64` nanoseconds since the first
//! record, `i64` place and `i64` length in media ticks, then the payload as [`encode`] writes it; all little-endian.
//! Epochs are not kept. A record cut at the end of the file, as a crash leaves it, is dropped and counted; everything
//! else that is wrong is an error. Memory is bounded by what has arrived, at most [`MOST`] bytes for a record.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use omni_flow::{Buf, Dtype, MediaTime, Packet, Payload, Pcm, SampleType, Signal, Stamp, Tensor, Tokens, TurnEnd};
use thiserror::Error;

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"OFREC\0\0\x01";
/// Longest record, bytes.
pub const MOST: usize = 64 << 20;
/// Bytes of a record before its payload.
const FIXED: usize = 2 + 3 * 8;

/// A chunk and when it came.
#[derive(Clone, Debug)]
pub struct Record {
    /// Since the first record.
    pub at: Duration,
    /// Place in media time.
    pub pts: MediaTime,
    /// Playing time.
    pub len: MediaTime,
    /// Last of its segment.
    pub last: bool,
    /// What it is.
    pub payload: Payload,
}

/// A chunk that a recording cannot hold.
#[derive(Debug, Error)]
pub enum EncodeError {
    /// Pictures and values of the program's own.
    #[error("a recording does not hold {0}: record audio, text, tokens, tensors, packets or signals")]
    Medium(&'static str),
    /// More than a record may have.
    #[error("a chunk of {0} bytes does not fit a recording, whose records have at most {MOST}")]
    TooLarge(usize),
    /// Device memory that cannot be copied.
    #[error("a chunk cannot be copied from its device: {0}")]
    Device(#[from] io::Error),
}

/// Why a file is no recording. Final for its file.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The system.
    #[error("cannot read the recording: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as one.
    #[error("not a recording: it does not begin with OFREC, version 1")]
    Magic,
    /// A record that contradicts itself.
    #[error("record {record} is damaged: {what}")]
    Damaged {
        /// Its number, from 0.
        record: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Appends the record of a chunk to `out`.
///
/// # Errors
/// [`EncodeError`]; nothing was appended.
pub fn encode(at: Duration, stamp: &Stamp, payload: &Payload, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = write(at, stamp, payload, out);
    let len = out.len() - start;
    match result {
        Ok(()) if len - 4 <= MOST => {
            out[start..start + 4].copy_from_slice(&((len - 4) as u32).to_le_bytes());
            Ok(())
        }
        Ok(()) => {
            out.truncate(start);
            Err(EncodeError::TooLarge(len))
        }
        Err(e) => {
            out.truncate(start);
            Err(e)
        }
    }
}

fn write(at: Duration, stamp: &Stamp, payload: &Payload, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if payload.bytes() > MOST {
        return Err(EncodeError::TooLarge(payload.bytes()));
    }
    let kind = match payload {
        Payload::Audio(_) => 1,
        Payload::Text(_) => 2,
        Payload::Tokens(_) => 3,
        Payload::Tensor(_) => 4,
        Payload::Packet(_) => 5,
        Payload::Signal(_) => 6,
        other => return Err(EncodeError::Medium(other.medium().name())),
    };
    out.extend([0; 4]);
    out.extend([kind, u8::from(stamp.last)]);
    out.extend(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
    out.extend(stamp.pts.ticks().to_le_bytes());
    out.extend(stamp.len.ticks().to_le_bytes());
    match payload {
        // Rate u32, channels u16, sample u8 (0 f32, 1 i16), voice f32 (not a number: unknown), samples.
        Payload::Audio(a) => {
            out.extend(a.rate().to_le_bytes());
            out.extend(a.channels().to_le_bytes());
            out.push(u8::from(a.sample() == SampleType::I16));
            out.extend(a.voice().unwrap_or(f32::NAN).to_le_bytes());
            out.extend_from_slice(&a.buf().to_host()?);
        }
        Payload::Text(t) => out.extend_from_slice(t.as_bytes()),
        Payload::Tokens(t) => out.extend(t.0.iter().flat_map(|id| id.to_le_bytes())),
        // Element type u8, number of sizes u8, sizes u64 each, elements.
        Payload::Tensor(t) => {
            out.push(DTYPES.iter().position(|d| *d == t.dtype).map_or(u8::MAX, |i| i as u8));
            out.push(u8::try_from(t.shape.len()).unwrap_or(u8::MAX));
            out.extend(t.shape.iter().flat_map(|n| (*n as u64).to_le_bytes()));
            out.extend_from_slice(&t.buf.to_host()?);
        }
        // Key u8, rate u32, channels u16, length of the codec's name u8, the name, the bytes.
        Payload::Packet(p) => {
            out.push(u8::from(p.key));
            out.extend(p.rate.to_le_bytes());
            out.extend(p.channels.to_le_bytes());
            let name = &p.codec.as_bytes()[..p.codec.floor_char_boundary(255)];
            out.push(name.len() as u8);
            out.extend_from_slice(name);
            out.extend_from_slice(&p.data);
        }
        Payload::Signal(s) => signal(s, out)?,
        _ => {}
    }
    Ok(())
}

const DTYPES: [Dtype; 6] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I64, Dtype::I32, Dtype::U8];
const REASONS: [TurnEnd; 4] = [TurnEnd::Silence, TurnEnd::TooLong, TurnEnd::InputEnded, TurnEnd::Committed];

/// Tag u8, then its fields: times as i64 ticks, counts u64; a named one: length of its name u32, name, data.
fn signal(s: &Signal, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let time = |out: &mut Vec<u8>, tag: u8, t: &MediaTime| {
        out.push(tag);
        out.extend(t.ticks().to_le_bytes());
    };
    match s {
        Signal::SpeechStarted { at } => time(out, 1, at),
        Signal::SpeechStopped { at } => time(out, 2, at),
        Signal::TurnEnded { start, speech_end, end, reason } => {
            time(out, 3, start);
            out.extend(speech_end.ticks().to_le_bytes());
            out.extend(end.ticks().to_le_bytes());
            out.push(REASONS.iter().position(|r| r == reason).unwrap_or(0) as u8);
        }
        Signal::Played { until } => time(out, 4, until),
        Signal::Gap { items, len } => {
            time(out, 5, len);
            out.extend(items.to_le_bytes());
        }
        Signal::Named { name, data } => {
            out.push(6);
            out.extend((name.len() as u32).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(data.as_bytes());
        }
        _ => return Err(EncodeError::Medium("a signal of a newer kind")),
    }
    Ok(())
}

/// Reads the records of a file, one at a time.
pub struct Records<R> {
    input: R,
    number: u64,
    cut: u64,
}

impl<R: Read> Records<R> {
    /// Reads the beginning of a recording.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn new(input: R) -> Result<Self, DecodeError> {
        let mut input = input;
        let mut magic = Vec::with_capacity(MAGIC.len());
        input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic != MAGIC {
            return Err(DecodeError::Magic);
        }
        Ok(Self { input, number: 0, cut: 0 })
    }
    /// Records cut by the end of the file: 0 or 1, known at the end.
    pub fn cut(&self) -> u64 {
        self.cut
    }
    /// The next record; `None` at the end. Blocks.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn read_next(&mut self) -> Result<Option<Record>, DecodeError> {
        let damaged = |what| DecodeError::Damaged { record: self.number, what };
        let mut body = Vec::new();
        self.input.by_ref().take(4).read_to_end(&mut body)?;
        let Some(len) = body.first_chunk::<4>().map(|b| u32::from_le_bytes(*b) as usize) else {
            self.cut = u64::from(!body.is_empty());
            return Ok(None);
        };
        if !(FIXED..=MOST).contains(&len) {
            return Err(damaged("its length is impossible"));
        }
        body.clear();
        self.input.by_ref().take(len as u64).read_to_end(&mut body)?;
        if body.len() < len {
            self.cut = 1;
            return Ok(None);
        }
        let record = parse(body.into()).map_err(damaged)?;
        self.number += 1;
        Ok(Some(record))
    }
}

/// The fields of a record, taken from its front.
struct Fields(Bytes);

impl Fields {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let head = *self.0.first_chunk::<N>().ok_or("it ends inside a field")?;
        drop(self.0.split_to(N));
        Ok(head)
    }
    fn u8(&mut self) -> Result<u8, &'static str> {
        self.take::<1>().map(|[b]| b)
    }
    fn time(&mut self) -> Result<MediaTime, &'static str> {
        Ok(MediaTime::from_ticks(i64::from_le_bytes(self.take()?)))
    }
    fn bytes(&mut self, n: usize) -> Result<Bytes, &'static str> {
        if n > self.0.len() {
            return Err("it ends inside a field");
        }
        Ok(self.0.split_to(n))
    }
    fn rest(self) -> Bytes {
        self.0
    }
}

fn text(b: &[u8]) -> Result<Arc<str>, &'static str> {
    std::str::from_utf8(b).map(Into::into).map_err(|_| "its text is not UTF-8")
}

fn parse(body: Bytes) -> Result<Record, &'static str> {
    let mut f = Fields(body);
    let (kind, flags) = (f.u8()?, f.u8()?);
    let at = Duration::from_nanos(u64::from_le_bytes(f.take()?));
    let (pts, len) = (f.time()?, f.time()?);
    let payload = match kind {
        1 => {
            let (rate, channels) = (u32::from_le_bytes(f.take()?), u16::from_le_bytes(f.take()?));
            let sample = match f.u8()? {
                0 => SampleType::F32,
                1 => SampleType::I16,
                _ => return Err("its sample type is unknown"),
            };
            let voice = f32::from_le_bytes(f.take()?);
            let audio = Pcm::new(rate, channels, sample, Buf::from(f.rest())).map_err(|_| "its audio has no format")?;
            Payload::Audio(if voice.is_nan() { audio } else { audio.with_voice(voice) })
        }
        2 => Payload::Text(text(&f.rest())?),
        3 => {
            let b = f.rest();
            let (ids, over) = b.as_chunks::<4>();
            if !over.is_empty() {
                return Err("its tokens are cut");
            }
            Payload::Tokens(Tokens(ids.iter().map(|id| u32::from_le_bytes(*id)).collect()))
        }
        4 => {
            let dtype = *DTYPES.get(usize::from(f.u8()?)).ok_or("its element type is unknown")?;
            let mut shape = Vec::new();
            for _ in 0..f.u8()? {
                shape.push(usize::try_from(u64::from_le_bytes(f.take()?)).map_err(|_| "a size is too large")?);
            }
            let count = shape.iter().try_fold(dtype.bytes(), |n, s| n.checked_mul(*s));
            let buf = f.rest();
            if count != Some(buf.len()) {
                return Err("its elements do not fit its shape");
            }
            Payload::Tensor(Tensor { dtype, shape: shape.into(), buf: buf.into() })
        }
        5 => {
            let key = f.u8()? != 0;
            let (rate, channels) = (u32::from_le_bytes(f.take()?), u16::from_le_bytes(f.take()?));
            let name = f.u8()?;
            let codec = text(&f.bytes(name.into())?)?;
            Payload::Packet(Packet { codec, data: f.rest(), key, rate, channels })
        }
        6 => Payload::Signal(match f.u8()? {
            1 => Signal::SpeechStarted { at: f.time()? },
            2 => Signal::SpeechStopped { at: f.time()? },
            3 => {
                let (start, speech_end, end) = (f.time()?, f.time()?, f.time()?);
                let reason = *REASONS.get(usize::from(f.u8()?)).ok_or("its reason is unknown")?;
                Signal::TurnEnded { start, speech_end, end, reason }
            }
            4 => Signal::Played { until: f.time()? },
            5 => {
                let len = f.time()?;
                Signal::Gap { items: u64::from_le_bytes(f.take()?), len }
            }
            6 => {
                let name = u32::from_le_bytes(f.take()?) as usize;
                let name = text(&f.bytes(name)?)?;
                Signal::Named { name, data: text(&f.rest())? }
            }
            _ => return Err("its signal is unknown"),
        }),
        _ => return Err("its kind is unknown"),
    };
    Ok(Record { at, pts, len, last: flags & 1 != 0, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples() -> Vec<Payload> {
        let ms = MediaTime::from_millis;
        let signals = [
            Signal::SpeechStarted { at: ms(-5) },
            Signal::SpeechStopped { at: ms(9) },
            Signal::TurnEnded { start: ms(1), speech_end: ms(2), end: ms(3), reason: TurnEnd::Committed },
            Signal::Played { until: ms(77) },
            Signal::Gap { items: 3, len: ms(60) },
            Signal::Named { name: "a".into(), data: "{\"b\":1}".into() },
        ];
        let mut all: Vec<Payload> = signals.into_iter().map(Payload::Signal).collect();
        all.extend([
            Payload::Audio(Pcm::mono(22_050, vec![0.25, -1.0, 3.5])),
            Payload::Audio(Pcm::new(8_000, 2, SampleType::I16, Buf::from_i16(vec![1, -2])).unwrap().with_voice(0.5)),
            Payload::Text("h\u{e9}llo".into()),
            Payload::Tokens(Tokens(vec![1, u32::MAX].into())),
            Payload::Tensor(Tensor::f32(vec![2, 0, 3], vec![])),
            Payload::Tensor(Tensor::f32(vec![1, 2], vec![1.0, 2.0])),
            Payload::Packet(Packet {
                codec: "opus".into(),
                data: vec![1, 2, 3].into(),
                key: true,
                rate: 48_000,
                channels: 2,
            }),
        ]);
        all
    }

    fn recording() -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for (i, p) in samples().iter().enumerate() {
            let stamp = Stamp { pts: MediaTime::from_millis(i as i64), last: i % 2 == 1, ..Stamp::default() };
            encode(Duration::from_millis(i as u64 * 10), &stamp, p, &mut file).unwrap();
        }
        file
    }

    fn read(file: &[u8]) -> Result<(Vec<Record>, u64), DecodeError> {
        let mut records = Records::new(file)?;
        let mut all = Vec::new();
        while let Some(r) = records.read_next()? {
            all.push(r);
        }
        Ok((all, records.cut()))
    }

    #[test]
    fn everything_reads_back() {
        let (all, cut) = read(&recording()).unwrap();
        assert_eq!((all.len(), cut), (samples().len(), 0));
        for (i, (r, p)) in all.iter().zip(samples()).enumerate() {
            assert_eq!((r.at, r.last), (Duration::from_millis(i as u64 * 10), i % 2 == 1));
            assert_eq!(r.pts, MediaTime::from_millis(i as i64));
            assert_eq!(format!("{:?}", r.payload), format!("{p:?}"));
            if let (Payload::Audio(a), Payload::Audio(b)) = (&r.payload, &p) {
                assert_eq!(a.f32(), b.f32());
            }
        }
    }
    #[test]
    fn every_prefix_is_a_shorter_recording_or_none() {
        let file = recording();
        for n in 0..file.len() {
            match read(&file[..n]) {
                Ok((all, cut)) => assert!(n >= 8 && all.len() <= samples().len() && cut <= 1),
                Err(e) => assert!(n < 8 && matches!(e, DecodeError::Magic), "{n}: {e}"),
            }
        }
    }
    #[test]
    fn a_picture_is_refused() {
        let p = Payload::Custom(Arc::new(1u8));
        let mut out = Vec::new();
        assert!(matches!(encode(Duration::ZERO, &Stamp::default(), &p, &mut out), Err(EncodeError::Medium(_))));
        assert!(out.is_empty());
    }
    proptest! {
        #[test]
        fn damage_is_an_error_or_another_recording(at in 8usize..400, to in any::<u8>()) {
            let mut file = recording();
            let at = at % file.len();
            file[at] = to;
            let _ = read(&file);
        }
    }
}
