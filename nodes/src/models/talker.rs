//! `model.talker`: sentences in, latents out, in the pieces that the node's `chunk` policy says. A shared stage; one
//! sentence is one unit of work. The phonemes are made in it.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{
    Body, BuildCx, BuildError, Kind, Make, MediaTime, Medium, Mono, Opt, OptionError, Port, Schema, Stamp, Tensor,
};
use serde::Deserialize;

use super::files::pick;
use super::{fetch, look};
use crate::catalogue::ModelFiles;
use crate::chunking::{ChunkConfig, Chunker, Load, Policy, StreamStart};
use crate::piper::{MAX_IDS, Scales, Voice};

/// The node type `model.talker`.
pub struct ModelTalker;

/// Options of `model.talker`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TalkerConfig {
    #[serde(default = "default_voice")]
    voice: String,
    #[serde(default)]
    speaker: u32,
    noise: Option<f32>,
    length: Option<f32>,
    noise_w: Option<f32>,
    seed: Option<u64>,
}
pub(super) fn default_voice() -> String {
    "piper-joe".to_owned()
}

/// Voices in use in this process, by file: talker and code2wav of one voice share its weights.
static VOICES: Mutex<BTreeMap<PathBuf, Weak<Voice>>> = Mutex::new(BTreeMap::new());

/// Loads a Piper voice, or finds it loaded.
pub(super) fn voice(name: &str, cx: &BuildCx) -> Result<Arc<Voice>, BuildError> {
    let files: ModelFiles = fetch(name, cx)?;
    let onnx = pick(&files, &["onnx"], "voice")?;
    let json = pick(&files, &["json"], "voice configuration")?;
    let mut voices = VOICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(voice) = voices.get(onnx).and_then(Weak::upgrade) {
        return Ok(voice);
    }
    let voice = Voice::load(onnx, json).map_err(BuildError::from_error)?;
    voices.retain(|_, v| v.strong_count() > 0);
    voices.insert(onnx.to_owned(), Arc::downgrade(&voice));
    Ok(voice)
}

impl Make for ModelTalker {
    const NAME: &'static str = "model.talker";
    type Config = TalkerConfig;
    fn schema() -> Schema {
        Schema::new("The first half of a Piper voice: text in, latents for `model.code2wav` out")
            .input(Port::new("in", Kind::of(Medium::Text), "sentences, as `text.sentences` gives them"))
            .output(Port::new(
                "latents",
                Kind::of(Medium::Tensor),
                "[frames, width] f32; the last piece of a sentence is marked",
            ))
            .option(Opt::new("voice", "text", "piper-joe", "catalogue name, folder or hub file of a Piper voice"))
            .option(Opt::new("speaker", "integer", "0", "speaker of a voice with several"))
            .option(Opt::maybe("noise", "number", "variation of the voice, 0 to 10; the voice's own if left out"))
            .option(Opt::maybe("length", "number", "time per phoneme, 0.05 to 10; 1 = as trained, more is slower"))
            .option(Opt::maybe("noise-w", "number", "variation of the rhythm, 0 to 10; the voice's own if left out"))
            .option(Opt::maybe("seed", "integer", "seed of the variation; the engine's if left out"))
            .shared()
            .example("talker: { use: model.talker, in: sentences, lane: reply, chunk: { ramp: [33, 64], size: 64 } }")
    }
    fn refine(config: &TalkerConfig, _: &mut Schema) -> Result<(), OptionError> {
        let given = [("noise", config.noise, 0.0), ("length", config.length, 0.05), ("noise-w", config.noise_w, 0.0)];
        for (name, value, least) in given {
            if value.is_some_and(|v| !(least..=10.0).contains(&v)) {
                return Err(OptionError::new(name, "is out of range", format!("use {least} to 10")));
            }
        }
        Ok(())
    }
    fn look(config: &TalkerConfig, cx: &BuildCx) -> Result<(), OptionError> {
        look("voice", &config.voice, cx)
    }
    fn build(config: &TalkerConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        let voice = voice(&config.voice, cx)?;
        if config.speaker >= voice.config().speakers.max(1) {
            let (n, asked) = (voice.config().speakers, config.speaker);
            return Err(BuildError::new(format!(
                "voice `{}` has {n} speakers, numbered from 0; there is no {asked}",
                config.voice
            )));
        }
        let own = Scales::of(voice.config());
        let scales = Scales {
            noise: config.noise.unwrap_or(own.noise),
            length: config.length.unwrap_or(own.length),
            noise_w: config.noise_w.unwrap_or(own.noise_w),
        };
        let policy = policy(cx)?;
        voice.phonemizer();
        let seed = config.seed.unwrap_or(cx.seed);
        Ok(Body::stage(TalkerStage { voice, speaker: config.speaker, scales, seed, policy }))
    }
}

/// The chunk policy of the node's output: as the file says, or the whole sentence at once.
fn policy(cx: &BuildCx) -> Result<Option<Policy>, BuildError> {
    let Some(value) = &cx.chunk else { return Ok(None) };
    // Per output port, or for all.
    let own = value.get("latents").unwrap_or(value).clone();
    let config: ChunkConfig = serde_json::from_value(own).map_err(BuildError::from_error)?;
    let (policy, warnings) = config.policy().map_err(BuildError::from_error)?;
    for w in warnings {
        tracing::warn!(node = cx.path, "chunk: {w}");
    }
    Ok(Some(policy))
}

struct TalkerStage {
    voice: Arc<Voice>,
    speaker: u32,
    scales: Scales,
    seed: u64,
    policy: Option<Policy>,
}

/// Longest text of one chunk, bytes: a sentence splitter before this node keeps far below.
const MOST: usize = 16 << 10;

#[derive(Default)]
struct Speech {
    next: VecDeque<(Stamp, Arc<str>)>,
    spoken: u64,
}

impl Stage for TalkerStage {
    type In = Arc<str>;
    type Out = Tensor;
    type Slot = Speech;

    fn open(&self, _: SlotId) -> Result<Speech, StageError> {
        Ok(Speech::default())
    }
    fn slot_bytes(&self, slot: &Speech) -> u64 {
        slot.next.iter().map(|(_, t)| t.len() as u64).sum()
    }
    fn accept(&self, slot: &mut Speech, stamp: &Stamp, input: Arc<str>) -> Result<(), StageError> {
        if input.len() > MOST {
            let text =
                format!("a text of {} bytes in one chunk; at most {MOST}: put `text.sentences` before it", input.len());
            return Err(StageError::failed(text));
        }
        slot.next.push_back((*stamp, input));
        Ok(())
    }
    fn ready(&self, slot: &Speech) -> bool {
        !slot.next.is_empty()
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let (slot, out) = m.parts();
        let Some((stamp, text)) = slot.next.pop_front() else { return Ok(()) };
        let said = self.voice.utterance(&text).map_err(StageError::failed)?;
        if !said.phonemes.skipped.is_empty() {
            tracing::warn!(words = ?said.phonemes.skipped, "words that this voice cannot speak were left out");
        }
        if said.ids.is_empty() {
            return Ok(());
        }
        if said.ids.len() > MAX_IDS
            && let Some((first, second)) = halves(&text)
        {
            // A number can become a long text: what is too long for one breath is spoken in two.
            slot.next.push_front((stamp, second.into()));
            slot.next.push_front((stamp, first.into()));
            return Ok(());
        }
        let seed = self.seed.wrapping_add(slot.spoken);
        slot.spoken += 1;
        let latents = self.voice.talk(&said.ids, self.scales, self.speaker, seed).map_err(StageError::failed)?;
        let width = latents.width();
        let play = MediaTime::from_samples(self.voice.hop() as u64, self.voice.sample_rate());
        let frames = latents.frames();
        let rows = latents.into_rows();
        for (from, to) in pieces(self.policy.as_ref(), frames, play) {
            let part = rows[from * width..to * width].to_vec();
            let at = MediaTime::from_ticks(play.ticks() * from as i64);
            let len = MediaTime::from_ticks(play.ticks() * (to - from) as i64);
            out.push(stamp.child(at, len).last(to == frames), Tensor::f32([to - from, width], part));
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Speech) {
        slot.next.clear();
    }
}

/// A text cut in two, between words if there are any near the middle.
fn halves(text: &str) -> Option<(&str, &str)> {
    let middle = text.floor_char_boundary(text.len() / 2);
    let space = text[..middle].rfind(char::is_whitespace).filter(|at| *at > text.len() / 8);
    let at = space.unwrap_or(middle);
    (at > 0 && at < text.len()).then(|| text.split_at(at))
}

/// The pieces that a policy makes of a sentence of `frames` frames that are all there at once: from, to.
fn pieces(policy: Option<&Policy>, frames: usize, play: MediaTime) -> Vec<(usize, usize)> {
    let Some(policy) = policy else { return vec![(0, frames)] };
    let start = StreamStart { requested_initial: None, load: Load::default(), play_ms: play.as_secs_f64() * 1e3 };
    let mut chunker = Chunker::new(policy.clone(), start);
    let mut all = Vec::new();
    for _ in 0..frames {
        if let Some(e) = chunker.push(1, Mono::ZERO) {
            all.push((e.first as usize, (e.first + e.frames) as usize));
        }
    }
    let rest = chunker.finish();
    if rest.frames > 0 {
        all.push((rest.first as usize, (rest.first + rest.frames) as usize));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_words() {
        assert_eq!(halves("one two three four"), Some(("one two", " three four")));
        assert_eq!(halves("äöüäöü"), Some(("äöü", "äöü")), "between letters where there is no space");
        assert_eq!(halves("a"), None);
        assert_eq!(halves(""), None);
    }
}
