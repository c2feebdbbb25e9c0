//! Milliseconds of the second half of a Piper voice, on kernels of our own and in the library, in turns; and the memory
//! that a process takes which has loaded it one way or the other. Needs piper-joe in the cache.
//!
//! `cargo bench -p omni-flow-nodes --bench voice`. Medians over rounds, as these machines are noisy.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Instant,
};

use omni_flow_nodes::{
    catalogue::cache_root,
    piper::{Decoder, Scales, Voice, VoiceOptions, Window},
};

const ROUNDS: usize = 15;
/// 4.4 s of audio.
const FRAMES: usize = 379;
const TEXT: &str = "The capital of Italy is Rome, and it has been so since the year 1871, when the court moved there.";
/// Set for a process that shall load a voice and say how much memory that took.
const MEMORY: &str = "OMNI_FLOW_BENCH_MEMORY";

fn main() {
    let file = cache_root().map(|root| root.join("models/piper-joe/en_US-joe-medium.onnx"));
    let Some(onnx) = file.ok().filter(|f| f.is_file()) else {
        println!("skipped: the cache has no en_US-joe-medium.onnx");
        return;
    };
    if let Ok(how) = std::env::var(MEMORY) {
        let voice = load(&onnx, how == "library");
        println!("{} {}", status("VmRSS"), status("VmHWM"));
        drop(voice);
        return;
    }
    for how in ["kernels", "library"] {
        let sizes = memory(how);
        println!("{how}: resident after loading {:.0} MB, at most {:.0} MB while loading", sizes.0, sizes.1);
    }
    let voices = [load(&onnx, false), load(&onnx, true)];
    assert!(voices[0].on_kernels(), "the voice is not known to the kernels");
    let ids = voices[0].utterance(TEXT).expect("an English voice").ids;
    let z = voices[0].talk(&ids, Scales::of(voices[0].config()), 0, 1).expect("latents");
    assert!(z.frames() >= FRAMES, "{} frames", z.frames());
    let rows = &z.rows()[..FRAMES * z.width()];

    let all = Window { first: FRAMES, size: FRAMES, least: FRAMES };
    let window = Window::default();
    let first = (window.first + voices[0].context()) * z.width();
    report("first piece, 22 frames and 11 of context", &voices, |voice| {
        let mut decoder = Decoder::new(voice.clone(), window);
        decoder.push(&rows[..first], z.width()).expect("latents");
        timed(|| decoder.step().expect("audio").expect("a piece"))
    });
    for (what, window) in [("4.4 s in pieces as streamed", window), ("4.4 s at once", all)] {
        report(what, &voices, |voice| {
            let mut decoder = Decoder::new(voice.clone(), window);
            decoder.push(rows, z.width()).expect("latents");
            decoder.finish();
            timed(|| std::iter::from_fn(|| decoder.step().expect("audio")).flatten().count())
        });
    }
}

/// Medians of both, the median of the ratios, the fastest of both, and the processor's time of both on average.
fn report(what: &str, voices: &[Arc<Voice>; 2], run: impl Fn(&Arc<Voice>) -> f64) {
    let (mut times, mut ratios, mut used) = ([Vec::new(), Vec::new()], Vec::new(), [0.0; 2]);
    for _ in 0..ROUNDS {
        let [own, library] = [0, 1].map(|i| {
            let before = cpu();
            let time = run(&voices[i]);
            used[i] += (cpu() - before) / ROUNDS as f64;
            time
        });
        times[0].push(own);
        times[1].push(library);
        ratios.push(library / own);
    }
    let least = times.each_ref().map(|t| t.iter().copied().fold(f64::INFINITY, f64::min));
    let [own, library] = times.map(median);
    println!(
        "{what}: kernels {own:.1} ms (least {:.1}, processor {:.1}), library {library:.1} ms (least {:.1}, processor \
         {:.1}), library / kernels {:.2}, of the processor's time {:.2}",
        least[0],
        used[0],
        least[1],
        used[1],
        median(ratios),
        used[1] / used[0]
    );
}

fn load(onnx: &Path, library: bool) -> Arc<Voice> {
    let json: PathBuf = onnx.with_extension("onnx.json");
    Voice::load_with(onnx, &json, VoiceOptions { library, ..VoiceOptions::default() }).expect("the voice loads")
}

/// Megabytes of a process of its own.
fn memory(how: &str) -> (f64, f64) {
    let exe = std::env::current_exe().expect("this program");
    let output = Command::new(exe).env(MEMORY, how).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    (numbers.first().copied().unwrap_or(0.0), numbers.get(1).copied().unwrap_or(0.0))
}

/// A line of this process's status, MB; 0 where `/proc` is missing.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0 / 1e6
}

/// Milliseconds of processor time of this process, in steps of 10; 0 where `/proc` is missing.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold spaces; user and system time are the 12th and 13th field after it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let t = Instant::now();
    black_box(work());
    t.elapsed().as_secs_f64() * 1e3
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}
