//! A short fuzz run of every byte parser, on the stable toolchain: vectors changed at random, and random bytes.
//!
//! Deterministic: a failure names its round and its bytes. The bodies are those of `fuzz/`, which runs them for long and
//! with coverage.

#[path = "../../../media/tests/common/mod.rs"]
mod common;
mod seeds;

use common::Random;
use omni_flow_tests::fuzz;

/// Changes bytes, sizes and length of a seed input; `words` are put in here and there.
fn mutate(seed: &[u8], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(6) {
        if bytes.is_empty() {
            bytes.push(random.bits() as u8);
        }
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.bits() as u8),
            4 => {
                let value = [0u32, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFE, random.bits() as u32][random.below(6)];
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            5 => {
                let part = bytes[at..bytes.len().min(at + random.below(40))].to_vec();
                bytes.extend_from_slice(&part);
            }
            6 => {
                let end = bytes.len().min(at + random.below(20));
                bytes.drain(at..end);
            }
            _ if words.is_empty() => bytes[at] = !bytes[at],
            _ => {
                let word = words[random.below(words.len())].as_bytes();
                let end = bytes.len().min(at + word.len());
                bytes.splice(at..end, word.iter().copied());
            }
        }
    }
    bytes
}

/// Runs a target on its seeds as they are, then changed; each input also with other first bytes, which some targets take
/// as a choice.
fn run(name: &str, seeds: &[Vec<u8>], words: &[&str], rounds: u64) {
    let (_, body) = fuzz::ALL.into_iter().find(|(n, _)| *n == name).expect("a target of this name");
    let check = |round: u64, bytes: &[u8]| {
        let result = std::panic::catch_unwind(|| body(bytes));
        assert!(result.is_ok(), "{name}, round {round}: {bytes:02x?}");
    };
    seeds.iter().for_each(|seed| check(0, seed));
    for round in 1..=rounds {
        let mut random = Random(round);
        let bytes = if round % 8 == 0 {
            (0..random.below(300)).map(|_| random.bits() as u8).collect()
        } else {
            mutate(&seeds[random.below(seeds.len())], words, &mut random)
        };
        check(round, &bytes);
    }
}

/// Seeds behind `n` bytes of choice, three of each.
fn chosen(n: usize, seeds: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut random = Random(7);
    let with = |seed: &Vec<u8>| {
        let mut bytes: Vec<u8> = (0..n).map(|_| random.bits() as u8).collect();
        bytes.extend_from_slice(seed);
        bytes
    };
    let three: Vec<Vec<u8>> = seeds.into_iter().flat_map(|s| [s.clone(), s.clone(), s]).collect();
    three.iter().map(with).collect()
}

#[test]
fn wav() {
    let seeds = common::wav_vectors().into_iter().map(|(_, bytes)| bytes).collect();
    run("wav", &chosen(1, seeds), &["data", "fmt ", "LIST", "RIFF", "ds64", "WAVE"], 20_000);
}
#[test]
fn samples() {
    run("samples", &chosen(2, vec![vec![0x7F; 64], vec![0xFF; 33], vec![0; 1]]), &[], 5000);
}
#[test]
fn audio_file() {
    let ramp: Vec<i16> = (0..300).map(|i| (i * 97) as i16).collect();
    let mut seeds: Vec<Vec<u8>> = common::wav_vectors().into_iter().map(|(_, bytes)| bytes).collect();
    seeds.extend([common::flac(&ramp, 2, 16_000), common::aiff(&ramp, 1, 8000)]);
    seeds.extend([common::flac(&ramp, 1, 48_000), common::aiff(&ramp, 2, 8000), common::flac(&ramp, 1, 8000)]);
    seeds.extend([common::opus(8000, 1, 3000), common::opus(16_000, 2, 2000), common::opus(48_000, 1, 0)]);
    run("audio_file", &seeds, &["data", "OggS", "fLaC", "FORM", "RIFF"], 2000);
}
#[test]
fn ogg_opus() {
    run("ogg_opus", &chosen(1, seeds::ogg_pages()), &["OpusHead", "OpusTags"], 2000);
}
#[test]
fn opus_packet() {
    run("opus_packet", &seeds::opus_packets(), &[], 3000);
}
#[test]
fn gguf() {
    run("gguf", &seeds::gguf(), &["GGUF", "gpt2", "llama", "general.alignment"], 5000);
}
#[test]
fn ct2() {
    run("ct2", &seeds::ct2(), &["WhisperSpec"], 20_000);
}
#[test]
fn onnx() {
    run("onnx", &seeds::onnx(), &["Conv", "ConvTranspose", "Tanh", "strides", "pads"], 20_000);
}
#[test]
fn sse() {
    run("sse", &chosen(2, seeds::sse()), &["data:", "\r\n", "\n\n", "\r", ":", "\u{feff}", "event: x\n"], 20_000);
}
#[test]
fn client_event() {
    let words = ["\"", "[", "]", "{", "}", ",", "null", "-1", "1e99", "\"\"", "\"type\":", "\\u0000", "\"event_id\":"];
    run("client_event", &seeds::client_events(), &words, 20_000);
}
#[test]
fn client_audio() {
    let seeds = vec![vec![0x7F; 64], vec![0xFF; 33], vec![0; 1], b"AAAA/38=".to_vec()];
    run("client_audio", &chosen(3, seeds), &["AAAA", "=", "%"], 3000);
}
#[test]
fn recording() {
    run("recording", &seeds::recordings(), &[], 20_000);
}
#[test]
fn catalogue() {
    let words = ["\"", "[", "]", "{", "}", ",", "null", "1e99", "\"name\":", "../", "hub:", "@", "\\u0000"];
    run("catalogue", &seeds::catalogues(), &words, 3000);
}
#[test]
fn voice_config() {
    let words = ["\"", "[", "]", "{", "}", ",", "null", "-1", "\"phoneme_id_map\":", "\"_\"", "1e99"];
    run("voice_config", &seeds::voice_configs(), &words, 5000);
}
#[test]
fn graph() {
    let words =
        ["\n", " ", "\t", ":", "{", "}", "[", "]", ",", "&a ", "*a", "!!str ", "'", "\"", "- ", "---\n", "<<: "];
    run("graph", &seeds::graphs(), &words, 600);
}

/// A parser without a seed that it accepts is hardly tested.
#[test]
fn each_target_has_a_test_here_and_a_binary() {
    let here = include_str!("main.rs");
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/fuzz_targets");
    for (name, _) in fuzz::ALL {
        assert!(here.contains(&format!("fn {name}() {{")), "no test `{name}`");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml has no `{name}`");
        let text = std::fs::read_to_string(format!("{folder}/{name}.rs")).expect("a binary");
        assert!(text.contains(&format!("fuzz::{name}")), "{name}: {text}");
    }
}
/// The seeds are what they are meant to be: changed files are only interesting near right ones.
#[test]
fn seeds_are_accepted() {
    use omni_flow_nodes::{catalogue::Catalogue, chat::gguf::Gguf, chat::tokenizer::Tokenizer, piper, whisper::ct2};
    for seed in seeds::gguf() {
        let gguf = Gguf::parse(&seed, seed.len() as u64).unwrap().expect("whole");
        assert!(gguf.tensors.keys().all(|name| gguf.locate(name).is_ok()));
        let tokenizer = Tokenizer::from_gguf("seed".as_ref(), &gguf).unwrap();
        assert!(!tokenizer.encode("ab").unwrap().is_empty());
    }
    assert!(seeds::ct2().iter().all(|seed| ct2::parse(seed).is_ok()));
    assert!(seeds::onnx().iter().any(|seed| piper::inspect(seed).unwrap().starts_with("Ok(Split")));
    assert!(seeds::catalogues().iter().any(|s| Catalogue::from_json(std::str::from_utf8(s).unwrap()).is_ok()));
    assert!(seeds::voice_configs().iter().all(|s| piper::VoiceConfig::parse(s).is_ok()));
    for seed in seeds::client_events() {
        let text = std::str::from_utf8(&seed).unwrap();
        assert!(omni_flow_transports::realtime::wire::client::parse(text, seed.len()).is_ok(), "{text}");
    }
    for seed in seeds::recordings() {
        let mut records = omni_flow_nodes::util::recording::Records::new(&seed[..]).unwrap();
        assert!(records.read_next().unwrap().is_some());
    }
    for seed in seeds::opus_packets() {
        assert!(omni_flow_media::opus::PacketInfo::parse(&seed).is_ok());
    }
}
