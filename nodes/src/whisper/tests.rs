//! With real weights and real speech where the cache has them.

use super::*;
use crate::testing::{audio, cached, word_errors, words};
use candle_core::{DType, Device, Tensor};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

fn folder() -> Option<PathBuf> {
    cached("whisper-tiny-en", "model.bin")
}

fn model() -> Option<Arc<WhisperModel>> {
    static MODEL: OnceLock<Option<Arc<WhisperModel>>> = OnceLock::new();
    MODEL.get_or_init(|| Some(WhisperModel::load(&WhisperFiles::in_folder(&folder()?)).unwrap())).clone()
}

#[test]
fn hears_the_clips() {
    let Some(model) = model() else { return };
    // The model itself hears "old-sposed" for "ill disposed" and "close" for "clubs": CTranslate2 with these weights,
    // whole window, f32 and greedy, makes 2, 0, 1, 0, 2 and 2 errors.
    let first = "he was not an ill disposed young man";
    let clips = [
        ("01_librivox0880_16k.wav", first.to_owned(), 2),
        (
            "03_librivox0890_44k1_stereo.wav",
            "unless to be rather cold hearted and rather selfish is to be ill disposed".into(),
            1,
        ),
        ("05_cards005_8k_mulaw.wav", "eight of spades four of clubs seven of hearts".into(), 1),
        ("06_goforward_noisy_16k.wav", "go forward ten meters".into(), 0),
        ("07_two_utterances_with_silence_24k.wav", format!("{first} he might even have been made amiable himself"), 2),
        ("11_browser_mic_48k.wav", first.into(), 2),
    ];
    for (file, said, allowed) in clips {
        let heard = model.transcribe(&audio(file)).unwrap();
        let errors = word_errors(&words(&said), &words(&heard.text));
        println!("{file}: {errors} errors, {heard:?}");
        assert!(errors <= allowed, "{file}: `{}` for `{said}`", heard.text);
        assert!(heard.stop == Stop::EndOfText && heard.no_speech_prob < 0.6 && heard.language == "en");
    }
}

#[test]
fn reports_nothing_where_nobody_speaks() {
    let Some(model) = model() else { return };
    for file in ["08_nonspeech_24k.wav", "10_silence_24k.wav"] {
        let heard = model.transcribe(&audio(file)).unwrap();
        assert_eq!((heard.text.as_str(), heard.stop), ("", Stop::NoSpeech), "{file}: {heard:?}");
    }
    let hour = vec![0.; 3600 * 16_000];
    for pcm in [&[][..], &[0.5], &[f32::NAN; 20_000], &hour[..]] {
        assert_eq!(model.transcribe(pcm).unwrap().text, "", "{} samples", pcm.len());
    }
}

/// The utterances that the real detector cuts out of a clip, by the rules of a graph, and the guesses at them.
#[cfg(feature = "silero")]
fn utterances(file: &str, config: crate::turn::TurnConfig) -> Option<Vec<Vec<f32>>> {
    use crate::silero::{SileroModel, VoiceActivity, WINDOW};
    use crate::turn::{TurnEvent, TurnMachine};
    const VAD: &str = "silero_vad_16k_op15.onnx";
    let vad = SileroModel::load(&cached("silero-vad", VAD)?.join(VAD)).unwrap();
    let (mut stream, mut turn, mut out) = (vad.stream(), TurnMachine::new(config.rules().unwrap()), Vec::new());
    let score = |w: &[f32]| stream.probability(w.try_into().unwrap()).unwrap();
    let mut pcm = audio(file);
    pcm.resize(pcm.len().next_multiple_of(WINDOW), 0.);
    turn.push(&pcm, score, &mut out);
    turn.end(None, &mut out);
    let cut = |e| match e {
        TurnEvent::TurnEnded { audio, .. } | TurnEvent::Guess { audio, .. } => Some(audio),
        _ => None,
    };
    Some(out.into_iter().filter_map(cut).collect())
}

#[test]
#[cfg(feature = "silero")]
fn what_the_detector_cuts_out_of_noise_is_no_speech_and_what_it_cuts_out_of_speech_is() {
    let Some(model) = model() else { return };
    // The rules of the shipped graphs: `transcribe`, and `voice-assistant` with its guesses.
    for (silence_duration_ms, speculate_after_ms) in [(500, 0), (200, 96)] {
        let rules = crate::turn::TurnConfig { silence_duration_ms, speculate_after_ms, ..Default::default() };
        // Two or three windows at the onset of the tone score as speech, which depends on the resampler: two are taken here.
        let noisy = crate::turn::TurnConfig { min_speech_duration_ms: 64, ..rules };
        let Some(noise) = utterances("08_nonspeech_24k.wav", noisy) else { return };
        assert!(!noise.is_empty());
        for piece in noise {
            let heard = model.transcribe(&piece).unwrap();
            assert_eq!((heard.text.as_str(), heard.stop), ("", Stop::NoSpeech), "{silence_duration_ms}: {heard:?}");
            assert!(heard.no_speech_prob > 0.6, "{heard:?}");
        }
        for file in [
            "01_librivox0880_16k.wav",
            "03_librivox0890_44k1_stereo.wav",
            "05_cards005_8k_mulaw.wav",
            "06_goforward_noisy_16k.wav",
            "07_two_utterances_with_silence_24k.wav",
            "11_browser_mic_48k.wav",
        ] {
            // A guess may be a sound before the first word, and is then withdrawn: whole turns alone.
            let turns = crate::turn::TurnConfig { speculate_after_ms: 0, ..rules };
            for piece in utterances(file, turns).unwrap() {
                let heard = model.transcribe(&piece).unwrap();
                let (text, no_speech) = (&heard.text, heard.no_speech_prob);
                println!("{file}: {} samples, {no_speech:.2} {:.2} `{text}`", piece.len(), heard.avg_logprob);
                assert!(!text.is_empty() && no_speech < 0.5, "{file}: {heard:?}");
            }
        }
    }
}

#[test]
fn a_long_utterance_is_cut_in_its_pauses() {
    let Some(model) = model() else { return };
    let clip = audio("01_librivox0880_16k.wav");
    let mut pcm = Vec::new();
    while pcm.len() < 35 * 16_000 {
        pcm.extend(&clip);
        pcm.extend([0.; 12_000]);
    }
    let mut job = Transcription::new(model, &pcm, Some("en")).unwrap();
    let (mut windows, mut partials) = (0, Vec::new());
    let heard = loop {
        match job.step().unwrap() {
            Progress::More(Unit::Encode) => windows += 1,
            Progress::More(_) => partials.push(job.partial().len()),
            Progress::Done(heard) => break heard,
        }
    };
    assert_eq!(windows, 2);
    assert!(partials.iter().any(|&n| n > 0) && heard.samples == pcm.len());
    assert!(heard.text.to_lowercase().contains("young man"), "{}", heard.text);
    assert_eq!(job.step().unwrap(), Progress::Done(heard));
}

#[test]
fn english_only_refuses_other_languages() {
    let Some(model) = model() else { return };
    assert_eq!(model.languages().count(), 0);
    let error = Transcription::new(model, &[], Some("de")).err().unwrap();
    assert!(matches!(&error, WhisperError::Language { language, .. } if language == "de"), "{error}");
}

/// The usual names for a variable of the CTranslate2 layout: one, or one per stacked part.
fn usual_names(name: &str) -> Vec<String> {
    let name = name.replace("layer_norm/gamma", "layer_norm.weight").replace("layer_norm/beta", "layer_norm.bias");
    let name = name.replace("position_encodings/encodings", "embed_positions.weight");
    let name =
        name.replace("decoder/embeddings", "decoder/embed_tokens").replace('/', ".").replace("layer_", "layers.");
    let name = name.replace("layers.norm", "layer_norm");
    let split = |from: &str, to: &[&str]| to.iter().map(|t| format!("model.{}", name.replace(from, t))).collect();
    let attention = [
        ("self_attention.linear_0", &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"][..]),
        ("self_attention.linear_1", &["self_attn.out_proj"]),
        ("self_attention.layer_norm", &["self_attn_layer_norm"]),
        ("attention.linear_0", &["encoder_attn.q_proj"]),
        ("attention.linear_1", &["encoder_attn.k_proj", "encoder_attn.v_proj"]),
        ("attention.linear_2", &["encoder_attn.out_proj"]),
        ("attention.layer_norm", &["encoder_attn_layer_norm"]),
        ("ffn.linear_0", &["fc1"]),
        ("ffn.linear_1", &["fc2"]),
        ("ffn.layer_norm", &["final_layer_norm"]),
    ];
    match attention.iter().find(|(from, _)| name.contains(from)) {
        Some((from, to)) => split(from, to),
        None => vec![format!("model.{name}")],
    }
}

/// The same weights written as safetensors, without the biases that this layout does not have.
fn as_safetensors(folder: &Path, into: &Path) {
    let bytes = std::fs::read(folder.join("model.bin")).unwrap();
    let mut out: HashMap<String, Tensor> = HashMap::new();
    for (name, v) in ct2::parse(&bytes).unwrap().variables {
        if v.dtype != ct2::Dtype::F16 || name.contains("projection") {
            continue;
        }
        let whole = Tensor::from_raw_buffer(v.data, DType::F16, &v.dims, &Device::Cpu).unwrap();
        let names = usual_names(&name);
        for (part, name) in whole.chunk(names.len(), 0).unwrap().into_iter().zip(names) {
            if !name.ends_with("k_proj.bias") {
                out.insert(name, part.contiguous().unwrap());
            }
        }
    }
    candle_core::safetensors::save(&out, into.join("model.safetensors")).unwrap();
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(folder.join(file), into.join(file)).unwrap();
    }
}

#[test]
fn safetensors_give_the_same_transcript() {
    let (Some(model), Some(folder)) = (model(), folder()) else { return };
    let dir = tempfile::tempdir().unwrap();
    as_safetensors(&folder, dir.path());
    let files = WhisperFiles::in_folder(dir.path());
    assert!(files.weights.ends_with("model.safetensors"));
    let other = WhisperModel::load(&files).unwrap();
    assert_eq!(other.sizes(), model.sizes());
    let pcm = audio("01_librivox0880_16k.wav");
    let (a, b) = (model.transcribe(&pcm).unwrap(), other.transcribe(&pcm).unwrap());
    assert_eq!(a, b);
}

#[test]
fn damaged_files_are_errors_that_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let files = WhisperFiles::in_folder(dir.path());
    let load = || WhisperModel::load(&files).err().unwrap();
    assert!(matches!(load(), WhisperError::Read { file, .. } if file == files.config));
    std::fs::write(&files.config, "{ not json").unwrap();
    assert!(matches!(load(), WhisperError::Malformed { file, .. } if file == files.config));
    std::fs::write(&files.config, "{}").unwrap();
    assert!(matches!(load(), WhisperError::Read { file, .. } if file == files.weights));
    for bytes in [vec![], vec![0; 64], ct2::tests::write(&[], &[])] {
        std::fs::write(&files.weights, bytes).unwrap();
        assert_eq!(load().file(), files.weights);
    }
    let Some(folder) = folder() else { return };
    let whole = std::fs::read(folder.join("model.bin")).unwrap();
    for cut in [3, 40, 400, whole.len() / 3, whole.len() - 1] {
        std::fs::write(&files.weights, &whole[..cut]).unwrap();
        assert!(matches!(load(), WhisperError::Malformed { file, .. } if file == files.weights), "{cut} bytes");
    }
    std::fs::write(&files.weights, &whole).unwrap();
    assert!(matches!(load(), WhisperError::Read { file, .. } if file == files.tokenizer));
    std::fs::write(&files.tokenizer, "[]").unwrap();
    assert!(matches!(load(), WhisperError::Malformed { file, .. } if file == files.tokenizer));
    // A tensor of another shape is named with both shapes.
    std::fs::copy(folder.join("tokenizer.json"), &files.tokenizer).unwrap();
    let name = b"encoder/conv2/bias\0";
    let at = whole.windows(name.len()).position(|w| w == name).unwrap() + name.len();
    let mut changed = whole.clone();
    // Rank 1 and 384 f16 values become 192 f32 values: as many bytes.
    changed[at + 1..at + 5].copy_from_slice(&192u32.to_le_bytes());
    changed[at + 5] = 0;
    std::fs::write(&files.weights, changed).unwrap();
    let error = load();
    assert!(
        matches!(&error, WhisperError::Shape { tensor, got, .. } if tensor == "encoder/conv2/bias" && got == &[192]),
        "{error}"
    );
    // Weights that are no numbers end in an error, not in words.
    let mut poisoned = whole;
    let name = b"decoder/layer_norm/gamma\0";
    let at = poisoned.windows(name.len()).position(|w| w == name).unwrap() + name.len() + 10;
    poisoned[at..at + 768].chunks_exact_mut(2).for_each(|b| b.copy_from_slice(&half::f16::NAN.to_le_bytes()));
    std::fs::write(&files.weights, poisoned).unwrap();
    let model = WhisperModel::load(&files).unwrap();
    let error = model.transcribe(&audio("01_librivox0880_16k.wav")).unwrap_err();
    assert!(matches!(&error, WhisperError::Malformed { file, .. } if *file == files.weights), "{error}");
}
