//! A door on a real socket, seen by a client that knows nothing of it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow::Clock;
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::host::{self, Host};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::toy;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn serve(gate: Gate) -> (Arc<Host>, String) {
    let host = toy::host(host::Limits::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let door = Door {
        graph: host.graph().clone(),
        clock: Clock::tokio(),
        host: Some(host.clone()),
        model: "toy".to_owned(),
        gate: Arc::new(gate),
        limits: door::Limits::default(),
    };
    tokio::spawn(async move { axum::serve(listener, door::router(door)).await });
    (host, address)
}

async fn connect(
    address: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<(Socket, Option<String>), Error> {
    let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = connect_async(request).await?;
    let protocol = response.headers().get("sec-websocket-protocol").map(|v| v.to_str().unwrap().to_owned());
    Ok((socket, protocol))
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        let message =
            tokio::time::timeout(Duration::from_secs(60), socket.next()).await.expect("something in a minute");
        match message.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(close) => return json!({"type": "close", "code": close.map(|c| u16::from(c.code))}),
            _ => {}
        }
    }
}

async fn until(socket: &mut Socket, name: &str) -> Value {
    loop {
        let event = next(socket).await;
        if event["type"] == name {
            return event;
        }
        assert_ne!(event["type"], "close", "closed before {name}");
    }
}

async fn say(socket: &mut Socket, event: Value) {
    socket.send(Message::text(event.to_string())).await.unwrap();
}

#[tokio::test]
async fn a_client_talks_and_closes() {
    let (host, address) = serve(Gate::default()).await;
    let (mut socket, protocol) =
        connect(&address, "/v1/realtime?model=toy", &[("sec-websocket-protocol", "foo, realtime")]).await.unwrap();
    assert_eq!(protocol.as_deref(), Some("realtime"));
    let created = next(&mut socket).await;
    assert_eq!((&created["type"], &created["session"]["type"]), (&json!("session.created"), &json!("realtime")));
    assert_eq!(created["session"]["audio"]["input"]["format"], json!({"type": "audio/pcm", "rate": 24000}));
    say(
        &mut socket,
        json!({"type": "session.update", "session": {"type": "realtime",
        "audio": {"input": {"turn_detection": null}}}}),
    )
    .await;
    until(&mut socket, "session.updated").await;
    let audio = STANDARD.encode(vec![1u8; 2 * 24_000 * 2]);
    say(&mut socket, json!({"type": "input_audio_buffer.append", "audio": audio})).await;
    // Nothing of this is an event, and nothing of it hurts.
    socket.send(Message::binary(vec![0; 9])).await.unwrap();
    assert_eq!(until(&mut socket, "error").await["error"]["code"], "bad_event");
    socket.send(Message::text("{")).await.unwrap();
    assert_eq!(until(&mut socket, "error").await["error"]["code"], "invalid_json");
    socket.send(Message::text(format!("\"{}\"", "x".repeat(16 << 20)))).await.unwrap();
    assert_eq!(until(&mut socket, "error").await["error"]["code"], "event_too_large");
    say(&mut socket, json!({"type": "input_audio_buffer.commit"})).await;
    say(&mut socket, json!({"type": "response.create"})).await;
    let done = until(&mut socket, "response.done").await;
    assert_eq!(done["response"]["status"], "completed");
    say(&mut socket, json!({"type": "session.close"})).await;
    until(&mut socket, "session.closed").await;
    assert_eq!(next(&mut socket).await, json!({"type": "close", "code": 1000}));
    for _ in 0..600 {
        if host.sessions() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a session is left");
}

#[tokio::test]
async fn each_way_of_opening_has_its_profile() {
    let (_host, address) = serve(Gate::default()).await;
    let rate = |created: &Value| created["session"]["audio"]["input"]["format"]["rate"].clone();
    let (mut duplex, _) = connect(&address, "/v1/duplex", &[]).await.unwrap();
    assert_eq!(rate(&next(&mut duplex).await), 16_000);
    drop(duplex);
    let (mut beta, _) = connect(&address, "/v1/realtime", &[("openai-beta", "realtime=v1")]).await.unwrap();
    assert_eq!(next(&mut beta).await["type"], "session.created");
    assert_eq!(next(&mut beta).await["type"], "conversation.created");
}

#[tokio::test]
async fn only_those_with_a_key_come_in_and_no_foreign_page() {
    let (host, address) = serve(Gate::new(["sk-1"], [])).await;
    let status = |r: Result<(Socket, Option<String>), Error>| match r {
        Err(Error::Http(response)) => {
            let body: Value = serde_json::from_slice(response.body().as_deref().unwrap()).unwrap();
            (response.status().as_u16(), body["error"]["type"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    };
    let refused = status(connect(&address, "/v1/realtime", &[]).await);
    assert_eq!(refused, (401, "AuthenticationError".to_owned()));
    let page = [("authorization", "Bearer sk-1"), ("origin", "http://evil.example")];
    assert_eq!(status(connect(&address, "/v1/realtime", &page).await), (403, "PermissionDeniedError".to_owned()));
    assert_eq!(host.sessions(), 0);
    let key = [("sec-websocket-protocol", "realtime, openai-insecure-api-key.sk-1")];
    let (mut socket, protocol) = connect(&address, "/v1/realtime", &key).await.unwrap();
    assert_eq!((protocol.as_deref(), &next(&mut socket).await["type"]), (Some("realtime"), &json!("session.created")));
}
