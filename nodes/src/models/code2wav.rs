//! `model.code2wav`: latents in, audio out, chunk by chunk, equal to one decode of the whole. A shared stage; one piece
//! of audio is one unit of work.

use std::sync::Arc;

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{
    Body, BuildCx, BuildError, Kind, Make, MediaTime, Medium, Opt, OptionError, Pcm, Port, SampleType, Schema, Stamp,
    Tensor,
};
use serde::Deserialize;

use super::look;
use super::talker::{default_voice, voice};
use crate::catalogue::Task;
use crate::piper::{Decoder, Voice, Window};

/// The node type `model.code2wav`.
pub struct ModelCode2wav;

/// Options of `model.code2wav`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Code2wavConfig {
    #[serde(default = "default_voice")]
    voice: String,
    #[serde(default)]
    speaker: u32,
    #[serde(default = "first")]
    first: usize,
    #[serde(default = "size")]
    size: usize,
}
fn first() -> usize {
    Window::default().first
}
fn size() -> usize {
    Window::default().size
}

impl Make for ModelCode2wav {
    const NAME: &'static str = "model.code2wav";
    type Config = Code2wavConfig;
    fn schema() -> Schema {
        let audio = Kind { channels: Some(1), sample: Some(SampleType::F32), ..Kind::of(Medium::Audio) };
        Schema::new("The second half of a Piper voice: latents of `model.talker` in, audio out while it is made")
            .input(Port::new("in", Kind::of(Medium::Tensor), "[frames, width] f32; a marked piece ends its sentence"))
            .output(Port::new("audio", audio, "mono f32 at the voice's rate (22050 Hz for most)").segments())
            .option(Opt::new("voice", "text", "piper-joe", "the voice, the same as the talker's"))
            .option(Opt::new("speaker", "integer", "0", "speaker of a voice with several"))
            .option(Opt::new("first", "integer", "22", "most frames of a sentence's first piece of audio"))
            .option(Opt::new("size", "integer", "64", "most frames of a later piece"))
            .shared()
            .example("voice: { use: model.code2wav, in: talker, lane: reply }")
    }
    fn refine(config: &Code2wavConfig, _: &mut Schema) -> Result<(), OptionError> {
        for (name, value) in [("first", config.first), ("size", config.size)] {
            if !(1..=10_000).contains(&value) {
                return Err(OptionError::new(name, format!("is {value}"), "use 1 to 10000 frames"));
            }
        }
        Ok(())
    }
    fn look(config: &Code2wavConfig, cx: &BuildCx) -> Result<(), OptionError> {
        look(Task::SpeechSynthesis, "voice", &config.voice, cx)
    }
    fn build(config: &Code2wavConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        let voice = voice(&config.voice, cx)?;
        if let Some(why) = voice.unsplit() {
            tracing::warn!(node = cx.path, "this voice is spoken a sentence at a time: {why}");
        }
        let window = Window { first: config.first, size: config.size, ..Window::default() };
        let mut probe = Decoder::new(voice.clone(), window);
        probe.set_speaker(config.speaker).map_err(BuildError::from_error)?;
        Ok(Body::stage(Code2wavStage { voice, window, speaker: config.speaker }))
    }
}

struct Code2wavStage {
    voice: Arc<Voice>,
    window: Window,
    speaker: u32,
}

struct Sounding {
    decoder: Decoder,
    stamp: Stamp,
    /// A sentence has been closed and its end not been given out.
    closing: bool,
    /// Samples made in this answer.
    at: u64,
    /// Numbers in a frame, once one has come.
    width: usize,
}

/// Most frames held at once: 8 minutes of speech.
const MOST: usize = 40_000;

impl Stage for Code2wavStage {
    type In = Tensor;
    type Out = Pcm;
    type Slot = Sounding;

    fn open(&self, _: SlotId) -> Result<Sounding, StageError> {
        let mut decoder = Decoder::new(self.voice.clone(), self.window);
        decoder.set_speaker(self.speaker).map_err(StageError::failed)?;
        Ok(Sounding { decoder, stamp: Stamp::default(), closing: false, at: 0, width: 0 })
    }
    fn slot_bytes(&self, slot: &Sounding) -> u64 {
        let frames = slot.decoder.pending() + 2 * self.voice.context();
        (frames * slot.width * size_of::<f32>()) as u64
    }
    fn accept(&self, slot: &mut Sounding, stamp: &Stamp, input: Tensor) -> Result<(), StageError> {
        let [frames, width] = input.shape[..] else {
            return Err(StageError::failed(format!("latents of shape {:?}; it must be [frames, width]", input.shape)));
        };
        if frames + slot.decoder.pending() > MOST {
            return Err(StageError::failed(format!("{frames} frames in one sentence; at most {MOST}")));
        }
        if slot.stamp.epochs != stamp.epochs {
            slot.at = 0;
        }
        slot.stamp = *stamp;
        if frames > 0 {
            slot.decoder.push(&input.buf.typed::<f32>(), width).map_err(StageError::failed)?;
            slot.width = width;
        }
        if stamp.last {
            slot.decoder.finish();
            slot.closing = true;
        }
        Ok(())
    }
    fn ready(&self, slot: &Sounding) -> bool {
        slot.decoder.ready() > 0 || slot.closing
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let (slot, out) = m.parts();
        let audio = slot.decoder.step().map_err(StageError::failed)?;
        let ended = slot.closing && slot.decoder.ready() == 0;
        if ended {
            slot.closing = false;
        }
        // A segment without audio, or whose audio has left already, ends in a chunk without samples.
        let samples = match audio {
            Some(samples) => samples,
            None if ended => Vec::new(),
            None => return Ok(()),
        };
        let rate = self.voice.sample_rate();
        let (at, n) = (slot.at, samples.len() as u64);
        slot.at += n;
        let (pts, len) = (MediaTime::from_samples(at, rate), MediaTime::from_samples(n, rate));
        let over = ended && slot.stamp.over;
        out.push(slot.stamp.child(pts, len).last(ended).over(over), Pcm::mono(rate, samples));
        Ok(())
    }
    fn fence(&self, slot: &mut Sounding) {
        slot.decoder.reset();
        (slot.closing, slot.at) = (false, 0);
    }
}
