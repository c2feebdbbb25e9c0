//! Voice activity with Silero (version 5 and later), 16 kHz.
//!
//! One immutable model is shared by all streams and runs on one thread; what belongs to a stream is in its
//! [`SileroStream`]. It gives probabilities; turning them into turns is the caller's.

mod framer;
mod stream;

pub use framer::{Framer, WINDOW};
pub use stream::{CONTEXT, STATE, SileroStream, VoiceActivity};

use rten::{Dimension, Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::NdTensor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SileroError {
    /// The file is missing or cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no ONNX model that can be run.
    #[error("{} is malformed: {what}; fetch it again (`omni-flow models verify` finds damaged files)", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A model with other inputs or outputs, such as the older ones with `h` and `c`.
    #[error("{}: {what}; Silero VAD version 5 or later is needed, with `input`, `state`, `sr`", file.display())]
    Signature {
        /// The file.
        file: PathBuf,
        /// What differs.
        what: String,
    },
    /// A window could not be computed.
    #[error("{} failed while running: {what}", file.display())]
    Run {
        /// The file.
        file: PathBuf,
        /// What the runtime said.
        what: String,
    },
}

/// The model as a function: context and window, and state [2, 1, 128], to probability and next state.
pub trait Run: Send {
    /// Runs the model once.
    ///
    /// # Errors
    /// [`SileroError::Run`].
    fn run(&self, input: &[f32; CONTEXT + WINDOW], state: &[f32]) -> Result<(f32, Vec<f32>), SileroError>;
}

/// A loaded model.
pub struct SileroModel {
    file: PathBuf,
    model: Model,
    inputs: [NodeId; 3],
    outputs: [NodeId; 2],
    pool: Arc<ThreadPool>,
}

impl std::fmt::Debug for SileroModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SileroModel").field("file", &self.file).finish_non_exhaustive()
    }
}

const RATE: i32 = 16_000;

impl SileroModel {
    /// Loads an ONNX file, checks its inputs and outputs and runs it once on silence.
    ///
    /// # Errors
    /// [`SileroError`]; each variant names the file.
    pub fn load(file: &Path) -> Result<Arc<Self>, SileroError> {
        let bytes = std::fs::read(file).map_err(|source| SileroError::Read { file: file.to_owned(), source })?;
        let malformed = |what: String| SileroError::Malformed { file: file.to_owned(), what };
        let signature = |what: String| SileroError::Signature { file: file.to_owned(), what };
        // The parser is a library's: a damaged file must not take the process with it.
        let model = std::panic::catch_unwind(|| Model::load(bytes))
            .map_err(|_| malformed("the runtime gave up on it".into()))?
            .map_err(|e| malformed(e.to_string()))?;
        let names = |ids: &[NodeId]| -> Vec<String> {
            ids.iter()
                .map(|&id| model.node_info(id).and_then(|n| n.name().map(str::to_owned)).unwrap_or_default())
                .collect()
        };
        let mut inputs = names(model.input_ids());
        inputs.sort();
        if inputs != ["input", "sr", "state"] {
            return Err(signature(format!("its inputs are {}", inputs.join(", "))));
        }
        let id = |name: &str| model.find_node(name).ok_or_else(|| signature(format!("it has no `{name}`")));
        let (inputs, outputs) = ([id("input")?, id("state")?, id("sr")?], [id("output")?, id("stateN")?]);
        let shape = model.node_info(inputs[1]).and_then(|n| n.shape()).unwrap_or_default();
        let fixed = |at: usize, n: usize| !matches!(shape.get(at), Some(Dimension::Fixed(d)) if *d != n);
        if shape.len() != 3 || !fixed(0, 2) || !fixed(2, 128) {
            return Err(signature(format!("its state has shape {shape:?}, not [2, 1, 128]")));
        }
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let loaded = Self { file: file.to_owned(), model, inputs, outputs, pool };
        loaded.infer(&[0.; CONTEXT + WINDOW], &[0.; STATE])?;
        Ok(Arc::new(loaded))
    }

    /// A new stream on this model.
    pub fn stream(self: &Arc<Self>) -> SileroStream<Arc<Self>> {
        SileroStream::new(self.clone())
    }

    fn infer(&self, input: &[f32; CONTEXT + WINDOW], state: &[f32]) -> Result<(f32, Vec<f32>), SileroError> {
        let failed = |what: String| SileroError::Run { file: self.file.clone(), what };
        let input = Value::from(NdTensor::from_data([1, CONTEXT + WINDOW], input.to_vec()));
        let state: Value = Value::from_shape([2, 1, 128], state.to_vec()).map_err(|e| failed(e.to_string()))?;
        let rate = Value::from(RATE);
        let values: Vec<(NodeId, ValueOrView<'_>)> =
            vec![(self.inputs[0], input.into()), (self.inputs[1], state.into()), (self.inputs[2], rate.into())];
        let mut options = RunOptions::default();
        options.thread_pool = Some(self.pool.clone());
        let outputs = self.model.run_n(values, self.outputs, Some(options)).map_err(|e| failed(e.to_string()))?;
        let [probability, state] = outputs;
        let (_, probability) = probability.into_shape_vec::<f32, 2>().map_err(|e| failed(e.to_string()))?;
        let (_, state) = state.into_shape_vec::<f32, 3>().map_err(|e| failed(e.to_string()))?;
        match probability[..] {
            [p] if p.is_finite() && state.len() == STATE => Ok((p.clamp(0., 1.), state)),
            _ => Err(failed(format!("it gave {probability:?} and {} numbers of state", state.len()))),
        }
    }
}

impl Run for Arc<SileroModel> {
    fn run(&self, input: &[f32; CONTEXT + WINDOW], state: &[f32]) -> Result<(f32, Vec<f32>), SileroError> {
        self.infer(input, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{audio, cached};

    const FILE: &str = "silero_vad_16k_op15.onnx";

    fn scores(stream: &mut impl VoiceActivity, pcm: &[f32], chunk: usize) -> Vec<f32> {
        let (mut framer, mut out) = (Framer::default(), Vec::new());
        let mut score = |_: u64, w: &[f32; WINDOW]| stream.probability(w).map(|p| out.push(p));
        for piece in pcm.chunks(chunk) {
            framer.push(piece, &mut score).unwrap();
        }
        framer.finish(&mut score).unwrap();
        out
    }

    #[test]
    fn hears_speech_and_nothing_else() {
        let Some(folder) = cached("silero-vad", FILE) else { return };
        let model = SileroModel::load(&folder.join(FILE)).unwrap();
        let speech = scores(&mut model.stream(), &audio("01_librivox0880_16k.wav"), 320);
        let share = speech.iter().filter(|&&p| p > 0.5).count() as f32 / speech.len() as f32;
        assert!(share > 0.6, "{share}: {speech:?}");
        for file in ["08_nonspeech_24k.wav", "10_silence_24k.wav"] {
            // Single windows at the onset of a sound may score high; a turn needs a quarter of a second.
            let quiet = scores(&mut model.stream(), &audio(file), 320);
            let longest = quiet.split(|&p| p < 0.5).map(<[f32]>::len).max().unwrap_or(0);
            println!("{file}: {longest} windows");
            assert!(longest < 8, "{file}: {longest} windows");
        }
    }

    /// Window and probability, as the publisher's wrapper gives them: `OnnxWrapper.audio_forward` of silero-vad 6.2.3
    /// (the wheel that the catalogue pins) with onnxruntime 1.32.0 on one thread of the CPU, over the clip's PCM divided
    /// by 32768. Its tensors were numpy arrays with torch's names for them; the model saw the same numbers.
    const PUBLISHED: [(usize, f32); 24] = [
        (0, 0.023846),
        (4, 0.008695),
        (7, 0.012079),
        (8, 0.707056),
        (9, 0.960816),
        (12, 0.989144),
        (20, 0.999868),
        (30, 0.990572),
        (31, 0.978673),
        (32, 0.855701),
        (33, 0.386632),
        (34, 0.139461),
        (35, 0.223085),
        (36, 0.762556),
        (38, 0.699634),
        (39, 0.898559),
        (41, 0.997548),
        (53, 0.996894),
        (78, 0.998965),
        (85, 0.994128),
        (88, 0.856023),
        (89, 0.254776),
        (90, 0.061160),
        (93, 0.013470),
    ];

    #[test]
    fn f16_scores_are_those_of_the_publishers_wrapper() {
        let Some(folder) = cached("silero-vad", FILE) else { return };
        let model = SileroModel::load(&folder.join(FILE)).unwrap();
        let ours = scores(&mut model.stream(), &audio("01_librivox0880_16k.wav"), 320);
        assert_eq!(ours.len(), 94, "the last window is filled with zeros, as theirs");
        let worst = PUBLISHED.iter().map(|&(at, p)| (ours[at] - p).abs()).fold(0., f32::max);
        println!("largest difference {worst}");
        for (at, p) in PUBLISHED {
            assert!((ours[at] - p).abs() < 1e-3, "window {at}: {} for {p}", ours[at]);
        }
    }

    #[test]
    fn interleaved_streams_and_odd_chunks_change_nothing() {
        let Some(folder) = cached("silero-vad", FILE) else { return };
        let model = SileroModel::load(&folder.join(FILE)).unwrap();
        let (a, b) = (audio("01_librivox0880_16k.wav"), audio("06_goforward_noisy_16k.wav"));
        let alone = scores(&mut model.stream(), &a, 441);
        let (mut first, mut second) = (model.stream(), model.stream());
        let mut together = Vec::new();
        for (i, w) in a.chunks(WINDOW).enumerate() {
            let mut window = [0.; WINDOW];
            window[..w.len()].copy_from_slice(w);
            together.push(first.probability(&window).unwrap());
            let other = b.chunks_exact(WINDOW).nth(i % 20).unwrap();
            second.probability(other.try_into().unwrap()).unwrap();
        }
        assert_eq!(alone, together);
        first.reset();
        assert_eq!(scores(&mut first, &a, 160), alone);
    }

    #[test]
    fn damaged_files_are_errors_that_name_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vad.onnx");
        assert!(matches!(SileroModel::load(&path), Err(SileroError::Read { file, .. }) if file == path));
        for bytes in [&b""[..], b"\0\0\0\0", b"no model at all, only text"] {
            std::fs::write(&path, bytes).unwrap();
            let error = SileroModel::load(&path).unwrap_err().to_string();
            assert!(error.contains("vad.onnx"), "{error}");
        }
        let Some(folder) = cached("silero-vad", FILE) else { return };
        let whole = std::fs::read(folder.join(FILE)).unwrap();
        for cut in [1, 100, 5_000, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(SileroModel::load(&path).is_err(), "prefix of {cut} bytes");
        }
    }
}
