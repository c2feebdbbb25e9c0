//! A real Piper voice, if the cache has one: splits, joins exactly, repeats itself, sounds like speech.
#![cfg(feature = "piper")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use omni_flow_nodes::piper::{Decoder, Latents, Scales, TalkError, Voice, VoiceError, VoiceOptions, Window};

const SENTENCE: &str = "The capital of Italy is Rome, and it has been so since the year 1871.";

fn files() -> Option<(PathBuf, PathBuf)> {
    let env = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = env("OMNI_FLOW_CACHE")
        .or_else(|| env("XDG_CACHE_HOME").map(|d| d.join("omni-flow")))
        .or_else(|| env("HOME").map(|d| d.join(".cache/omni-flow")))?;
    let onnx = cache.join("models/piper-joe/en_US-joe-medium.onnx");
    let json = onnx.with_extension("onnx.json");
    (onnx.is_file() && json.is_file()).then_some((onnx, json))
}

static VOICE: LazyLock<Option<Arc<Voice>>> = LazyLock::new(|| {
    let (onnx, json) = files()?;
    Some(
        Voice::load_with(&onnx, &json, VoiceOptions { require_split: true, ..VoiceOptions::default() })
            .expect("the voice loads"),
    )
});

macro_rules! voice {
    () => {
        match &*VOICE {
            Some(voice) => voice,
            None => {
                println!("skipped: the cache has no models/piper-joe (omni-flow models pull piper-joe)");
                return;
            }
        }
    };
}

fn latents(voice: &Voice, text: &str, seed: u64) -> Latents {
    let utterance = voice.utterance(text).expect("an English voice");
    assert_eq!(utterance.unknown, 0, "{utterance:?}");
    voice.talk(&utterance.ids, Scales::of(voice.config()), 0, seed).expect("talks")
}

/// Audio of latents pushed in pieces of `chunk` frames, and the largest number of pieces in one go.
fn speak(decoder: &mut Decoder, z: &Latents, chunk: usize) -> Vec<f32> {
    let mut audio = Vec::new();
    for rows in z.rows().chunks(chunk * z.width()) {
        decoder.push(rows, z.width()).expect("fits");
        while let Some(piece) = decoder.step().expect("decodes") {
            audio.extend(piece);
        }
    }
    decoder.finish();
    while let Some(piece) = decoder.step().expect("decodes") {
        audio.extend(piece);
    }
    audio
}

/// One decode of everything.
fn at_once(voice: &Arc<Voice>, z: &Latents) -> Vec<f32> {
    let all = Window { first: usize::MAX / 2, size: usize::MAX / 2, least: usize::MAX / 2 };
    speak(&mut Decoder::new(voice.clone(), all), z, z.frames())
}

#[test]
fn pieces_join_to_the_whole_exactly() {
    let voice = voice!();
    assert_eq!((voice.hop(), voice.context(), voice.unsplit()), (256, 11, None));
    let z = latents(voice, "Rome is old.", 3);
    let whole = at_once(voice, &z);
    assert_eq!(whole.len(), z.frames() * 256);
    for window in [Window::default(), Window { first: 5, size: 13, least: 5 }] {
        let mut decoder = Decoder::new(voice.clone(), window);
        for chunk in [1, 7, 25, z.frames()] {
            let audio = speak(&mut decoder, &z, chunk);
            assert_eq!(audio.len(), whole.len(), "chunks of {chunk}, {window:?}");
            let error = audio.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert_eq!(error, 0.0, "chunks of {chunk}, {window:?}");
        }
    }
}

#[test]
fn kernels_and_library_say_the_same() {
    let voice = voice!();
    assert!(voice.on_kernels());
    let (onnx, json) = files().expect("there is a voice");
    let options = VoiceOptions { require_split: true, library: true, ..VoiceOptions::default() };
    let library = Voice::load_with(&onnx, &json, options).expect("the voice loads");
    assert!(!library.on_kernels());
    let z = latents(voice, "Good morning to you.", 9);
    // The talker does not notice that the other half of its file is not there.
    assert_eq!(z, latents(&library, "Good morning to you.", 9));
    let [ours, theirs] = [voice, &library].map(|v| speak(&mut Decoder::new(v.clone(), Window::default()), &z, 25));
    assert_eq!(ours.len(), theirs.len());
    let square = |v: f64| v * v;
    let power: f64 = theirs.iter().map(|v| square(f64::from(*v))).sum();
    let error: f64 = ours.iter().zip(&theirs).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let snr = 10.0 * (power / error).log10();
    println!("signal to noise: {snr:.1} dB");
    assert!(snr >= 100.0, "{snr} dB");
}

#[test]
fn latents_of_another_width_are_refused() {
    let voice = voice!();
    let mut decoder = Decoder::new(voice.clone(), Window::default());
    decoder.push(&[0.0; 40 * 100], 100).unwrap();
    assert!(matches!(decoder.step(), Err(TalkError::Width { found: 100, width: 192 })));
}

#[test]
fn a_weight_that_is_no_number_is_named() {
    let Some((real, json)) = files() else {
        println!("skipped: the cache has no models/piper-joe (omni-flow models pull piper-joe)");
        return;
    };
    const NAME: &[u8] = b"dec.conv_post.weight";
    let mut bytes = std::fs::read(real).unwrap();
    // Its own record has its shape before its name, and its numbers behind that.
    let shape = [8, 1, 8, 32, 8, 7];
    let record = bytes.windows(shape.len()).position(|w| w == shape).expect("the weight is there");
    let name = record + bytes[record..].windows(NAME.len()).position(|w| w == NAME).unwrap() + NAME.len();
    assert_eq!(bytes[name], 0x4a, "numbers follow the name");
    let numbers = name + 1 + bytes[name + 1..].iter().position(|b| *b < 0x80).unwrap() + 1;
    bytes[numbers + 8..numbers + 12].copy_from_slice(&f32::NAN.to_le_bytes());
    let dir = std::env::temp_dir().join(format!("omni-flow-piper-nan-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let onnx = dir.join("voice.onnx");
    std::fs::write(&onnx, bytes).unwrap();
    let error = Voice::load(&onnx, &json).unwrap_err();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(matches!(error, VoiceError::Weights { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("`dec.conv_post.weight`") && text.contains("NaN at 2") && text.contains("voice.onnx"),
        "{text}"
    );
}

#[test]
fn the_first_piece_needs_its_context_or_the_end() {
    let voice = voice!();
    let z = latents(voice, "Good morning.", 1);
    let rows = |a: usize, b: usize| &z.rows()[a * z.width()..b * z.width()];
    let mut decoder = Decoder::new(voice.clone(), Window { first: 4, size: 64, least: 1 });
    decoder.push(rows(0, 11), z.width()).unwrap();
    assert_eq!((decoder.ready(), decoder.step().unwrap()), (0, None));
    decoder.push(rows(11, 13), z.width()).unwrap();
    assert_eq!(decoder.ready(), 2);
    assert_eq!(decoder.step().unwrap().map(|a| a.len()), Some(2 * 256));
    // A fence in the middle: the next segment is as if nothing had been.
    decoder.reset();
    assert_eq!(decoder.pending(), 0);
    decoder.push(rows(0, 3), z.width()).unwrap();
    decoder.finish();
    assert_eq!(decoder.step().unwrap().map(|a| a.len()), Some(3 * 256));
    assert_eq!(decoder.step().unwrap(), None);
    // An empty segment is nothing, and frames of another width are refused.
    decoder.finish();
    assert_eq!(decoder.step().unwrap(), None);
    assert!(decoder.push(&[0.0; 5], 3).is_err() && decoder.push(&[], 0).is_err());
}

#[test]
fn the_same_seed_is_the_same_voice() {
    let voice = voice!();
    let a = latents(voice, SENTENCE, 42);
    assert_eq!(a, latents(voice, SENTENCE, 42));
    assert_ne!(a, latents(voice, SENTENCE, 43));
    let ids = voice.utterance(SENTENCE).unwrap().ids;
    let slow = Scales { length: 1.5, ..Scales::of(voice.config()) };
    let slow = voice.talk(&ids, slow, 0, 42).unwrap();
    let ratio = slow.frames() as f64 / a.frames() as f64;
    assert!((1.3..1.7).contains(&ratio), "{ratio}");
}

#[test]
fn it_sounds_like_speech() {
    let voice = voice!();
    for text in [SENTENCE, "Hello there!", "At 22:30 it was 3.5 degrees, wasn't it?"] {
        let z = latents(voice, text, 5);
        let audio = speak(&mut Decoder::new(voice.clone(), Window::default()), &z, 25);
        let seconds = audio.len() as f64 / f64::from(voice.sample_rate());
        let spoken = omni_flow_nodes::text::speakable(text);
        let each = seconds / spoken.chars().count() as f64;
        assert!((0.04..0.15).contains(&each), "{text}: {seconds} s, {each} s per character");
        let rms = |a: &[f32]| (a.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / a.len().max(1) as f64).sqrt();
        let level = rms(&audio);
        assert!((0.01..0.4).contains(&level), "{text}: level {level}");
        assert!(audio.iter().all(|x| x.abs() <= 1.0 && x.is_finite()));
        assert!(audio.iter().filter(|x| x.abs() > 0.99).count() < audio.len() / 1000, "{text} clips");
        // It begins and ends in quiet, so that sentences join without a click.
        let edge = 256;
        for end in [&audio[..edge], &audio[audio.len() - edge..]] {
            assert!(rms(end) < level / 2.0, "{text}: ends at {} of {level}", rms(end));
        }
        println!("{text:?}: {seconds:.2} s, {each:.3} s per character, level {level:.3}");
    }
}

#[test]
fn every_symbol_of_the_phonemiser_is_known_to_the_voice() {
    let voice = voice!();
    for text in [
        "The quick brown fox jumps over the lazy dog; however, measure the azure vision: judge church, thing, this!",
        "Button kitten mountain, better butter, early bird, memory, fire hour, boy, cow, use, cute, near, there, poor.",
        "GPU, NASA, vLLM, Kubernetes, omni-flow, Zanquist's blorfing, naïve café in Łódź, O'Brien…",
        "Is it $5.20, 50% or 3/4 of the 1st? Dr. Smith (really) said “no” — at 7 p.m.",
    ] {
        let utterance = voice.utterance(text).unwrap();
        assert_eq!(utterance.unknown, 0, "{utterance:?}");
        assert!(utterance.phonemes.skipped.is_empty());
    }
    let mixed = voice.utterance("Say Привет now 😀.").unwrap();
    assert_eq!(mixed.phonemes.skipped, ["Привет"]);
    for silent in ["", "😀", "…", "***", "你好"] {
        assert!(voice.utterance(silent).unwrap().ids.is_empty(), "{silent}");
    }
}

#[test]
fn what_cannot_be_spoken_is_refused() {
    let voice = voice!();
    let ids = voice.utterance("Hi.").unwrap().ids;
    let scales = Scales::of(voice.config());
    assert!(voice.talk(&ids, scales, 1, 0).is_err());
    assert!(voice.talk(&ids, Scales { length: f32::NAN, ..scales }, 0, 0).is_err());
    assert!(voice.talk(&vec![14; 5000], scales, 0, 0).is_err());
    assert!(voice.talk(&[], scales, 0, 0).is_err());
    assert!(voice.talk(&[-1, 1 << 20], scales, 0, 0).is_err());
}

#[test]
fn damaged_files_are_named() {
    let missing = Voice::load(Path::new("no/such.onnx"), Path::new("no/such.json")).unwrap_err();
    assert!(matches!(missing, VoiceError::Read { .. }) && missing.to_string().contains("such.json"));
    let dir = std::env::temp_dir().join(format!("omni-flow-piper-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (onnx, json) = (dir.join("voice.onnx"), dir.join("voice.onnx.json"));
    std::fs::write(&onnx, b"not a model").unwrap();
    std::fs::write(&json, b"{}").unwrap();
    let config = Voice::load(&onnx, &json).unwrap_err();
    assert!(matches!(config, VoiceError::Config { .. }) && config.to_string().contains("voice.onnx.json"));
    let good = r#"{"audio":{"sample_rate":22050},"phoneme_id_map":{"_":[0],"^":[1],"$":[2]}}"#;
    std::fs::write(&json, good).unwrap();
    let model = Voice::load(&onnx, &json).unwrap_err();
    assert!(matches!(model, VoiceError::Model { .. }) && model.to_string().contains("voice.onnx"), "{model}");
    if let Some((real, _)) = files() {
        let bytes = std::fs::read(real).unwrap();
        std::fs::write(&onnx, &bytes[..bytes.len() / 2]).unwrap();
        let cut = Voice::load(&onnx, &json).unwrap_err();
        assert!(cut.to_string().contains("voice.onnx"), "{cut}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// What a session of `text -> talker -> voice -> out` gives for some answers, each sent as a whole: length in samples and
/// whether it ends a segment, chunk by chunk.
fn answers(texts: &[&str]) -> Vec<(usize, bool)> {
    use omni_flow::{CheckCx, Clock, Engine, Event, GraphFile, Payload, Terminal};
    let yaml = "graph: g\nsession: { mode: turn }\nnodes:\n  ask: { use: session.in, kind: text }\n  sentences: { use: text.sentences, in: ask }\n  \
                talker: { use: model.talker, in: sentences }\n  voice: { use: model.code2wav, in: talker }\n  \
                playout: { use: speech.playout, in: { from: voice, window: { items: 2, span: 10s } } }\n  o: { use: session.out, in: voice }\n  p: { use: session.out, in: playout.audio }\n";
    let file = GraphFile::parse("test.yaml", yaml).unwrap();
    let known = omni_flow_nodes::registry::registry().unwrap();
    let (plan, _) = file.check(&known, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = Engine::builder().clock(Clock::tokio()).inline().offline(true).build().unwrap();
        let graph = engine.start(plan).await.unwrap();
        let mut session = graph.open().unwrap();
        let (mut ask, mut out) = (session.input("ask").unwrap(), session.output("o").unwrap());
        let mut played = session.output("p").unwrap();
        let feed = async {
            for text in texts {
                ask.send_last(Arc::<str>::from(*text)).await.unwrap();
            }
            ask.end();
        };
        let take = async {
            let mut got = Vec::new();
            loop {
                match out.next().await {
                    Event::Data(stamp, Payload::Audio(a)) => got.push((a.frames(), stamp.last)),
                    Event::End(end) => {
                        assert!(matches!(end, Terminal::End), "{end:?}");
                        return got;
                    }
                    other => panic!("{other:?}"),
                }
            }
        };
        let play = async { while !matches!(played.next().await, Event::End(_)) {} };
        let (_, got, ()) = tokio::join!(feed, take, play);
        session.wait().await.unwrap();
        got
    })
}

#[test]
fn an_answer_of_nothing_that_can_be_spoken_has_its_end() {
    if files().is_none() {
        println!("skipped: the cache has no models/piper-joe (omni-flow models pull piper-joe)");
        return;
    }
    assert_eq!(answers(&["😀"]), [(0, true)]);
    assert_eq!(answers(&["Привет, мир.", ""]), [(0, true), (0, true)]);
    // More of them than the edge of a player has room for: none keeps its credit.
    assert_eq!(answers(&["👍"; 10]), [(0, true); 10]);
    // What can be spoken before and after is; each answer ends in a mark.
    let got = answers(&["Привет. Yes.", "😀", "No. 😀"]);
    assert!(got.last().unwrap().1);
    let ends: Vec<usize> = got.iter().enumerate().filter(|(_, g)| g.1).map(|(i, _)| i).collect();
    let sums: Vec<usize> = ends
        .iter()
        .scan(0, |from, to| {
            let sum = got[*from..=*to].iter().map(|g| g.0).sum();
            *from = to + 1;
            Some(sum)
        })
        .collect();
    let spoken: Vec<bool> = sums.iter().map(|s| *s > 4000).collect();
    // A segment for each piece, also for those of which nothing is said.
    assert_eq!(spoken, [false, true, false, true, false], "{got:?}");
}
