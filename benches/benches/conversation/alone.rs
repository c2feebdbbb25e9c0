//! Each stage alone on the work of the conversation: what the models take when nothing else runs.

use std::time::Instant;

use omni_flow::{BuildCx, GraphFile};
use omni_flow_benches::median;
use omni_flow_nodes::catalogue::Task;
use omni_flow_nodes::chat::{ChatModel, ChatOptions, ChatSlot, Message, Sampling, Step};
use omni_flow_nodes::models::fetch;
use omni_flow_nodes::piper::{Decoder, Scales, Voice, Window};
use omni_flow_nodes::text::Sentences;
use omni_flow_nodes::whisper::{WhisperFiles, WhisperModel};
use serde::Deserialize;
use serde_json::{Value, json};

use super::score::Row;

/// Medians over the turns, milliseconds.
pub struct Alone {
    recognition: f64,
    first_word: f64,
    clause: f64,
    talker: f64,
    first_chunk: f64,
    /// From transcript to first audio, in the conversation; and the sum of the stages alone, turn by turn.
    answering: f64,
    stages: f64,
    /// Median of (answering - stages) / answering.
    own_share: f64,
}

impl Alone {
    pub fn json(&self) -> Value {
        json!({
            "recognition": self.recognition, "first_word": self.first_word, "first_clause": self.clause,
            "talker": self.talker, "first_chunk": self.first_chunk, "answering": self.answering,
            "stages": self.stages, "own_share": self.own_share,
        })
    }
    pub fn print(&self) {
        println!(
            "stages alone (p50, ms): recognition {:.0}; prompt to first word {:.0}, to first clause {:.0}; talker {:.0}; \
             first audio of code2wav {:.0}",
            self.recognition, self.first_word, self.clause, self.talker, self.first_chunk
        );
        println!(
            "transcript to first audio: {:.0} ms in the conversation, {:.0} ms as the sum of its stages alone; the \
             engine's own share {:.1} %",
            self.answering,
            self.stages,
            self.own_share * 100.0
        );
    }
}

/// Runs the stages on what was heard and said in `rows`.
///
/// # Panics
/// If a model cannot be loaded or fails: they have all just worked.
pub fn measure(graph: &GraphFile, rows: &[Row]) -> Alone {
    let cx = BuildCx { threads: 1, slots: 1, ..BuildCx::default() };
    let files = |task: Task, name: &str| fetch(task, name, &cx).unwrap_or_else(|e| panic!("{e}"));
    let whisper =
        WhisperModel::load(&WhisperFiles::in_folder(&files(Task::SpeechRecognition, "whisper-tiny-en").folder))
            .expect("Whisper");
    whisper.warm().expect("Whisper runs");
    let gguf = files(Task::Chat, "smollm2-135m");
    let chat =
        ChatModel::load(gguf.with_extension("gguf").expect("a GGUF"), ChatOptions::default()).expect("the model");
    let piper = files(Task::SpeechSynthesis, "piper-joe");
    let (onnx, config) =
        (piper.with_extension("onnx").expect("a voice"), piper.with_extension("json").expect("its file"));
    let voice = Voice::load(onnx, config).expect("the voice");
    let llm: Llm = graph.section("nodes.llm").unwrap_or_else(|d| panic!("{d}")).expect("the graph's language model");
    let fixed = llm.fixed();
    let mut slot = ChatSlot::new(&chat, fixed.clone());
    slot.warm().expect("a prefix");
    while !matches!(slot.step().expect("the model runs"), Step::Done { .. }) {}
    let (mut asr, mut word, mut clause, mut talker, mut chunk) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut answering, mut stages, mut shares) = (vec![], vec![], vec![]);
    for row in rows {
        let ms = |t: Instant| t.elapsed().as_secs_f64() * 1e3;
        let t = Instant::now();
        whisper.transcribe(&row.spoken).expect("a transcript");
        let to_text = ms(t);

        // With the same history as in the conversation.
        if row.turn < 0 {
            slot = ChatSlot::new(&chat, fixed.clone());
        }
        let sampling = Sampling { temperature: 0.0, max_tokens: llm.max_tokens, ..Sampling::default() };
        let t = Instant::now();
        slot.begin(&row.heard, &sampling).expect("a prompt");
        let mut sentences = Sentences::new(Default::default());
        let (mut first, mut said) = (None, None);
        loop {
            let piece = match slot.step().expect("the model runs") {
                Step::Prefilled(_) => continue,
                Step::Text(s) => {
                    if !s.is_empty() {
                        first.get_or_insert(ms(t));
                    }
                    sentences.push(&s).into_iter().next()
                }
                Step::Done { .. } => {
                    let rest = sentences.finish().into_iter().next().map(|p| (p.text, ms(t)));
                    said = said.or(rest);
                    break;
                }
            };
            said = said.or(piece.map(|p| (p.text, ms(t))));
        }
        let Some((said, to_clause)) = said else { continue };
        if !row.counts() {
            continue;
        }
        asr.push(to_text);
        word.push(first.unwrap_or(to_clause));
        clause.push(to_clause);

        let t = Instant::now();
        let utterance = voice.utterance(&said).expect("phonemes");
        let latents = voice.talk(&utterance.ids, Scales::of(voice.config()), 0, 0).expect("latents");
        let to_latents = ms(t);
        talker.push(to_latents);

        let t = Instant::now();
        let mut decoder = Decoder::new(voice.clone(), Window::default());
        let width = latents.width();
        decoder.push(&latents.into_rows(), width).expect("frames");
        decoder.finish();
        decoder.step().expect("audio");
        let to_audio = ms(t);
        chunk.push(to_audio);

        if let Some(all) = row.answering() {
            let alone = to_clause + to_latents + to_audio;
            answering.push(all);
            stages.push(alone);
            shares.push((all - alone) / all);
        }
    }
    Alone {
        recognition: median(asr),
        first_word: median(word),
        clause: median(clause),
        talker: median(talker),
        first_chunk: median(chunk),
        answering: median(answering),
        stages: median(stages),
        own_share: median(shares),
    }
}

/// What the shipped graph says of its language model.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Llm {
    system: String,
    examples: Vec<Example>,
    max_tokens: usize,
}
#[derive(Deserialize)]
struct Example {
    user: String,
    assistant: String,
}

impl Llm {
    /// The fixed beginning of every conversation.
    fn fixed(&self) -> Vec<Message> {
        let pair = |e: &Example| [Message::user(&*e.user), Message::assistant(&*e.assistant)];
        std::iter::once(Message::system(&*self.system)).chain(self.examples.iter().flat_map(pair)).collect()
    }
}
