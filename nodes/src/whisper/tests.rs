//! With real weights and real speech where the cache has them.

use super::*;
use crate::testing::{audio, cached, words, word_errors};
use std::path::Path;
use std::sync::{Arc, OnceLock};

fn model() -> Option<Arc<WhisperModel>> {
    static MODEL: OnceLock<Option<Arc<WhisperModel>>> = OnceLock::new();
    MODEL
        .get_or_init(|| {
            let folder = cached("whisper-tiny-en", "model.bin")?;
            Some(WhisperModel::load(&WhisperFiles::in_folder(&folder)).unwrap())
        })
        .clone()
}

#[test]
fn hears_the_clips() {
    let Some(model) = model() else { return };
    let clips = [
        ("01_librivox0880_16k.wav", "he was not an ill disposed young man", 0),
        ("03_librivox0890_44k1_stereo.wav", "unless to be rather cold hearted and rather selfish is to be ill disposed", 1),
        ("05_cards005_8k_mulaw.wav", "eight of spades four of clubs seven of hearts", 1),
        ("06_goforward_noisy_16k.wav", "go forward ten meters", 0),
        ("11_browser_mic_48k.wav", "he was not an ill disposed young man", 0),
    ];
    for (file, said, allowed) in clips {
        let heard = model.transcribe(&audio(file)).unwrap();
        let errors = word_errors(&words(said), &words(&heard.text));
        println!("{file}: {errors} errors, {heard:?}");
        assert!(errors <= allowed, "{file}: `{}` for `{said}`", heard.text);
    }
}

#[test]
fn reports_nothing_where_nobody_speaks() {
    let Some(model) = model() else { return };
    for file in ["08_nonspeech_24k.wav", "10_silence_24k.wav"] {
        let pcm = audio(file);
        let heard = model.transcribe(&pcm).unwrap();
        println!("{file}: {heard:?}");
        for part in pcm.chunks(32_000) {
            println!("  part {:?}", model.transcribe(part).unwrap());
        }
        assert_eq!((heard.text.as_str(), heard.stop), ("", Stop::NoSpeech), "{file}");
    }
}
