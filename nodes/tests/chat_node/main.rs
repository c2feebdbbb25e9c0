//! `model.chat` with `base-url` as a node of a graph, against a small server whose every word the test decides.

#![cfg(feature = "chat")]

mod prompts;

use std::sync::Arc;
use std::time::Duration;

use omni_flow::*;
use omni_flow_nodes::chat::remote::{RemoteError, Stage};
use omni_flow_nodes::registry::registry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// Longest wait for anything, far above what any of it takes.
const LONG: Duration = Duration::from_secs(60);

/// One request, as the server has it.
struct Call {
    messages: Value,
    body: Value,
    /// Bytes to answer with; dropped, the connection is closed.
    answer: mpsc::UnboundedSender<Vec<u8>>,
    /// The client has closed the connection.
    gone: oneshot::Receiver<()>,
}

impl Call {
    fn begin(&self) {
        self.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    }
    fn raw(&self, text: &str) {
        self.answer.send(text.as_bytes().to_vec()).unwrap();
    }
    fn say(&self, text: &str) {
        self.raw(&format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] })));
    }
    fn done(self) {
        self.raw("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    }
}

async fn serve() -> (String, mpsc::UnboundedReceiver<Call>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tx, calls) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(connection(socket, tx.clone()));
        }
    });
    (url, calls)
}

async fn connection(mut socket: TcpStream, calls: mpsc::UnboundedSender<Call>) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    let body = loop {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => request.extend_from_slice(&buffer[..n]),
        }
        let text = String::from_utf8_lossy(&request);
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str::<Value>(body) {
            break body;
        }
    };
    let (answer, mut words) = mpsc::unbounded_channel();
    let (closed, gone) = oneshot::channel();
    let _ = calls.send(Call { messages: body["messages"].clone(), body, answer, gone });
    loop {
        tokio::select! {
            word = words.recv() => match word {
                Some(bytes) => {
                    let _ = socket.write_all(&bytes).await;
                    let _ = socket.flush().await;
                }
                None => return,
            },
            read = socket.read(&mut buffer) => if !matches!(read, Ok(n) if n > 0) {
                let _ = closed.send(());
                return;
            },
        }
    }
}

struct Talk {
    session: Session,
    ask: Input,
    said: In<Payload>,
    calls: mpsc::UnboundedReceiver<Call>,
}

fn yaml(url: &str, more: &str, window: &str) -> String {
    format!(
        "graph: g\nsession: {{ mode: duplex }}\nlanes: [reply]\nnodes:\n  ask: {{ use: session.in, kind: text }}\n  \
         llm: {{ use: model.chat, base-url: \"{url}\", model: tiny, in: ask, lane: reply, system: Be kind.{more} }}\n  \
         said: {{ use: session.out, lane: reply, in: {{ from: llm{window} }} }}\n"
    )
}

async fn start(text: &str) -> Result<Graph, String> {
    let file = GraphFile::parse("test.yaml", text).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&registry().unwrap(), &CheckCx::default()).map_err(|d| d.to_string())?.0;
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    engine.start(plan).await.map_err(|e| e.to_string())
}

async fn talk(more: &str, window: &str) -> Talk {
    let (url, calls) = serve().await;
    let mut session = start(&yaml(&url, more, window)).await.unwrap().open().unwrap();
    let (ask, said) = (session.input("ask").unwrap(), session.output("said").unwrap());
    Talk { session, ask, said, calls }
}

impl Talk {
    async fn ask(&mut self, text: &str) -> Call {
        self.ask.send(Arc::<str>::from(text)).await.unwrap();
        tokio::time::timeout(LONG, self.calls.recv()).await.expect("the server is asked").unwrap()
    }
    async fn next(&mut self) -> Event<Payload> {
        tokio::time::timeout(LONG, self.said.next()).await.expect("the node says something")
    }
    /// The next piece, and whether it is the last of its answer.
    async fn piece(&mut self) -> (String, bool) {
        match self.next().await {
            Event::Data(stamp, Payload::Text(t)) => (t.to_string(), stamp.last),
            other => panic!("{other:?}"),
        }
    }
    /// All of an answer.
    async fn answer(&mut self) -> String {
        let mut all = String::new();
        loop {
            let (text, last) = self.piece().await;
            all.push_str(&text);
            if last {
                return all;
            }
        }
    }
    /// How it failed; the message is the client's own error in words.
    async fn failure(&mut self) -> RunError {
        let error = loop {
            match self.next().await {
                Event::End(Terminal::Error(e)) => break e,
                Event::End(Terminal::End) => panic!("it ended well"),
                _ => {}
            }
        };
        assert!(self.session.wait().await.unwrap_err().same(&error));
        assert_eq!((error.kind(), error.node()), (ErrorKind::Node, "g/llm"));
        error
    }
}

async fn gone(call: Call) {
    tokio::time::timeout(LONG, call.gone).await.expect("the request is cancelled").unwrap();
}

#[tokio::test]
async fn what_was_said_goes_with_the_next_question() {
    let mut t = talk(", examples: [{ user: Hi., assistant: Hello. }], max-tokens: 9, seed: 5", "").await;
    let call = t.ask("  How are you? ").await;
    let mut said = json!([
        { "role": "system", "content": "Be kind." },
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": "Hello." },
        { "role": "user", "content": "How are you?" },
    ]);
    assert_eq!(call.messages, said);
    assert_eq!(
        (&call.body["model"], &call.body["max_tokens"], &call.body["seed"]),
        (&"tiny".into(), &9.into(), &5.into())
    );
    call.begin();
    call.say("Fine, ");
    assert_eq!(t.piece().await, ("Fine, ".to_owned(), false), "while the rest is still to come");
    call.say("thanks.");
    call.done();
    assert_eq!(t.answer().await, "thanks.");
    // Nothing was asked: nothing is said, and the server is left in peace.
    t.ask.send(Arc::<str>::from(" \n")).await.unwrap();
    let call = t.ask("And now?").await;
    said.as_array_mut().unwrap().extend([
        json!({ "role": "assistant", "content": "Fine, thanks." }),
        json!({ "role": "user", "content": "And now?" }),
    ]);
    assert_eq!(call.messages, said);
    call.begin();
    call.say("Better.");
    call.done();
    assert_eq!(t.answer().await, "Better.");
    t.ask.end();
    assert!(matches!(t.said.next().await, Event::End(Terminal::End)));
    t.session.wait().await.unwrap();
}

#[tokio::test]
async fn a_fence_cancels_the_request_and_the_history_has_what_was_given_out() {
    let mut t = talk("", "").await;
    let call = t.ask("Tell me a story.").await;
    call.begin();
    call.say("Once upon ");
    assert_eq!(t.piece().await.0, "Once upon ");
    t.session.fence(Lane::new(1).unwrap());
    gone(call).await;
    let call = t.ask("Stop. What time is it?").await;
    let last = |m: &Value, n: usize| m.as_array().unwrap().iter().rev().take(n).rev().cloned().collect::<Vec<_>>();
    let expected = [
        json!({ "role": "user", "content": "Tell me a story." }),
        json!({ "role": "assistant", "content": "Once upon " }),
        json!({ "role": "user", "content": "Stop. What time is it?" }),
    ];
    assert_eq!(last(&call.messages, 3), expected);
    call.begin();
    call.say("Noon.");
    call.done();
    assert!(matches!(t.next().await, Event::Fence(_)));
    assert_eq!(t.answer().await, "Noon.");
    // Before the first word: nothing of an answer is kept, and the questions become one.
    let call = t.ask("Why?").await;
    t.session.fence(Lane::new(1).unwrap());
    gone(call).await;
    let call = t.ask("How?").await;
    assert_eq!(last(&call.messages, 2)[1], json!({ "role": "user", "content": "Why?\nHow?" }));
    call.begin();
    call.say("So.");
    call.done();
    assert!(matches!(t.next().await, Event::Fence(_)));
    assert_eq!(t.answer().await, "So.");
}

#[tokio::test]
async fn what_waits_for_credit_at_a_fence_was_not_said() {
    let mut t = talk("", ", window: { items: 1 }").await;
    let call = t.ask("Count.").await;
    call.begin();
    // One fits; the others wait, and nobody takes any.
    call.say("one ");
    call.say("two ");
    let edge = |t: &Talk| t.session.stats().edges.iter().find(|e| e.name.starts_with("llm.")).unwrap().clone();
    let blocked = async {
        while edge(&t).blocked_for.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, blocked).await.expect("the second piece waits for credit");
    t.session.fence(Lane::new(1).unwrap());
    gone(call).await;
    let call = t.ask("Again.").await;
    assert_eq!(call.messages[2], json!({ "role": "assistant", "content": "one " }));
}

#[tokio::test]
async fn a_stop_text_ends_the_answer_and_is_not_part_of_it() {
    let mut t = talk(", stop: [\"User:\"]", "").await;
    let call = t.ask("Hi.").await;
    assert_eq!(call.body["stop"], json!(["User:"]));
    call.begin();
    // A server that ignores it, and cuts it in two.
    call.say("Hello. Us");
    call.say("er: and more of it");
    assert_eq!(t.answer().await, "Hello. ");
    gone(call).await;
    let call = t.ask("Go on.").await;
    assert_eq!(call.messages[2], json!({ "role": "assistant", "content": "Hello. " }));
}

#[tokio::test]
async fn an_error_in_the_middle_is_typed_and_names_the_node() {
    let mut t = talk("", "").await;
    let call = t.ask("Hi.").await;
    call.begin();
    call.say("Hel");
    assert_eq!(t.piece().await.0, "Hel");
    drop(call);
    let error = t.failure().await;
    let why = "the connection broke in the middle: the stream ended without an end".to_owned();
    assert_eq!(error.message(), RemoteError::Malformed { why }.to_string());

    let mut t = talk("", "").await;
    let call = t.ask("Hi.").await;
    call.begin();
    call.say("Hel");
    assert_eq!(t.piece().await.0, "Hel");
    call.raw("data: {\"error\":{\"message\":\"out of memory\"}}\n\n");
    let error = t.failure().await;
    assert_eq!(error.message(), RemoteError::Server { status: 200, body: "out of memory".into() }.to_string());
    assert!(error.to_string().contains("g/llm"), "{error}");

    let mut t = talk("", "").await;
    let call = t.ask("Hi.").await;
    call.raw("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let error = t.failure().await;
    assert!(error.message().contains("401") && error.message().contains("`api-key-env`"), "{error}");
}

#[tokio::test]
async fn a_server_that_never_answers_meets_a_deadline() {
    let late = |stage, after| RemoteError::Timeout { stage, after: Duration::from_secs(after) }.to_string();
    let mut t = talk("", "").await;
    let call = t.ask("Hi.").await;
    // From here on only the clock can bring anything.
    tokio::time::pause();
    assert_eq!(t.failure().await.message(), late(Stage::FirstToken, 30));
    tokio::time::resume();
    gone(call).await;

    let mut t = talk("", "").await;
    let call = t.ask("Hi.").await;
    call.begin();
    call.say("Well, ");
    assert_eq!(t.piece().await.0, "Well, ");
    tokio::time::pause();
    assert_eq!(t.failure().await.message(), late(Stage::NextToken, 15));
}

#[tokio::test]
async fn a_graph_that_cannot_work_is_refused_in_the_words_of_graph_files() {
    let refused = |url: &'static str, more: &'static str| async move {
        let e = start(&yaml(url, more, "")).await.map(drop).unwrap_err();
        assert!(!e.contains("base_url") && !e.contains("api_key`"), "{e}");
        e
    };
    let e = refused("http://127.0.0.1:9", ", api-key-env: OMNI_FLOW_NO_SUCH_KEY").await;
    assert!(e.contains("OMNI_FLOW_NO_SUCH_KEY") && e.contains("`api-key-env`") && e.contains("llm"), "{e}");
    let e = refused("ftp://x", "").await;
    assert!(e.contains("`base-url`") && e.contains("llm"), "{e}");
    let e = refused("http://me:secret@x", "").await;
    assert!(e.contains("`api-key-env`") && !e.contains("secret"), "{e}");
}
