//! `model.whisper`: utterances in, transcripts out. A shared stage; one token of one session is one unit of work.

use std::sync::Arc;

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{Body, BuildCx, BuildError, Kind, Make, Medium, Opt, OptionError, Pcm, Port, Schema, Stamp};
use serde::Deserialize;

use super::files::own;
use super::{fetch, look};
use crate::catalogue::Task;
use crate::whisper::{Progress, Recognition, Recognizer, WhisperFiles, WhisperModel};

/// The node type `model.whisper`.
pub struct ModelWhisper;

/// Options of `model.whisper`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WhisperConfig {
    #[serde(default = "default_model")]
    model: String,
    language: Option<String>,
}
fn default_model() -> String {
    "whisper-tiny-en".to_owned()
}

impl Make for ModelWhisper {
    const NAME: &'static str = "model.whisper";
    type Config = WhisperConfig;
    fn schema() -> Schema {
        Schema::new("Speech recognition with Whisper: one utterance in, its transcript out")
            .input(Port::new("in", Kind::mono(16_000), "whole utterances, as `speech.turn` gives them"))
            .output(Port::new("text", Kind::of(Medium::Text), "the transcript; empty if nothing was said"))
            .option(Opt::new("model", "text", "whisper-tiny-en", "name in the catalogue, or a folder of a model"))
            .option(Opt::maybe("language", "text", "language code, for models of several; found by itself if left out"))
            .shared()
            .example("asr: { use: model.whisper, in: turn.utterance }")
    }
    fn look(config: &WhisperConfig, cx: &BuildCx) -> Result<(), OptionError> {
        look(Task::SpeechRecognition, "model", &config.model, cx)?;
        let Some(path) = own(&config.model, cx) else { return Ok(()) };
        WhisperFiles::of(&path).map(drop).map_err(|e| OptionError::new("model", e.to_string(), ""))
    }
    fn build(config: &WhisperConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        let files = fetch(Task::SpeechRecognition, &config.model, cx)?;
        let files =
            WhisperFiles::of(&own(&config.model, cx).unwrap_or(files.folder)).map_err(BuildError::from_error)?;
        let model = WhisperModel::load(&files).map_err(BuildError::from_error)?;
        model.warm().map_err(BuildError::from_error)?;
        if let Some(l) = &config.language {
            let known: Vec<&str> = model.languages().collect();
            if !known.is_empty() && !known.contains(&l.as_str()) {
                let text = format!(
                    "model `{}` does not know the language `{l}`; it knows: {}",
                    config.model,
                    known.join(", ")
                );
                return Err(BuildError::new(text));
            }
        }
        Ok(Body::stage(WhisperStage { model: Arc::new(model), language: config.language.clone() }))
    }
}

/// A recogniser as a shared stage.
struct WhisperStage<R> {
    model: Arc<R>,
    language: Option<String>,
}

/// One session's recognition.
#[derive(Default)]
struct Hearing {
    stamp: Stamp,
    /// An utterance that has not been begun.
    next: Option<Pcm>,
    now: Option<Box<dyn Recognition>>,
}

impl<R: Recognizer + 'static> Stage for WhisperStage<R> {
    type In = Pcm;
    type Out = Arc<str>;
    type Slot = Hearing;

    fn open(&self, _: SlotId) -> Result<Hearing, StageError> {
        Ok(Hearing::default())
    }
    fn slot_bytes(&self, slot: &Hearing) -> u64 {
        let waiting = slot.next.as_ref().map_or(0, |p| p.buf().len());
        (waiting + slot.now.as_ref().map_or(0, |now| now.bytes())) as u64
    }
    fn accept(&self, slot: &mut Hearing, stamp: &Stamp, input: Pcm) -> Result<(), StageError> {
        (slot.stamp, slot.next, slot.now) = (*stamp, Some(input), None);
        Ok(())
    }
    fn ready(&self, slot: &Hearing) -> bool {
        slot.next.is_some() || slot.now.is_some()
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let slot = m.slot();
        if let Some(pcm) = slot.next.take() {
            let begun = self.model.begin(&pcm.f32(), self.language.as_deref());
            slot.now = Some(begun.map_err(StageError::failed)?);
        }
        let Some(now) = &mut slot.now else { return Ok(()) };
        if let Progress::Done(heard) = now.step().map_err(StageError::failed)? {
            slot.now = None;
            let stamp = slot.stamp.child(slot.stamp.pts, slot.stamp.len).last(true);
            m.emit(stamp, heard.text.as_str().into());
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Hearing) {
        (slot.next, slot.now) = (None, None);
    }
}
