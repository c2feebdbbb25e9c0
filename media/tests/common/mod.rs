//! Where the vectors lie, readers that cut, and small files made in memory.
#![allow(dead_code)]

use std::io::{self, Read};
use std::path::PathBuf;

use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
use omni_flow_media::wav::{WavPipe, WavSource};

pub fn vector_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors").join(name)
}

pub fn vector(name: &str) -> Vec<u8> {
    let path = vector_path(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All WAV vectors.
pub fn wav_vectors() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(vector_path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".wav"))
        .map(|name| (name.clone(), vector(&name)))
        .collect();
    all.sort();
    assert!(all.len() >= 20, "the vectors are there");
    all
}

/// A reader that gives at most so many bytes at a time, and is interrupted now and then.
pub struct Trickle {
    pub bytes: Vec<u8>,
    pub at: usize,
    pub most: usize,
    pub calls: usize,
}

impl Trickle {
    pub fn new(bytes: &[u8], most: usize) -> Self {
        Self { bytes: bytes.to_vec(), at: 0, most, calls: 0 }
    }
}

impl Read for Trickle {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.most.min(buf.len()).min(self.bytes.len() - self.at);
        buf[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// A repeatable stream of random bits (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.bits() % n as u64) as usize }
    }
}

pub fn spec(format: SampleFormat, rate: u32, channels: u16) -> PcmSpec {
    PcmSpec::new(format, rate, Layout::of(channels)).unwrap()
}

/// A WAV with a streaming header.
pub fn wav(spec: PcmSpec, samples: &[f32]) -> Vec<u8> {
    let mut pipe = WavPipe::new(Vec::new(), "memory", spec).unwrap();
    pipe.write(samples).unwrap();
    pipe.finish().unwrap()
}

/// All samples, and the summary.
pub fn read_all<R: Read>(mut source: WavSource<R>, step: usize) -> (Vec<f32>, omni_flow_media::wav::WavSummary) {
    let mut out = Vec::new();
    while source.read(step, &mut out).unwrap() > 0 {}
    (out, source.summary().unwrap())
}

/// A 16-bit FLAC file of one or two channels, uncompressed (verbatim subframes), in blocks of 1000 frames.
pub fn flac(samples: &[i16], channels: usize, rate: u32) -> Vec<u8> {
    let frames = samples.len() / channels;
    let mut out = b"fLaC".to_vec();
    // STREAMINFO, the last metadata block, 34 bytes.
    out.extend_from_slice(&[0x80, 0, 0, 34]);
    out.extend_from_slice(&1000u16.to_be_bytes());
    out.extend_from_slice(&1000u16.to_be_bytes());
    out.extend_from_slice(&[0; 6]);
    let info = u64::from(rate) << 44 | (channels as u64 - 1) << 41 | 15 << 36 | frames as u64;
    out.extend_from_slice(&info.to_be_bytes());
    out.extend_from_slice(&[0; 16]);
    for (number, block) in samples.chunks(1000 * channels).enumerate() {
        let mut frame = vec![0xFF, 0xF8];
        // Block size follows as 16 bits, rate as in STREAMINFO; channels, 16 bits.
        frame.extend_from_slice(&[0x70, (channels as u8 - 1) << 4 | 4 << 1, number as u8]);
        assert!(number < 128);
        frame.extend_from_slice(&(((block.len() / channels) - 1) as u16).to_be_bytes());
        frame.push(crc(&frame, 8, 0x07) as u8);
        for channel in 0..channels {
            frame.push(0b0000_0010);
            for s in block.iter().skip(channel).step_by(channels) {
                frame.extend_from_slice(&s.to_be_bytes());
            }
        }
        let sum = crc(&frame, 16, 0x8005) as u16;
        frame.extend_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&frame);
    }
    out
}

fn crc(bytes: &[u8], bits: u32, polynomial: u32) -> u32 {
    bytes.iter().fold(0, |sum, &b| {
        (0..8).fold(sum ^ u32::from(b) << (bits - 8), |s, _| {
            let out = (s >> (bits - 1)) & 1;
            ((s << 1) ^ (out * polynomial)) & ((1 << bits) - 1)
        })
    })
}

/// A 16-bit AIFF file.
pub fn aiff(samples: &[i16], channels: usize, rate: u16) -> Vec<u8> {
    let mut out = b"FORM\0\0\0\0AIFFCOMM\0\0\0\x12".to_vec();
    out.extend_from_slice(&(channels as u16).to_be_bytes());
    out.extend_from_slice(&((samples.len() / channels) as u32).to_be_bytes());
    out.extend_from_slice(&16u16.to_be_bytes());
    // The rate as an 80-bit float: exponent, then 64 bits of mantissa with the leading one.
    let shift = rate.leading_zeros();
    out.extend_from_slice(&(16383 + 15 - shift as u16).to_be_bytes());
    out.extend_from_slice(&(u64::from(rate) << (48 + shift)).to_be_bytes());
    out.extend_from_slice(b"SSND");
    out.extend_from_slice(&(8 + 2 * samples.len() as u32).to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    samples.iter().for_each(|s| out.extend_from_slice(&s.to_be_bytes()));
    let size = out.len() as u32 - 8;
    out[4..8].copy_from_slice(&size.to_be_bytes());
    out
}
