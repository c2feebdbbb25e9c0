//! One tone in many formats, written by programs that are not ours: right, or refused with advice.
#![cfg(feature = "symphonia")]

mod common;

use common::vector_path;
use omni_flow_media::file::{Decoded, decode};

fn tone(name: &str) -> Result<Decoded, String> {
    decode(vector_path("tone").join(name), 1_000_000).map_err(|e| e.to_string())
}

/// Root of the mean square, and the frequency from the crossings of zero, of the first channel's first 0.2 s.
fn heard(tone: &Decoded) -> (f64, f64) {
    let samples: Vec<f64> =
        tone.samples.iter().step_by(tone.channels).take(tone.rate as usize / 5).map(|&v| f64::from(v)).collect();
    let rms = (samples.iter().map(|v| v * v).sum::<f64>() / samples.len() as f64).sqrt();
    let crossings = samples.windows(2).filter(|w| (w[0] < 0.0) != (w[1] < 0.0)).count();
    (rms, crossings as f64 / 2.0 * f64::from(tone.rate) / samples.len() as f64)
}

/// Checks rate, channels, level and pitch, and gives the number of frames.
fn frames(name: &str, rate: u32, channels: usize) -> usize {
    let tone = tone(name).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((tone.rate, tone.channels), (rate, channels), "{name}");
    let (rms, frequency) = heard(&tone);
    // A sine of 1/8, 4 dB louder; two channels made of one are 3 dB lower in some programs.
    let level = 20.0 * (rms / (0.125 * std::f64::consts::FRAC_1_SQRT_2)).log10();
    assert!((0.5..4.5).contains(&level), "{name}: {level:.2} dB");
    assert!((frequency - 500.0).abs() < 20.0, "{name}: {frequency:.1} Hz");
    tone.samples.len() / channels
}

#[test]
fn formats_without_loss_have_every_sample() {
    for name in ["f64.wav", "rf64.wav", "extensible24.wav", "extensible32.wav", "alaw.wav", "s24.aiff", "sowt.aiff"] {
        assert_eq!(frames(name, 16_000, 1), 3_200, "{name}");
    }
    // Of 16 bits, and of 24.
    assert!(tone("sowt.aiff").unwrap().samples == tone("rf64.wav").unwrap().samples);
    let want = tone("s24.aiff").unwrap().samples;
    for name in ["flac.flac", "flac.oga", "alac.m4a"] {
        assert!(tone(name).unwrap().samples == want, "{name}");
    }
}

#[test]
fn delay_and_padding_that_a_file_states_are_taken_off() {
    assert_eq!(frames("mp3.mp3", 16_000, 1), 3_200);
    assert_eq!(frames("vorbis.ogg", 16_000, 1), 3_200);
    assert_eq!(frames("opus.opus", 48_000, 2), 9_600);
}

#[test]
fn opus_is_decoded_in_every_container() {
    // The beginning is exact; the padding of the last packet (20 ms) stays.
    let exact = tone("opus.opus").unwrap();
    for (name, channels) in [("opus.webm", 1), ("opus.mka", 2), ("opus.mp4", 1)] {
        let frames = frames(name, 48_000, channels);
        assert!((9_600..=9_600 + 960).contains(&frames), "{name}: {frames}");
    }
    let matroska = tone("opus.mka").unwrap();
    let same = exact.samples.iter().zip(&matroska.samples).take(8_000);
    assert!(same.clone().all(|(a, b)| (a - b).abs() < 1e-4), "the same packets, from the same place");
}

#[test]
fn aac_and_vorbis_in_webm_keep_the_padding_of_their_blocks() {
    // ADTS states nothing; the edit list of MP4, and the discard padding of WebM, do not reach us.
    for name in ["aac.aac", "aac.m4a"] {
        let tone = tone(name).unwrap();
        assert_eq!((tone.rate, tone.channels), (16_000, 1), "{name}");
        assert!((3_200..=3_200 + 3 * 1_024).contains(&tone.samples.len()), "{name}: {}", tone.samples.len());
        assert!(heard(&tone).0 > 0.08, "{name}");
    }
    let frames = frames("vorbis.webm", 16_000, 1);
    assert!((3_200..3_200 + 1_024).contains(&frames), "{frames}");
}

#[test]
fn what_is_not_read_is_refused_with_advice() {
    for (name, what, advice) in [
        ("refused.w64", "its format", "use one of WAV, AIFF"),
        ("refused.caf", "its format", "use one of WAV, AIFF"),
        ("refused.mp2", "its codec", "use one of WAV, AIFF"),
        ("adpcm.wav", "format tag 0x0011 with 4 bits", "convert to PCM of 8, 16, 24 or 32 bits"),
        ("rifx.wav", "the big-endian form RIFX", "convert to PCM of 8, 16, 24 or 32 bits"),
    ] {
        let error = tone(name).unwrap_err();
        assert!(error.contains(name) && error.contains(what) && error.contains(advice), "{error}");
    }
}
