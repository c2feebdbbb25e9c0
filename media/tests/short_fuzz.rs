//! A short fuzz run of every byte parser, on the stable toolchain: vectors changed at random, and random bytes.
//!
//! Deterministic: a failure names its seed. `fuzz/` has the same bodies for a long run with coverage.

mod common;

use common::{Random, aiff, flac, opus, wav_vectors};
use omni_flow_media::file::{AudioFile, Input};
use omni_flow_media::pcm::{FrameSplitter, SampleFormat};
use omni_flow_media::wav::{WavOrigin, WavReader};

/// Changes bytes, sizes and length of a seed input.
fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(6) {
        if bytes.is_empty() {
            bytes.push(random.bits() as u8);
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.bits() as u8),
            4 => {
                let value = [0u32, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFE, random.bits() as u32][random.below(6)];
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            5 => {
                let part = bytes[at..bytes.len().min(at + random.below(40))].to_vec();
                bytes.extend_from_slice(&part);
            }
            _ => {
                let name = [b"data", b"fmt ", b"LIST", b"RIFF", b"ds64", b"WAVE"][random.below(6)];
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&name[..end - at]);
            }
        }
    }
    bytes
}

fn run(seeds: &[Vec<u8>], rounds: u64, body: impl Fn(&[u8], &mut Random)) {
    for round in 0..rounds {
        let mut random = Random(round);
        let bytes = if round % 8 == 0 {
            (0..random.below(300)).map(|_| random.bits() as u8).collect()
        } else {
            mutate(&seeds[random.below(seeds.len())], &mut random)
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&bytes, &mut random)));
        assert!(result.is_ok(), "round {round}: {bytes:02x?}");
    }
}

/// Any split gives the same result, and nothing comes out that did not go in.
#[test]
fn wav() {
    let seeds: Vec<Vec<u8>> = wav_vectors().into_iter().map(|(_, bytes)| bytes).collect();
    run(&seeds, 20_000, |bytes, random| {
        for origin in [WavOrigin::Pipe, WavOrigin::File { len: bytes.len() as u64 }, WavOrigin::Pieces] {
            let mut outcomes = Vec::new();
            for step in [bytes.len().max(1), 1 + random.below(20)] {
                let (mut reader, mut out) = (WavReader::new(origin), Vec::new());
                let pushed = bytes.chunks(step).try_for_each(|piece| reader.push(piece, &mut out));
                let end = pushed.and_then(|()| reader.finish(&mut out));
                assert!(out.len() <= bytes.len());
                outcomes.push((end, out));
            }
            assert_eq!(outcomes[0], outcomes[1]);
        }
        let (mut reader, mut out) = (WavReader::new(WavOrigin::Pieces), Vec::new());
        for piece in bytes.chunks(1 + random.below(60)) {
            let _ = reader.push_piece(piece, &mut out);
        }
        let _ = reader.finish(&mut out);
        assert!(out.len() <= bytes.len());
    });
}

/// Splitter and sample formats on bytes that mean nothing.
#[test]
fn samples() {
    run(&[vec![0x7F; 64], vec![0xFF; 33]], 5000, |bytes, random| {
        let format = SampleFormat::ALL[random.below(8)];
        let frame = format.bytes() * (1 + random.below(5));
        let (mut splitter, mut whole) = (FrameSplitter::new(frame), Vec::new());
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, next) = rest.split_at((1 + random.below(9)).min(rest.len()));
            splitter.push(piece, &mut whole);
            rest = next;
        }
        assert_eq!(whole, bytes[..bytes.len() - bytes.len() % frame]);
        let (mut floats, mut again) = (Vec::new(), Vec::new());
        format.decode(&whole, &mut floats);
        assert!(floats.iter().all(|v| !v.is_nan()));
        assert_eq!(format.encode(&floats, &mut again).nan, 0);
        assert_eq!(again.len(), whole.len());
    });
}

/// Whole files of all kinds; a panic inside symphonia would be caught there and is not looked for here.
#[test]
fn audio_file() {
    let ramp: Vec<i16> = (0..300).map(|i| (i * 97) as i16).collect();
    let mut seeds: Vec<Vec<u8>> = wav_vectors().into_iter().map(|(_, bytes)| bytes).collect();
    seeds.extend([flac(&ramp, 2, 16_000), aiff(&ramp, 1, 8000)]);
    seeds.extend([flac(&ramp, 1, 48_000), aiff(&ramp, 2, 8000), flac(&ramp, 1, 8000), flac(&ramp, 2, 8000)]);
    seeds.extend([opus(8000, 1, 3000), opus(16_000, 2, 2000), opus(48_000, 1, 0)]);
    run(&seeds, 3000, |bytes, _| {
        let Ok(mut file) = AudioFile::new(Input::memory(bytes.to_vec()), "fuzz") else { return };
        let mut out = Vec::new();
        for _ in 0..1000 {
            out.clear();
            if !matches!(file.next(&mut out), Ok(1..)) {
                return;
            }
        }
    });
}
