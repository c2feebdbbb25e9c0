//! `models` and `nodes`, and what is said when a model is not there.

mod common;

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

/// What `nodes speech.turn` prints. When it is meant to change, this text changes with it.
const TURN: &str = "\
speech.turn
  Turn detection: gives each utterance when it is over, tells when speech starts and stops, fences answers
  Decides turns: write `fences: LANE` to make it end what is under way on that lane.

inputs
  in  audio 16000 mono f32  windows with their speech probability, as `speech.vad` gives them

outputs
  utterance  audio 16000 mono f32  each whole utterance, prefix padding included
  events     signal                speech started, speech stopped, turn ended

options
  threshold            number    default 0.5    speech probability from which a window is speech, above 0.15 up to 1
  prefix-padding       duration  default 300ms  audio kept before the first window of speech
  silence-duration     duration  default 500ms  silence that ends a turn
  min-speech-duration  duration  default 96ms   unbroken speech that begins a turn
  max-utterance        duration  default 30s    longest utterance; then it is given as it stands and a new one begins
  speculate-after      duration  default 160ms  silence after which `speech.guess` gives the utterance so far; 0ms = never

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
