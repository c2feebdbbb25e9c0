//! The sample formats and their conversion to and from `f32`.

use std::fmt;
use std::str::FromStr;

use omni_flow_kernels as kernels;
use omni_flow_kernels::Tally;

use crate::g711;

/// How one sample is stored; multi-byte formats are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleFormat {
    /// Unsigned 8-bit, 128 is zero.
    U8,
    /// Signed 16-bit.
    I16,
    /// Signed 24-bit, packed in three bytes.
    I24,
    /// Signed 32-bit.
    I32,
    /// IEEE 754 single.
    F32,
    /// IEEE 754 double.
    F64,
    /// G.711 mu-law.
    Mulaw,
    /// G.711 A-law.
    Alaw,
}

/// A name that is no sample format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sample format `{0}`; use one of u8, i16, i24, i32, f32, f64, mulaw, alaw")]
pub struct UnknownFormat(pub String);

impl SampleFormat {
    /// All formats.
    pub const ALL: [SampleFormat; 8] =
        [Self::U8, Self::I16, Self::I24, Self::I32, Self::F32, Self::F64, Self::Mulaw, Self::Alaw];

    /// Bytes of one sample.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::Mulaw | Self::Alaw => 1,
            Self::I16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The name used in configuration: `u8`, `i16`, `i24`, `i32`, `f32`, `f64`, `mulaw`, `alaw`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::I24 => "i24",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Mulaw => "mulaw",
            Self::Alaw => "alaw",
        }
    }

    /// The byte that silence is made of: 0x80 for `u8`, 0xFF for mu-law, 0xD5 for A-law, else 0.
    pub const fn silence(self) -> u8 {
        match self {
            Self::U8 => 0x80,
            Self::Mulaw => g711::MULAW_SILENCE,
            Self::Alaw => g711::ALAW_SILENCE,
            _ => 0,
        }
    }

    /// Appends the samples in `bytes` to `out`. Bytes behind the last whole sample are not read (use a
    /// [`FrameSplitter`](super::FrameSplitter)). Float formats are not clipped at full scale; what is no number is 0 and
    /// counted.
    pub fn decode(self, bytes: &[u8], out: &mut Vec<f32>) -> Tally {
        let samples = bytes.len() / self.bytes();
        let bytes = &bytes[..samples * self.bytes()];
        let start = out.len();
        out.resize(start + samples, 0.0);
        let out = &mut out[start..];
        match self {
            Self::U8 => kernels::u8_to_f32(bytes, out),
            Self::I16 => {
                blockwise(
                    bytes,
                    out,
                    |b| i16::from_le_bytes(*b),
                    |s, d| {
                        kernels::i16_to_f32(s, d);
                        Tally::default()
                    },
                );
            }
            Self::I24 => kernels::i24_to_f32(bytes, out),
            Self::I32 => {
                blockwise(
                    bytes,
                    out,
                    |b| i32::from_le_bytes(*b),
                    |s, d| {
                        kernels::i32_to_f32(s, d);
                        Tally::default()
                    },
                );
            }
            Self::F32 => return blockwise(bytes, out, |b| f32::from_le_bytes(*b), numbers),
            Self::F64 => return blockwise(bytes, out, |b| f64::from_le_bytes(*b), kernels::f64_to_f32),
            Self::Mulaw => companded(bytes, out, g711::mulaw_decode),
            Self::Alaw => companded(bytes, out, g711::alaw_decode),
        }
        Tally::default()
    }

    /// Appends `samples` in this format to `out`. Integer formats saturate at full scale, half-way values go to the even
    /// neighbour, what is no number becomes silence; both repairs are counted.
    pub fn encode(self, samples: &[f32], out: &mut Vec<u8>) -> Tally {
        let start = out.len();
        out.resize(start + samples.len() * self.bytes(), 0);
        let out = &mut out[start..];
        match self {
            Self::U8 => kernels::f32_to_u8(samples, out),
            Self::I16 => by_blocks(samples, out, kernels::f32_to_i16, |v: &i16| v.to_le_bytes()),
            Self::I24 => kernels::f32_to_i24(samples, out),
            Self::I32 => by_blocks(samples, out, kernels::f32_to_i32, |v: &i32| v.to_le_bytes()),
            Self::F32 => by_blocks(samples, out, numbers, |v: &f32| v.to_le_bytes()),
            Self::F64 => by_blocks(
                samples,
                out,
                |s, d: &mut [f64]| {
                    let mut clean = [0.0; BLOCK];
                    let tally = numbers(s, &mut clean[..s.len()]);
                    kernels::f32_to_f64(&clean[..s.len()], d);
                    tally
                },
                |v: &f64| v.to_le_bytes(),
            ),
            Self::Mulaw => by_blocks(samples, out, kernels::f32_to_i16, |v: &i16| [g711::mulaw_encode(*v)]),
            Self::Alaw => by_blocks(samples, out, kernels::f32_to_i16, |v: &i16| [g711::alaw_encode(*v)]),
        }
    }
}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SampleFormat {
    type Err = UnknownFormat;
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Samples converted at a time, so that aligned copies live on the stack.
const BLOCK: usize = 256;

/// Bytes to values to `f32`, a block at a time.
fn blockwise<const N: usize, T: Copy + Default>(
    bytes: &[u8],
    out: &mut [f32],
    read: impl Fn(&[u8; N]) -> T,
    convert: impl Fn(&[T], &mut [f32]) -> Tally,
) -> Tally {
    let mut tally = Tally::default();
    let mut values = [T::default(); BLOCK];
    for (src, dst) in bytes.as_chunks::<N>().0.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        for (v, b) in values.iter_mut().zip(src) {
            *v = read(b);
        }
        tally += convert(&values[..src.len()], dst);
    }
    tally
}

/// `f32` to values to bytes, a block at a time.
fn by_blocks<const N: usize, T: Copy + Default>(
    samples: &[f32],
    out: &mut [u8],
    convert: impl Fn(&[f32], &mut [T]) -> Tally,
    write: impl Fn(&T) -> [u8; N],
) -> Tally {
    let mut tally = Tally::default();
    let mut values = [T::default(); BLOCK];
    for (src, dst) in samples.chunks(BLOCK).zip(out.as_chunks_mut::<N>().0.chunks_mut(BLOCK)) {
        tally += convert(src, &mut values[..src.len()]);
        for (b, v) in dst.iter_mut().zip(&values) {
            *b = write(v);
        }
    }
    tally
}

fn companded(bytes: &[u8], out: &mut [f32], decode: impl Fn(u8) -> i16) {
    for (d, &b) in out.iter_mut().zip(bytes) {
        *d = f32::from(decode(b)) / 32768.0;
    }
}

/// Copies floats; not a number becomes 0.
fn numbers(src: &[f32], dst: &mut [f32]) -> Tally {
    let mut tally = Tally::default();
    for (d, &v) in dst.iter_mut().zip(src) {
        tally.nan += usize::from(v.is_nan());
        *d = if v.is_nan() { 0.0 } else { v };
    }
    tally
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_go_both_ways_and_a_wrong_one_lists_the_right_ones() {
        for format in SampleFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "s16le".parse::<SampleFormat>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown sample format `s16le`; use one of u8, i16, i24, i32, f32, f64, mulaw, alaw"
        );
    }

    #[test]
    fn silence_is_the_same_byte_everywhere_in_a_sample_and_decodes_to_almost_nothing() {
        for format in SampleFormat::ALL {
            let mut out = Vec::new();
            format.decode(&vec![format.silence(); format.bytes() * 3], &mut out);
            assert_eq!(out.len(), 3);
            // A-law has no zero; its quietest code is 8 of 32768.
            assert!(out.iter().all(|v| v.abs() <= 8.0 / 32768.0), "{format}");
        }
    }

    #[test]
    fn what_is_no_number_is_counted_in_every_format() {
        for format in SampleFormat::ALL {
            let mut bytes = Vec::new();
            let tally = format.encode(&[f32::NAN, 0.5, f32::NAN], &mut bytes);
            assert_eq!((tally.nan, tally.clipped), (2, 0), "{format}");
            let mut back = Vec::new();
            assert!(format.decode(&bytes, &mut back).is_clean());
            assert!(back[0].abs() < 0.001 && back[2].abs() < 0.001 && (back[1] - 0.5).abs() < 0.02, "{format}");
        }
        let mut out = Vec::new();
        assert_eq!(SampleFormat::F32.decode(&f32::NAN.to_le_bytes(), &mut out).nan, 1);
        assert_eq!(SampleFormat::F64.decode(&f64::NAN.to_le_bytes(), &mut out).nan, 1);
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn a_cut_sample_at_the_end_is_not_read() {
        let mut out = Vec::new();
        SampleFormat::I24.decode(&[0, 0, 0x40, 1, 2], &mut out);
        assert_eq!(out, [0.5]);
    }

    proptest! {
        #[test]
        fn linear_formats_keep_bytes_over_a_round_trip(
            samples in prop::collection::vec(-1.0f32..0.99, 0..700), which in 0usize..6,
        ) {
            let format = SampleFormat::ALL[which];
            let (mut bytes, mut floats, mut again) = (Vec::new(), Vec::new(), Vec::new());
            format.encode(&samples, &mut bytes);
            prop_assert_eq!(bytes.len(), samples.len() * format.bytes());
            format.decode(&bytes, &mut floats);
            for (a, b) in samples.iter().zip(&floats) {
                prop_assert!((a - b).abs() <= 0.5 / 128.0);
            }
            format.encode(&floats, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
