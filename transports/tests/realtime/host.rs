//! Hosts over a small graph, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omni_flow_transports::realtime::host::{Hello, Host, Limits, Out, Said};
use omni_flow_transports::realtime::rules::outbox;
use omni_flow_transports::realtime::wire::profile::Profile;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::toy::host;

/// A client on two channels.
pub struct Client {
    tx: mpsc::Sender<Said>,
    rx: mpsc::Receiver<Out>,
    told: Vec<Value>,
}

impl Client {
    pub fn connect(host: &Arc<Host>, autostart: bool) -> Self {
        let (tx, messages) = mpsc::channel(4);
        let (out, rx) = mpsc::channel(1);
        let hello = Hello { profile: Profile::Duplex, autostart, model: None };
        let host = host.clone();
        tokio::spawn(async move { host.connect(hello, messages, out).await });
        Self { tx, rx, told: Vec::new() }
    }
    pub async fn say(&self, event: Value) {
        let _ = self.tx.send(event.to_string().into()).await;
    }
    pub async fn next(&mut self) -> Option<Value> {
        match tokio::time::timeout(Duration::from_secs(3600), self.rx.recv()).await.expect("something within an hour") {
            Some(Out::Text(text)) => {
                let v: Value = serde_json::from_str(&text).unwrap();
                self.told.push(v.clone());
                Some(v)
            }
            Some(Out::Close(code, reason)) => {
                self.told.push(json!({"type": "close", "code": code, "reason": reason}));
                None
            }
            None => None,
        }
    }
    /// Reads until an event of that name.
    pub async fn until(&mut self, name: &str) -> Value {
        loop {
            match self.next().await {
                Some(v) if v["type"] == name => return v,
                Some(_) => {}
                None => panic!("closed before {name}: {:#?}", self.told),
            }
        }
    }
    async fn rest(&mut self) -> Vec<String> {
        let at = self.told.len();
        while self.next().await.is_some() {}
        self.told[at..].iter().map(|v| v["type"].as_str().unwrap().to_owned()).collect()
    }
    pub async fn append(&self, ms: usize) {
        let audio = STANDARD.encode(vec![0u8; ms * 32]);
        self.say(json!({"type": "input_audio_buffer.append", "audio": audio, "is_speech": true})).await;
    }
    async fn ask(&self, ms: usize) {
        self.append(ms).await;
        self.say(json!({"type": "input.commit"})).await;
    }
}

/// Nothing is left of any session.
async fn empty(host: &Host) {
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if host.sessions() == 0 {
            return;
        }
    }
    panic!("{} sessions are left", host.sessions());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_from_its_beginning_to_its_end() {
    let host = host(Limits::default()).await;
    let mut c = Client::connect(&host, true);
    let created = c.until("session.created").await;
    assert!(created["session"]["id"].as_str().unwrap().starts_with("duplex-"));
    assert_eq!(created.get("server_event_seq"), None);
    for seconds in [3, 1, 2] {
        c.ask(seconds * 1000).await;
        let done = c.until("response.done").await;
        assert_eq!(done["response"]["status"], "completed");
        let content = &done["response"]["output"][0]["content"][0];
        let text: String = (1..=seconds).map(|i| format!("{i} ")).collect();
        assert_eq!((&content["transcript"], &content["audio_duration_ms"]), (&json!(text), &json!(seconds * 200)));
    }
    let seqs: Vec<u64> = c.told.iter().filter_map(|v| v["server_event_seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    c.say(json!({"type": "session.close"})).await;
    assert_eq!(c.rest().await.last().unwrap(), "close");
    let [.., closed, close] = &c.told[..] else { panic!() };
    assert_eq!((&closed["type"], &closed["reason"]), (&json!("session.closed"), &json!("client_close")));
    assert_eq!((&close["code"], &close["reason"]), (&json!(1000), &json!("client_close")));
    empty(&host).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_is_silent_at_once_and_the_next_one_is_whole() {
    let host = host(Limits::default()).await;
    let mut c = Client::connect(&host, true);
    for _ in 0..20 {
        c.say(json!({"type": "session.update", "session": {"instructions": "for ever"}})).await;
        c.ask(1000).await;
        let delta = c.until("response.output_audio.delta").await;
        c.say(json!({"type": "response.cancel"})).await;
        let done = c.until("response.done").await;
        assert_eq!((&done["response_id"], &done["response"]["status"]), (&delta["response_id"], &json!("cancelled")));
        let at = c.told.len();
        c.say(json!({"type": "session.update", "session": {"instructions": "once"}})).await;
        c.ask(2000).await;
        let next = c.until("response.done").await;
        assert_eq!(next["response"]["output"][0]["content"][0]["transcript"], "1 2 ");
        assert!(c.told[at..].iter().all(|v| v["response_id"] != delta["response_id"]), "nothing of it any more");
    }
}

#[tokio::test(start_paused = true)]
async fn places_come_back_however_a_client_goes() {
    let host = host(Limits::default()).await;
    for round in 0..40 {
        let mut c = Client::connect(&host, true);
        c.until("session.created").await;
        match round % 4 {
            0 => c.say(json!({"type": "session.close"})).await,
            1 => c.ask(1000).await,
            2 => {
                c.append(500).await;
                c.say(json!("{")).await;
            }
            _ => {}
        }
        drop(c);
        // Without a socket it is kept for a while, then it is gone.
        tokio::time::sleep(Duration::from_secs(60)).await;
        empty(&host).await;
    }
    let (mut a, mut b) = (Client::connect(&host, true), Client::connect(&host, true));
    a.until("session.created").await;
    b.until("session.created").await;
    let mut full = Client::connect(&host, true);
    let error = full.until("error").await;
    assert_eq!((&error["error"]["code"], &error["error"]["retryable"]), (&json!("resource_exhausted"), &json!(true)));
    assert_eq!(full.rest().await, ["close"]);
    host.drain(Duration::ZERO).await;
    assert_eq!(a.rest().await.last().unwrap(), "close");
    empty(&host).await;
}

#[tokio::test(start_paused = true)]
async fn who_said_goodbye_gives_its_place_to_who_needs_it_and_may_come_back_until_then() {
    let host = host(Limits::default()).await;
    let bye = async |c: Client| {
        c.tx.send(Said::Bye).await.unwrap();
        drop(c);
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    let (mut a, mut b) = (Client::connect(&host, true), Client::connect(&host, true));
    let first = a.until("session.created").await;
    b.until("session.created").await;
    bye(a).await;
    // Room is made, and told to nobody else.
    let mut c = Client::connect(&host, true);
    c.until("session.created").await;
    let mut full = Client::connect(&host, true);
    assert_eq!(full.until("error").await["error"]["code"], "resource_exhausted");
    let resume = |created: &Value| {
        json!({"type": "session.resume", "session_id": created["session"]["id"],
            "resume_token": created["resume_token"], "last_received_server_event_seq": 0})
    };
    let mut late = Client::connect(&host, false);
    late.say(resume(&first)).await;
    assert_eq!(late.until("error").await["error"]["code"], "session_resume_expired");
    // One that has come back keeps its place; one that was cut off keeps it too.
    let created = c.told[0].clone();
    bye(c).await;
    let mut c = Client::connect(&host, false);
    c.say(resume(&created)).await;
    c.until("session.resumed").await;
    drop(b);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut full = Client::connect(&host, true);
    assert_eq!(full.until("error").await["error"]["code"], "resource_exhausted");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_an_answer_end_and_nobody_in() {
    let host = host(Limits::default()).await;
    let (mut idle, mut busy) = (Client::connect(&host, true), Client::connect(&host, true));
    idle.until("session.created").await;
    busy.until("session.created").await;
    busy.ask(5000).await;
    busy.until("response.output_audio.delta").await;
    let drained = tokio::spawn({
        let host = host.clone();
        async move { host.drain(Duration::from_secs(30)).await }
    });
    let closed = idle.until("session.closed").await;
    assert_eq!(closed["reason"], "shutdown");
    drop(idle);
    let mut late = Client::connect(&host, true);
    assert_eq!(late.until("error").await["error"]["code"], "resource_exhausted");
    let done = busy.until("response.done").await;
    assert_eq!(done["response"]["status"], "completed");
    assert_eq!(busy.until("session.closed").await["reason"], "shutdown");
    assert!(drained.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_has_missed_nothing() {
    let host = host(Limits::default()).await;
    let mut c = Client::connect(&host, true);
    let created = c.until("session.created").await;
    c.ask(5000).await;
    let seen = c.until("response.output_audio.delta").await["server_event_seq"].as_u64().unwrap();
    let mut told = std::mem::take(&mut c.told);
    drop(c);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let claim = |token: &Value, seq: u64| {
        json!({"type": "session.resume", "session_id": created["session"]["id"],
        "resume_token": token, "last_received_server_event_seq": seq})
    };
    let mut wrong = Client::connect(&host, false);
    wrong.say(claim(&json!("x"), seen)).await;
    assert_eq!(wrong.until("error").await["error"]["code"], "invalid_resume_token");
    let mut c = Client::connect(&host, false);
    c.say(claim(&created["resume_token"], seen)).await;
    let resumed = c.until("session.resumed").await;
    assert_eq!(resumed["attachment_generation"], 2);
    c.until("rate_limits.updated").await;
    told.append(&mut c.told);
    let seqs: Vec<u64> = told.iter().filter_map(|v| v["server_event_seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    // The token was for once, and a session that is taken over says so.
    let mut again = Client::connect(&host, false);
    again.say(claim(&created["resume_token"], 0)).await;
    assert_eq!(again.until("error").await["error"]["code"], "invalid_resume_token");
    let mut second = Client::connect(&host, false);
    second.say(claim(&resumed["resume_token"], 0)).await;
    second.until("session.resumed").await;
    c.until("session.replaced").await;
    second.ask(1000).await;
    assert_eq!(second.until("response.done").await["response"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_breaks_ends_the_session_with_an_error_and_no_other() {
    let host = host(Limits::default()).await;
    let (mut a, mut b) = (Client::connect(&host, true), Client::connect(&host, true));
    b.until("session.created").await;
    a.say(json!({"type": "session.update", "session": {"instructions": "break"}})).await;
    a.ask(1000).await;
    let error = a.until("error").await;
    assert_eq!(error["error"]["code"], "engine_error");
    assert!(error["error"]["message"].as_str().unwrap().contains("toy/toy"), "{error}");
    assert_eq!(a.until("response.done").await["response"]["status"], "failed");
    assert_eq!(a.until("session.closed").await["reason"], "engine_error");
    b.ask(1000).await;
    assert_eq!(b.until("response.done").await["response"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn handshakes_are_waited_for_and_refused_in_one_event() {
    let host = host(Limits::default()).await;
    let mut c = Client::connect(&host, false);
    assert_eq!(c.until("error").await["error"]["code"], "config_timeout");
    assert_eq!(c.rest().await, ["close"]);
    for (first, code) in [
        (
            json!({"type": "session.update", "session": {"turn_detection": {"type": "magic_vad"}}}),
            "unsupported_turn_detection",
        ),
        (json!({"type": "zzz"}), "unknown_event"),
        (json!(1), "bad_event"),
        (json!({"type": "session.resume", "session_id": "duplex-0", "resume_token": "x"}), "session_resume_expired"),
    ] {
        let mut c = Client::connect(&host, false);
        c.say(first).await;
        assert_eq!(c.until("error").await["error"]["code"], code);
        assert_eq!(c.rest().await, ["close"]);
        assert_eq!(host.sessions(), 0);
    }
    let mut c = Client::connect(&host, false);
    c.say(json!({"type": "session.update", "session": {"temperature": 0.5}})).await;
    let id = c.until("session.created").await["session"]["id"].clone();
    assert_eq!(c.next().await.unwrap()["session"]["id"], id);
    let mut c = Client::connect(&host, false);
    c.say(json!({"type": "input_audio_buffer.commit", "event_id": "x"})).await;
    c.until("session.created").await;
    assert_eq!(c.until("error").await["error"]["event_id"], "x");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_reading_loses_its_session_alone() {
    let limits = Limits { outbox: outbox::Limits { bytes: 200_000, ..outbox::Limits::default() }, ..Limits::default() };
    let host = host(limits).await;
    let (mut slow, mut quick) = (Client::connect(&host, true), Client::connect(&host, true));
    slow.until("session.created").await;
    slow.say(json!({"type": "session.update", "session": {"instructions": "for ever"}})).await;
    slow.ask(1000).await;
    for _ in 0..7 {
        quick.ask(3000).await;
        assert_eq!(quick.until("response.done").await["response"]["status"], "completed");
    }
    let rest = slow.rest().await;
    let error = slow.told.iter().find(|v| v["type"] == "error").unwrap();
    assert_eq!(error["error"]["code"], "output_overflow");
    assert_eq!(rest[rest.len() - 2..], ["session.closed", "close"]);
    assert_eq!(rest.iter().filter(|n| *n == "response.done").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_which_nothing_happens_ends() {
    let host = host(Limits::default()).await;
    let mut c = Client::connect(&host, true);
    c.until("session.created").await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(200)).await;
        c.say(json!({"type": "session.heartbeat"})).await;
        c.until("session.heartbeat_ack").await;
    }
    let rest = c.rest().await;
    assert!(rest.contains(&"close".to_owned()), "{rest:?}");
    empty(&host).await;
}
