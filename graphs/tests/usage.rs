//! Exit codes and what is said with them: nothing here starts a model.

mod common;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use common::{Ran, clip, omni, run};
#[cfg(unix)]
use common::{exit, until};

/// A graph file of its own folder.
fn graph(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.yaml");
    fs::write(&path, text).unwrap();
    (dir, path.display().to_string())
}

const ECHO: &str = "graph: echo\nsession: { mode: turn }\nnodes:\n  text: { use: session.in, kind: text }\n  said-out: { use: session.out, in: text }\n";
const LOOP: &str = "graph: loop\nsession: { mode: duplex }\nnodes:\n  mic: { use: session.in, audio: { rate: 16000 } }\n  ear: { use: session.out, in: mic }\n";

#[test]
fn a_wrong_graph_is_refused_with_all_that_is_wrong() {
    let (_dir, path) =
        graph("graph: g\nnodes:\n  a: { use: speech.vda, in: b }\n  c: { use: session.out, in: nobody }\n");
    for command in ["run", "check", "draw"] {
        let ran = run(&[command, &path]).expect(2).complains(&["error[G", "speech.vad", "nobody", "hint:"]);
        assert!(ran.err.contains("g.yaml:3:"), "{}", ran.err);
        assert!(ran.err.contains("g.yaml:4:"), "both at once: {}", ran.err);
    }
}

#[test]
fn a_check_looks_at_the_files_of_models() {
    let (dir, path) = graph(
        "graph: g\nsession: { mode: duplex }\nnodes:\n  mic: { use: session.in, audio: { rate: 16000 } }\n  vad: { use: speech.vad, in: mic }\n  out: { use: session.out, in: vad }\n",
    );
    let check = |more: &[&str]| {
        Ran::of(omni().env("OMNI_FLOW_CACHE", dir.path()).args(["check", &path]).args(more).output().unwrap())
    };
    check(&[]).expect(0);
    check(&["--offline"]).expect(2).complains(&["G113", "g.yaml:5:", "not in the cache", "models pull silero-vad"]);
    check(&["--set", "nodes.vad.model=silero"]).expect(2).complains(&["G113", "`silero`", "silero-vad"]);
    let ran = check(&["--set", "nodes.vad.model=silero"]).expect(2);
    assert!(!ran.err.contains("smollm2") && !ran.err.contains("piper"), "models of its kind alone: {}", ran.err);
    check(&["--set", "nodes.vad.model=own.onnx"]).expect(2).complains(&["`./own.onnx`", "folder of the graph file"]);
    check(&["--set", "nodes.vad.model=./none.onnx"]).expect(2).complains(&["G113", "none.onnx", "folder of the graph"]);
    let folder = dir.path().join("models/silero-vad");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("silero_vad_16k_op15.onnx"), b"something else").unwrap();
    check(&[]).expect(2).complains(&["G113", "wrong size or sum", "models pull silero-vad"]);
}

#[test]
fn a_graph_that_is_not_there_is_named() {
    run(&["check", "no/such.yaml"]).expect(2).complains(&["no/such.yaml"]);
}

#[test]
fn a_wrong_graph_is_json_for_machines() {
    let (_dir, path) = graph("graph: g\nnodes: { a: { use: what.ever } }\n");
    let ran = run(&["check", "--json", &path]).expect(2);
    let got: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(got["kind"], "graph");
    assert!(got["diagnostics"][0]["code"].as_str().unwrap().starts_with('G'), "{got}");
}

#[test]
fn an_unknown_command_gets_the_nearest() {
    run(&["chekc"]).expect(2).complains(&["check"]);
    run(&[]).expect(2).complains(&["Usage"]);
    let help = run(&["--help"]).expect(0);
    assert!(help.out.contains("voice-assistant.yaml") && help.out.contains("Exit codes"), "{}", help.out);
}

#[test]
fn an_input_that_is_missing_is_asked_for() {
    let (_dir, path) = graph(LOOP);
    run(&["run", &path, "--output", "ear.wav"]).expect(2).complains(&["this graph listens at `mic`", "--input FILE"]);
    run(&["run", &path, "--input", &clip("01_librivox0880_16k.wav")])
        .expect(2)
        .complains(&["speaks at `ear`", "--output FILE.wav"]);
    let (_dir, path) = graph(
        "graph: g\nsession: { mode: turn }\nnodes:\n  a: { use: session.in, kind: signal }\n  b: { use: session.out, in: a }\n",
    );
    run(&["run", &path]).expect(2).complains(&["cannot be served", "--input FILE"]);
}

#[test]
fn text_goes_in_and_comes_out() {
    let (dir, path) = graph(ECHO);
    let ran = run(&["run", &path, "--text", "Hello there."]).expect(0);
    assert!(ran.out.starts_with("said: Hello there.\n"), "{}", ran.out);
    assert!(ran.out.contains("text.out->said-out.in"), "the table names the edge: {}", ran.out);
    let file = dir.path().join("t.txt");
    fs::write(&file, "One\nline.\n\nTwo.").unwrap();
    let ran = run(&["run", &path, "--json", "--input", file.to_str().unwrap()]).expect(0);
    let events = ran.events();
    let texts: Vec<&str> = events.iter().filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(texts, ["One line.", "Two."]);
    let summary = events.last().unwrap();
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["edges"][0]["chunks"], 2);
    fs::write(&file, b"caf\xe9").unwrap();
    run(&["run", &path, "--input", file.to_str().unwrap()]).expect(1).complains(&["t.txt", "not UTF-8 at byte 3"]);
}

#[test]
fn standard_input_is_read_line_by_line() {
    let (_dir, path) = graph(ECHO);
    let mut child = omni()
        .args(["run", &path, "--input", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"One.\nTwo.\n").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).expect(0);
    assert!(ran.out.starts_with("said: One.\nsaid: Two.\n"), "{}", ran.out);
    run(&["run", &path, "--input", "-"]).expect(1).complains(&["standard input", "empty"]);
}

#[test]
fn any_recording_is_converted_and_written_while_it_comes() {
    let (dir, path) = graph(LOOP);
    for name in ["05_cards005_8k_mulaw.wav", "03_librivox0890_44k1_stereo.wav", "11_browser_mic_48k.wav"] {
        let out = dir.path().join("o.wav");
        let words = ["run", &path, "--input", &clip(name), "--output", out.to_str().unwrap(), "--no-pace", "--json"];
        let ran = run(&words).expect(0);
        let (asked, got) = (decode(&clip(name)), decode(out.to_str().unwrap()));
        assert_eq!((got.rate, got.channels), (16_000, 1));
        let due =
            omni_flow_media::resample::output_len((asked.samples.len() / asked.channels) as u64, asked.rate, 16_000);
        assert_eq!(got.samples.len() as u64, due, "{name}");
        let heard = ran.events().last().unwrap()["heard_s"].as_f64().unwrap();
        assert!((heard - due as f64 / 16_000.0).abs() < 1e-6);
    }
}

fn decode(path: &str) -> omni_flow_media::file::Decoded {
    omni_flow_media::file::decode(path, 1 << 24).unwrap()
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (dir, path) = graph(LOOP);
    let input = clip("01_librivox0880_16k.wav");
    let out = dir.path().join("o.wav").display().to_string();
    run(&["run", &path, "--input", "no.wav", "--output", &out]).expect(1).complains(&["no.wav"]);
    assert!(!std::path::Path::new(&out).exists(), "nothing is left behind");
    let nowhere = dir.path().join("no/folder/o.wav").display().to_string();
    run(&["run", &path, "--input", &input, "--output", &nowhere]).expect(1).complains(&["o.wav", "--output"]);
    run(&["run", &path, "--input", &path, "--output", &out]).expect(1).complains(&["g.yaml"]);
    run(&["run", &path, "--input", &input, "--output", &input]).expect(2).complains(&["both read and written"]);
    let empty = dir.path().join("empty.wav");
    fs::write(&empty, b"").unwrap();
    run(&["run", &path, "--input", empty.to_str().unwrap(), "--output", &out])
        .expect(1)
        .complains(&["empty.wav", "empty"]);
}

#[test]
fn an_input_without_anything_in_it_is_refused_before_a_model_is_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    // A whole header that promises no sample.
    let mut wav = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    wav.extend(16_000u32.to_le_bytes().iter().chain(&32_000u32.to_le_bytes()));
    wav.extend(b"\x02\0\x10\0data\0\0\0\0");
    let (wav, text) = (file("none.wav", &wav), file("none.txt", b"\xef\xbb\xbf \n\n\t\n"));
    let out = dir.path().join("o.wav").display().to_string();
    for (graph, input) in [("graphs/voice-assistant.yaml", &wav), ("graphs/speak.yaml", &text)] {
        let mut command = omni();
        command.env("OMNI_FLOW_CACHE", dir.path()).args([
            "run",
            graph,
            "--offline",
            "--input",
            input,
            "--output",
            &out,
        ]);
        let ran = Ran::of(command.output().unwrap()).expect(1).complains(&[input, "is empty"]);
        assert!(!ran.err.contains("starting") && !ran.err.contains("models pull"), "{}", ran.err);
        assert!(!std::path::Path::new(&out).exists(), "nothing is left behind");
    }
}

#[test]
fn formats_that_are_not_written_are_refused_before_anything_is_made() {
    let (dir, path) = graph(LOOP);
    let out = dir.path().join("t.mp3");
    let input = clip("01_librivox0880_16k.wav");
    let out = out.to_str().unwrap();
    let words = ["no audio is written as .mp3", ".wav (WAV", ".ogg, .opus or .oga (Ogg Opus)", "t.wav"];
    run(&["run", &path, "--input", &input, "--output", out]).expect(2).complains(&words);
    run(&["run", "graphs/tone.yaml", "--output", out]).expect(2).complains(&words);
    assert!(!std::path::Path::new(out).exists());
    let set = ["run", "graphs/tone.yaml", "--set", "nodes.out.path=t.mp3"];
    run(&set).expect(2).complains(&["no audio is written as .mp3", ".ogg, .opus or .oga"]);
}

#[test]
fn audio_does_not_go_to_standard_output_among_the_words() {
    let (dir, path) = graph(LOOP);
    let input = clip("01_librivox0880_16k.wav");
    let ran = Ran::of(omni().current_dir(&dir).args(["run", &path, "--input", &input, "-o", "-"]).output().unwrap());
    ran.expect(2).complains(&["not for audio", "--output"]);
    assert!(!dir.path().join("-").exists());
}

#[test]
fn a_run_that_fails_leaves_a_file_of_the_users_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.wav");
    fs::write(&input, b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\0\0\0\0")
        .unwrap();
    for name in ["keep.wav", "keep.ogg"] {
        let keep = dir.path().join(name);
        fs::write(&keep, b"mine").unwrap();
        for input in [input.as_path(), dir.path()] {
            let words = ["run", "graphs/opus-roundtrip.yaml", "--input", input.to_str().unwrap()];
            let ran = Ran::of(omni().args(words).args(["--output", keep.to_str().unwrap()]).output().unwrap());
            ran.expect(1);
            assert_eq!(fs::read(&keep).unwrap(), b"mine", "{name}");
        }
    }
}

#[test]
fn a_recording_that_was_cut_short_is_used_with_one_warning() {
    let (dir, path) = graph(LOOP);
    let whole = fs::read(clip("01_librivox0880_16k.wav")).unwrap();
    let (cut, out) = (dir.path().join("cut.wav"), dir.path().join("o.wav").display().to_string());
    // A second of 16 kHz and 16 bits.
    fs::write(&cut, &whole[..whole.len() - 32_000]).unwrap();
    let cut = cut.to_str().unwrap();
    let told = "cut.wav` was cut short: 1000 ms less than its header states";
    for graph in [&*path, "graphs/opus-roundtrip.yaml"] {
        let ran = run(&["run", graph, "--input", cut, "--output", &out, "--no-pace"]).expect(0).complains(&[told]);
        assert_eq!(ran.err.matches("cut short").count(), 1, "{}", ran.err);
    }
    let ran =
        run(&["run", &path, "--input", &clip("01_librivox0880_16k.wav"), "--output", &out, "--no-pace"]).expect(0);
    assert!(!ran.err.contains("cut short"), "{}", ran.err);
    // From a pipe it is known at the end.
    let mut command = omni();
    command.args(["run", &path, "--input", "-", "--output", &out, "--no-pace"]).stdin(fs::File::open(cut).unwrap());
    Ran::of(command.output().unwrap()).expect(0).complains(&["standard input` was cut short: 1000 ms"]);
}

#[test]
fn seeds_and_shipped_graphs_are_explained() {
    for seed in ["-1", "18446744073709551616", "one"] {
        run(&["run", "graphs/tone.yaml", "--seed", seed])
            .expect(2)
            .complains(&["--seed", "from 0 to 18446744073709551615"]);
    }
    let help = run(&["run", "--help"]).expect(0).out;
    let graphs = fs::read_dir(common::root().join("graphs")).unwrap().flatten();
    let names: Vec<String> =
        graphs.filter_map(|e| e.file_name().into_string().ok()).filter(|n| n.ends_with(".yaml")).collect();
    let readme = fs::read_to_string(common::root().join("README.md")).unwrap();
    assert!(names.len() >= 6);
    for name in &names {
        assert!(help.contains(&format!("omni-flow run graphs/{name}")), "{name} in\n{help}");
        assert!(readme.contains(&format!("(graphs/{name})")), "{name} in README.md");
    }
    for head in ["busy", "steps", "longest", "most held", "blocked", "dropped", "underruns"] {
        assert!(help.contains(head), "{head} in\n{help}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run_with_the_name_of_the_file() {
    let (_dir, path) = graph(LOOP);
    let words = ["run", &path, "--input", &clip("01_librivox0880_16k.wav"), "--output", "/dev/full", "--no-pace"];
    run(&words).expect(1).complains(&["/dev/full"]);
}

#[test]
#[cfg(unix)]
fn the_first_interrupt_drains_and_the_file_is_whole() {
    let (dir, path) = graph(LOOP);
    let out = dir.path().join("o.wav").display().to_string();
    // At its own pace this takes seconds.
    let mut child = omni()
        .args(["run", &path, "--input", &clip("07_two_utterances_with_silence_24k.wav"), "--output", &out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun when half a second of it lies in the file.
    until(&mut child, "half a second of audio", |_| fs::metadata(&out).is_ok_and(|m| m.len() > 16_000));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ran = Ran::of(child.wait_with_output().unwrap()).expect(130);
    assert!(ran.out.contains("stopped by Ctrl-C"), "{}", ran.out);
    let (whole, got) = (decode(&clip("07_two_utterances_with_silence_24k.wav")), decode(&out));
    let whole = whole.samples.len() * 2 / 3;
    assert!(got.samples.len() >= 8000 && got.samples.len() < whole, "{} of {whole}", got.samples.len());
}

#[test]
#[cfg(unix)]
fn a_file_is_not_read_and_written_at_once_under_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.wav").display().to_string(), dir.path().join("b.wav").display().to_string());
    fs::copy(clip("01_librivox0880_16k.wav"), &a).unwrap();
    fs::hard_link(&a, &b).unwrap();
    let before = fs::read(&a).unwrap();
    let (_graph, echo) = graph(LOOP);
    for (path, out) in [("graphs/opus-roundtrip.yaml", &a), ("graphs/opus-roundtrip.yaml", &b), (&echo, &b)] {
        run(&["run", path, "--input", &a, "--output", out]).expect(2).complains(&["both read and written"]);
        assert_eq!(fs::read(&a).unwrap(), before, "untouched");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn standard_output_that_cannot_be_written_is_a_failure() {
    for words in
        [&["nodes"][..], &["check", "graphs/tone.yaml"], &["completions", "bash"], &["draw", "graphs/tone.yaml"]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = Ran::of(
            omni().args(words).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap(),
        );
        ran.expect(1).complains(&["standard output"]);
    }
}

/// Sends `signal` to a child.
#[cfg(unix)]
fn signal(child: &std::process::Child, signal: &str) {
    assert!(std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn a_graph_that_feeds_itself_stops_at_the_first_interrupt() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.wav");
    let mut child = omni()
        .args(["run", "graphs/tone.yaml", "--set", "nodes.tone.duration=1h", "--set", "nodes.tone.pace=true"])
        .arg("--output")
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(&mut child, "audio", |_| fs::metadata(&out).is_ok_and(|m| m.len() > 4000));
    signal(&child, "-INT");
    // A drain that meets its deadline ends without a report.
    let ran = Ran::of(child.wait_with_output().unwrap()).expect(130);
    assert!(ran.out.contains("stopped by Ctrl-C"), "its sources ended: {}{}", ran.out, ran.err);
    assert!(decode(out.to_str().unwrap()).samples.len() > 1000);
}

/// True if a line of text does not fit into a pipe any more.
#[cfg(target_os = "linux")]
fn full(pipe: &impl std::os::fd::AsFd) -> bool {
    let size = rustix::pipe::fcntl_getpipe_size(pipe).unwrap();
    // Writes of less than a page go into a page of their own if they do not fit into the last one.
    rustix::io::ioctl_fionread(pipe).unwrap() as usize + 8192 > size
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_stops_reading_does_not_keep_the_program() {
    // A pipe that nobody reads is full after 64 KiB: a line for each of many chunks of text fills it.
    let (dir, path) = graph(ECHO);
    let long = dir.path().join("long.txt");
    fs::write(&long, "A line that is printed.\n\n".repeat(20_000)).unwrap();
    // One interrupt is enough, after what a drain may take.
    for (words, interrupts) in [(["--json"].as_slice(), 2), (&["--json"], 1), (&[], 1)] {
        let mut child = omni()
            .args(["run", &path, "--input", long.to_str().unwrap()])
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until(&mut child, "a full pipe", |child| full(child.stdout.as_ref().unwrap()));
        (0..interrupts).for_each(|_| signal(&child, "-INT"));
        assert_eq!(exit(&mut child), Some(130));
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    let (dir, path) = graph(LOOP);
    let once = |name: &str| {
        let out = dir.path().join(name).display().to_string();
        let words = ["run", &path, "--input", &clip("06_goforward_noisy_16k.wav"), "--output", &out, "--no-pace"];
        run(&words).expect(0);
        fs::read(out).unwrap()
    };
    assert_eq!(once("a.wav"), once("b.wav"));
}

#[test]
fn settings_are_layered_and_explained() {
    let (_dir, path) = graph(LOOP);
    let set = "nodes.mic.audio.rate=8000";
    let ran = run(&["check", &path, "--set", set, "--explain", "nodes.mic.audio.rate"]).expect(0);
    assert!(ran.out.contains("8000") && ran.out.contains("override"), "{}", ran.out);
    let ran = run(&["check", &path, "--explain", "nodes.mic.restart"]).expect(0);
    assert!(ran.out.contains("never") && ran.out.contains("the default of the engine"), "{}", ran.out);
    run(&["check", &path, "--explain", "nodes.mic.colour"]).expect(2).complains(&["no layer sets"]);
    run(&["check", &path, "--set", "nodes.mic"]).expect(2).complains(&["--set"]);
    let ran = run(&["check", "--codes"]).expect(0);
    assert!(ran.out.contains("G203"), "{}", ran.out);
}

#[test]
fn a_log_filter_that_cannot_be_read_is_refused() {
    let ran = Ran::of(omni().args(["nodes"]).env("OMNI_FLOW_LOG", "a=b=c").output().unwrap());
    ran.expect(2).complains(&["OMNI_FLOW_LOG"]);
}

#[test]
fn secrets_are_never_shown() {
    let (_dir, path) =
        graph("graph: g\nnodes:\n  llm: { use: model.chat, base-url: x, api-key: sk-abcdef123456, in: q }\n");
    let ran = run(&["check", &path]).expect(2);
    assert!(!ran.err.contains("sk-abcdef"), "{}", ran.err);
    let ran = run(&["check", &path, "--explain", "nodes.llm.api-key"]).expect(0);
    assert!(ran.out.contains("***") && !ran.out.contains("sk-abcdef"), "{}", ran.out);
    for (text, set) in [
        ("graph: g\nnodes:\n  llm: { api-key: \"sk-abcdef\n", "x-a=1"),
        ("graph: g\nnodes:\n  llm:\n    api-key: sk-abcdef: foo\n", "x-a=1"),
        ("graph: g\nnodes:\n  llm:\n    api-key: sk-1\n    api-key: sk-abcdef\n", "x-a=1"),
        ("graph: g\nnodes:\n  llm: { use: model.chat, base-url: \"http://me:sk-abcdef@h/v1\", in: q }\n", "x-a=1"),
        (ECHO, "nodes.llm.api-key={sk-abcdef"),
    ] {
        let (_dir, path) = graph(text);
        let ran = run(&["check", &path, "--set", set]).expect(2);
        assert!(!ran.err.contains("sk-abcdef"), "{}", ran.err);
    }
}

#[test]
fn the_abort_timeout_is_read_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.wav").display().to_string();
    let tone = |seconds: &str| {
        let mut c = omni();
        c.env("OMNI_FLOW_ABORT_TIMEOUT", seconds).args(["run", "graphs/tone.yaml", "--output", &path]);
        Ran::of(c.output().unwrap())
    };
    let refused = tone("soon").expect(2);
    refused.complains(&["OMNI_FLOW_ABORT_TIMEOUT=`soon`", "seconds", "OMNI_FLOW_ABORT_TIMEOUT=2"]);
    assert!(!std::path::Path::new(&path).exists());
    tone("0.5").expect(0);
}
