//! Ten minutes of speech: WAV → 48 kHz → Opus (20 ms, 32 kbit/s, voice) → decode → 16 kHz, and resampling alone,
//! beside the same pipelines of GStreamer where `gst-launch-1.0` is on the path.
//!
//! `cargo bench -p omni-flow-media --bench pipeline [--features libopus] -- [FILE.wav] [ROUNDS]`; without a file the
//! clips of `tests/data/audio` are repeated to ten minutes of 24 kHz. Every run is a process of its own, of us too,
//! pinned to one core by `taskset` where there is one; opponents take turns within a round. What counts is CPU time
//! (user and system, the process's start included), the median of the rounds. `OMNI_FLOW_GST_LIBOPUS` names a folder
//! with another `libopus.so.0` for GStreamer, so that both sides can have the same codec.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use omni_flow_kernels::f32_to_i16;
use omni_flow_media::{
    file,
    opus::{EncoderConfig, OpusDecoder, OpusEncoder, backend},
    pcm::{Layout, PcmSpec, SampleFormat},
    resample::{Quality, Resampler, resample},
    wav::{WavSource, WavWriter},
};

/// Seconds of the file that is made where none is given.
const LENGTH: usize = 600;
/// Rate of that file in Hz.
const RATE: u32 = 24_000;
/// The job of a child process.
const JOB: &str = "OMNI_FLOW_PIPELINE_JOB";

/// What is run, by us and by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Reading and nothing else: the floor of both sides.
    Read,
    /// To 16 kHz, directly.
    Direct,
    /// To 48 kHz and from there to 16 kHz.
    ThereAndBack,
    /// The whole pipeline at a complexity.
    Opus(u8),
}

const JOBS: [Job; 6] = [Job::Read, Job::Direct, Job::ThereAndBack, Job::Opus(10), Job::Opus(5), Job::Opus(0)];

impl Job {
    fn name(self) -> String {
        match self {
            Job::Read => "read only".into(),
            Job::Direct => "resample → 16k".into(),
            Job::ThereAndBack => "resample → 48k → 16k".into(),
            Job::Opus(complexity) => format!("→ 48k → Opus, complexity {complexity} → 16k"),
        }
    }

    /// Elements of GStreamer between `wavparse` and `fakesink`.
    fn elements(self, settings: &str) -> String {
        let (up, down) =
            ("audioresample ! audio/x-raw,rate=48000,channels=1", "audioresample ! audio/x-raw,rate=16000,channels=1");
        match self {
            Job::Read => "audioconvert".into(),
            Job::Direct => format!("audioconvert ! {down}"),
            Job::ThereAndBack => format!("audioconvert ! {up} ! {down}"),
            Job::Opus(complexity) => format!(
                "audioconvert ! {up} ! opusenc frame-size=20 bitrate=32000 audio-type=voice complexity={complexity} \
                 {settings} ! opusdec ! {down}"
            ),
        }
    }

    /// Runs it here, in blocks of 20 ms as they would come from a microphone, to 16-bit samples.
    fn run(self, path: &Path) {
        let mut wav = WavSource::open(path).expect("a WAV file");
        assert_eq!(wav.spec().channels(), 1, "the pipelines take one channel");
        let rate = wav.spec().rate();
        let to = |from, to| Resampler::new(from, to, 1, Quality::Good).expect("usual rates");
        let (mut direct, mut up, mut down) = (to(rate, 16_000), to(rate, 48_000), to(48_000, 16_000));
        let complexity = if let Job::Opus(complexity) = self { complexity } else { 0 };
        let config = EncoderConfig { complexity, ..EncoderConfig::default() };
        let frame = config.frame_len();
        let mut encoder = OpusEncoder::new(config).expect("legal settings");
        let mut decoder = OpusDecoder::new(48_000, 1).expect("a legal rate");
        let [mut block, mut high, mut heard, mut low] = [const { Vec::new() }; 4];
        let mut words = Vec::new();
        while wav.read(rate as usize / 50, &mut block).expect("readable") > 0 {
            match self {
                Job::Read => low.append(&mut block),
                Job::Direct => drop(direct.push(&block, &mut low)),
                Job::ThereAndBack => {
                    up.push(&block, &mut high);
                    down.push(&high, &mut low);
                    high.clear();
                }
                Job::Opus(_) => {
                    up.push(&block, &mut high);
                    let whole = high.len() - high.len() % frame;
                    for pcm in high[..whole].chunks_exact(frame) {
                        let packet = encoder.encode(pcm).expect("a whole frame");
                        decoder.decode(&packet, &mut heard).expect("our own packet");
                    }
                    high.drain(..whole);
                    down.push(&heard, &mut low);
                    heard.clear();
                }
            }
            block.clear();
            words.resize(low.len(), 0i16);
            f32_to_i16(&low, &mut words);
            black_box(&words);
            low.clear();
        }
    }
}

/// CPU seconds of a child process, user and system; `None` if it failed.
fn measure(command: &mut Command) -> Option<f64> {
    let used = || {
        // SAFETY: all bytes zero are a valid `rusage`, which the call fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
            usage
        };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    let before = used();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    status.success().then(|| used() - before)
}

fn found(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A command on one core.
fn pinned(program: &Path) -> Command {
    if !found("taskset") {
        return Command::new(program);
    }
    let core = std::thread::available_parallelism().map_or(0, |n| n.get() - 1);
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

fn ours(job: usize, path: &Path) -> Option<f64> {
    measure(pinned(&std::env::current_exe().ok()?).arg(path).env(JOB, job.to_string()))
}

fn theirs(job: Job, path: &Path, settings: &str, library: Option<&str>) -> Option<f64> {
    let mut command = pinned(Path::new("gst-launch-1.0"));
    command.arg("-q").arg("filesrc").arg(format!("location={}", path.display())).args(["!", "wavparse", "!"]);
    command.args(job.elements(settings).split_whitespace()).args(["!", "fakesink", "sync=false"]);
    if let Some(folder) = library {
        command.env("LD_LIBRARY_PATH", folder);
    }
    measure(&mut command)
}

/// Ten minutes from the clips of the repository, one channel.
fn repeated() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/audio");
    let mut talk = Vec::new();
    for clip in ["01_librivox0880_16k.wav", "06_goforward_noisy_16k.wav", "07_two_utterances_with_silence_24k.wav"] {
        let clip = file::decode(folder.join(clip), 10_000_000).expect("a clip of the repository");
        assert_eq!(clip.channels, 1);
        talk.extend(resample(&clip.samples, clip.rate, RATE, 1, Quality::Best).expect("usual rates"));
    }
    let samples: Vec<f32> = talk.iter().copied().cycle().take(LENGTH * RATE as usize).collect();
    let spec = PcmSpec::new(SampleFormat::I16, RATE, Layout::of(1)).expect("a usual format");
    let path = std::env::temp_dir().join(format!("omni-flow-talk-{}.wav", std::process::id()));
    let mut writer = WavWriter::create(&path, spec).expect("a writable temporary folder");
    writer.write(&samples).expect("room for the file");
    writer.finish().expect("room for the file");
    path
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn compare(path: &Path, rounds: usize) {
    let wav = WavSource::open(path).expect("a WAV file");
    let seconds = wav.total_frames().expect("a file knows its length") as f64 / f64::from(wav.spec().rate());
    let gst = found("gst-launch-1.0");
    let library = std::env::var("OMNI_FLOW_GST_LIBOPUS").ok();
    let mut opponents = vec![("GStreamer", "", None), ("GStreamer, bandwidth=auto", "bandwidth=auto", None)];
    if let Some(folder) = &library {
        opponents.push(("GStreamer on the given libopus, bandwidth=auto", "bandwidth=auto", Some(folder.as_str())));
    }
    println!("{seconds:.0} s at {} Hz, {rounds} rounds; Opus by {}", wav.spec().rate(), backend::version());
    println!("\n| pipeline | side | CPU s | × real time | GStreamer / ours |\n|---|---|---|---|---|");
    for (index, job) in JOBS.into_iter().enumerate() {
        // Settings of the codec concern the jobs with one.
        let others = if matches!(job, Job::Opus(_)) { &opponents[..] } else { &opponents[..1] };
        let mut costs = vec![Vec::new(); 1 + others.len()];
        for _ in 0..rounds {
            costs[0].extend(ours(index, path));
            for (cost, (_, settings, library)) in costs[1..].iter_mut().zip(others).filter(|_| gst) {
                cost.extend(theirs(job, path, settings, *library));
            }
        }
        let costs: Vec<f64> = costs.into_iter().map(median).collect();
        println!("| {} | ours | {:.3} | {:.0} | |", job.name(), costs[0], seconds / costs[0]);
        for ((name, ..), cost) in others.iter().zip(&costs[1..]).filter(|(_, cost)| cost.is_finite()) {
            println!("| | {name} | {cost:.3} | {:.0} | {:.2} |", seconds / cost, cost / costs[0]);
        }
    }
    if !gst {
        println!("\n`gst-launch-1.0` is not on the path: nothing to compare with");
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let given = arguments.next().map(PathBuf::from);
    if let (Ok(job), Some(path)) = (std::env::var(JOB), &given) {
        return JOBS[job.parse::<usize>().expect("a number of a job")].run(path);
    }
    let rounds = arguments.next().map_or(3, |r| r.parse().expect("ROUNDS is a number"));
    match given {
        Some(path) => compare(&path, rounds),
        None => {
            let path = repeated();
            compare(&path, rounds);
            // A temporary file that cannot be removed is the system's to clean.
            let _ = std::fs::remove_file(path);
        }
    }
}
