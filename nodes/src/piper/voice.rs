//! A loaded Piper voice: one copy of the weights, shared by all sessions, and the runs that use it.
//!
//! Promises that a voice that loads has spoken once: the split between talker and vocoder was run, not only found. The
//! vocoder runs on kernels of our own where they know it ([`Vocoder`]), and else in the library, as the talker does.
//! Errors name the file. All runs take one thread, so that a scheduler decides what runs beside what.
//! Does not hold any state of a stream; that is [`Decoder`](super::Decoder)'s.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::NdTensor;

use omni_flow_kernels::Tier;

use super::config::{ConfigError, VoiceConfig};
use super::cut::cut;
use super::g2p::Phonemizer;
use super::onnx::OnnxGraph;
use super::reach::Reach;
use super::split::{RandomTensor, Split, find_split, random_tensors};
use super::talker::{Scales, TalkError};
use super::vocoder::Vocoder;
use super::weights::Refusal;

/// Why a voice cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The configuration is damaged or of something else.
    #[error("{} {source}", file.display())]
    Config {
        /// The JSON file.
        file: PathBuf,
        /// What is wrong in it.
        source: ConfigError,
    },
    /// The model file is damaged, or uses operators that the runtime does not have.
    #[error("{} is not an ONNX model that can run here: {reason}; fetch it again or use another voice", file.display())]
    Model {
        /// The ONNX file.
        file: PathBuf,
        /// The runtime's reason.
        reason: String,
    },
    /// The model has no input or output that a Piper voice has.
    #[error("{} is no Piper voice: it has no tensor `{tensor}`", file.display())]
    Tensor {
        /// The ONNX file.
        file: PathBuf,
        /// The missing tensor.
        tensor: &'static str,
    },
    /// A weight of the vocoder does not hold what it must.
    #[error("{}: tensor `{tensor}` {what}; fetch the file again or use another voice", file.display())]
    Weights {
        /// The ONNX file.
        file: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What is wrong with it.
        what: String,
    },
    /// The voice cannot be split into talker and vocoder, and [`VoiceOptions::require_split`] is set.
    #[error("{} cannot be split into talker and vocoder: {searched}; load it without `require_split` to synthesise \
             whole sentences", file.display())]
    Unsplit {
        /// The ONNX file.
        file: PathBuf,
        /// What was searched for and why it failed.
        searched: String,
    },
    /// The voice loads, but cannot say its first word.
    #[error("{} fails on its first word: {source}", file.display())]
    Trial {
        /// The ONNX file.
        file: PathBuf,
        /// What failed.
        source: TalkError,
    },
}

/// How to load a voice.
#[derive(Debug, Clone, Copy, Default)]
pub struct VoiceOptions {
    /// Refuse a voice that cannot stream instead of synthesising whole sentences with it.
    pub require_split: bool,
    /// Threads of one run of the library; 0 means 1. Kernels of our own take one.
    pub threads: usize,
    /// Run the vocoder in the library even where kernels of our own know it: the reference, and several times slower.
    pub library: bool,
}

/// A Piper voice.
pub struct Voice {
    pub(super) config: VoiceConfig,
    pub(super) file: PathBuf,
    pub(super) nodes: Nodes,
    split: Result<Reach, String>,
    model: Model,
    /// Instead of what `model` does not have then.
    vocoder: Option<Vocoder>,
    pool: Arc<ThreadPool>,
    phonemizer: OnceLock<Phonemizer>,
}

/// Tensors of the graph.
pub(super) struct Nodes {
    pub(super) input: NodeId,
    pub(super) lengths: NodeId,
    pub(super) scales: NodeId,
    pub(super) speaker: Option<NodeId>,
    pub(super) output: NodeId,
    pub(super) latents: Option<NodeId>,
    /// Pairs (shape, random tensor).
    pub(super) noise: Vec<(NodeId, NodeId)>,
}

impl Voice {
    /// Loads `onnx` and its configuration `json` and says one word with it (tens of milliseconds).
    ///
    /// # Errors
    /// [`VoiceError`]; each message names the file.
    pub fn load(onnx: &Path, json: &Path) -> Result<Arc<Self>, VoiceError> {
        Self::load_with(onnx, json, VoiceOptions::default())
    }

    /// [`load`](Self::load) with options.
    ///
    /// # Errors
    /// As [`load`](Self::load), and [`VoiceError::Unsplit`] if that was asked for.
    pub fn load_with(onnx: &Path, json: &Path, options: VoiceOptions) -> Result<Arc<Self>, VoiceError> {
        let read =
            |file: &Path| std::fs::read(file).map_err(|source| VoiceError::Read { file: file.to_path_buf(), source });
        let config = VoiceConfig::parse(&read(json)?)
            .map_err(|source| VoiceError::Config { file: json.to_path_buf(), source })?;
        let bytes = read(onnx)?;
        let found = Found::read(onnx, &bytes, config.speakers, options)?;
        if let Some((vocoder, rest)) = found.own {
            drop(bytes);
            match Self::assemble(config.clone(), onnx, rest, &found.graph, Some(vocoder), options) {
                Ok(voice) if voice.is_split() => return Ok(Arc::new(voice)),
                Ok(voice) => tracing::debug!(file = %onnx.display(), why = ?voice.split.err(), "{IN_LIBRARY}"),
                Err(why) => tracing::debug!(file = %onnx.display(), %why, "{IN_LIBRARY}"),
            }
            return Self::assemble(config, onnx, read(onnx)?, &found.graph, None, options).map(Arc::new);
        }
        Self::assemble(config, onnx, bytes, &found.graph, None, options).map(Arc::new)
    }

    /// Loads `bytes` into the library and says one word. With a vocoder they are a model that ends at the latents.
    fn assemble(
        config: VoiceConfig,
        onnx: &Path,
        bytes: Vec<u8>,
        found: &Facts,
        vocoder: Option<Vocoder>,
        options: VoiceOptions,
    ) -> Result<Self, VoiceError> {
        let file = onnx.to_path_buf();
        let model =
            Model::load(bytes).map_err(|error| VoiceError::Model { file: file.clone(), reason: error.to_string() })?;

        let need =
            |name: &str, tensor| model.find_node(name).ok_or_else(|| VoiceError::Tensor { file: file.clone(), tensor });
        let is_input = |id: &NodeId| model.input_ids().contains(id);
        let latents = found.split.as_ref().ok().and_then(|s| model.find_node(&s.latents));
        let nodes = Nodes {
            input: need("input", "input")?,
            lengths: need("input_lengths", "input_lengths")?,
            scales: need("scales", "scales")?,
            speaker: model.find_node("sid").filter(is_input),
            output: match latents {
                Some(id) if vocoder.is_some() => id,
                _ => need(&found.output, "output")?,
            },
            latents,
            noise: found
                .random
                .iter()
                .filter_map(|r| Some((model.find_node(&r.like)?, model.find_node(&r.output)?)))
                .collect(),
        };
        let split = match (&found.split, nodes.latents) {
            (Ok(split), Some(_)) => Ok(split.reach),
            (Ok(split), None) => Err(format!("the runtime optimised `{}` away", split.latents)),
            (Err(searched), _) => Err(searched.clone()),
        };
        let pool = Arc::new(ThreadPool::with_num_threads(options.threads.max(1)));
        let mut voice = Self { config, file, nodes, split, model, vocoder, pool, phonemizer: OnceLock::new() };
        voice.try_split();
        if let Err(searched) = &voice.split {
            if voice.vocoder.is_some() {
                return Ok(voice);
            }
            if options.require_split {
                return Err(VoiceError::Unsplit { file: voice.file, searched: searched.clone() });
            }
            tracing::warn!(file = %voice.file.display(), %searched, "voice cannot stream, sentences are synthesised whole");
        }
        let trial = voice.talk(&voice.trial(), Scales::of(&voice.config), 0, 0);
        match trial {
            Ok(_) => Ok(voice),
            Err(source) => Err(VoiceError::Trial { file: voice.file, source }),
        }
    }

    /// The voice's configuration.
    pub fn config(&self) -> &VoiceConfig {
        &self.config
    }

    /// The model file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Samples per second of the audio.
    pub fn sample_rate(&self) -> u32 {
        self.config.sample_rate
    }

    /// Samples of one latent frame.
    pub fn hop(&self) -> usize {
        self.split.as_ref().map_or(WHOLE_HOP, |reach| reach.hop)
    }

    /// Frames that the vocoder needs on each side of a frame; 0 for a voice that cannot be split.
    pub fn context(&self) -> usize {
        self.split.as_ref().map_or(0, |reach| reach.context)
    }

    /// Why the voice cannot stream, or `None` if it can.
    pub fn unsplit(&self) -> Option<&str> {
        self.split.as_ref().err().map(String::as_str)
    }

    /// Whether the vocoder runs on kernels of our own.
    pub fn on_kernels(&self) -> bool {
        self.vocoder.is_some()
    }

    /// Text to phonemes for this voice; made at the first call (about 0.3 s), shared afterwards.
    pub fn phonemizer(&self) -> &Phonemizer {
        self.phonemizer.get_or_init(|| Phonemizer::new(self.config.is_british()))
    }

    /// Whether latents are cut before the vocoder (else they are audio already).
    pub(super) fn is_split(&self) -> bool {
        self.split.is_ok()
    }

    /// The audio of the frames `keep` among frame-major latents, which are the frames around them that they depend on.
    pub(super) fn vocode(
        &self,
        rows: &[f32],
        width: usize,
        speaker: u32,
        keep: Range<usize>,
    ) -> Result<Vec<f32>, TalkError> {
        let Some(latents) = self.nodes.latents else { return Ok(rows[keep.start * width..keep.end * width].to_vec()) };
        if let Some(vocoder) = &self.vocoder {
            if width != vocoder.width() {
                return Err(TalkError::Width { found: width, width: vocoder.width() });
            }
            return Ok(vocoder.run(rows, speaker as usize, keep));
        }
        let frames = rows.len() / width.max(1);
        let mut columns = vec![0.0f32; frames * width];
        for (t, row) in rows.chunks_exact(width).enumerate() {
            for (c, &x) in row.iter().enumerate() {
                columns[c * frames + t] = x;
            }
        }
        let z = NdTensor::from_data([1, width, frames], columns);
        let mut inputs: Vec<(NodeId, ValueOrView<'_>)> = vec![(latents, z.into())];
        if let Some(id) = self.nodes.speaker {
            inputs.push((id, NdTensor::from_data([1], vec![speaker as i32]).into()));
        }
        let audio = self.run(inputs, self.nodes.output)?;
        let mut audio = floats(audio)?;
        if audio.len() != frames * self.hop() {
            return Err(TalkError::Shape {
                file: self.file.clone(),
                what: format!("{frames} latent frames became {} samples, not {}", audio.len(), frames * self.hop()),
            });
        }
        audio.truncate(keep.end * self.hop());
        audio.drain(..keep.start * self.hop());
        Ok(audio)
    }

    /// One run of the model.
    pub(super) fn run(&self, inputs: Vec<(NodeId, ValueOrView<'_>)>, output: NodeId) -> Result<Value, TalkError> {
        let result = self.model.run_n(inputs, [output], Some(self.run_options()));
        result.map(|[value]| value).map_err(|e| self.run_error(&e))
    }

    /// A run up to the next random tensor; see `rten`'s `partial_run`.
    pub(super) fn run_part(
        &self,
        inputs: Vec<(NodeId, ValueOrView<'_>)>,
        output: NodeId,
    ) -> Result<Vec<(NodeId, Value)>, TalkError> {
        self.model.partial_run(inputs, &[output], Some(self.run_options())).map_err(|e| self.run_error(&e))
    }

    fn run_error(&self, error: &rten::RunError) -> TalkError {
        TalkError::Run { file: self.file.clone(), reason: error.to_string() }
    }

    fn run_options(&self) -> RunOptions {
        RunOptions::default().with_thread_pool(Some(self.pool.clone()))
    }

    /// Runs talker and vocoder once; a voice whose halves do not fit is not split.
    fn try_split(&mut self) {
        if self.split.is_err() {
            return;
        }
        let trial = self.talk(&self.trial(), Scales::of(&self.config), 0, 0);
        let result = trial.and_then(|z| self.vocode(z.rows(), z.width(), 0, 0..z.frames()));
        if let Err(error) = result {
            self.split = Err(format!("the halves do not run apart: {error}"));
            self.nodes.latents = None;
        }
    }

    /// A short word in symbols that every Latin voice has; an empty one is still valid.
    fn trial(&self) -> Vec<i32> {
        self.config.encode("ata").0
    }
}

const IN_LIBRARY: &str = "the vocoder of this voice runs in the library";

/// What the graph of a file says.
struct Facts {
    split: Result<Split, String>,
    random: Vec<RandomTensor>,
    output: String,
}

/// That, and a vocoder of our own with the rest of the file, if there is one.
struct Found {
    graph: Facts,
    own: Option<(Vocoder, Vec<u8>)>,
}

impl Found {
    fn read(file: &Path, bytes: &[u8], speakers: u32, options: VoiceOptions) -> Result<Self, VoiceError> {
        let graph = OnnxGraph::parse(bytes).unwrap_or_default();
        let split = find_split(&graph);
        let mut own = None;
        if let (Ok(split), false) = (&split, options.library) {
            match Vocoder::read(&graph, split, Tier::current()) {
                Ok(vocoder) if vocoder.speakers().is_some_and(|n| n < speakers as usize) => {
                    tracing::debug!(file = %file.display(), why = "it has fewer speakers than it says", "{IN_LIBRARY}");
                }
                Ok(vocoder) => {
                    tracing::debug!(file = %file.display(), bytes = vocoder.bytes(), "the vocoder runs on kernels");
                    own = cut(bytes, &graph, &split.latents).map(|rest| (vocoder, rest));
                }
                Err(Refusal::Damaged { tensor, what }) => {
                    return Err(VoiceError::Weights { file: file.to_path_buf(), tensor, what });
                }
                Err(why) => tracing::debug!(file = %file.display(), %why, "{IN_LIBRARY}"),
            }
        }
        let output = graph.outputs.first().copied().unwrap_or("output").to_owned();
        Ok(Self { graph: Facts { split, random: random_tensors(&graph), output }, own })
    }
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").field("file", &self.file).field("split", &self.split).finish_non_exhaustive()
    }
}

/// Samples in one "frame" of a voice that gives audio at once.
pub(super) const WHOLE_HOP: usize = 256;

/// The numbers of a float tensor in memory order of its shape.
pub(super) fn floats(value: Value) -> Result<Vec<f32>, TalkError> {
    let tensor: rten_tensor::Tensor<f32> =
        value.try_into().map_err(|_| TalkError::Type { expected: "float numbers" })?;
    Ok(tensor.into_data())
}
