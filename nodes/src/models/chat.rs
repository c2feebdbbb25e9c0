//! `model.chat`: what the user said in, the answer out, word by word.
//!
//! In this process from a GGUF file, as a shared stage whose unit of work is one token of one session; or, with
//! `base-url`, any OpenAI-compatible server, as a node of its own. With `prompts: true` the conversation is not kept here:
//! each input is a whole prompt ([`super::prompts`]).

use std::sync::Arc;

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{
    Body, BuildCx, BuildError, Kind, Make, MediaTime, Medium, Opt, OptionError, Port, Schema, Stamp, Weight,
};
use serde::Deserialize;

use super::files::pick;
use super::{fetch, look, prompts, remote};
use crate::catalogue::Task;
use crate::chat::remote::address;
use crate::chat::{Builtin, ChatModel, ChatOptions, ChatSlot, Message, Sampling, Step};

/// The node type `model.chat`.
pub struct ModelChat;

/// Options of `model.chat`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChatConfig {
    #[serde(default = "default_model")]
    pub(super) model: String,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    #[serde(default)]
    system: String,
    #[serde(default)]
    examples: Vec<Example>,
    #[serde(default = "context")]
    context: usize,
    template: Option<String>,
    #[serde(default)]
    temperature: f32,
    #[serde(default)]
    top_k: usize,
    #[serde(default = "one")]
    top_p: f32,
    #[serde(default)]
    min_p: f32,
    #[serde(default = "one")]
    repetition_penalty: f32,
    #[serde(default = "max_tokens")]
    max_tokens: usize,
    #[serde(default)]
    stop: Vec<String>,
    seed: Option<u64>,
    #[serde(default)]
    pub(super) prompts: bool,
}

/// One exchange that shows the model how to answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Example {
    user: String,
    assistant: String,
}

/// A system text and examples as messages.
pub(super) fn beginning(system: &str, examples: &[Example]) -> Vec<Message> {
    let system = (!system.is_empty()).then(|| Message::system(system));
    let pairs = examples.iter().flat_map(|e| [Message::user(&*e.user), Message::assistant(&*e.assistant)]);
    system.into_iter().chain(pairs).collect()
}

fn default_model() -> String {
    "smollm2-135m".to_owned()
}
fn context() -> usize {
    2048
}
fn max_tokens() -> usize {
    256
}
fn one() -> f32 {
    1.0
}

impl ChatConfig {
    /// The fixed beginning of every conversation.
    pub(super) fn fixed(&self) -> Vec<Message> {
        beginning(&self.system, &self.examples)
    }
    pub(super) fn sampling(&self, seed: u64) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            seed: self.seed.unwrap_or(seed),
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
        }
    }
    fn builtin(&self) -> Result<Option<Builtin>, OptionError> {
        let Some(name) = &self.template else { return Ok(None) };
        match name.as_str() {
            "chatml" => Ok(Some(Builtin::Chatml)),
            "llama3" => Ok(Some(Builtin::Llama3)),
            "gemma" => Ok(Some(Builtin::Gemma)),
            "qwen" => Ok(Some(Builtin::Qwen)),
            other => {
                let hint = "write `chatml`, `llama3`, `gemma` or `qwen`, or leave it out to use the file's own";
                Err(OptionError::new("template", format!("there is no built-in template `{other}`"), hint))
            }
        }
    }
}

impl Make for ModelChat {
    const NAME: &'static str = "model.chat";
    type Config = ChatConfig;
    fn schema() -> Schema {
        Schema::new("A language model that holds a conversation: what the user said in, the answer out as it is made")
            .input(Port::new(
                "in",
                Kind::of(Medium::Text),
                "what the user said, one whole turn per chunk; with `prompts: true` signals `chat.prompt`",
            ))
            .output(
                Port::new("text", Kind::of(Medium::Text), "the answer, piece by piece; the last piece is marked")
                    .segments(),
            )
            .output(
                Port::new(
                    "calls",
                    Kind::of(Medium::Signal),
                    "with `prompts: true` alone: tool calls (`chat.call`), then `chat.done` or `chat.failed` per answer",
                )
                .optional(),
            )
            .option(Opt::new(
                "model",
                "text",
                "smollm2-135m",
                "catalogue name, path or hub file of a GGUF; with `base-url` the server's name for it",
            ))
            .option(Opt::maybe("base-url", "text", "an OpenAI-compatible server to use instead, up to and with `/v1`"))
            .option(Opt::maybe("api-key-env", "text", "name of the environment variable that holds the server's key"))
            .option(Opt::new("system", "text", "\"\"", "the system message"))
            .option(Opt::new(
                "examples",
                "list",
                "[]",
                "exchanges that show how to answer: `{ user: ..., assistant: ... }`",
            ))
            .option(Opt::new(
                "prompts",
                "yes/no",
                "false",
                "the input is whole prompts, with tools and options of their own, instead of what the user said",
            ))
            .option(Opt::new(
                "context",
                "integer",
                "2048",
                "longest prompt and answer together, tokens; the oldest turns go first",
            ))
            .option(Opt::maybe(
                "template",
                "chatml | llama3 | gemma | qwen",
                "a built-in chat template instead of the file's",
            ))
            .option(Opt::new("temperature", "number", "0", "0 = always the likeliest token"))
            .option(Opt::new("top-k", "integer", "0", "only the so many likeliest tokens; 0 = all"))
            .option(Opt::new("top-p", "number", "1", "only the likeliest tokens that make up this probability"))
            .option(Opt::new("min-p", "number", "0", "only tokens at least this likely, relative to the likeliest"))
            .option(Opt::new(
                "repetition-penalty",
                "number",
                "1",
                "above 1: what was said is less likely to be said again",
            ))
            .option(Opt::new("max-tokens", "integer", "256", "longest answer"))
            .option(Opt::new("stop", "list", "[]", "texts that end the answer and are not part of it"))
            .option(Opt::maybe("seed", "integer", "seed of the choice among words; the engine's if left out"))
            .shared()
            .example("llm: { use: model.chat, in: asr.text, lane: reply, system: \"Answer in one sentence.\" }")
    }
    fn refine(config: &ChatConfig, schema: &mut Schema) -> Result<(), OptionError> {
        config.builtin()?;
        for (name, value, most) in [("temperature", config.temperature, 10.0), ("min-p", config.min_p, 1.0)] {
            if !(0.0..=most).contains(&value) {
                return Err(OptionError::new(name, format!("is {value}"), format!("use 0 to {most}")));
            }
        }
        for (name, value) in [("top-p", config.top_p), ("repetition-penalty", config.repetition_penalty)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(OptionError::new(name, format!("is {value}"), "use a number above 0"));
            }
        }
        if config.max_tokens == 0 || config.context < 16 {
            let option = if config.max_tokens == 0 { "max-tokens" } else { "context" };
            return Err(OptionError::new(option, "leaves no room for an answer", "raise it"));
        }
        if config.prompts {
            schema.inputs[0].kind = Kind::of(Medium::Signal);
        } else {
            // With one output it can be named without its port.
            schema.outputs.retain(|p| p.name != "calls");
        }
        if let Some(url) = &config.base_url {
            if let Err(why) = address(url) {
                let why = why.trim_start_matches("`base-url` ").to_owned();
                return Err(OptionError::new("base-url", why, "write for instance `http://127.0.0.1:8000/v1`"));
            }
            // The heavy part is elsewhere: here it is a node that waits for a socket.
            (schema.shared, schema.weight) = (false, Weight::Cheap);
        } else if config.api_key_env.is_some() {
            return Err(OptionError::new("api-key-env", "is given without `base-url`", "leave it out"));
        }
        Ok(())
    }
    fn look(config: &ChatConfig, cx: &BuildCx) -> Result<(), OptionError> {
        if config.base_url.is_some() { Ok(()) } else { look(Task::Chat, "model", &config.model, cx) }
    }
    fn build(config: &ChatConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        if config.base_url.is_some() {
            return remote::build(config, cx);
        }
        let files = fetch(Task::Chat, &config.model, cx)?;
        let gguf = pick(&files, &["gguf"], "model file")?;
        let template = config.builtin().map_err(BuildError::from_error)?;
        let options = ChatOptions { context_tokens: config.context, template, ..ChatOptions::default() };
        let model = ChatModel::load(gguf, options).map_err(BuildError::from_error)?;
        let fixed = config.fixed();
        if !fixed.is_empty() {
            // The fixed beginning is computed once, here, and shared by all sessions.
            let mut slot = ChatSlot::new(&model, fixed.clone());
            slot.warm().map_err(BuildError::from_error)?;
            while !matches!(slot.step().map_err(BuildError::from_error)?, Step::Done { .. }) {}
        }
        let sampling = config.sampling(cx.seed);
        Ok(match config.prompts {
            true => Body::stage(prompts::PromptStage::new(model, fixed, sampling)),
            false => Body::stage(ChatStage { model, fixed, sampling }),
        })
    }
}

struct ChatStage {
    model: Arc<ChatModel>,
    fixed: Vec<Message>,
    sampling: Sampling,
}

struct Talking {
    chat: ChatSlot,
    stamp: Stamp,
}

impl Stage for ChatStage {
    type In = Arc<str>;
    type Out = Arc<str>;
    type Slot = Talking;

    fn open(&self, _: SlotId) -> Result<Talking, StageError> {
        Ok(Talking { chat: ChatSlot::new(&self.model, self.fixed.clone()), stamp: Stamp::default() })
    }
    fn slot_bytes(&self, slot: &Talking) -> u64 {
        slot.chat.bytes() as u64
    }
    fn accept(&self, slot: &mut Talking, stamp: &Stamp, input: Arc<str>) -> Result<(), StageError> {
        slot.chat.cancel();
        slot.stamp = stamp.child(MediaTime::ZERO, MediaTime::ZERO);
        if !input.trim().is_empty() {
            slot.chat.begin(input.trim(), &self.sampling).map_err(StageError::failed)?;
        }
        Ok(())
    }
    fn ready(&self, slot: &Talking) -> bool {
        slot.chat.busy()
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let slot = m.slot();
        let stamp = slot.stamp;
        match slot.chat.step().map_err(StageError::failed)? {
            Step::Prefilled(_) => {}
            Step::Text(t) if t.is_empty() => {}
            Step::Text(t) => m.emit(stamp, t.into()),
            Step::Done { .. } => m.emit(stamp.last(true), "".into()),
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Talking) {
        // What was given out of the answer stays in the history.
        slot.chat.cancel();
    }
}
