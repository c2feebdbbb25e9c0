//! The same node with `prompts: true`: whole prompts with tools go to the server, calls and failures come back.

use omni_flow_nodes::chat::{ChatEvent, Message, Prompt, Tool, ToolCall, ToolChoice};

use super::*;

struct Asking {
    session: Session,
    ask: Input,
    said: In<Payload>,
    told: In<Payload>,
    calls: mpsc::UnboundedReceiver<Call>,
}

async fn begin() -> Asking {
    let (url, calls) = serve().await;
    let yaml = format!(
        "graph: g\nsession: {{ mode: duplex }}\nlanes: [reply]\nnodes:\n  ask: {{ use: session.in, kind: signal }}\n  \
         llm: {{ use: model.chat, base-url: \"{url}\", model: tiny, in: ask, lane: reply, system: Be kind., \
         prompts: true, max-tokens: 9 }}\n  said: {{ use: session.out, lane: reply, in: llm.text }}\n  \
         told: {{ use: session.out, lane: reply, in: llm.calls }}\n"
    );
    let mut session = start(&yaml).await.unwrap().open().unwrap();
    let ask = session.input("ask").unwrap();
    let (said, told) = (session.output("said").unwrap(), session.output("told").unwrap());
    Asking { session, ask, said, told, calls }
}

impl Asking {
    async fn send(&mut self, data: &str) {
        let signal = Signal::Named { name: Prompt::NAME.into(), data: data.into() };
        self.ask.send(signal).await.unwrap();
    }
    async fn ask(&mut self, prompt: &Prompt) -> Call {
        self.send(&prompt.to_json()).await;
        tokio::time::timeout(LONG, self.calls.recv()).await.expect("the server is asked").unwrap()
    }
    /// The next signal; fences are passed over.
    async fn event(&mut self) -> Value {
        loop {
            match tokio::time::timeout(LONG, self.told.next()).await.expect("the node tells something") {
                Event::Data(_, Payload::Signal(Signal::Named { name, data })) => {
                    assert!(ChatEvent::parse(&name, &data).unwrap().is_ok());
                    let mut event: Value = serde_json::from_str(&data).unwrap();
                    event["type"] = (*name).into();
                    return event;
                }
                Event::Fence(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    /// The rest of an answer's text.
    async fn text(&mut self) -> String {
        let mut all = String::new();
        loop {
            match tokio::time::timeout(LONG, self.said.next()).await.expect("the node says something") {
                Event::Data(stamp, Payload::Text(t)) => {
                    all.push_str(&t);
                    if stamp.last {
                        return all;
                    }
                }
                Event::Fence(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn piece(call: &Call, pieces: Value) {
    call.raw(&format!("data: {}\n\n", json!({ "choices": [{ "delta": { "tool_calls": pieces } }] })));
}

fn light() -> Prompt {
    let parameters = json!({ "type": "object", "properties": { "room": { "type": "string" } } });
    let tool = Tool { name: "light".into(), description: "Turns it on.".into(), parameters };
    Prompt { tools: vec![tool], ..Prompt::new(vec![Message::user("Light in the hall!")]) }
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_is_spoken() {
    let mut t = begin().await;
    let mut prompt = light();
    let call = t.ask(&prompt).await;
    let own = json!({ "role": "system", "content": "Be kind." });
    assert_eq!(call.messages, json!([own, { "role": "user", "content": "Light in the hall!" }]));
    assert_eq!((&call.body["tool_choice"], &call.body["max_tokens"]), (&json!("auto"), &json!(9)));
    assert_eq!(call.body["tools"], serde_json::to_value(&prompt.tools).unwrap());
    call.begin();
    call.say("One moment.");
    let head =
        json!([{ "index": 0, "id": "c7", "type": "function", "function": { "name": "light", "arguments": "" } }]);
    piece(&call, head);
    piece(&call, json!([{ "index": 0, "function": { "arguments": "{\"room\":" } }]));
    let told = t.event().await;
    let want = json!({ "type": "chat.call", "index": 0, "call_id": "c7", "name": "light",
        "arguments_delta": "{\"room\":", "done": false });
    assert_eq!(told, want, "while the rest is still to come");
    piece(&call, json!([{ "index": 0, "function": { "arguments": "\"hall\"}" } }]));
    call.raw("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
    call.raw("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n");
    assert_eq!(t.event().await["arguments_delta"], "\"hall\"}");
    let end = t.event().await;
    assert_eq!((&end["arguments"], &end["done"]), (&json!("{\"room\":\"hall\"}"), &json!(true)));
    let usage = json!({ "prompt_tokens": 7, "cached_tokens": 0, "completion_tokens": 5 });
    assert_eq!(t.event().await, json!({ "type": "chat.done", "finish_reason": "tool_calls", "usage": usage }));
    assert_eq!(t.text().await, "One moment.");

    let made = ToolCall { id: "c7".into(), name: "light".into(), arguments: "{\"room\":\"hall\"}".into() };
    prompt.messages.extend([
        Message::assistant("One moment."),
        Message::calls("", vec![made.clone()]),
        Message::tool("c7", "it is on"),
    ]);
    (prompt.tool_choice, prompt.max_tokens) = (ToolChoice::None, Some(3));
    let call = t.ask(&prompt).await;
    assert_eq!((&call.body["tool_choice"], &call.body["max_tokens"]), (&json!("none"), &json!(3)));
    let joined = serde_json::to_value(Message::calls("One moment.", vec![made])).unwrap();
    assert_eq!(call.messages[2], joined);
    assert_eq!(call.messages[3], json!({ "role": "tool", "content": "it is on", "tool_call_id": "c7" }));
    call.begin();
    call.say("It is on.");
    call.done();
    assert_eq!(t.event().await["finish_reason"], "stop");
    assert_eq!(t.text().await, "It is on.");
    t.ask.end();
    assert!(matches!(t.said.next().await, Event::End(Terminal::End)));
    t.session.wait().await.unwrap();
}

#[tokio::test]
async fn a_prompt_brings_its_system_text_and_calls_without_a_name_get_one() {
    let mut t = begin().await;
    let mut prompt = light();
    prompt.messages.insert(0, Message::system("Be brief."));
    let call = t.ask(&prompt).await;
    assert_eq!(call.messages[0], json!({ "role": "system", "content": "Be brief." }));
    call.begin();
    let both = json!([{ "index": 0, "function": { "name": "light", "arguments": "{}" } },
        { "index": 1, "function": { "arguments": "{" } }]);
    piece(&call, both);
    call.done();
    let ids: Vec<Value> = [t.event().await, t.event().await].map(|e| e["call_id"].clone()).into();
    assert_eq!(ids, ["call_1", "call_1"]);
    let bad = t.event().await;
    assert_eq!((&bad["name"], &bad["arguments"], &bad["done"]), (&Value::Null, &json!("{"), &json!(true)));
    assert!(bad["error"].is_string(), "{bad}");
    assert_eq!(t.event().await["finish_reason"], "tool_calls");
    assert_eq!(t.text().await, "");
}

#[tokio::test]
async fn a_prompt_that_fails_fails_alone() {
    let mut t = begin().await;
    t.send("{\"messages\":[{\"role\":\"user\"}],\"tool_choice\":\"required\"}").await;
    assert_eq!(t.event().await["code"], "invalid_prompt");
    assert_eq!(t.text().await, "");
    let refusals = [
        ("400 Bad Request", "{\"error\":{\"message\":\"maximum context length is 9\"}}", "context_too_long"),
        ("401 Unauthorized", "", "unauthorized"),
        ("422 Unprocessable Entity", "no", "refused"),
    ];
    for (status, body, code) in refusals {
        let call = t.ask(&light()).await;
        let n = body.len();
        call.raw(&format!("HTTP/1.1 {status}\r\ncontent-length: {n}\r\nconnection: close\r\n\r\n{body}"));
        let told = t.event().await;
        assert_eq!((&told["type"], &told["code"]), (&json!("chat.failed"), &json!(code)), "{told}");
        assert_eq!(t.text().await, "");
    }
    // In the middle of an answer: what was said is ended.
    let call = t.ask(&light()).await;
    call.begin();
    call.say("It is");
    drop(call);
    assert_eq!(t.event().await["code"], "malformed_stream");
    assert_eq!(t.text().await, "It is");
    let call = t.ask(&light()).await;
    call.begin();
    call.say("Fine.");
    call.done();
    assert_eq!(t.event().await["type"], "chat.done");
    assert_eq!(t.text().await, "Fine.");
}

#[tokio::test]
async fn a_fence_takes_an_answer_without_a_word_of_its_end() {
    let mut t = begin().await;
    let call = t.ask(&light()).await;
    call.begin();
    piece(&call, json!([{ "index": 0, "id": "a", "function": { "name": "light", "arguments": "{" } }]));
    assert_eq!(t.event().await["arguments_delta"], "{");
    t.session.fence(Lane::new(1).unwrap());
    gone(call).await;
    let call = t.ask(&light()).await;
    call.begin();
    call.say("New.");
    call.done();
    assert_eq!(t.event().await["type"], "chat.done");
    assert_eq!(t.text().await, "New.");
}

#[tokio::test]
async fn only_a_model_of_prompts_has_calls() {
    let refused = start(
        "graph: g\nsession: { mode: duplex }\nnodes:\n  ask: { use: session.in, kind: signal }\n  \
         llm: { use: model.chat, base-url: \"http://127.0.0.1:9\", prompts: true, in: ask }\n  \
         said: { use: session.out, in: llm.text }\n",
    )
    .await;
    assert!(refused.is_ok(), "nobody has to take the calls");
    let check = |more: &str| {
        let yaml = format!(
            "graph: g\nsession: {{ mode: duplex }}\nnodes:\n  ask: {{ use: session.in, kind: text }}\n  \
             llm: {{ use: model.chat, base-url: \"http://127.0.0.1:9\", in: ask }}\n  \
             said: {{ use: session.out, in: {more} }}\n"
        );
        let file = GraphFile::parse("test.yaml", &yaml).unwrap();
        file.check(&registry().unwrap(), &CheckCx::default()).map(drop).map_err(|d| d.to_string())
    };
    check("llm").unwrap();
    let e = check("llm.calls").unwrap_err();
    assert!(e.contains("`calls`"), "{e}");
}
