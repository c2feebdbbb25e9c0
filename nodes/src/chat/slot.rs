//! One conversation's place in a model, advanced in small steps.
//!
//! A step computes at most [`super::model::ChatOptions::prefill_tokens`] tokens of a prompt or one token of an answer,
//! on the calling thread, so that a scheduler interleaves sessions as it likes; the texts are those of a session
//! alone. What a prompt has in common with the last one, or with a prefix that another session computed, is not
//! computed again. Rewritten history cuts the memory back to the common beginning.

use std::sync::Arc;

use super::{
    call::{CallFormat, CallParser},
    error::ChatError,
    history::History,
    language::{ForwardError, KvState},
    message::{Message, Role},
    model::{ChatModel, common},
    prompt::Prompt,
    sampling::{Sampler, Sampling},
    stop::StopMatcher,
    tool::{Tool, ToolChoice},
    utf8::Utf8Stream,
};

/// What one step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// So many tokens of the prompt were computed.
    Prefilled(usize),
    /// One token of the answer was chosen; the text that it completes, which may be empty.
    Text(String),
    /// The answer is over; the slot is free for the next [`ChatSlot::begin`].
    Done {
        /// Why it ended.
        reason: FinishReason,
        /// What it cost.
        usage: Usage,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended it.
    End,
    /// A stop string came.
    Stop,
    /// `max_tokens` or the context is used up.
    Length,
    /// It was only the prefix that was to be computed ([`ChatSlot::warm`]).
    Warmed,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Those of them that did not have to be computed.
    pub cached: usize,
    /// Tokens of the answer, without its end token.
    pub completion: usize,
}

/// A conversation on a [`ChatModel`].
pub struct ChatSlot {
    model: Arc<ChatModel>,
    history: History,
    /// What the model may call.
    tools: Vec<Tool>,
    /// Tokens of the fixed beginning, tools included.
    fixed: Vec<u32>,
    state: Box<dyn KvState>,
    /// The tokens in `state`.
    tokens: Vec<u32>,
    job: Option<Job>,
}

impl std::fmt::Debug for ChatSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatSlot")
            .field("history", &self.history)
            .field("tokens", &self.tokens.len())
            .finish_non_exhaustive()
    }
}

/// An answer in the making.
struct Job {
    prompt: Vec<u32>,
    sampler: Sampler,
    max_tokens: usize,
    utf8: Utf8Stream,
    stop: StopMatcher,
    logits: Vec<f32>,
    /// Chosen, but not yet part of the state.
    chosen: Option<u32>,
    answer: String,
    ended: Option<FinishReason>,
    usage: Usage,
    /// Tokens that begin a tool call are part of the text.
    marked: bool,
}

impl ChatSlot {
    /// A new conversation with a fixed beginning: the system text and example messages, or nothing.
    pub fn new(model: &Arc<ChatModel>, fixed: Vec<Message>) -> Self {
        Self {
            fixed: model.fixed_prefix(&fixed),
            state: model.network().new_state(),
            model: model.clone(),
            history: History::new(fixed),
            tools: Vec::new(),
            tokens: Vec::new(),
            job: None,
        }
    }

    /// What was said. A finished answer is part of it.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Cuts the last answer to the characters that were heard ([`History::truncate_last_assistant`]).
    pub fn truncate_last_assistant(&mut self, chars: usize) -> bool {
        self.history.truncate_last_assistant(chars)
    }

    /// Bytes of this conversation's own memory.
    pub fn bytes(&self) -> usize {
        let text: usize = self.history.fixed().iter().chain(self.history.turns()).map(Message::bytes).sum();
        let job =
            self.job.as_ref().map_or(0, |j| 4 * (j.logits.capacity() + j.prompt.capacity()) + j.answer.capacity());
        self.state.bytes() + 4 * (self.tokens.capacity() + self.fixed.capacity()) + text + job
    }

    /// Whether an answer is in the making.
    pub fn busy(&self) -> bool {
        self.job.is_some()
    }

    /// Begins the answer to what the person said. No network is computed here.
    ///
    /// # Errors
    /// [`ChatError::ContextTooLong`] if the fixed part and this text do not fit, [`ChatError::Template`],
    /// [`ChatError::Tokenize`], [`ChatError::Misuse`] while an answer is in the making. The history is then as before.
    pub fn begin(&mut self, user: &str, sampling: &Sampling) -> Result<(), ChatError> {
        let mut history = self.history.clone();
        history.push_user(user);
        let tools = self.tools.clone();
        self.start(history, tools, "", sampling)
    }

    /// Begins the answer to a whole conversation, which replaces the history. Leading system messages become its
    /// fixed part.
    ///
    /// # Errors
    /// As [`ChatSlot::begin`].
    pub fn begin_messages(&mut self, messages: Vec<Message>, sampling: &Sampling) -> Result<(), ChatError> {
        let lead = messages.iter().take_while(|m| m.role == Role::System).count();
        let mut fixed = messages;
        let turns = fixed.split_off(lead);
        self.replace(fixed, turns, Vec::new(), "", sampling)
    }

    /// Begins the answer to a whole prompt, which replaces the history; `own` is the fixed beginning of prompts that
    /// have none ([`Prompt::conversation`]). Where the answer may call tools, its texts go through the parser that is
    /// returned. A call that the prompt asks for is begun for the model, and the parser knows that beginning.
    ///
    /// # Errors
    /// As [`ChatSlot::begin`].
    pub fn begin_prompt(
        &mut self,
        prompt: &Prompt,
        own: &[Message],
        sampling: &Sampling,
    ) -> Result<Option<CallParser>, ChatError> {
        let (fixed, turns) = prompt.conversation(own);
        let tools = if prompt.tool_choice == ToolChoice::None { Vec::new() } else { prompt.tools.clone() };
        let format = if tools.is_empty() { CallFormat::Hermes } else { self.model.calls() };
        let opening = format.opening(&prompt.tool_choice).unwrap_or_default();
        // A conversation with calls in it invites more of them, asked for or not.
        let calls = !tools.is_empty() || prompt.calls().next().is_some();
        self.replace(fixed, turns, tools, &opening, &prompt.sampling(sampling))?;
        Ok(calls.then(|| {
            let mut parser = CallParser::new(format);
            parser.push(&opening);
            parser
        }))
    }

    fn replace(
        &mut self,
        fixed: Vec<Message>,
        turns: Vec<Message>,
        tools: Vec<Tool>,
        opening: &str,
        sampling: &Sampling,
    ) -> Result<(), ChatError> {
        let same = self.history.fixed() == fixed && self.tools == tools;
        let prefix = if same { None } else { Some(self.model.prefix_with(&fixed, &tools)) };
        let mut history = History::new(fixed);
        history.replace(turns);
        let marked = !tools.is_empty();
        self.start(history, tools, opening, sampling)?;
        if let Some(prefix) = prefix {
            self.fixed = prefix;
        }
        if let Some(job) = &mut self.job {
            job.marked = marked;
        }
        Ok(())
    }

    /// Begins to compute the fixed beginning alone, so that the first answer of this and other sessions has it.
    ///
    /// # Errors
    /// [`ChatError::Misuse`] while an answer is in the making, [`ChatError::ContextTooLong`].
    pub fn warm(&mut self) -> Result<(), ChatError> {
        self.idle()?;
        let limit = self.model.context();
        if self.fixed.len() >= limit {
            return Err(ChatError::ContextTooLong { needed: self.fixed.len(), answer: 1, limit });
        }
        let ended = Some(FinishReason::Warmed);
        self.job = Some(self.prepare(self.fixed.clone(), &Sampling::default(), ended));
        Ok(())
    }

    /// Does one bounded piece of work.
    ///
    /// # Errors
    /// [`ChatError::Forward`] (the answer is dropped, as by [`ChatSlot::cancel`]), [`ChatError::Misuse`] if nothing
    /// was begun.
    pub fn step(&mut self) -> Result<Step, ChatError> {
        let Some(mut job) = self.job.take() else {
            return Err(ChatError::Misuse { what: "no answer was begun; call `begin` before `step`" });
        };
        match self.advance(&mut job) {
            Ok(step) => {
                match step {
                    Step::Done { .. } => self.history.push_assistant(&job.answer),
                    _ => self.job = Some(job),
                }
                Ok(step)
            }
            Err(e) => {
                self.state.truncate(self.tokens.len());
                self.history.push_assistant(&job.answer);
                Err(e.into())
            }
        }
    }

    /// Ends an answer early. What was given out of it stays in the history, and what was computed is kept.
    pub fn cancel(&mut self) {
        if let Some(job) = self.job.take() {
            self.history.push_assistant(&job.answer);
        }
    }

    fn idle(&self) -> Result<(), ChatError> {
        match self.job {
            Some(_) => Err(ChatError::Misuse { what: "an answer is in the making; step to its end or `cancel` it" }),
            None => Ok(()),
        }
    }

    fn start(
        &mut self,
        mut history: History,
        tools: Vec<Tool>,
        opening: &str,
        sampling: &Sampling,
    ) -> Result<(), ChatError> {
        self.idle()?;
        let limit = self.model.context();
        let answer = sampling.max_tokens.clamp(1, (limit / 2).max(1));
        let budget = limit.saturating_sub(answer);
        let mut prompt = Vec::new();
        let needed = history.fit(budget, self.model.options().max_turns, |messages| {
            prompt = self.model.prompt_with(messages, &tools, opening)?;
            Ok::<_, ChatError>(prompt.len())
        })?;
        if needed > budget || prompt.is_empty() {
            return Err(ChatError::ContextTooLong { needed, answer, limit });
        }
        self.history = history;
        self.tools = tools;
        self.job = Some(self.prepare(prompt, sampling, None));
        Ok(())
    }

    /// Brings the state to the longest known beginning of `prompt`, which leaves its last token to be computed.
    fn prepare(&mut self, prompt: Vec<u32>, sampling: &Sampling, ended: Option<FinishReason>) -> Job {
        let reusable = &prompt[..prompt.len().saturating_sub(1)];
        let own = common(&self.tokens, reusable);
        match self.model.shared(reusable, own) {
            Some(state) => self.state = state,
            None => self.state.truncate(own),
        }
        let cached = self.state.len();
        self.tokens.clear();
        self.tokens.extend_from_slice(&prompt[..cached]);
        Job {
            sampler: Sampler::new(sampling),
            max_tokens: sampling.max_tokens,
            utf8: Utf8Stream::default(),
            stop: StopMatcher::new(&sampling.stop),
            logits: Vec::new(),
            chosen: None,
            answer: String::new(),
            ended,
            usage: Usage { prompt: prompt.len(), cached, completion: 0 },
            marked: false,
            prompt,
        }
    }

    fn advance(&mut self, job: &mut Job) -> Result<Step, ForwardError> {
        let at = self.tokens.len();
        if at < job.prompt.len() {
            let mut n = self.model.options().prefill_tokens.max(1).min(job.prompt.len() - at);
            let fixed = self.fixed.len();
            if at < fixed && job.prompt.starts_with(&self.fixed) {
                n = n.min(fixed - at);
            }
            job.logits = self.model.network().forward(&mut *self.state, &job.prompt[at..at + n])?;
            self.tokens.extend_from_slice(&job.prompt[at..at + n]);
            if at + n == fixed && self.tokens == self.fixed {
                self.model.share(&self.tokens, &*self.state);
            }
            return Ok(Step::Prefilled(n));
        }
        if let Some(reason) = job.ended {
            return Ok(match job.take_rest() {
                rest if rest.is_empty() => Step::Done { reason, usage: job.usage },
                rest => Step::Text(rest),
            });
        }
        if let Some(token) = job.chosen.take() {
            job.logits = self.model.network().forward(&mut *self.state, &[token])?;
            self.tokens.push(token);
        }
        let token = job.sampler.pick(&mut job.logits).ok_or(ForwardError::NotFinite)?;
        if self.model.tokenizer().ends().contains(&token) {
            job.ended = Some(FinishReason::End);
            return Ok(Step::Text(job.take_rest()));
        }
        job.usage.completion += 1;
        job.chosen = Some(token);
        let tokenizer = self.model.tokenizer();
        let text = job.utf8.push(if job.marked { tokenizer.bytes_or_marker(token) } else { tokenizer.bytes(token) });
        let text = job.stop.push(&text);
        job.answer.push_str(&text);
        if job.stop.hit() {
            job.ended = Some(FinishReason::Stop);
        } else if job.usage.completion >= job.max_tokens || self.tokens.len() + 1 >= self.model.context() {
            job.ended = Some(FinishReason::Length);
        }
        Ok(Step::Text(text))
    }
}

impl Job {
    /// The text that waited for more.
    fn take_rest(&mut self) -> String {
        let mut text = String::new();
        if let Some(c) = self.utf8.finish() {
            text.push_str(&self.stop.push(&c.to_string()));
        }
        text.push_str(&self.stop.finish());
        self.answer.push_str(&text);
        text
    }
}
