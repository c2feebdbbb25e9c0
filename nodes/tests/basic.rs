//! The basic node types in small graphs, from YAML, on paused time.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::*;
use omni_flow_nodes::registry::registry;

fn check(yaml: &str) -> Result<Plan, String> {
    let file = GraphFile::parse("test.yaml", yaml).map_err(|d| d.to_string())?;
    let known = registry().map_err(|e| e.to_string())?;
    file.check(&known, &CheckCx::default()).map(|c| c.0).map_err(|d| d.to_string())
}

fn engine() -> Engine {
    Engine::builder().clock(Clock::tokio()).inline().build().unwrap()
}

async fn graph(yaml: &str) -> Graph {
    engine().start(check(yaml).unwrap_or_else(|e| panic!("{e}"))).await.unwrap()
}

type Got = (Vec<(Stamp, Payload)>, Terminal);

/// All that comes out, and how it ended.
async fn all(out: &mut In<Payload>) -> Got {
    let mut got = Vec::new();
    loop {
        match out.next().await {
            Event::Data(stamp, p) => got.push((stamp, p)),
            Event::Fence(_) => {}
            Event::End(t) => return (got, t),
        }
    }
}

fn samples(got: &[(Stamp, Payload)]) -> Vec<f32> {
    got.iter().flat_map(|(_, p)| if let Payload::Audio(a) = p { a.f32().into_owned() } else { vec![] }).collect()
}

fn texts(got: &[(Stamp, Payload)]) -> Vec<String> {
    got.iter().filter_map(|(_, p)| if let Payload::Text(t) = p { Some(t.to_string()) } else { None }).collect()
}

fn mono(rate: u32, samples: Vec<f32>) -> Pcm {
    Pcm::mono(rate, samples)
}

#[test]
fn bad_options_name_the_option_and_what_to_write() {
    let node = |line: &str| {
        format!("graph: g\nsession: {{ mode: turn }}\nnodes:\n  x: {{ {line} }}\n  o: {{ use: session.out, in: x }}\n")
    };
    for (line, option, hint) in [
        ("use: audio.tone, freq: 9000", "freq", "raise `rate`"),
        ("use: audio.tone, level: 3", "level", "0 or less"),
        ("use: audio.tone, frame: 5s", "frame", "20ms"),
        ("use: audio.tone, wave: square", "wave", ""),
        ("use: audio.tone, frequency: 3", "frequency", "freq"),
        ("use: file.in, path: ''", "path", "standard input"),
        ("use: file.in, path: a.wav, rate: 7", "rate", "16000"),
    ] {
        let e = check(&node(line)).map(|_| ()).unwrap_err();
        assert!(e.contains(option) && e.contains(hint) && e.contains("test.yaml:4"), "{line}: {e}");
    }
    let fed = |line: &str| {
        format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  t: {{ use: audio.tone }}\n  x: {{ {line}, in: t }}\n  \
             o: {{ use: session.out, in: x.out }}\n"
        )
    };
    for (line, option, hint) in [
        ("use: audio.resample", "rate", "add `rate"),
        ("use: audio.resample, rate: 5", "rate", "16000"),
        ("use: audio.frame, samples: 4, length: 20ms", "samples", "keep one"),
        ("use: audio.opus-encode, rate: 44100", "rate", "audio.resample"),
        ("use: audio.opus-encode, rate: 16000, frame: 21ms", "frame", "frame: 20ms"),
        ("use: audio.opus-encode", "48000", "audio.resample"),
        ("use: util.delay, by: 2h", "by", "200ms"),
        ("use: util.gate, open-on: [x], close-on: [x]", "close-on", "keep it in one"),
        ("use: util.chunk, ramp: [4]", "ramp", "at least two"),
        ("use: audio.gain, db: 100", "db", "-6"),
    ] {
        let e = check(&fed(line)).map(|_| ()).unwrap_err();
        assert!(e.contains(option) && e.contains(hint), "{line}: {e}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tone_has_its_length_pitch_and_pace() {
    let g = graph(
        "graph: g\nsession: { mode: turn }\nnodes:\n  \
         t: { use: audio.tone, freq: 440, duration: 1010ms, rate: 44100 }\n  \
         r: { use: audio.resample, rate: 16000, in: t }\n  o: { use: session.out, in: r }\n",
    )
    .await;
    let begun = tokio::time::Instant::now();
    let mut s = g.open().unwrap();
    let (got, end) = all(&mut s.output("o").unwrap()).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    let x = samples(&got);
    assert_eq!(x.len(), 16_160, "exactly round(N out / in)");
    let crossings = x[..16_000].windows(2).filter(|w| (w[0] < 0.0) != (w[1] < 0.0)).count();
    assert!((878..=882).contains(&crossings), "{crossings}");
    // The last of 51 frames, half a frame long, is due at 1 s.
    assert_eq!(begun.elapsed().as_millis(), 1_000);
}

const MICROPHONE: &str = "graph: g\nsession: { mode: duplex }\nlanes: [reply]\nnodes:\n  \
    mic: { use: session.in, audio: { rate: 24000 } }\n";

#[tokio::test]
async fn a_resampler_ends_exactly_and_forgets_at_a_fence() {
    let g = graph(&format!(
        "{MICROPHONE}  r: {{ use: audio.resample, rate: 16000, in: mic }}\n  o: {{ use: session.out, in: r }}\n"
    ))
    .await;
    for n in [1_000usize, 1_023, 1_025] {
        let mut s = g.open().unwrap();
        let (mut mic, mut out) = (s.input("mic").unwrap(), s.output("o").unwrap());
        let mut x = vec![0.0; n];
        (x[0], x[n - 1]) = (1.0, 1.0);
        for piece in x.chunks(77) {
            mic.send(mono(24_000, piece.to_vec())).await.unwrap();
        }
        mic.end();
        let y = samples(&all(&mut out).await.0);
        assert_eq!(y.len(), (n * 2 * 2 + 3) / 6, "round({n} * 2 / 3)");
        assert!(y[0] > 0.3 && y[y.len() - 2..].iter().any(|v| *v > 0.2), "both impulses are there");
    }
}

#[tokio::test]
async fn a_fence_forgets_the_old_answer() {
    let g = graph(
        "graph: g\nsession: { mode: duplex }\nlanes: [reply]\nnodes:\n  \
         ask: { use: session.in, kind: text, lane: reply }\n  \
         cut: { use: text.sentences, lane: reply, in: ask }\n  \
         o: { use: session.out, lane: reply, in: cut }\n",
    )
    .await;
    let mut s = g.open().unwrap();
    let (mut ask, mut out) = (s.input("ask").unwrap(), s.output("o").unwrap());
    ask.send(Arc::<str>::from("First. An answer that nobody")).await.unwrap();
    let Event::Data(_, Payload::Text(first)) = out.next().await else { panic!("no sentence") };
    assert_eq!(&*first, "First.");
    s.fence(Lane::new(1).unwrap());
    ask.send(Arc::<str>::from("New one. ")).await.unwrap();
    ask.send_last(Arc::<str>::from("And the end")).await.unwrap();
    ask.end();
    let (got, _) = all(&mut out).await;
    assert_eq!(texts(&got), ["New one.", "And the end"]);
    assert_eq!(got.iter().map(|g| g.0.last).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn frames_are_whole_and_the_rest_is_filled() {
    for (tail, last) in [("pad", 480), ("short", 100), ("drop", 480)] {
        let g = graph(&format!(
            "{MICROPHONE}  f: {{ use: audio.frame, length: 20ms, tail: {tail}, in: mic }}\n  \
             o: {{ use: session.out, in: f }}\n"
        ))
        .await;
        let mut s = g.open().unwrap();
        let (mut mic, mut out) = (s.input("mic").unwrap(), s.output("o").unwrap());
        for n in [7usize, 1_000, 53] {
            mic.send(mono(24_000, vec![0.5; n])).await.unwrap();
        }
        mic.end();
        let got = all(&mut out).await.0;
        let sizes: Vec<usize> =
            got.iter().map(|(_, p)| if let Payload::Audio(a) = p { a.frames() } else { 0 }).collect();
        assert!(sizes[..2].iter().all(|n| *n == 480) && sizes[sizes.len() - 1] == last, "{tail}: {sizes:?}");
        assert!(got.windows(2).all(|w| w[0].0.pts + w[0].0.len == w[1].0.pts));
    }
}

#[tokio::test(start_paused = true)]
async fn two_sources_are_added_and_a_late_one_is_silence() {
    let g = graph(
        "graph: g\nsession: { mode: turn }\nnodes:\n  \
         a: { use: audio.tone, wave: silence, duration: 1s, rate: 8000 }\n  \
         b: { use: audio.tone, freq: 1000, level: -6, duration: 500ms, rate: 8000, pace: false }\n  \
         m: { use: audio.mix, rate: 8000, gains: [0, -6.0206], in: { a: a, b: b } }\n  \
         o: { use: session.out, in: m }\n",
    )
    .await;
    let mut s = g.open().unwrap();
    let (got, end) = all(&mut s.output("o").unwrap()).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    let x = samples(&got);
    assert_eq!(x.len(), 8_000);
    let peak = |x: &[f32]| x.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    assert!((peak(&x[..4_000]) - 0.2506).abs() < 0.002, "{}", peak(&x[..4_000]));
    assert_eq!(peak(&x[4_000..]), 0.0);
    assert!(got.windows(2).all(|w| w[0].0.pts + w[0].0.len == w[1].0.pts));
}

#[tokio::test]
async fn opus_there_and_back_keeps_length_and_pitch() {
    let g = graph(
        "graph: g\nsession: { mode: turn }\nnodes:\n  \
         t: { use: audio.tone, freq: 500, duration: 1s, rate: 48000, pace: false }\n  \
         e: { use: audio.opus-encode, in: t }\n  d: { use: audio.opus-decode, rate: 16000, in: e }\n  \
         o: { use: session.out, in: d.out }\n",
    )
    .await;
    let mut s = g.open().unwrap();
    let (got, end) = all(&mut s.output("o").unwrap()).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    let x = samples(&got);
    assert_eq!(x.len(), 16_000);
    let crossings = x[1_600..14_400].windows(2).filter(|w| (w[0] < 0.0) != (w[1] < 0.0)).count();
    assert!((796..=804).contains(&crossings), "{crossings}");
    assert_eq!(got[0].0.pts, MediaTime::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_tee_gives_all_to_the_patient_and_never_waits_for_the_lossy() {
    // F48: 50 frames a second for 20 s; one branch reads all, one is never read, one is a tap.
    let g = graph(
        "graph: g\nsession: { mode: turn }\nnodes:\n  \
         t: { use: audio.tone, duration: 20s, rate: 8000 }\n  split: { use: util.tee, in: t }\n  \
         look: { use: util.tap, every: 5s, in: { from: split.b, policy: latest } }\n  \
         o: { use: session.out, in: split.a }\n",
    )
    .await;
    let begun = tokio::time::Instant::now();
    let mut s = g.open().unwrap();
    let (got, end) = all(&mut s.output("o").unwrap()).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(got.len(), 1_000);
    assert!(got.iter().enumerate().all(|(i, g)| g.0.pts == MediaTime::from_millis(20 * i as i64)));
    assert_eq!(begun.elapsed().as_millis(), 19_980, "nothing slowed it");
    s.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gate_and_a_delay() {
    let g = graph(
        "graph: g\nsession: { mode: duplex }\nlanes: [reply]\nnodes:\n  \
         say: { use: session.in, kind: text }\n  doors: { use: session.in, kind: signal }\n  \
         gate: { use: util.gate, open: false, in: { in: say, control: doors } }\n  \
         late: { use: util.delay, by: 300ms, in: gate }\n  o: { use: session.out, in: late }\n",
    )
    .await;
    let mut s = g.open().unwrap();
    let (mut say, mut doors) = (s.input("say").unwrap(), s.input("doors").unwrap());
    let mut out = s.output("o").unwrap();
    let named = |n: &str| Signal::Named { name: n.into(), data: "".into() };
    let begun = tokio::time::Instant::now();
    for (door, word) in [(None, "a"), (Some("open"), "b"), (None, "c"), (Some("close"), "d")] {
        if let Some(d) = door {
            doors.send(named(d)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        say.send(Arc::<str>::from(word)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    say.end();
    doors.end();
    let (got, end) = all(&mut out).await;
    assert!(matches!(end, Terminal::End), "{end:?}");
    assert_eq!(texts(&got), ["b", "c"]);
    assert!((311..=345).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn chunks_follow_their_policy_and_lose_nothing() {
    let g = graph(&format!(
        "{MICROPHONE}  c: {{ use: util.chunk, ramp: [2, 3], size: 4, frame: 20ms, in: mic }}\n  \
         o: {{ use: session.out, in: c }}\n"
    ))
    .await;
    let mut s = g.open().unwrap();
    let (mut mic, mut out) = (s.input("mic").unwrap(), s.output("o").unwrap());
    let ramp: Vec<f32> = (0..480 * 11 + 100).map(|i| i as f32 / 8_192.0).collect();
    for piece in ramp.chunks(240) {
        mic.send(mono(24_000, piece.to_vec())).await.unwrap();
    }
    mic.end();
    let got = all(&mut out).await.0;
    let sizes: Vec<usize> = got.iter().map(|(_, p)| if let Payload::Audio(a) = p { a.frames() } else { 0 }).collect();
    assert_eq!(sizes, [960, 1_440, 1_920, 1_060]);
    assert_eq!(samples(&got), ramp);
    assert!(got.windows(2).all(|w| w[0].0.pts + w[0].0.len == w[1].0.pts));
}

/// Frames of 20 ms in each chunk of audio at 24 kHz.
fn frames(got: &[(Stamp, Payload)]) -> Vec<usize> {
    got.iter().map(|(_, p)| if let Payload::Audio(a) = p { a.frames() / 480 } else { 0 }).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_chunk_is_larger_the_more_streams_there_are() {
    let g = graph(
        "graph: g\nsession: { mode: turn, max-sessions: 4 }\nnodes:\n  mic: { use: session.in, audio: { rate: 24000 } }\n  \
         c: { use: util.chunk, in: mic }\n  o: { use: session.out, in: c }\n",
    )
    .await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut s = g.open().unwrap();
        let (mut mic, mut out) = (s.input("mic").unwrap(), s.output("o").unwrap());
        mic.send(mono(24_000, vec![0.0; 480])).await.unwrap();
        // Taken by its node before the next one comes.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let got = out.next();
        assert!(tokio::time::timeout(Duration::from_millis(1), got).await.is_err(), "one frame is no chunk yet");
        open.push((s, mic, out));
    }
    // Steps 2, 4, 8, 16 by the share of the four that were there: none, one, two, three.
    for (first, (_s, mut mic, mut out)) in [2, 4, 8, 8].into_iter().zip(open) {
        for _ in 0..40 {
            mic.send(mono(24_000, vec![0.0; 480])).await.unwrap();
        }
        mic.end();
        let sizes = frames(&all(&mut out).await.0);
        assert_eq!((sizes[0], sizes[1]), (first, 25), "{sizes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn adaptive_chunks_know_how_long_a_frame_of_audio_plays() {
    let g = graph(&format!(
        "{MICROPHONE}  c: {{ use: util.chunk, adaptive: true, initial: 4, in: mic }}\n  o: {{ use: session.out, in: c }}\n"
    ))
    .await;
    let mut s = g.open().unwrap();
    let (mut mic, mut out) = (s.input("mic").unwrap(), s.output("o").unwrap());
    // Made in 10 ms, played for 20: headroom grows by half of what is made. Taken for 80 ms long, as frames of a codec
    // are, it would be there at once, and the third chunk full.
    let feed = async {
        for _ in 0..120 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            mic.send(mono(24_000, vec![0.0; 480])).await.unwrap();
        }
        mic.end();
    };
    let ((), (got, _)) = tokio::join!(feed, all(&mut out));
    let sizes = frames(&got);
    assert_eq!(sizes.iter().sum::<usize>(), 120);
    assert_eq!(sizes[0], 4);
    assert!(sizes[1..4].iter().all(|n| *n < 12), "{sizes:?}");
    assert!(sizes.windows(2).rev().skip(1).all(|w| w[0] <= w[1]), "they never shrink: {sizes:?}");
}

fn data(path: &str) -> String {
    format!("{}/../tests/data/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(start_paused = true)]
async fn a_paced_file_comes_without_bursts_and_exactly() {
    let path = data("audio/03_librivox0890_44k1_stereo.wav");
    let whole = omni_flow_media::file::decode(&path, u64::MAX).unwrap();
    let frames = (whole.samples.len() / whole.channels) as u64;
    let g = graph(&format!(
        "graph: g\nsession: {{ mode: turn }}\nnodes:\n  \
         f: {{ use: file.in, path: '{path}', rate: 16000, channels: 1 }}\n  o: {{ use: session.out, in: f }}\n"
    ))
    .await;
    let mut s = g.open().unwrap();
    let mut out = s.output("o").unwrap();
    let begun = tokio::time::Instant::now();
    let mut total = 0u64;
    loop {
        match out.next().await {
            Event::Data(stamp, Payload::Audio(a)) => {
                assert_eq!(stamp.pts, MediaTime::from_samples(total, 16_000));
                // Whole milliseconds: tokio's paused clock rounds to them.
                let late = begun.elapsed().as_millis().abs_diff(stamp.pts.as_millis() as u128);
                assert!(late <= 1, "frame at {:?} left at {:?}", stamp.pts, begun.elapsed());
                total += a.frames() as u64;
            }
            Event::End(end) => break assert!(matches!(end, Terminal::End), "{end:?}"),
            _ => {}
        }
    }
    assert_eq!(total, omni_flow_media::resample::output_len(frames, 44_100, 16_000));
}

#[tokio::test]
async fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rate, bound) in [("a.wav", 22_050, 1e-4), ("b.opus", 48_000, 0.2), ("c.ogg", 44_100, 0.2)] {
        let path = folder.path().join(name).display().to_string();
        let g = graph(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  \
             t: {{ use: audio.tone, freq: 300, level: -10, duration: 730ms, rate: {rate}, pace: false }}\n  \
             w: {{ use: file.out, path: '{path}', in: t }}\n"
        ))
        .await;
        g.open().unwrap().wait().await.unwrap();
        let g = graph(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  \
             f: {{ use: file.in, path: '{path}', pace: false }}\n  o: {{ use: session.out, in: f }}\n"
        ))
        .await;
        let mut s = g.open().unwrap();
        let (got, end) = all(&mut s.output("o").unwrap()).await;
        assert!(matches!(end, Terminal::End), "{name}: {end:?}");
        let x = samples(&got);
        let at = if rate == 22_050 { rate } else { 48_000 };
        assert_eq!(x.len() as u64, MediaTime::from_millis(730).to_samples(at), "{name}");
        let peak = x.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        assert!((peak - 0.316_2).abs() < bound, "{name}: {peak}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_or_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.wav");
    std::fs::write(&bad, b"not audio at all").unwrap();
    for path in [bad.display().to_string(), "/nowhere/none.wav".to_owned()] {
        let plan = check(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  f: {{ use: file.in, path: '{path}' }}\n  \
             o: {{ use: session.out, in: f }}\n"
        ));
        let e = engine().start(plan.unwrap()).await.err().unwrap().to_string();
        assert!(e.contains(&path) && e.contains("g/f"), "{e}");
    }
    let write = |path: &str| {
        check(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  t: {{ use: audio.tone, duration: 1s, pace: false }}\n  \
             w: {{ use: file.out, path: '{path}', in: t }}\n"
        ))
        .unwrap()
    };
    // A file that the encoder would not write stays as it is.
    let kept = folder.path().join("kept.ogg");
    std::fs::write(&kept, b"mine").unwrap();
    let g = graph(&format!(
        "graph: g\nsession: {{ mode: turn }}\nnodes:\n  mic: {{ use: session.in, audio: {{ rate: 48000, channels: 3 }} }}\n  \
         w: {{ use: file.out, path: '{}', in: mic }}\n",
        kept.display()
    ))
    .await;
    let mut s = g.open().unwrap();
    let pcm =
        omni_flow::Pcm::new(48_000, 3, omni_flow::SampleType::F32, omni_flow::Buf::from_f32(vec![0.0; 2880])).unwrap();
    let _ = s.input("mic").unwrap().send(pcm).await;
    s.wait().await.unwrap_err();
    assert_eq!(std::fs::read(&kept).unwrap(), b"mine");
    let e = engine().start(write("/nowhere/x.wav")).await.err().unwrap().to_string();
    assert!(e.contains("/nowhere") && e.contains("make it first"), "{e}");
    // The disk is full from the first byte on.
    if std::path::Path::new("/dev/full").exists() {
        let link = folder.path().join("full.wav");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let path = link.display().to_string();
        let g = engine().start(write(&path)).await.unwrap();
        let e = g.open().unwrap().wait().await.unwrap_err();
        assert_eq!((e.kind(), e.node()), (ErrorKind::Node, "g/w"));
        assert!(e.message().contains(&path) && e.message().contains("space"), "{e}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_replays_in_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.ofrec").display().to_string();
    let g = graph(&format!(
        "graph: g\nsession: {{ mode: turn }}\nnodes:\n  t: {{ use: audio.tone, duration: 1s, rate: 8000 }}\n  \
         w: {{ use: util.record, path: '{path}', in: t }}\n"
    ))
    .await;
    g.open().unwrap().wait().await.unwrap();
    for (pace, took) in [(true, 980), (false, 0)] {
        let g = graph(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  \
             r: {{ use: util.replay, path: '{path}', pace: {pace}, kind: audio 8000 mono f32 }}\n  \
             o: {{ use: session.out, in: r }}\n"
        ))
        .await;
        let begun = tokio::time::Instant::now();
        let mut s = g.open().unwrap();
        let (got, end) = all(&mut s.output("o").unwrap()).await;
        assert!(matches!(end, Terminal::End), "{end:?}");
        assert_eq!((got.len(), begun.elapsed().as_millis()), (50, took));
        assert!(got.iter().enumerate().all(|(i, g)| g.0.pts == MediaTime::from_millis(20 * i as i64)));
    }
}

/// The packets of a vector of F12: hex of each, with its place in ticks at 48 kHz.
fn packets(file: &str) -> Vec<(u64, Vec<u8>)> {
    let text = std::fs::read_to_string(data(&format!("vectors/{file}"))).unwrap();
    let field = |line: &str, name: &str| {
        let from = line.find(&format!("\"{name}\"")).unwrap() + name.len() + 3;
        let value = line[from..].trim_start_matches([' ', '"', ':']);
        value[..value.find([',', '"', '}']).unwrap()].to_owned()
    };
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    lines
        .map(|l| {
            let hex = field(l, "hex");
            let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
            (field(l, "ts").parse().unwrap(), bytes.collect())
        })
        .collect()
}

#[tokio::test]
async fn a_lossy_opus_stream_keeps_its_length() {
    use omni_flow_nodes::util::recording::{MAGIC, encode};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lossy.ofrec");
    let mut file = MAGIC.to_vec();
    for (ts, bytes) in packets("f12-opus-lossy.jsonl") {
        let stamp =
            Stamp { pts: MediaTime::from_samples(ts, 48_000), len: MediaTime::from_millis(20), ..Stamp::default() };
        let packet = Packet { codec: "opus".into(), data: bytes.into(), key: true, rate: 48_000, channels: 1 };
        encode(Duration::ZERO, &stamp, &Payload::Packet(packet), &mut file).unwrap();
    }
    std::fs::write(&path, file).unwrap();
    for (jumps, gaps) in [("silence", 0), ("loss", 1)] {
        let g = graph(&format!(
            "graph: g\nsession: {{ mode: turn }}\nnodes:\n  \
             r: {{ use: util.replay, path: '{}', pace: false, kind: packet opus }}\n  \
             d: {{ use: audio.opus-decode, jumps: {jumps}, in: r }}\n  \
             o: {{ use: session.out, in: d.out }}\n  e: {{ use: session.out, in: d.gaps }}\n",
            path.display()
        ))
        .await;
        let mut s = g.open().unwrap();
        let (mut out, mut events) = (s.output("o").unwrap(), s.output("e").unwrap());
        let ((got, end), (told, _)) = futures_util::future::join(all(&mut out), all(&mut events)).await;
        assert!(matches!(end, Terminal::End), "{end:?}");
        assert_eq!(samples(&got).len(), 69_120, "last timestamp - first + last packet's length");
        assert!(got.windows(2).all(|w| w[0].0.pts + w[0].0.len == w[1].0.pts));
        assert!(told.len() >= gaps && told.is_empty() == (gaps == 0), "{told:?}");
    }
}
