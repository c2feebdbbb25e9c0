//! `model.talker`: sentences in, latents out, in the pieces that the node's `chunk` policy says. A shared stage; one
//! sentence is one unit of work. The phonemes are made in it. What the voice cannot speak is left out and told; an answer
//! of nothing else still has its end, a piece without frames.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{
    Body, BuildCx, BuildError, ChunkNotes, Kind, Make, MediaTime, Medium, Mono, Opt, OptionError, Port, Schema, Stamp,
    Tensor,
};
use serde::Deserialize;

use super::files::pick;
use super::{fetch, look};
use crate::catalogue::{ModelFiles, Task};
use crate::chunking::{Active, Chunker, Load, Policy, StreamStart, Streams, in_words, of_port, option_error};
use crate::piper::{MAX_IDS, Scales, Unspoken, Utterance, Voice};

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
    let files: ModelFiles = fetch(Task::SpeechSynthesis, name, cx)?;
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
            .output(
                Port::new(
                    "latents",
                    Kind::of(Medium::Tensor),
                    "[frames, width] f32; the last piece of a sentence is marked",
                )
                .segments(),
            )
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
        look(Task::SpeechSynthesis, "voice", &config.voice, cx)
    }
    fn chunks(_: &TalkerConfig, cx: &BuildCx) -> Result<ChunkNotes, OptionError> {
        Ok(policy(cx)?.map(|(_, notes)| notes).unwrap_or_default())
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
        let policy = policy(cx).map_err(BuildError::from_error)?.map(|(policy, _)| policy);
        voice.phonemizer();
        let seed = config.seed.unwrap_or(cx.seed);
        let node = cx.path.to_string();
        Ok(Body::stage(TalkerStage {
            node,
            name: config.voice.clone(),
            voice,
            speaker: config.speaker,
            scales,
            seed,
            policy,
            streams: Streams::default(),
            slots: cx.slots,
        }))
    }
}

/// The chunk policy of the node's output as the file says, and what is to be said of it; else the whole sentence at once.
fn policy(cx: &BuildCx) -> Result<Option<(Policy, ChunkNotes)>, OptionError> {
    let Some(value) = &cx.chunk else { return Ok(None) };
    let config = of_port(value, "latents")?;
    let (policy, warnings) = config.policy().map_err(|e| option_error(&e, "chunk."))?;
    if matches!(policy, Policy::Adaptive { .. }) {
        let words = "the frames of a sentence are made all at once, so that there is no speed to adapt to";
        return Err(OptionError::new("chunk.adaptive", words, "use `initial` or `ramp`"));
    }
    let notes = ChunkNotes {
        ports: vec![("latents".to_owned(), in_words(&policy, config.rtf))],
        warnings: warnings.iter().map(ToString::to_string).collect(),
    };
    Ok(Some((policy, notes)))
}

struct TalkerStage {
    node: String,
    /// What the graph calls the voice.
    name: String,
    voice: Arc<Voice>,
    speaker: u32,
    scales: Scales,
    seed: u64,
    policy: Option<Policy>,
    /// Streams with something to say, and how many there may be.
    streams: Streams,
    slots: usize,
}

/// Longest text of one chunk, bytes: a sentence splitter before this node keeps far below.
const MOST: usize = 16 << 10;

#[derive(Default)]
struct Speech {
    next: VecDeque<(Stamp, Arc<str>)>,
    spoken: u64,
    /// Scripts that were warned of: an answer in one of them would be a warning per sentence.
    told: BTreeSet<&'static str>,
    /// While there is something to say, with the load that it found.
    active: Option<(Active, Load)>,
}

impl TalkerStage {
    /// Says what of a text is left out.
    fn tell(&self, text: &str, said: &Utterance, told: &mut BTreeSet<&'static str>) {
        let left_out = Unspoken::of(text, &said.phonemes.skipped, said.ids.is_empty());
        if left_out.is_empty() {
            return;
        }
        let all =
            if said.ids.is_empty() { "nothing of this text can be spoken" } else { "a part of this text is left out" };
        let language = self.voice.config().spoken();
        let text = format!("{}: {all}: voice `{}` speaks {language}, not {left_out}", self.node, self.name);
        // Once per script and session; the rest is for those who look for it.
        if left_out.scripts().filter(|s| told.insert(s)).count() > 0 {
            tracing::warn!("{text}");
        } else {
            tracing::debug!("{text}");
        }
    }
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
        slot.active.get_or_insert_with(|| self.streams.begin(self.slots));
        Ok(())
    }
    fn ready(&self, slot: &Speech) -> bool {
        !slot.next.is_empty()
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let (slot, out) = m.parts();
        let Some((stamp, text)) = slot.next.pop_front() else { return Ok(()) };
        let load = slot.active.as_ref().map(|(_, load)| *load).unwrap_or_default();
        if slot.next.is_empty() {
            slot.active = None;
        }
        let said = self.voice.utterance(&text).map_err(StageError::failed)?;
        self.tell(&text, &said, &mut slot.told);
        if said.ids.is_empty() {
            // A segment all the same: who counts them, or waits for the end of the answer, must have it.
            let end = stamp.child(stamp.pts, MediaTime::ZERO).last(true).over(stamp.last);
            out.push(end, Tensor::f32([0, 0], Vec::new()));
            return Ok(());
        }
        if said.ids.len() > MAX_IDS
            && let Some((first, second)) = halves(&text)
        {
            // A number can become a long text: what is too long for one breath is spoken in two.
            slot.next.push_front((stamp, second.into()));
            slot.next.push_front((stamp.last(false), first.into()));
            return Ok(());
        }
        let seed = self.seed.wrapping_add(slot.spoken);
        slot.spoken += 1;
        let latents = self.voice.talk(&said.ids, self.scales, self.speaker, seed).map_err(StageError::failed)?;
        let width = latents.width();
        let play = MediaTime::from_samples(self.voice.hop() as u64, self.voice.sample_rate());
        let frames = latents.frames();
        let rows = latents.into_rows();
        for (from, to) in pieces(self.policy.as_ref(), frames, load) {
            let part = rows[from * width..to * width].to_vec();
            let at = MediaTime::from_ticks(play.ticks() * from as i64);
            let len = MediaTime::from_ticks(play.ticks() * (to - from) as i64);
            // Each sentence is a segment; the last of them ends the answer.
            let end = to == frames;
            out.push(stamp.child(at, len).last(end).over(end && stamp.last), Tensor::f32([to - from, width], part));
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Speech) {
        slot.next.clear();
        slot.active = None;
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
fn pieces(policy: Option<&Policy>, frames: usize, load: Load) -> Vec<(usize, usize)> {
    let Some(policy) = policy else { return vec![(0, frames)] };
    let start = StreamStart { load, ..StreamStart::default() };
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
