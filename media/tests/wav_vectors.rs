//! Field cases F01 to F04 on their vectors: from a file, through a pipe, one byte at a time, cut anywhere.

mod common;

use common::{Trickle, read_all, vector, vector_path, wav_vectors};
use omni_flow_media::pcm::SampleFormat;
use omni_flow_media::wav::{WavError, WavFileError, WavOrigin, WavReader, WavSource, WavSummary};

/// Integer samples of a stream, with their summary.
#[derive(Debug, PartialEq)]
struct Read {
    samples: Vec<i32>,
    summary: WavSummary,
}

fn integers(stored: &[u8], format: SampleFormat) -> Vec<i32> {
    match format {
        SampleFormat::I16 => stored.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b).into()).collect(),
        SampleFormat::I24 => {
            stored.as_chunks::<3>().0.iter().map(|&[a, b, c]| i32::from_le_bytes([0, a, b, c]) >> 8).collect()
        }
        _ => stored.iter().map(|&b| b.into()).collect(),
    }
}

fn push_all(bytes: &[u8], origin: WavOrigin, step: usize) -> Result<Read, WavError> {
    let (mut reader, mut stored) = (WavReader::new(origin), Vec::new());
    for piece in bytes.chunks(step) {
        reader.push(piece, &mut stored)?;
        assert!(stored.len() <= bytes.len(), "never more than has arrived");
    }
    let summary = reader.finish(&mut stored)?;
    assert_eq!(reader.total_frames(), Some(summary.frames));
    assert_eq!(stored.len() as u64, summary.frames * summary.spec.frame_bytes() as u64);
    Ok(Read { samples: integers(&stored, summary.spec.format()), summary })
}

/// Reads in every way there is, checks that all ways agree, and gives what they gave.
fn read(name: &str) -> Result<Read, WavError> {
    let bytes = vector(name);
    let file = WavOrigin::File { len: bytes.len() as u64 };
    let want = push_all(&bytes, WavOrigin::Pipe, bytes.len());
    for origin in [WavOrigin::Pipe, file, WavOrigin::Pieces] {
        for step in 1..=bytes.len() {
            assert_eq!(push_all(&bytes, origin, step), want, "{name} {origin:?} in steps of {step}");
        }
    }
    // The same through `Read`: from the file itself, and from a pipe that gives one byte at a time.
    let opened = WavSource::open(vector_path(name));
    let piped = WavSource::pipe(Trickle::new(&bytes, 1), name);
    match &want {
        Ok(want) => {
            let opened = opened.unwrap();
            assert_eq!(opened.total_frames(), Some(want.summary.frames), "{name}: duration of the file");
            let piped = piped.unwrap();
            let (a, b) = (read_all(opened, 1), read_all(piped, 1000));
            assert_eq!(a, b, "{name}");
            assert_eq!(a.1, want.summary, "{name}");
            assert_eq!(a.0.len(), want.samples.len(), "{name}");
            let scale = match want.summary.spec.format() {
                SampleFormat::I24 => 8_388_608.0,
                _ => 32768.0,
            };
            assert!(a.0.iter().zip(&want.samples).all(|(f, &s)| *f == s as f32 / scale), "{name}");
        }
        Err(want) => {
            for got in [opened.err(), piped.err()] {
                match got {
                    Some(WavFileError::Wav { name: path, source }) => {
                        assert_eq!(&source, want);
                        assert!(path.contains(name));
                    }
                    other => panic!("{name}: {other:?}"),
                }
            }
        }
    }
    want
}

#[track_caller]
fn expect(name: &str, rate: u32, channels: usize, samples: &[i32], truncated_bytes: u64) {
    let read = read(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(read.samples, samples, "{name}");
    assert_eq!((read.summary.spec.rate(), read.summary.spec.channels()), (rate, channels), "{name}");
    assert_eq!(read.summary.truncated_bytes, truncated_bytes, "{name}");
}

#[test]
fn f01_every_form_of_the_format_chunk_gives_the_same_samples() {
    for name in ["fmt16", "fmt18", "fmt19-odd-cb", "fmt40-pcm-cb0", "ext40", "ext44-cb26"] {
        let name = format!("f01-{name}.wav");
        expect(&name, 48_000, 1, &[-8_388_608, 8_388_607, 1], 0);
        assert_eq!(read(&name).unwrap().summary.spec.format(), SampleFormat::I24);
    }
}

#[test]
fn f01_an_unknown_sub_format_is_refused_by_type() {
    let error = read("f01-ext40-unknown-guid.wav").unwrap_err();
    assert!(matches!(error, WavError::UnsupportedFormat { .. }), "{error}");
    assert!(error.to_string().contains("aa55000000001000"), "{error}");
}

#[test]
fn f02_sizes_are_not_trusted() {
    for name in ["ffffffff", "7fffffff", "2e9", "riff-4-short", "size0-then-pcm"] {
        expect(&format!("f02-{name}.wav"), 16_000, 1, &[1, -1, 256, -256], 0);
    }
    expect("f02-size0-then-list.wav", 16_000, 1, &[], 0);
}

#[test]
fn f02_on_a_pipe_the_duration_is_unknown_until_the_end_is_seen() {
    for (name, bytes) in wav_vectors() {
        let (mut reader, mut out) = (WavReader::new(WavOrigin::Pipe), Vec::new());
        for (i, byte) in bytes.iter().enumerate() {
            if reader.push(&[*byte], &mut out).is_err() {
                break;
            }
            if let Some(total) = reader.total_frames() {
                assert!(reader.at_samples() && total == reader.frames(), "{name} at byte {i}: {total}");
            }
        }
    }
    let (mut reader, mut out) = (WavReader::new(WavOrigin::Pipe), Vec::new());
    reader.push(&vector("f02-2e9.wav"), &mut out).unwrap();
    assert_eq!(reader.total_frames(), None);
    reader.finish(&mut out).unwrap();
    assert_eq!(reader.total_frames(), Some(4));
}

#[test]
fn f02_in_a_file_the_duration_follows_from_the_bytes_present() {
    for name in ["ffffffff", "7fffffff", "2e9", "riff-4-short", "size0-then-pcm"] {
        let bytes = vector(&format!("f02-{name}.wav"));
        let mut reader = WavReader::new(WavOrigin::File { len: bytes.len() as u64 });
        // A size of 0 needs a look at the eight bytes behind it.
        reader.push(&bytes[..52], &mut Vec::new()).unwrap();
        assert_eq!(reader.total_frames(), Some(4), "{name}");
    }
}

#[test]
fn f02_only_a_size_that_was_meant_promises_anything() {
    // A file of 1000 frames of which `there` bytes are there, its header stating `size`.
    let cut = |size: u32, there: usize| {
        let mut bytes = vector("f01-fmt16.wav")[..44].to_vec();
        bytes[40..44].copy_from_slice(&size.to_le_bytes());
        bytes.extend(std::iter::repeat_n(7, there));
        bytes
    };
    let missing = |bytes: &[u8], origin: WavOrigin| {
        let (mut reader, mut out) = (WavReader::new(origin), Vec::new());
        reader.push(bytes, &mut out).unwrap();
        let early = reader.missing_bytes();
        (early, reader.finish(&mut out).unwrap().missing_bytes)
    };
    let file = |bytes: &[u8]| missing(bytes, WavOrigin::File { len: bytes.len() as u64 });
    for (size, there, want) in [(2000, 2000, 0), (2000, 1400, 600), (2000, 0, 2000), (2000, 1401, 599), (2000, 3000, 0)]
    {
        let bytes = cut(size, there);
        assert_eq!(file(&bytes), (want, want), "{size} of which {there}");
        assert_eq!(missing(&bytes, WavOrigin::Pipe), (0, want), "a pipe tells at its end");
    }
    // What programs write that stream: ffmpeg, sox, arecord, browsers, and those that subtract a header.
    let stand_ins = [
        0,
        0xFFFF_FFFF,
        0xFFFF_FFFF - 36,
        0xFFFF_F000,
        0x7FFF_FFFF,
        0x7FFF_FFFF - 36,
        0x7FFF_F000,
        0x8000_0000,
        2_000_000_000,
        2_000_000_000 - 44,
    ];
    for size in stand_ins {
        let bytes = cut(size, 1400);
        assert_eq!(file(&bytes).1, 0, "{size:#x}");
        assert_eq!(missing(&bytes, WavOrigin::Pipe), (0, 0), "{size:#x}");
    }
    // A file that grew after its length was taken.
    assert_eq!(missing(&cut(2000, 2000), WavOrigin::File { len: 1444 }), (600, 0));
}

#[test]
fn f02_printable_samples_behind_a_size_of_zero_are_samples_if_they_fit_no_chunk() {
    let mut bytes = vector("f02-size0-then-pcm.wav")[..44].to_vec();
    bytes.extend_from_slice(b"ABCDEFGHIJ");
    for origin in [WavOrigin::Pipe, WavOrigin::File { len: 54 }] {
        assert_eq!(push_all(&bytes, origin, 1).unwrap().samples.len(), 5, "{origin:?}");
    }
    // On a pipe only known names end an empty payload; in a file any name whose size fits does.
    let mut bytes = bytes[..44].to_vec();
    bytes.extend_from_slice(b"zzzz\x02\0\0\0ab");
    assert_eq!(push_all(&bytes, WavOrigin::Pipe, 3).unwrap().samples.len(), 5);
    assert_eq!(push_all(&bytes, WavOrigin::File { len: 54 }, 3).unwrap().samples.len(), 0);
    // Fewer bytes than a chunk header are samples.
    for n in 0..8 {
        let short = &[&bytes[..44], &b"LISTxyz"[..n.min(3)]].concat();
        let read = push_all(short, WavOrigin::File { len: short.len() as u64 }, 1).unwrap();
        assert_eq!(read.samples.len(), n.min(3) / 2);
        assert_eq!(push_all(short, WavOrigin::Pipe, 1).unwrap(), read);
    }
}

#[test]
fn f03_padding_and_a_cut_last_frame() {
    expect("f03-odd-list-pad00.wav", 16_000, 1, &[1, -1, 256, -256], 0);
    expect("f03-odd-list-pad51.wav", 16_000, 1, &[1, -1, 256, -256], 0);
    expect("f03-24bit-no-final-pad.wav", 48_000, 1, &[-8_388_608, 8_388_607, 1], 0);
    expect("f03-stereo-half-frame.wav", 16_000, 2, &[100, -100, 200, -200], 2);
}

#[test]
fn f04_chunks_behind_the_samples_are_not_samples() {
    expect("f04-list-after-data.wav", 16_000, 1, &[1, -1, 256, -256], 0);
}

const RAMP: [i32; 12] = [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 11_000, 12_000];

fn pieces(names: &[&str]) -> Result<Read, (WavError, Vec<u8>)> {
    let (mut reader, mut stored) = (WavReader::new(WavOrigin::Pieces), Vec::new());
    for name in names {
        if let Err(error) = reader.push_piece(&vector(name), &mut stored) {
            assert_eq!(reader.push_piece(&vector(names[0]), &mut stored), Err(error.clone()), "an error is final");
            return Err((error, stored));
        }
    }
    let summary = reader.finish(&mut stored).unwrap();
    Ok(Read { samples: integers(&stored, summary.spec.format()), summary })
}

#[test]
fn f04_headers_of_later_pieces_are_removed() {
    let all = ["f04-piece-1.wav", "f04-piece-2.wav", "f04-piece-3.wav"];
    assert_eq!(pieces(&all).unwrap().samples, RAMP);
    // The same joined without seams, cut in any way.
    let joined: Vec<u8> = all.iter().flat_map(|name| vector(name)).collect();
    for step in 1..=joined.len() {
        assert_eq!(push_all(&joined, WavOrigin::Pieces, step).unwrap().samples, RAMP, "steps of {step}");
    }
    // A reader of one file stops at its end.
    assert_eq!(push_all(&joined, WavOrigin::Pipe, 7).unwrap().samples, RAMP[..4]);
}

#[test]
fn f04_pieces_with_streaming_headers_and_pieces_without() {
    let mut first = vector("f04-piece-1.wav");
    first[40..44].copy_from_slice(&[0xFF; 4]);
    let mut second = vector("f04-piece-2.wav");
    second[40..44].copy_from_slice(&[0; 4]);
    let third = vector("f04-piece-3.wav")[44..].to_vec();
    let (mut reader, mut stored) = (WavReader::new(WavOrigin::Pieces), Vec::new());
    // Even cut in the middle of a sample: the bytes join.
    for piece in [&first[..], &second, &third[..3], &third[3..]] {
        reader.push_piece(piece, &mut stored).unwrap();
    }
    let summary = reader.finish(&mut stored).unwrap();
    assert_eq!(integers(&stored, SampleFormat::I16), RAMP);
    assert_eq!(summary.truncated_bytes, 0);
}

#[test]
fn f04_a_piece_of_another_format_is_an_error_and_nothing_of_it_is_heard() {
    let (error, stored) = pieces(&["f04-piece-1.wav", "f04-piece-2-at-24k.wav", "f04-piece-3.wav"]).unwrap_err();
    assert!(matches!(error, WavError::FormatChanged { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the WAV stream changes from 16000 Hz mono i16 to 24000 Hz mono i16; pieces of one stream must have one format"
    );
    assert_eq!(integers(&stored, SampleFormat::I16), RAMP[..4]);
}

#[test]
fn every_prefix_of_every_vector_ends_well() {
    for (name, bytes) in wav_vectors() {
        for n in 0..bytes.len() {
            let cut = &bytes[..n];
            let mut results = Vec::new();
            for origin in [WavOrigin::Pipe, WavOrigin::File { len: n as u64 }, WavOrigin::Pieces] {
                for step in [1, 5, n.max(1)] {
                    results.push(push_all(cut, origin, step));
                }
            }
            let first = &results[0];
            assert!(results.iter().all(|r| r == first), "{name} cut to {n}: {results:?}");
            if n < 12 {
                assert_eq!(*first, Err(WavError::Truncated), "{name} cut to {n}");
            }
        }
    }
}

#[test]
fn what_is_no_wav_is_refused_at_the_first_wrong_byte() {
    let mut reader = WavReader::new(WavOrigin::Pipe);
    assert_eq!(reader.push(b"fLaC", &mut Vec::new()), Err(WavError::NotWav));
    let mut reader = WavReader::new(WavOrigin::Pipe);
    assert_eq!(reader.push(b"R", &mut Vec::new()), Ok(()));
    assert_eq!(reader.push(b"X", &mut Vec::new()), Err(WavError::NotWav));
    assert_eq!(push_all(b"RIFF\0\0\0\0AVI LIST", WavOrigin::Pipe, 1), Err(WavError::NotWav));
    let rifx = push_all(b"RIFX\0\0\0\0WAVE", WavOrigin::Pipe, 1);
    assert!(matches!(rifx, Err(WavError::UnsupportedFormat { .. })));
    let data_first = push_all(b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd", WavOrigin::Pipe, 1);
    assert!(matches!(data_first, Err(WavError::Malformed { .. })));
    let short_fmt = push_all(b"RIFF\0\0\0\0WAVEfmt \x0F\0\0\0", WavOrigin::Pipe, 1);
    assert!(matches!(short_fmt, Err(WavError::Malformed { .. })));
}

#[test]
fn a_long_file_of_64_bit_sizes_is_read() {
    let plain = vector("f01-fmt16.wav");
    let mut bytes = b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0".to_vec();
    bytes.extend_from_slice(&100u64.to_le_bytes());
    bytes.extend_from_slice(&9u64.to_le_bytes());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&plain[12..36]);
    bytes.extend_from_slice(b"data\xff\xff\xff\xff");
    bytes.extend_from_slice(&plain[44..53]);
    bytes.extend_from_slice(b"\0LIST\x04\0\0\0abcd");
    for origin in [WavOrigin::Pipe, WavOrigin::File { len: bytes.len() as u64 }] {
        for step in [1, 7, 1000] {
            assert_eq!(push_all(&bytes, origin, step).unwrap().samples, [-8_388_608, 8_388_607, 1]);
        }
    }
    // A placeholder in the 64-bit size, too, means "until the end".
    let size = 12 + 8 + 8;
    bytes.truncate(bytes.len() - 13);
    bytes[size..size + 8].copy_from_slice(&[0xFF; 8]);
    assert_eq!(push_all(&bytes, WavOrigin::Pipe, 1).unwrap().samples.len(), 3);
}

#[test]
fn a_second_payload_and_a_huge_chunk_claim_are_nothing() {
    let mut bytes = vector("f04-piece-1.wav");
    bytes.extend_from_slice(b"data\x04\0\0\0abcd");
    for origin in [WavOrigin::Pipe, WavOrigin::Pieces] {
        assert_eq!(push_all(&bytes, origin, 1).unwrap().samples.len(), 4);
    }
    let claim = b"RIFF\xff\xff\xff\xffWAVEJUNK\xfe\xff\xff\xff".to_vec();
    assert_eq!(push_all(&claim, WavOrigin::Pipe, 1), Err(WavError::Truncated));
}
