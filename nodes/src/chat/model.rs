//! A loaded chat model: network, tokenizer, template and the prefixes that its sessions share.
//!
//! One value, in an `Arc`, serves all sessions; what differs between them is a [`super::slot::ChatSlot`]. Loading is
//! synchronous and heavy: call it on a thread of your own.

use std::{
    fs::File,
    io::Read,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value as Json;

use super::{
    call::CallFormat,
    decoder::Decoder,
    error::ChatError,
    gguf::{Gguf, Value},
    language::{KvState, LanguageModel},
    message::{Message, ToolCall},
    template::{Builtin, Template},
    tensors::malformed,
    tokenizer::Tokenizer,
    tool::Tool,
    weights::Weights,
};

/// Options of a loaded model.
#[derive(Debug, Clone)]
pub struct ChatOptions {
    /// Longest prompt and answer together, in tokens; the model's own limit if that is less.
    pub context_tokens: usize,
    /// Most tokens one step computes while a prompt is read.
    pub prefill_tokens: usize,
    /// Most turns kept in a session's history.
    pub max_turns: usize,
    /// Most bytes of shared prefixes (least recently used go first); 0: none are kept.
    pub prefix_bytes: usize,
    /// Most bytes of weights, as they are kept in memory.
    pub max_weight_bytes: u64,
    /// A built-in template instead of the file's.
    pub template: Option<Builtin>,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self {
            context_tokens: 2048,
            prefill_tokens: 32,
            max_turns: 64,
            prefix_bytes: 64 << 20,
            max_weight_bytes: 8 << 30,
            template: None,
        }
    }
}

/// A language model with all it needs to hold conversations.
pub struct ChatModel {
    network: Arc<dyn LanguageModel>,
    tokenizer: Tokenizer,
    template: Template,
    options: ChatOptions,
    prefixes: Mutex<Vec<Prefix>>,
}

/// A prompt beginning that was computed once; last in the list is the most recently used.
struct Prefix {
    tokens: Vec<u32>,
    state: Box<dyn KvState>,
}

impl std::fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatModel")
            .field("tokenizer", &self.tokenizer)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ChatModel {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// [`ChatError`] naming the file: unreadable, malformed, unsupported, too large.
    pub fn load(path: impl AsRef<Path>, options: ChatOptions) -> Result<Arc<Self>, ChatError> {
        let path = path.as_ref();
        let mut file = File::open(path).map_err(|source| ChatError::Io { path: path.into(), source })?;
        let gguf = read_header(path, &mut file)?;
        let tokenizer = Tokenizer::from_gguf(path, &gguf)?;
        let template = pick_template(&gguf, &tokenizer, options.template)?;
        let weights = Weights::load(path, &mut file, &gguf, options.max_weight_bytes)?;
        if tokenizer.len() > weights.shape.vocab {
            let (a, b) = (tokenizer.len(), weights.shape.vocab);
            return Err(malformed(path, format!("{a} tokens but only {b} rows of embeddings")));
        }
        Ok(Self::from_parts(Arc::new(Decoder::new(weights)), tokenizer, template, options))
    }

    /// A model from a network of your own and the parts that surround it.
    pub fn from_parts(
        network: Arc<dyn LanguageModel>,
        tokenizer: Tokenizer,
        template: Template,
        options: ChatOptions,
    ) -> Arc<Self> {
        Arc::new(Self { network, tokenizer, template, options, prefixes: Mutex::default() })
    }

    /// The network.
    pub fn network(&self) -> &dyn LanguageModel {
        &*self.network
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The options it was loaded with.
    pub fn options(&self) -> &ChatOptions {
        &self.options
    }

    /// Tokens of prompt and answer together.
    pub fn context(&self) -> usize {
        self.options.context_tokens.min(self.network.context())
    }

    /// Bytes held for all sessions together: weights and shared prefixes.
    pub fn bytes(&self) -> usize {
        let prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        self.network.bytes() + prefixes.iter().map(|p| p.state.bytes()).sum::<usize>()
    }

    /// The prompt of these messages in tokens, open for an answer. Control tokens inside messages are plain text.
    ///
    /// # Errors
    /// [`ChatError::Template`], [`ChatError::Tokenize`].
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, ChatError> {
        self.prompt_with(messages, &[], "")
    }

    /// The same for an answer that may call `tools` and begins with `opening`.
    ///
    /// # Errors
    /// As [`ChatModel::prompt`].
    pub fn prompt_with(&self, messages: &[Message], tools: &[Tool], opening: &str) -> Result<Vec<u32>, ChatError> {
        let guard = |text: &str| self.tokenizer.guard(text);
        let guarded: Vec<Message> = messages
            .iter()
            .map(|m| Message {
                role: m.role,
                content: guard(&m.content),
                tool_calls: m
                    .tool_calls
                    .iter()
                    .map(|c| ToolCall { id: c.id.clone(), name: guard(&c.name), arguments: guard(&c.arguments) })
                    .collect(),
                tool_call_id: m.tool_call_id.clone(),
            })
            .collect();
        let tools: Vec<Tool> = tools
            .iter()
            .map(|t| Tool {
                name: guard(&t.name),
                description: guard(&t.description),
                parameters: guarded_json(&t.parameters, &guard),
            })
            .collect();
        self.tokenizer.encode(&(self.template.render_with(&guarded, &tools)? + opening))
    }

    /// How it writes tool calls.
    pub fn calls(&self) -> CallFormat {
        self.template.calls()
    }

    /// The tokens with which every prompt begins that has `fixed` in front; empty if the template refuses a probe.
    pub fn fixed_prefix(&self, fixed: &[Message]) -> Vec<u32> {
        self.prefix_with(fixed, &[])
    }

    /// The same where tools may be called.
    pub(super) fn prefix_with(&self, fixed: &[Message], tools: &[Tool]) -> Vec<u32> {
        let probe = |text: &str| {
            let messages: Vec<Message> = fixed.iter().cloned().chain([Message::user(text)]).collect();
            self.prompt_with(&messages, tools, "")
        };
        match (probe("a"), probe("7")) {
            (Ok(a), Ok(b)) => a[..common(&a, &b)].to_vec(),
            _ => Vec::new(),
        }
    }

    /// A copy of the shared prefix that has most tokens in common with `tokens`, cut to those, if they are more than
    /// `beyond`.
    pub(super) fn shared(&self, tokens: &[u32], beyond: usize) -> Option<Box<dyn KvState>> {
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        let (i, n) = prefixes.iter().map(|p| common(&p.tokens, tokens)).enumerate().max_by_key(|(_, n)| *n)?;
        if n <= beyond {
            return None;
        }
        let used = prefixes.remove(i);
        let copy = used.state.fork(n);
        prefixes.push(used);
        Some(copy)
    }

    /// Keeps a copy of the first `tokens.len()` tokens of `state` for other sessions, within the budget.
    pub(super) fn share(&self, tokens: &[u32], state: &dyn KvState) {
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        if prefixes.iter().any(|p| p.tokens.starts_with(tokens)) {
            return;
        }
        let state = state.fork(tokens.len());
        let mut total = state.bytes();
        if total > self.options.prefix_bytes || state.len() != tokens.len() {
            return;
        }
        prefixes.retain(|p| !tokens.starts_with(&p.tokens));
        prefixes.push(Prefix { tokens: tokens.to_vec(), state });
        let mut keep = 1;
        for p in prefixes.iter().rev().skip(1) {
            total += p.state.bytes();
            if total > self.options.prefix_bytes {
                break;
            }
            keep += 1;
        }
        let drop = prefixes.len() - keep;
        prefixes.drain(..drop);
    }
}

/// A JSON value whose texts are all made harmless.
fn guarded_json(value: &Json, guard: &impl Fn(&str) -> String) -> Json {
    match value {
        Json::String(s) => guard(s).into(),
        Json::Array(all) => all.iter().map(|v| guarded_json(v, guard)).collect(),
        Json::Object(map) => map.iter().map(|(k, v)| (guard(k), guarded_json(v, guard))).collect(),
        other => other.clone(),
    }
}

/// Length of the common beginning.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Reads as much of the file as its header needs: first 4 MiB, then twice as much as long as that is too little.
fn read_header(path: &Path, file: &mut File) -> Result<Gguf, ChatError> {
    let io = |source| ChatError::Io { path: path.into(), source };
    let len = file.metadata().map_err(io)?.len();
    let mut bytes = Vec::new();
    let mut want = 4u64 << 20;
    loop {
        let have = bytes.len() as u64;
        file.take(want - have).read_to_end(&mut bytes).map_err(io)?;
        match Gguf::parse(&bytes, len).map_err(|e| malformed(path, e))? {
            Some(gguf) => return Ok(gguf),
            None if (bytes.len() as u64) < want => return Err(malformed(path, "it became shorter while it was read")),
            None => want *= 2,
        }
    }
}

fn pick_template(gguf: &Gguf, tokens: &Tokenizer, forced: Option<Builtin>) -> Result<Template, ChatError> {
    let text = |id: Option<u32>| id.map(|id| tokens.text(id)).unwrap_or_default();
    let bos = text(tokens.bos());
    let eos = gguf.metadata.get("tokenizer.ggml.eos_token_id").and_then(Value::as_u64);
    let thinks = tokens.special("<think>").is_some();
    if let Some(kind) = forced {
        return Ok(Template::builtin(kind, &bos, thinks));
    }
    if let Some(source) = gguf.metadata.get("tokenizer.chat_template").and_then(Value::as_str) {
        let eos = text(eos.and_then(|e| u32::try_from(e).ok()));
        return Template::jinja(source, &bos, &eos);
    }
    let architecture = gguf.metadata.get("general.architecture").and_then(Value::as_str).unwrap_or("");
    let kind = match tokens {
        t if t.special("<start_of_turn>").is_some() => Builtin::Gemma,
        t if t.special("<|start_header_id|>").is_some() => Builtin::Llama3,
        _ if architecture.starts_with("qwen") => Builtin::Qwen,
        _ => Builtin::Chatml,
    };
    Ok(Template::builtin(kind, &bos, thinks))
}
