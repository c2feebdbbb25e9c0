//! A loaded Whisper model: immutable, shared by all sessions, one compute thread.
//!
//! Loading checks every name and shape. Nothing here keeps anything of an utterance; see `transcription.rs`.

use super::config::{ConfigFile, Sizes};
use super::decoder::{Decoder, KeyValues};
use super::encoder::Encoder;
use super::error::WhisperError;
use super::tokens::Tokens;
use super::weights::{Layout, Weights, read};
use super::{ct2, transcription::Transcription};
use candle_core::{Device, Tensor};
use omni_flow_media::mel::LogMel;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The files of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhisperFiles {
    /// `model.bin` (CTranslate2) or `*.safetensors`.
    pub weights: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `config.json`.
    pub config: PathBuf,
}

impl WhisperFiles {
    /// The files of a folder by their usual names: `model.bin` or `model.safetensors`, `tokenizer.json`, `config.json`.
    pub fn in_folder(folder: &Path) -> Self {
        let safetensors = folder.join("model.safetensors");
        let weights = if safetensors.is_file() { safetensors } else { folder.join("model.bin") };
        Self { weights, tokenizer: folder.join("tokenizer.json"), config: folder.join("config.json") }
    }

    /// The files at `path`: a folder as above, or one of the files in it. All are there; none is read.
    ///
    /// # Errors
    /// [`WhisperError::NoFolder`].
    pub fn of(path: &Path) -> Result<Self, WhisperError> {
        let refused = |why: String| Err(WhisperError::NoFolder { path: path.to_owned(), why });
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let mut files = Self::in_folder(folder);
        if !path.is_dir() {
            match path.file_name().and_then(|n| n.to_str()) {
                Some("model.bin" | "model.safetensors") => files.weights = path.to_owned(),
                Some("config.json" | "tokenizer.json") => {}
                _ => return refused("this is a file".into()),
            }
        }
        let all = [&files.config, &files.tokenizer, &files.weights];
        let missing: Vec<_> = all.iter().filter(|f| !f.is_file()).filter_map(|f| f.file_name()).collect();
        let missing: Vec<_> = missing.into_iter().map(|n| n.to_string_lossy()).collect();
        if missing.is_empty() { Ok(files) } else { refused(format!("without {}", missing.join(", "))) }
    }
}

/// A Whisper model, ready to run.
pub struct WhisperModel {
    file: PathBuf,
    pub(crate) sizes: Sizes,
    pub(crate) tokens: Tokens,
    /// Used by the one thread of the pool only.
    mel: Mutex<LogMel>,
    encoder: Encoder,
    pub(crate) decoder: Decoder,
    silence: OnceLock<KeyValues>,
    /// All numeric work runs inside: the numeric library would take every core otherwise.
    pool: rayon::ThreadPool,
}

impl std::fmt::Debug for WhisperModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhisperModel").field("file", &self.file).field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

/// The value of every mel band where there is silence behind loud speech.
const SILENT_MEL: f32 = -0.6;

impl WhisperModel {
    /// Loads a model.
    ///
    /// # Errors
    /// A file that is missing, malformed, of an unsupported kind, or without a needed tensor in the needed shape.
    pub fn load(files: &WhisperFiles) -> Result<Arc<Self>, WhisperError> {
        let file = files.weights.clone();
        let bad = |what: String| WhisperError::Malformed { file: file.clone(), what };
        let config = ConfigFile::read(&files.config)?;
        let bytes = read(&file)?;
        let layout = if file.extension().is_some_and(|e| e == "safetensors") {
            Layout::Hf(safetensors::SafeTensors::deserialize(&bytes).map_err(|e| bad(e.to_string()))?)
        } else {
            Layout::Ct2(ct2::parse(&bytes).map_err(|e| bad(e.to_string()))?)
        };
        let weights = Weights { file: file.clone(), layout };
        let sizes = Sizes::of(&weights, &config)?;
        let tokens = Tokens::load(&files.tokenizer, &config, sizes.vocabulary)?;
        let encoder = Encoder::load(&weights, &sizes)?;
        let decoder = Decoder::load(&weights, &sizes)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "whisper".into()).build();
        let pool = pool.map_err(|e| WhisperError::Read { file: file.clone(), source: std::io::Error::other(e) })?;
        let mel = LogMel::new(sizes.mels);
        let mel = mel.map_err(|e| WhisperError::Unsupported { file: file.clone(), what: e.to_string() })?;
        let mel = Mutex::new(mel);
        Ok(Arc::new(Self { file, sizes, tokens, mel, encoder, decoder, silence: OnceLock::new(), pool }))
    }

    /// Computes what the first utterance would otherwise wait for: the encoding of silence (about one second of work
    /// for the smallest model, once).
    ///
    /// # Errors
    /// Only if the numeric library fails.
    pub fn warm(&self) -> Result<(), WhisperError> {
        self.compute(|m| m.silence().map(|_| ()))
    }

    /// Sizes of the model.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Codes of the languages that the model can be asked for; empty if it knows English only.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.tokens.languages.iter().map(|(code, _)| code.as_str())
    }

    /// Recognises a whole utterance in one call.
    ///
    /// # Errors
    /// As [`Transcription::step`].
    pub fn transcribe(self: &Arc<Self>, pcm: &[f32]) -> Result<super::Transcript, WhisperError> {
        let mut job = Transcription::new(self.clone(), pcm, None)?;
        loop {
            if let super::Progress::Done(transcript) = job.step()? {
                return Ok(transcript);
            }
        }
    }

    pub(crate) fn weights_file(&self) -> &Path {
        &self.file
    }

    /// Runs numeric work on the model's one thread.
    pub(crate) fn compute<T: Send>(
        &self,
        work: impl FnOnce(&Self) -> candle_core::Result<T> + Send,
    ) -> Result<T, WhisperError> {
        self.pool.install(|| work(self)).map_err(|source| WhisperError::Run { file: self.file.clone(), source })
    }

    /// Encodes samples, followed by zeros up to `length` (a multiple of 320): [length / 320, width].
    pub(crate) fn encode(&self, pcm: &[f32], length: usize) -> candle_core::Result<Tensor> {
        let mel = self.mel.lock().unwrap_or_else(PoisonError::into_inner).compute(pcm, Some(length));
        let mel = Tensor::from_vec(mel.data, (mel.n_mels, mel.frames), &Device::Cpu)?;
        self.encoder.forward(&mel.t()?.contiguous()?)
    }

    /// Keys and values of a whole window of silence.
    pub(crate) fn silence(&self) -> candle_core::Result<&KeyValues> {
        if let Some(ready) = self.silence.get() {
            return Ok(ready);
        }
        let frames = self.sizes.audio_rows * 2;
        let mel = Tensor::full(SILENT_MEL, (frames, self.sizes.mels), &Device::Cpu)?.contiguous()?;
        let made = self.decoder.audio(&self.encoder.forward(&mel)?)?;
        Ok(self.silence.get_or_init(|| made))
    }
}
