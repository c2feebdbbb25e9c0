//! Whole prompts to a model of this process, in a graph. The network is a script: it says what a function of the prompt
//! says, byte by byte, so that every word is known.

use std::any::Any;
use std::path::Path;

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, Clock, Engine, GraphFile, In, Input, Kind, Make, Medium, Port, Registry,
    Schema, Session,
};
use serde_json::{Value, json};

use super::*;
use crate::chat::gguf::Gguf;
use crate::chat::template::Template;
use crate::chat::tokenizer::Tokenizer;
use crate::chat::{Builtin, ChatOptions, ForwardError, KvState, LanguageModel, TokenCounts, Tool, ToolCall};

const START: u32 = 256;
const END: u32 = 257;

/// What the model says to a prompt.
fn script(prompt: &str) -> &'static str {
    match () {
        () if prompt.contains("<tool_response>\n4") => "It is four.",
        () if prompt.contains("both") => {
            "I will. <tool_call>{\"name\":\"dice\"}</tool_call><tool_call>{\"nam</tool_call>"
        }
        () if prompt.contains("<tools>") => {
            "<tool_call>\n{\"name\": \"dice\", \"arguments\": {\"sides\": 6}}\n</tool_call>"
        }
        () if prompt.contains("again") => "<tool_call>{\"name\":\"dice\"}</tool_call>Well.",
        () => "Good day.",
    }
}

struct Script;
#[derive(Clone)]
struct Said(Vec<u32>);

impl LanguageModel for Script {
    fn new_state(&self) -> Box<dyn KvState> {
        Box::new(Said(Vec::new()))
    }
    fn forward(&self, state: &mut dyn KvState, tokens: &[u32]) -> Result<Vec<f32>, ForwardError> {
        let said = state.as_any_mut().downcast_mut::<Said>().ok_or(ForwardError::ForeignState)?;
        said.0.extend_from_slice(tokens);
        let turn = said.0.iter().rposition(|t| *t == START).unwrap_or(0);
        let text =
            |tokens: &[u32]| tokens.iter().map(|t| char::from(u8::try_from(*t).unwrap_or(b'|'))).collect::<String>();
        // Behind the role and its line break.
        let begun = said.0.len().min(turn + 1 + "assistant\n".len());
        let answer = script(&text(&said.0[..begun])).as_bytes();
        let mut logits = vec![0.0; 258];
        logits[answer.get(said.0.len() - begun).map_or(END as usize, |b| usize::from(*b))] = 1.0;
        Ok(logits)
    }
    fn vocab(&self) -> usize {
        258
    }
    fn context(&self) -> usize {
        2000
    }
    fn bytes(&self) -> usize {
        0
    }
}

impl KvState for Said {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
    fn fork(&self, len: usize) -> Box<dyn KvState> {
        Box::new(Said(self.0[..len.min(self.0.len())].to_vec()))
    }
    fn bytes(&self) -> usize {
        4 * self.0.len()
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A tokenizer with a token per byte, and those of ChatML.
fn tokenizer() -> Tokenizer {
    let blob = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut next = 256;
    let mut tokens: Vec<String> = (0..=255u8)
        .map(|b| match b {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(b).to_string(),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap().to_string()
            }
        })
        .collect();
    tokens.extend(["<|im_start|>".to_owned(), "<|im_end|>".to_owned()]);
    let types: Vec<Vec<u8>> = (0..258u32).map(|i| (if i < 256 { 1u32 } else { 3 }).to_le_bytes().to_vec()).collect();
    let array = |kind: u32, items: &[Vec<u8>]| {
        [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes(), &items.concat()].concat()
    };
    let texts: Vec<Vec<u8>> = tokens.iter().map(|t| blob(t)).collect();
    let keys: [(&str, u32, Vec<u8>); 6] = [
        ("tokenizer.ggml.model", 8, blob("gpt2")),
        ("tokenizer.ggml.pre", 8, blob("qwen2")),
        ("tokenizer.ggml.tokens", 9, array(8, &texts)),
        ("tokenizer.ggml.token_type", 9, array(5, &types)),
        ("tokenizer.ggml.merges", 9, array(8, &[])),
        ("tokenizer.ggml.eos_token_id", 4, END.to_le_bytes().to_vec()),
    ];
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend((keys.len() as u64).to_le_bytes());
    for (key, kind, value) in keys {
        bytes.extend(blob(key));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(value);
    }
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    let gguf = Gguf::parse(&bytes, bytes.len() as u64).unwrap().unwrap();
    Tokenizer::from_gguf(Path::new("script.gguf"), &gguf).unwrap()
}

/// The scripted model as a node.
struct Scripted;
#[derive(serde::Deserialize)]
struct NoConfig {}

impl Make for Scripted {
    const NAME: &'static str = "test.chat";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("says what its script says")
            .input(Port::new("in", Kind::of(Medium::Signal), "prompts"))
            .output(Port::new("text", Kind::of(Medium::Text), "answers").segments())
            .output(Port::new("calls", Kind::of(Medium::Signal), "calls").optional())
            .shared()
            .example("x: { use: test.chat, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let template = Template::builtin(Builtin::Chatml, "", false);
        let options = ChatOptions { context_tokens: 2000, ..ChatOptions::default() };
        let model = ChatModel::from_parts(Arc::new(Script), tokenizer(), template, options);
        let fixed = vec![Message::system("Be kind.")];
        Ok(Body::stage(PromptStage::new(model, fixed, Sampling { max_tokens: 200, ..Sampling::default() })))
    }
}

struct Talk {
    session: Session,
    ask: Input,
    said: In<Payload>,
    told: In<Payload>,
}

/// One answer: its text, its calls, and how it ended.
type Answer = (String, Vec<Value>, ChatEvent);

impl Talk {
    async fn begin() -> Self {
        let yaml = "graph: g\nsession: { mode: duplex }\nnodes:\n  ask: { use: session.in, kind: signal }\n  \
                    llm: { use: test.chat, in: ask }\n  said: { use: session.out, in: llm.text }\n  \
                    told: { use: session.out, in: llm.calls }\n";
        let mut known = Registry::base();
        known.add::<Scripted>().unwrap();
        let file = GraphFile::parse("test.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
        let plan = file.check(&known, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
        let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
        let mut session = engine.start(plan).await.unwrap().open().unwrap();
        let ask = session.input("ask").unwrap();
        let (said, told) = (session.output("said").unwrap(), session.output("told").unwrap());
        Self { session, ask, said, told }
    }
    async fn send(&mut self, name: &str, data: &str) {
        self.ask.send(Signal::Named { name: name.into(), data: data.into() }).await.unwrap();
    }
    async fn answer(&mut self, prompt: &Prompt) -> Answer {
        self.send(Prompt::NAME, &prompt.to_json()).await;
        self.next().await
    }
    /// The next answer. Both outputs are read: either alone would hold the model up.
    async fn next(&mut self) -> Answer {
        let (mut text, mut calls) = (String::new(), Vec::new());
        let (said, told) = (&mut self.said, &mut self.told);
        let speech = async {
            loop {
                match said.next().await {
                    Event::Data(stamp, Payload::Text(t)) => {
                        text.push_str(&t);
                        if stamp.last {
                            return;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        };
        let events = async {
            loop {
                match told.next().await {
                    Event::Data(_, Payload::Signal(Signal::Named { name, data })) => {
                        match ChatEvent::parse(&name, &data).unwrap().unwrap() {
                            ChatEvent::Call(_) => calls.push(serde_json::from_str(&data).unwrap()),
                            end => return end,
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        };
        let ((), end) = tokio::join!(speech, events);
        (text, calls, end)
    }
    async fn over(mut self) {
        self.ask.end();
        assert!(matches!(self.said.next().await, Event::End(Terminal::End)));
        self.session.wait().await.unwrap();
    }
}

fn dice() -> Vec<Tool> {
    vec![Tool { name: "dice".into(), description: "Rolls one.".into(), parameters: json!({ "type": "object" }) }]
}

fn counts(end: &ChatEvent) -> (&str, TokenCounts) {
    match end {
        ChatEvent::Done(d) => (&d.finish_reason, d.usage.unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_conversation_that_grows_costs_its_new_tokens_alone() {
    let mut t = Talk::begin().await;
    let mut messages = vec![Message::user("Hi")];
    let mut known = 0;
    for turn in 0..4 {
        let (text, calls, end) = t.answer(&Prompt::new(messages.clone())).await;
        assert_eq!((text.as_str(), calls.len()), ("Good day.", 0));
        let (reason, usage) = counts(&end);
        // All that was computed for the last answer and of it; at first what the fixed beginning may have left.
        assert!(usage.cached_tokens == known && reason == "stop", "{turn}: {usage:?}, {known}");
        known = usage.prompt_tokens + usage.completion_tokens;
        messages.extend([Message::assistant(text), Message::user(format!("And {turn}?"))]);
    }
    // What is rewritten is computed again, from there on.
    messages[1] = Message::assistant("Good.");
    let (_, usage) = counts(&t.answer(&Prompt::new(messages)).await.2);
    let begin = "|system\nBe kind.||\n".len();
    assert!(usage.cached_tokens > begin && usage.cached_tokens < 60, "{usage:?}");
    t.over().await;
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_is_spoken() {
    let mut t = Talk::begin().await;
    let mut prompt = Prompt { tools: dice(), ..Prompt::new(vec![Message::user("Roll.")]) };
    let (text, calls, end) = t.answer(&prompt).await;
    let arguments = "{\"sides\": 6}";
    let want = json!({ "index": 0, "call_id": "call_1", "name": "dice", "arguments": arguments, "done": true });
    assert_eq!((text.as_str(), &calls[..], counts(&end).0), ("", &[want][..], "tool_calls"));
    let call = ToolCall { id: "call_1".into(), name: "dice".into(), arguments: arguments.into() };
    prompt.messages.extend([Message::calls("", vec![call]), Message::tool("call_1", "4")]);
    let (text, calls, end) = t.answer(&prompt).await;
    assert_eq!((text.as_str(), calls.len(), counts(&end).0), ("It is four.", 0, "stop"));
    // Text before a call, and one that cannot be carried out, with all that came of it; names are never used again.
    let both = Prompt { tools: dice(), ..Prompt::new(vec![Message::user("both")]) };
    let (text, calls, _) = t.answer(&both).await;
    assert_eq!(text, "I will. ");
    assert_eq!(calls[0], json!({ "index": 0, "call_id": "call_2", "name": "dice", "arguments": "{}", "done": true }));
    assert_eq!((&calls[1]["call_id"], &calls[1]["name"], &calls[1]["index"]), (&Value::Null, &Value::Null, &json!(1)));
    assert_eq!(calls[1]["arguments"], "{\"nam");
    assert!(calls[1]["error"].as_str().unwrap().contains("not JSON"), "{}", calls[1]);
    t.over().await;
}

#[tokio::test]
async fn a_choice_of_tools_is_kept_to() {
    let mut t = Talk::begin().await;
    let say = |choice| Prompt { tools: dice(), tool_choice: choice, ..Prompt::new(vec![Message::user("Hi")]) };
    for choice in [ToolChoice::Named("dice".into()), ToolChoice::Required] {
        let (_, calls, end) = t.answer(&say(choice)).await;
        assert_eq!((calls[0]["name"].as_str(), counts(&end).0), (Some("dice"), "tool_calls"), "{calls:?}");
    }
    // Without tools nothing is looked for; with calls before it, they are not repeated.
    assert_eq!(t.answer(&say(ToolChoice::None)).await.0, "Good day.");
    let plain = Prompt::new(vec![Message::user("again")]);
    assert!(t.answer(&plain).await.0.starts_with("<tool_call>"));
    let call = ToolCall { id: "a".into(), name: "dice".into(), arguments: "{}".into() };
    let before = vec![Message::user("x"), Message::calls("", vec![call]), Message::user("again")];
    let (text, calls, end) =
        t.answer(&Prompt { tools: dice(), tool_choice: ToolChoice::None, ..Prompt::new(before) }).await;
    assert_eq!((text.as_str(), calls.len(), counts(&end).0), ("Well.", 0, "stop"));
    t.over().await;
}

#[tokio::test]
async fn a_prompt_that_cannot_be_answered_fails_alone() {
    let mut t = Talk::begin().await;
    let code = |(text, calls, end): Answer| match end {
        ChatEvent::Failed(f) if text.is_empty() && calls.is_empty() => (f.code, f.message),
        other => panic!("{other:?}"),
    };
    t.send("turn", "{}").await;
    t.send(Prompt::NAME, "{\"messages\":[]}").await;
    let (kind, words) = code(t.next().await);
    assert_eq!((kind.as_str(), words.as_str()), ("invalid_prompt", "the prompt has no messages"));
    let (kind, words) = code(t.answer(&Prompt::new(vec![Message::user("x".repeat(3000))])).await);
    assert!(kind == "context_too_long" && words.contains("2000"), "{kind}: {words}");
    let short = Prompt { max_tokens: Some(4), ..Prompt::new(vec![Message::user("Hi")]) };
    let (text, _, end) = t.answer(&short).await;
    assert_eq!((text.as_str(), counts(&end).0), ("Good", "length"));
    t.over().await;
}
