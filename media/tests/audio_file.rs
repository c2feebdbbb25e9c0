//! Audio files of several formats, whole, through a pipe, damaged and cut.

mod common;

use std::path::PathBuf;

use common::{Trickle, aiff, flac, opus, spec, wav};
use omni_flow_media::file::{AudioFile, AudioFileError, Input, decode};
use omni_flow_media::levels::{measure, speech_bounds};
use omni_flow_media::ogg_opus::{Page, PageParser};
use omni_flow_media::pcm::SampleFormat;

fn all(mut file: AudioFile) -> Result<Vec<f32>, AudioFileError> {
    let (mut out, channels) = (Vec::new(), file.spec().channels());
    loop {
        let before = out.len();
        let frames = file.next(&mut out)?;
        assert_eq!(out.len() - before, frames * channels);
        if frames == 0 {
            assert_eq!(file.next(&mut out)?, 0, "the end stays the end");
            assert_eq!(file.total_frames(), Some((out.len() / channels) as u64));
            return Ok(out);
        }
    }
}

#[test]
fn a_wav_is_the_same_from_memory_and_from_a_pipe() {
    let samples: Vec<f32> = (0..5000).map(|i| (i % 1000) as f32 / 1024.0).collect();
    let bytes = wav(spec(SampleFormat::F32, 22_050, 2), &samples);
    let file = AudioFile::new(Input::memory(bytes.clone()), "memory").unwrap();
    assert_eq!((file.spec().rate(), file.spec().channels(), file.total_frames()), (22_050, 2, Some(2500)));
    assert_eq!(all(file).unwrap(), samples);
    for most in [1, 7, 4096] {
        let file = AudioFile::new(Input::pipe(Trickle::new(&bytes, most)), "pipe").unwrap();
        assert_eq!(file.total_frames(), None);
        assert_eq!(all(file).unwrap(), samples);
    }
}

#[test]
fn a_file_that_was_cut_short_says_by_how_much() {
    let samples = vec![0.25; 16_000];
    let mut whole = wav(spec(SampleFormat::I16, 16_000, 1), &samples);
    whole[40..44].copy_from_slice(&32_000u32.to_le_bytes());
    let cut = &whole[..whole.len() - 8000];
    let mut file = AudioFile::new(Input::memory(cut.to_vec()), "cut.wav").unwrap();
    let quarter = Some(std::time::Duration::from_millis(250));
    assert_eq!(file.missing(), quarter, "known before the first sample");
    while file.next(&mut Vec::new()).unwrap() > 0 {}
    assert_eq!(file.missing(), quarter);
    let mut file = AudioFile::new(Input::pipe(Trickle::new(cut, 1000)), "pipe").unwrap();
    assert_eq!(file.missing(), None);
    while file.next(&mut Vec::new()).unwrap() > 0 {}
    assert_eq!(file.missing(), quarter);
    let mut file = AudioFile::new(Input::memory(whole), "whole.wav").unwrap();
    while file.next(&mut Vec::new()).unwrap() > 0 {}
    assert_eq!(file.missing(), None);
}

#[test]
#[cfg(feature = "symphonia")]
fn whole_files_of_other_formats_lack_nothing_and_cut_ones_do() {
    let folder = common::vector_path("tone");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let Ok(mut file) = AudioFile::open(entry.path()) else { continue };
        while file.next(&mut Vec::new()).unwrap() > 0 {}
        assert_eq!(file.missing(), None, "{}", entry.path().display());
    }
    let whole = flac(&[100; 64_000], 1, 16_000);
    let mut file = AudioFile::new(Input::memory(whole[..whole.len() / 2].to_vec()), "cut.flac").unwrap();
    let mut got = Vec::new();
    while file.next(&mut got).unwrap() > 0 {}
    let missing = file.missing().unwrap().as_secs_f64();
    assert!((missing + got.len() as f64 / 16_000.0 - 4.0).abs() < 1e-6, "{missing} s and {} samples", got.len());
}

#[test]
fn nothing_in_a_file_is_said_so() {
    let error = AudioFile::new(Input::memory(Vec::new()), "empty.wav").unwrap_err();
    assert_eq!(error.to_string(), "`empty.wav` is empty");
    let error = AudioFile::new(Input::pipe(Trickle::new(&[], 1)), "pipe").unwrap_err();
    assert!(matches!(error, AudioFileError::Empty { .. }));
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let error = AudioFile::open("no/such/question.wav").unwrap_err();
    assert!(error.to_string().starts_with("cannot read `no/such/question.wav`: "), "{error}");
    let error = AudioFile::open(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(matches!(error, AudioFileError::Io { .. }), "{error}");
}

#[test]
fn what_nobody_reads_is_refused_with_a_list_of_what_is_read() {
    let text = b"dear sir or madam, this is not audio at all. ".repeat(20);
    let error = AudioFile::new(Input::memory(text), "letter.txt").unwrap_err();
    assert!(matches!(error, AudioFileError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().starts_with("`letter.txt`: its format is not supported; use one of WAV"), "{error}");
}

fn clip(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/audio").join(name)
}

#[test]
fn real_speech_has_its_length_its_level_and_its_bounds() {
    for (name, rate, channels) in [
        ("01_librivox0880_16k.wav", 16_000, 1),
        ("03_librivox0890_44k1_stereo.wav", 44_100, 2),
        ("05_cards005_8k_mulaw.wav", 8000, 1),
        ("11_browser_mic_48k.wav", 48_000, 1),
    ] {
        let clip = decode(clip(name), 10_000_000).unwrap();
        assert_eq!((clip.rate, clip.channels), (rate, channels), "{name}");
        let level = measure(&clip.samples);
        assert!((-50.0..-10.0).contains(&level.rms) && level.peak <= 0.0, "{name}: {level:?}");
        let mono: Vec<f32> = clip.samples.chunks(channels).map(|f| f[0]).collect();
        let bounds = speech_bounds(&mono, rate).unwrap();
        assert!(bounds.len() > rate as usize / 2 && bounds.end <= mono.len(), "{name}: {bounds:?}");
    }
    // Digital silence with dither of one step.
    let silence = decode(clip("10_silence_24k.wav"), 72_000).unwrap();
    assert_eq!(silence.samples.len(), 72_000);
    assert!((-100.0..-90.0).contains(&measure(&silence.samples).rms));
    // The microphone clip begins with one second of silence and ends with four and a half.
    let mic = decode(clip("11_browser_mic_48k.wav"), 10_000_000).unwrap();
    let bounds = speech_bounds(&mic.samples, 48_000).unwrap();
    assert!(bounds.start >= 47_000 && mic.samples.len() - bounds.end >= 4 * 48_000, "{bounds:?}");
}

#[test]
fn a_file_longer_than_wanted_is_refused() {
    let error = decode(clip("10_silence_24k.wav"), 71_999).unwrap_err();
    assert!(matches!(error, AudioFileError::TooLong { max_frames: 71_999, .. }), "{error}");
}

/// The same file with another body on its first page, under a right checksum.
fn with_head(bytes: &[u8], edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut parser = PageParser::new();
    parser.push(bytes);
    parser.finish();
    let mut pages: Vec<Page> = std::iter::from_fn(|| parser.next_page()).collect();
    edit(&mut pages[0].body);
    pages[0].lacing = vec![pages[0].body.len() as u8];
    let mut out = Vec::new();
    pages.iter().for_each(|page| page.write(&mut out));
    out
}

#[test]
fn ogg_opus_has_its_exact_length_from_memory_and_from_a_pipe() {
    for channels in [1u8, 2] {
        let bytes = opus(16_000, channels, 12_345);
        let file = AudioFile::new(Input::memory(bytes.clone()), "answer.opus").unwrap();
        assert_eq!((file.spec().rate(), file.spec().channels()), (48_000, usize::from(channels)));
        assert_eq!((file.total_frames(), file.damage()), (None, 0));
        let whole = all(file).unwrap();
        assert_eq!(whole.len(), 3 * 12_345 * usize::from(channels));
        assert!((-20.0..-10.0).contains(&measure(&whole).rms), "{:?}", measure(&whole));
        for most in [1, 1000] {
            let file = AudioFile::new(Input::pipe(Trickle::new(&bytes, most)), "pipe").unwrap();
            assert!(all(file).unwrap() == whole);
        }
    }
}

#[test]
fn damaged_ogg_opus_keeps_its_time_and_a_bad_head_is_named() {
    let bytes = opus(48_000, 1, 48_000);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 0x55;
    let mut file = AudioFile::new(Input::memory(damaged), "a.opus").unwrap();
    let mut out = Vec::new();
    while file.next(&mut out).unwrap() > 0 {}
    assert_eq!((out.len(), file.damage()), (48_000, 1));
    for end in (0..bytes.len()).step_by(7) {
        match AudioFile::new(Input::memory(bytes[..end].to_vec()), "cut").and_then(all) {
            Ok(got) => assert!(got.len() <= 48_000 && end > 47),
            Err(AudioFileError::Empty { .. }) => assert_eq!(end, 0),
            Err(error) => assert!(error.to_string().contains("`cut`"), "{error}"),
        }
    }
    let surround = with_head(&bytes, |head| {
        head[9] = 6;
        head[18] = 1;
        head.extend_from_slice(&[4, 2, 0, 4, 1, 2, 3, 5]);
    });
    let error = AudioFile::new(Input::memory(surround), "5.1.opus").unwrap_err();
    let want = "`5.1.opus`: Ogg Opus with mapping family 1 and 6 channels is not supported; use one of WAV";
    assert!(error.to_string().starts_with(want), "{error}");
    let error = AudioFile::new(Input::memory(with_head(&bytes, |head| head[8] = 16)), "new.opus").unwrap_err();
    assert!(matches!(error, AudioFileError::Unsupported { .. }), "{error}");
    let mut broken = bytes;
    broken[40] ^= 1;
    let error = AudioFile::new(Input::memory(broken), "broken.opus").unwrap_err();
    assert!(matches!(error, AudioFileError::Damaged { .. }), "{error}");
    assert!(error.to_string().starts_with("`broken.opus` is damaged"), "{error}");
}

#[cfg(feature = "symphonia")]
mod others {
    use super::*;

    fn ramp(n: usize) -> Vec<i16> {
        (0..n).map(|i| ((i * 7919) % 65_536) as u16 as i16).collect()
    }

    #[test]
    fn flac_and_aiff_are_decoded_to_the_sample() {
        for channels in [1usize, 2] {
            let samples = ramp(4321 * channels);
            let want: Vec<f32> = samples.iter().map(|&s| f32::from(s) / 32768.0).collect();
            for bytes in [flac(&samples, channels, 44_100), aiff(&samples, channels, 44_100)] {
                let file = AudioFile::new(Input::memory(bytes.clone()), "memory").unwrap();
                assert_eq!((file.spec().rate(), file.spec().channels()), (44_100, channels));
                assert_eq!(file.total_frames(), Some(4321));
                assert!(all(file).unwrap() == want);
                let file = AudioFile::new(Input::pipe(Trickle::new(&bytes, 100)), "pipe").unwrap();
                assert!(all(file).unwrap() == want);
            }
        }
    }

    #[test]
    fn a_cut_file_gives_what_is_there_or_a_typed_error() {
        let samples = ramp(2500);
        for bytes in [flac(&samples, 1, 16_000), aiff(&samples, 1, 16_000)] {
            for n in (0..200).chain((200..bytes.len()).step_by(97)) {
                match AudioFile::new(Input::memory(bytes[..n].to_vec()), "cut").and_then(all) {
                    Ok(got) => {
                        let want = samples.iter().map(|&s| f32::from(s) / 32768.0);
                        assert!(got.len() <= 2500 && got.iter().zip(want).all(|(a, b)| *a == b), "cut to {n}");
                    }
                    Err(error) => assert!(error.to_string().contains("`cut`"), "{error}"),
                }
            }
        }
    }

    #[test]
    fn a_damaged_packet_costs_only_what_it_held() {
        let samples = ramp(5000);
        let mut bytes = flac(&samples, 1, 16_000);
        // Inside the second of five frames.
        bytes[42 + 3000] ^= 0xFF;
        let file = AudioFile::new(Input::memory(bytes), "damaged.flac").unwrap();
        let got = all(file).unwrap();
        assert!((4000..=5000).contains(&got.len()), "{}", got.len());
    }
}
