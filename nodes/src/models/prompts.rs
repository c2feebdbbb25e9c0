//! `model.chat` with `prompts: true`: each input is a whole prompt, and beside the text there are signals.
//!
//! An input is a signal [`Prompt::NAME`]; others are passed over. For each prompt that no fence takes, `calls` gives the
//! tool calls as they come and then one `chat.done` or `chat.failed` ([`ChatEvent`]), and `text` gives the answer, whose
//! last piece is marked and comes after that. A prompt that cannot be answered (it is malformed, too long, refused by the
//! server) fails alone: the stream goes on with the next one. Who takes both outputs must take them side by side, since
//! each holds the model up when it is full.

use std::sync::Arc;

use omni_flow::shared::{Member, SlotId, Stage, StageError};
use omni_flow::{Ctx, Event, MediaTime, Node, NodeError, Out, Payload, Sent, Signal, Stamp, Terminal};

use crate::chat::remote::{RemoteChat, RemoteError, RemoteEvent};
use crate::chat::{
    CallEvent, CallIds, CallParser, ChatError, ChatEvent, ChatModel, ChatSlot, Done, Failed, Message, Parsed, Prompt,
    Sampling, Step, ToolChoice,
};

/// The prompt that a signal is, if it is one.
fn prompt(signal: &Signal) -> Option<Result<Prompt, Failed>> {
    match signal {
        Signal::Named { name, data } if **name == *Prompt::NAME => {
            Some(Prompt::parse(data).map_err(|e| failed("invalid_prompt", e.to_string())))
        }
        _ => None,
    }
}

fn signal(event: &ChatEvent) -> Signal {
    Signal::Named { name: event.name().into(), data: event.to_json().into() }
}

fn failed(code: &str, message: String) -> Failed {
    Failed { code: code.to_owned(), message }
}

fn local(e: &ChatError) -> Failed {
    let code = match e {
        ChatError::ContextTooLong { .. } => "context_too_long",
        ChatError::Template { .. } | ChatError::Tokenize { .. } => "template_failed",
        _ => "model_failed",
    };
    failed(code, e.to_string())
}

fn of_server(e: &RemoteError) -> Failed {
    let code = match e {
        RemoteError::ContextLength { .. } => "context_too_long",
        RemoteError::Unreachable { .. } => "unreachable",
        RemoteError::Unauthorized { .. } | RemoteError::MissingKey(_) => "unauthorized",
        RemoteError::NotFound { .. } => "not_found",
        RemoteError::RateLimited { .. } => "rate_limited",
        RemoteError::Server { .. } => "server_failed",
        RemoteError::Timeout { .. } => "timeout",
        RemoteError::Malformed { .. } => "malformed_stream",
        RemoteError::Config(_) | RemoteError::Refused { .. } => "refused",
    };
    failed(code, e.to_string())
}

/// A model of this process.
pub(super) struct PromptStage {
    model: Arc<ChatModel>,
    fixed: Vec<Message>,
    sampling: Sampling,
}

/// One session's answers.
pub(super) struct Answering {
    chat: ChatSlot,
    stamp: Stamp,
    parser: Option<CallParser>,
    /// Calls of the answer so far, and whether any may be told.
    called: usize,
    calls: bool,
    ids: CallIds,
    /// Why the prompt in hand has no answer; not told yet.
    failed: Option<Failed>,
}

impl PromptStage {
    /// `fixed` stands before prompts without a system message; `sampling` is for what they leave open.
    pub(super) fn new(model: Arc<ChatModel>, fixed: Vec<Message>, sampling: Sampling) -> Self {
        Self { model, fixed, sampling }
    }
}

impl Stage for PromptStage {
    type In = Signal;
    type Out = Payload;
    type Slot = Answering;

    fn open(&self, _: SlotId) -> Result<Answering, StageError> {
        Ok(Answering {
            chat: ChatSlot::new(&self.model, self.fixed.clone()),
            stamp: Stamp::default(),
            parser: None,
            called: 0,
            calls: false,
            ids: CallIds::default(),
            failed: None,
        })
    }
    fn slot_bytes(&self, slot: &Answering) -> u64 {
        slot.chat.bytes() as u64
    }
    fn accept(&self, slot: &mut Answering, stamp: &Stamp, input: Signal) -> Result<(), StageError> {
        let Some(prompt) = prompt(&input) else { return Ok(()) };
        slot.chat.cancel();
        slot.stamp = stamp.child(MediaTime::ZERO, MediaTime::ZERO);
        (slot.parser, slot.called) = (None, 0);
        let begun = prompt.and_then(|p| {
            slot.ids.avoid(p.calls().map(|c| c.id.as_str()));
            slot.calls = p.tool_choice != ToolChoice::None;
            slot.chat.begin_prompt(&p, &self.fixed, &self.sampling).map_err(|e| local(&e))
        });
        match begun {
            Ok(parser) => slot.parser = parser,
            Err(why) => slot.failed = Some(why),
        }
        Ok(())
    }
    fn ready(&self, slot: &Answering) -> bool {
        slot.chat.busy() || slot.failed.is_some()
    }
    fn unit(&self, m: &mut Member<Self>) -> Result<(), StageError> {
        let (slot, out) = m.parts();
        let stamp = slot.stamp;
        let mut give = |payload: Payload, last: bool| out.push(stamp.last(last), payload);
        let step = match slot.failed.take() {
            Some(why) => Err(why),
            None => slot.chat.step().map_err(|e| local(&e)),
        };
        let (parsed, end) = match step {
            Ok(Step::Prefilled(_)) => return Ok(()),
            Ok(Step::Text(text)) => (slot.parsed(text), None),
            Ok(Step::Done { reason, usage }) => {
                let rest = slot.parser.take().map(|mut p| p.finish()).unwrap_or_default();
                (rest, Some(Ok((reason, usage))))
            }
            Err(why) => (Vec::new(), Some(Err(why))),
        };
        for parsed in parsed {
            match slot.told(parsed) {
                Some(payload) => give(payload, false),
                None => continue,
            }
        }
        if let Some(end) = end {
            let event = match end {
                Ok((reason, usage)) => ChatEvent::Done(Done::new(reason, slot.called > 0, Some(usage))),
                Err(why) => ChatEvent::Failed(why),
            };
            give(Payload::Signal(signal(&event)), false);
            give(Payload::Text("".into()), true);
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Answering) {
        slot.chat.cancel();
        (slot.parser, slot.failed) = (None, None);
    }
}

impl Answering {
    /// What a piece of the answer brings.
    fn parsed(&mut self, text: String) -> Vec<Parsed> {
        match &mut self.parser {
            _ if text.is_empty() => Vec::new(),
            Some(parser) => parser.push(&text),
            None => vec![Parsed::Text(text)],
        }
    }
    /// The same as it is given; nothing for a call that was not to be made.
    fn told(&mut self, parsed: Parsed) -> Option<Payload> {
        let event = match parsed {
            Parsed::Text(t) => return Some(Payload::Text(t.into())),
            _ if !self.calls => return None,
            Parsed::Call { name, arguments } => CallEvent {
                call_id: Some(self.ids.fresh()),
                name: Some(name),
                arguments: Some(arguments),
                ..CallEvent::default()
            },
            Parsed::Malformed(m) => {
                CallEvent { name: m.name, arguments: Some(m.raw), error: Some(m.why), ..CallEvent::default() }
            }
        };
        let event = CallEvent { index: self.called, done: true, ..event };
        self.called += 1;
        Some(Payload::Signal(signal(&ChatEvent::Call(event))))
    }
}

/// A model of a server.
pub(super) struct PromptNode {
    client: Arc<RemoteChat>,
    fixed: Vec<Message>,
    sampling: Sampling,
    ids: CallIds,
}

struct Outs {
    text: Out<Arc<str>>,
    calls: Out<Signal>,
}

impl PromptNode {
    pub(super) fn new(client: Arc<RemoteChat>, fixed: Vec<Message>, sampling: Sampling) -> Self {
        Self { client, fixed, sampling, ids: CallIds::default() }
    }
}

impl Node for PromptNode {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Signal>("in")?;
        let mut outs = Outs { text: cx.output("text")?, calls: cx.output("calls")? };
        loop {
            match input.next().await {
                Event::Data(stamp, signal) => {
                    let Some(prompt) = prompt(&signal) else { continue };
                    if self.answer(&mut cx, &stamp, prompt, &mut outs).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl PromptNode {
    /// One answer, until it ends, a fence of the reply's lane ends it, or nobody reads.
    async fn answer(&mut self, cx: &mut Ctx, asked: &Stamp, prompt: Result<Prompt, Failed>, outs: &mut Outs) -> Sent {
        let stamp = asked.child(MediaTime::ZERO, MediaTime::ZERO);
        if cx.is_stale(&stamp) {
            return Sent::Stale;
        }
        let telling = async {
            let told = match &prompt {
                Ok(prompt) => self.tell(prompt, &stamp, outs).await,
                Err(why) => Err(why.clone()),
            };
            match told {
                Ok(sent) => sent,
                Err(why) => outs.end(&stamp, &ChatEvent::Failed(why)).await,
            }
        };
        tokio::pin!(telling);
        loop {
            tokio::select! {
                biased;
                _ = cx.fenced() => if cx.is_stale(&stamp) {
                    return Sent::Stale;
                },
                sent = &mut telling => return sent,
            }
        }
    }

    async fn tell(&mut self, prompt: &Prompt, stamp: &Stamp, outs: &mut Outs) -> Result<Sent, Failed> {
        self.ids.avoid(prompt.calls().map(|c| c.id.as_str()));
        let (mut messages, said) = prompt.conversation(&self.fixed);
        messages.extend(said);
        let sampling = prompt.sampling(&self.sampling);
        let told = self.client.stream_with(&messages, &prompt.tools, &prompt.tool_choice, &sampling).await;
        let mut stream = told.map_err(|e| of_server(&e))?;
        // Names of the calls, by their index, given here where the server gives none.
        let mut named: Vec<String> = Vec::new();
        while let Some(event) = stream.next().await.map_err(|e| of_server(&e))? {
            let sent = match event {
                RemoteEvent::Text(t) => outs.text.send(stamp, t.into()).await,
                RemoteEvent::Call(mut call) => {
                    while named.len() <= call.index {
                        named.push(call.call_id.clone().unwrap_or_else(|| self.ids.fresh()));
                    }
                    call.call_id.get_or_insert_with(|| named[call.index].clone());
                    outs.calls(stamp, &ChatEvent::Call(call)).await
                }
                RemoteEvent::Done { reason, usage } => {
                    outs.end(stamp, &ChatEvent::Done(Done::new(reason, !named.is_empty(), usage))).await
                }
            };
            if sent != Sent::Queued {
                return Ok(sent);
            }
        }
        Ok(Sent::Queued)
    }
}

impl Outs {
    /// Tells an event; that nobody reads them is no reason to end.
    async fn calls(&mut self, stamp: &Stamp, event: &ChatEvent) -> Sent {
        match self.calls.send(stamp, signal(event)).await {
            Sent::Stale => Sent::Stale,
            Sent::Queued | Sent::Gone => Sent::Queued,
        }
    }
    /// Ends an answer.
    async fn end(&mut self, stamp: &Stamp, event: &ChatEvent) -> Sent {
        match self.calls(stamp, event).await {
            Sent::Queued => self.text.send(&stamp.last(true), "".into()).await,
            sent => sent,
        }
    }
}

#[cfg(test)]
mod tests;
