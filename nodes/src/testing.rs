//! Helpers of this crate's tests: the model cache, speech clips, word errors.

use std::path::{Path, PathBuf};

/// Folder of a cached model that has `file`, or `None` with a printed reason.
pub(crate) fn cached(model: &str, file: &str) -> Option<PathBuf> {
    let folder = crate::catalogue::cache_root().ok()?.join("models").join(model);
    if folder.join(file).is_file() {
        return Some(folder);
    }
    println!("skipped: model `{model}` is not in the cache");
    None
}

/// A clip of `tests/data/audio` as 16 kHz mono.
pub(crate) fn audio(file: &str) -> Vec<f32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/audio").join(file);
    let bytes = std::fs::read(&path).unwrap();
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |at: usize| u16_at(at) + (u16_at(at + 2) << 16);
    let (mut at, mut format) = (12, (0, 0, 0));
    while at + 8 <= bytes.len() {
        let size = u32_at(at + 4);
        match &bytes[at..at + 4] {
            b"fmt " => format = (u16_at(at + 8), u16_at(at + 10), u32_at(at + 12)),
            b"data" => {
                let data = &bytes[at + 8..(at + 8 + size).min(bytes.len())];
                let samples: Vec<f32> = match format.0 {
                    7 => data.iter().map(|&b| mu_law(b)).collect(),
                    _ => data.chunks_exact(2).map(|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.).collect(),
                };
                let mono: Vec<f32> = samples.chunks(format.1).map(|f| f.iter().sum::<f32>() / f.len() as f32).collect();
                return resample(&mono, format.2);
            }
            _ => {}
        }
        at += 8 + size + size % 2;
    }
    panic!("{} has no data", path.display());
}

/// Lower case words without punctuation, digits spelled out.
pub(crate) fn words(text: &str) -> Vec<String> {
    let plain: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' }).collect();
    let spell = |w: &str| match w {
        "4" => "four".to_owned(),
        "7" => "seven".to_owned(),
        "8" => "eight".to_owned(),
        "10" => "ten".to_owned(),
        w => w.to_owned(),
    };
    plain.split_whitespace().map(spell).collect()
}

/// Levenshtein distance in words.
pub(crate) fn word_errors(said: &[String], heard: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (i, s) in said.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, h) in heard.iter().enumerate() {
            let change = diagonal + usize::from(s != h);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[heard.len()]
}

fn mu_law(byte: u8) -> f32 {
    let b = !byte;
    let magnitude = (((i32::from(b & 15) << 3) + 0x84) << (b >> 4 & 7)) - 0x84;
    (if b & 0x80 != 0 { -magnitude } else { magnitude }) as f32 / 32768.
}

/// Windowed-sinc resampling to 16 kHz; slow, good enough to recognise.
fn resample(pcm: &[f32], rate: usize) -> Vec<f32> {
    if rate == 16_000 {
        return pcm.to_vec();
    }
    let ratio = rate as f64 / 16_000.;
    let cut = (1. / ratio).min(1.);
    let half = (16. / cut) as isize;
    let one = |i: usize| {
        let centre = i as f64 * ratio;
        let base = centre.floor() as isize;
        let tap = |k: isize| {
            let x = k as f64 - centre;
            let sinc =
                if x.abs() < 1e-9 { cut } else { (std::f64::consts::PI * x * cut).sin() / (std::f64::consts::PI * x) };
            let window = 0.5 + 0.5 * (std::f64::consts::PI * x / (half as f64 + 1.)).cos();
            usize::try_from(k).ok().and_then(|k| pcm.get(k)).map_or(0., |&v| f64::from(v) * sinc * window)
        };
        (base - half..=base + half).map(tap).sum::<f64>() as f32
    };
    (0..(pcm.len() as f64 / ratio) as usize).map(one).collect()
}
