//! The shipped graphs: each is checked and drawn; each runs end to end where the machine has what it needs.

mod common;

use std::fs;

use common::{clip, have, root, run};
use omni_flow_media::file::{Decoded, decode};

fn shipped() -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(root().join("graphs"))
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().into_string().ok())
        .filter(|n| n.ends_with(".yaml"))
        .map(|n| format!("graphs/{n}"))
        .collect();
    all.sort();
    all
}

fn wav(path: &str) -> Decoded {
    decode(path, 1 << 24).unwrap()
}

fn out(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

#[test]
fn each_shipped_graph_is_right_and_can_be_drawn() {
    let all = shipped();
    let named =
        ["echo", "opus-roundtrip", "scripted-duplex", "speak", "tone", "transcribe", "vad-segments", "voice-assistant"];
    for name in named {
        assert!(all.contains(&format!("graphs/{name}.yaml")), "{all:?}");
    }
    for path in all {
        let ran = run(&["check", &path]).expect(0);
        assert_eq!(ran.err, "", "{path}: no warning");
        assert!(ran.out.contains("mode"), "{}", ran.out);
        let chart = run(&["draw", &path]).expect(0).out;
        assert!(chart.starts_with("flowchart") || chart.contains("flowchart"), "{chart}");
        assert!(run(&["draw", &path, "--format", "svg"]).expect(0).out.contains("<svg"));
    }
}

#[test]
fn the_tone_is_the_tone_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "t.wav");
    run(&["run", "graphs/tone.yaml", "--output", &path, "--set", "nodes.tone.freq=600"]).expect(0);
    let got = wav(&path);
    assert_eq!((got.rate, got.channels, got.samples.len()), (24_000, 1, 48_000));
    // 600 Hz for two seconds crosses zero upwards 1200 times.
    let up = got.samples.windows(2).filter(|w| w[0] < 0.0 && w[1] >= 0.0).count();
    assert!((1198..=1201).contains(&up), "{up}");
    let peak = got.samples.iter().fold(0f32, |m, s| m.max(s.abs()));
    assert!((peak - 0.2512).abs() < 0.01, "-12 dBFS: {peak}");
}

#[test]
fn an_echo_gives_back_what_was_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "e.wav");
    let input = clip("01_librivox0880_16k.wav");
    run(&["run", "graphs/echo.yaml", "--input", &input, "--output", &path, "--no-pace"]).expect(0);
    let (asked, got) = (wav(&input), wav(&path));
    assert_eq!((got.rate, got.channels, got.samples.len()), (16_000, 1, asked.samples.len()));
    assert!(asked.samples.iter().zip(&got.samples).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn the_scripted_partner_says_its_script() {
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "p.wav");
    let input = clip("01_librivox0880_16k.wav");
    let words = ["run", "graphs/scripted-duplex.yaml", "--no-pace", "--json", "--input", &input, "--output", &path];
    let ran = run(&words).expect(0);
    let got = wav(&path);
    assert_eq!((got.rate, got.channels, got.samples.len()), (24_000, 1, 72_000));
    let events = ran.events();
    let said: String = events.iter().filter(|e| e["output"] == "said-out").filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(said, "hello world");
    let named = |name: &str| events.iter().filter(|e| e["signal"]["name"] == name).count();
    let seconds = wav(&input).samples.len() / 16_000;
    assert!((1..=seconds).contains(&named("unit")), "{} of {seconds}", named("unit"));
    assert_eq!((named("answer.started"), named("answer.done")), (1, 1));
    // As an echo it gives back what it heard.
    let mut words = words.to_vec();
    words.extend(["--set", "nodes.partner.answers=[{echo: true, text: null}]"]);
    run(&words).expect(0);
    let (asked, got) = (wav(&input), wav(&path));
    assert_eq!((got.rate, got.samples.len()), (16_000, asked.samples.len()));
    assert!(asked.samples.iter().zip(&got.samples).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn speech_survives_opus() {
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "o.wav");
    let input = clip("01_librivox0880_16k.wav");
    run(&["run", "graphs/opus-roundtrip.yaml", "--input", &input, "--output", &path]).expect(0);
    let (asked, got) = (wav(&input), wav(&path));
    assert_eq!((got.rate, got.channels), (48_000, 1));
    let (a, b) = (asked.samples.len() as f64 / 16_000.0, got.samples.len() as f64 / 48_000.0);
    assert!((a - b).abs() < 0.05, "{a} s became {b} s");
    let rms = |s: &[f32]| (s.iter().map(|x| x * x).sum::<f32>() / s.len() as f32).sqrt();
    let (a, b) = (rms(&asked.samples), rms(&got.samples));
    assert!((a / b).log10().abs() < 0.05, "level {a} became {b}");
}

#[test]
fn segments_of_speech_are_found() {
    if !have(&["silero-vad"]) {
        return;
    }
    let ran = run(&["run", "graphs/vad-segments.yaml", "--offline", "--json"]).expect(0);
    let events = ran.events();
    let turns: Vec<&serde_json::Value> =
        events.iter().map(|e| &e["signal"]).filter(|s| s["type"] == "turn_ended").collect();
    assert!(turns.len() >= 2, "two utterances and silence: {turns:?}");
    for t in &turns {
        assert!(t["speech_end"].as_f64() > t["start"].as_f64(), "{t}");
    }
    let silent = clip("10_silence_24k.wav");
    let ran = run(&["run", "graphs/vad-segments.yaml", "--offline", "--json", "--input", &silent]).expect(0);
    assert!(ran.events().iter().all(|e| e["event"] == "summary"), "{}", ran.out);
}

#[test]
fn a_recording_is_transcribed() {
    if !have(&["silero-vad", "whisper-tiny-en"]) {
        return;
    }
    let input = clip("06_goforward_noisy_16k.wav");
    let ran = run(&["run", "graphs/transcribe.yaml", "--offline", "--input", &input, "--no-pace"]).expect(0);
    let said = ran.out.to_lowercase();
    assert!(said.contains("go forward") && said.contains("meters"), "{}", ran.out);
    let silent = clip("10_silence_24k.wav");
    let ran = run(&["run", "graphs/transcribe.yaml", "--offline", "--input", &silent, "--no-pace"]).expect(0);
    assert!(!ran.out.contains("text:") && ran.err.contains("note:"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_text_is_spoken() {
    if !have(&["piper-joe"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "s.wav");
    let text = "Good morning. It is half past seven.";
    let ran = run(&["run", "graphs/speak.yaml", "--offline", "--text", text, "--output", &path, "--json"]).expect(0);
    let got = wav(&path);
    let seconds = got.samples.len() as f64 / f64::from(got.rate);
    assert!((1.0..6.0).contains(&seconds), "{seconds} s");
    let level = omni_flow_media::levels::measure(&got.samples);
    assert!(level.rms > -40.0, "{level:?}");
    let last = ran.events().pop().unwrap();
    assert!((last["outputs"][0]["answers"][0]["audio_s"].as_f64().unwrap() - seconds).abs() < 0.01, "{last}");
}

#[test]
fn what_a_voice_cannot_speak_is_told_and_the_rest_is_spoken() {
    if !have(&["piper-joe"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "s.wav");
    let speak = |text: &str| run(&["run", "graphs/speak.yaml", "--offline", "--text", text, "--output", &path]);
    for (text, script) in [("\u{1f600} \u{1f44d}", "emoji (\"\u{1f600}\""), ("Привет, мир.", "Cyrillic (\"Привет")]
    {
        let words = [script, "speak/talker", "nothing of this text can be spoken", "`piper-joe` speaks en_US"];
        speak(text).expect(1).complains(&words).complains(&["no audio came out of `speaker`"]);
    }
    let ran = speak("Good morning, Привет, my friend \u{1f600}.").expect(0);
    let ran = ran.complains(&["a part of this text is left out", "Cyrillic (\"Привет"]);
    assert!(!ran.err.contains("emoji"), "what is only shown is not missed: {}", ran.err);
    let seconds = |path: &str| wav(path).samples.len() as f64 / 22_050.0;
    let mixed = seconds(&path);
    speak("Good morning, my friend.").expect(0);
    assert!((mixed - seconds(&path)).abs() < 0.5, "{mixed} s and {} s", seconds(&path));
    // A file whose first paragraph cannot be spoken.
    let file = out(&dir, "t.txt");
    fs::write(&file, "Привет.\n\nGood morning.\n").unwrap();
    run(&["run", "graphs/speak.yaml", "--offline", "--input", &file, "--output", &path]).expect(0);
    assert!(seconds(&path) > 0.4);
}

#[test]
fn the_assistant_hears_answers_and_is_timed() {
    if !have(&["silero-vad", "whisper-tiny-en", "smollm2-135m", "piper-joe"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (input, path) = (clip("01_librivox0880_16k.wav"), out(&dir, "a.wav"));
    let words = ["run", "graphs/voice-assistant.yaml", "--offline", "--input", &input, "--output", &path, "--json"];
    let ran = run(&words).expect(0);
    let events = ran.events();
    let said = |output: &str| {
        events.iter().filter(|e| e["output"] == output).filter_map(|e| e["text"].as_str()).collect::<String>()
    };
    assert!(said("heard-out").len() > 5 && said("said-out").len() > 5, "{}", ran.out);
    let turns = |kind: &str| events.iter().filter(|e| e["output"] == "turn-out" && e["signal"]["type"] == kind).count();
    let answered = events.iter().filter(|e| ["heard-out", "unheard-out"].iter().any(|o| e["output"] == *o)).count();
    assert!(turns("speech_started") > 0);
    assert_eq!(turns("turn_ended"), answered, "each turn is heard, or told to have no words");
    let summary = events.last().unwrap();
    let speaker = summary["outputs"].as_array().unwrap().iter().find(|o| o["output"] == "speaker").unwrap();
    let first = speaker["answers"][0]["first_ms"].as_f64().unwrap();
    assert!(first > 0.0, "{speaker}");
    let at = |pick: &dyn Fn(&serde_json::Value) -> bool| {
        events.iter().find(|e| pick(e)).map(|e| e["t"].as_f64().unwrap()).unwrap()
    };
    let sound = at(&|e| e["event"] == "audio");
    let heard = at(&|e| e["output"] == "heard-out");
    assert!(heard < sound, "heard before it answers");
    let got = wav(&path);
    let seconds: f64 = speaker["answers"].as_array().unwrap().iter().map(|a| a["audio_s"].as_f64().unwrap()).sum();
    assert!((got.samples.len() as f64 / f64::from(got.rate) - seconds).abs() < 0.01);
    // An answer of at least two sentences (the words are the likeliest ones, so always the same): its first sound comes
    // while the model still writes.
    let answer = said("said-out");
    assert!(answer.matches(['.', '!', '?']).count() >= 2, "{answer}");
    let last =
        events.iter().rfind(|e| e["output"] == "said-out" && !e["text"].as_str().unwrap_or_default().trim().is_empty());
    let last = last.unwrap()["t"].as_f64().unwrap();
    assert!(sound < last, "the first sound at {sound} s, the last word at {last} s: {answer}");
    // Silence has no answer, and that is no success.
    let (silent, path) = (clip("10_silence_24k.wav"), out(&dir, "b.wav"));
    let words = ["run", "graphs/voice-assistant.yaml", "--offline", "--input", &silent, "--output", &path, "--no-pace"];
    run(&words).expect(1).complains(&["no audio came out of `speaker`"]);
}

#[test]
fn a_question_over_the_telephone_or_in_stereo_is_answered() {
    if !have(&["silero-vad", "whisper-tiny-en", "smollm2-135m", "piper-joe"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, word) in [("05_cards005_8k_mulaw.wav", "spades"), ("03_librivox0890_44k1_stereo.wav", "selfish")] {
        let (input, path) = (clip(name), out(&dir, name));
        let mut words = vec!["run", "graphs/voice-assistant.yaml", "--offline", "--input", &input, "--output", &path];
        words.extend(["--json", "--no-pace", "--set", "nodes.llm.max-tokens=8"]);
        let ran = run(&words).expect(0);
        let heard: String = ran
            .events()
            .iter()
            .filter(|e| e["output"] == "heard-out")
            .filter_map(|e| e["text"].as_str().map(str::to_lowercase))
            .collect();
        assert!(heard.contains(word), "{name}: {heard}");
        let got = wav(&path);
        assert_eq!((got.rate, got.channels), (22_050, 1));
        assert!(omni_flow_media::levels::measure(&got.samples).rms > -45.0, "{name}: it speaks");
    }
}

#[test]
fn what_is_no_speech_is_neither_written_down_nor_answered() {
    if !have(&["silero-vad", "whisper-tiny-en", "smollm2-135m", "piper-joe"]) {
        return;
    }
    let noise = clip("08_nonspeech_24k.wav");
    let ran = run(&["run", "graphs/transcribe.yaml", "--offline", "--input", &noise, "--no-pace"]).expect(0);
    assert!(!ran.out.contains("text:"), "{}", ran.out);
    let dir = tempfile::tempdir().unwrap();
    let path = out(&dir, "n.wav");
    let words = ["run", "graphs/voice-assistant.yaml", "--offline", "--input", &noise, "--output", &path, "--no-pace"];
    run(&words).expect(1).complains(&["no audio came out of `speaker`"]);
}
