use super::*;
use crate::file::{AudioFile, Input};

fn tone(rate: u32, channels: usize, seconds: f32) -> Vec<f32> {
    let frames = (rate as f32 * seconds) as usize;
    let at = |i: usize| 0.5 * (std::f32::consts::TAU * 440.0 * i as f32 / rate as f32).sin();
    (0..frames * channels).map(|i| at(i / channels)).collect()
}

fn read_back(bytes: Vec<u8>) -> (Vec<f32>, u32, usize) {
    let head = bytes[..bytes.len().min(48)].to_vec();
    let mut file = AudioFile::new(Input::memory(bytes), "clip").unwrap_or_else(|e| panic!("{e}: {head:02x?}"));
    let mut samples = Vec::new();
    while file.next(&mut samples).unwrap() > 0 {}
    (samples, file.spec().rate(), file.spec().channels())
}

/// Times that a tone of one channel crosses zero upwards.
fn crossings(samples: &[f32], channels: usize) -> usize {
    let one: Vec<f32> = samples.iter().step_by(channels).copied().collect();
    one.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count()
}

#[test]
fn every_format_reads_back_as_the_same_tone() {
    for format in [ClipFormat::Wav, ClipFormat::Flac, ClipFormat::Mp3, ClipFormat::Opus] {
        for (rate, channels) in [(24_000, 1), (16_000, 1), (48_000, 2)] {
            let clip = tone(rate, channels, 1.0);
            let (samples, got_rate, got_channels) = read_back(format.encode(&clip, rate, channels).unwrap());
            let got_rate = if format == ClipFormat::Opus { rate * (got_rate / rate) } else { got_rate };
            assert_eq!(got_channels, channels, "{format:?}");
            let seconds = samples.len() as f64 / f64::from(got_rate) / channels as f64;
            assert!((seconds - 1.0).abs() < 0.15, "{format:?} {rate}: {seconds} s");
            let heard = crossings(&samples, channels);
            assert!((436..=446).contains(&heard), "{format:?} {rate}: {heard} periods");
            if matches!(format, ClipFormat::Wav | ClipFormat::Flac) {
                let worst = clip.iter().zip(&samples).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(samples.len() == clip.len() && worst < 1.0 / 32_000.0, "{format:?}: {worst}");
            }
        }
    }
}

#[test]
fn clips_without_a_sample_and_beyond_full_scale_are_written() {
    for format in ClipFormat::BUILT_IN {
        for clip in [vec![], vec![0.1], vec![3.0, f32::NAN, -3.0, f32::INFINITY]] {
            format.encode(&clip, 24_000, 1).unwrap_or_else(|e| panic!("{format:?} {clip:?}: {e}"));
        }
    }
    assert_eq!(ClipFormat::Pcm.encode(&[1.0, -1.0], 24_000, 1).unwrap().len(), 4);
}

#[test]
fn what_a_format_does_not_take_is_told() {
    let told = |f: ClipFormat, rate, channels| f.encode(&[0.0; 8], rate, channels).unwrap_err().to_string();
    assert_eq!(
        told(ClipFormat::Opus, 22_050, 1),
        "opus does not take 22050 Hz; it takes 8000, 12000, 16000, 24000 and 48000 Hz"
    );
    assert!(told(ClipFormat::Mp3, 96_000, 1).contains("mp3 does not take 96000 Hz"));
    assert!(told(ClipFormat::Flac, 24_000, 3).contains("1 or 2 channels"));
    assert!(ClipFormat::Wav.check(0, 1).is_err() && ClipFormat::Wav.check(24_000, 0).is_err());
    assert_eq!(ClipFormat::named("aac"), None);
}
