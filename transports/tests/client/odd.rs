//! Servers that are no stock server, and one that is.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow_transports::client::{
    Client, ClientError, Command, Event, Limits, Options, ResponseConfig, SessionConfig, Status, Timeouts,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use crate::fake::{listen, serve};

fn short() -> Options {
    let ms = Duration::from_millis;
    let timeouts = Timeouts { close: ms(200), ..Timeouts::default() };
    Options { timeouts, limits: Limits { frame: 1 << 20, ..Limits::default() }, ..Options::default() }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left() {
    let url = serve(|_, peer| async move { drop(peer.0.collect::<Vec<_>>().await) }).await;
    let limit = Duration::from_millis(50);
    let timeouts = Timeouts { handshake: limit, ..short().timeouts };
    assert_eq!(
        Client::connect(&url, Options { timeouts, ..short() }).await.err(),
        Some(ClientError::Timeout { what: "opening the session", limit })
    );
    // Nor does one that does not even speak HTTP hold a client.
    let (_listener, url) = listen().await;
    let timeouts = Timeouts { connect: Duration::from_millis(50), ..Timeouts::default() };
    let refused = Client::connect(&url, Options { timeouts, ..Options::default() }).await.err();
    assert_eq!(refused, Some(ClientError::Timeout { what: "connecting", limit }));
}

#[tokio::test]
async fn garbage_ends_the_connection_with_its_name() {
    for garbage in ["", "{", "[]", "null", r#"{"type":7}"#] {
        let first = serve(move |_, mut peer| async move { peer.text(garbage).await }).await;
        let refused = Client::connect(&first, short()).await.err();
        assert!(matches!(refused, Some(ClientError::Protocol(_))), "{garbage:?}: {refused:?}");
        let later = serve(move |_, mut peer| async move {
            peer.created().await;
            peer.text(garbage).await;
            while peer.next().await.is_some() {}
        });
        let client = Client::connect(&later.await, short()).await.unwrap();
        let end = client.closed().await;
        assert!(matches!(end, Err(ClientError::Protocol(_))), "{garbage:?}: {end:?}");
    }
    let binary = serve(|_, mut peer| async move {
        peer.created().await;
        let _ = peer.0.send(Message::binary(vec![1, 2, 3])).await;
        while peer.next().await.is_some() {}
    });
    let client = Client::connect(&binary.await, short()).await.unwrap();
    assert!(matches!(client.closed().await, Err(ClientError::Protocol(_))));
}

#[tokio::test]
async fn a_huge_frame_is_not_taken() {
    let url = serve(|_, mut peer| async move {
        peer.created().await;
        peer.text("x".repeat(2 << 20)).await;
        while peer.next().await.is_some() {}
    });
    let client = Client::connect(&url.await, short()).await.unwrap();
    let limit = 1 << 20;
    assert_eq!(client.closed().await, Err(ClientError::TooLarge { what: "a message", limit }));
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_an_error_with_its_address() {
    let (listener, url) = listen().await;
    drop(listener);
    let refused = Client::connect(&format!("{url}/v1/realtime?key=secret"), short()).await.err().unwrap();
    assert!(matches!(refused, ClientError::Connect { .. }) && refused.retryable());
    assert!(refused.to_string().contains(&url) && !refused.to_string().contains("secret"));
}

#[tokio::test]
async fn events_of_the_future_are_kept_and_nothing_fails() {
    let url = serve(|_, mut peer| async move {
        peer.created().await;
        let _ = peer.next().await;
        peer.say(json!({"type": "response.hologram.delta", "x": 1})).await;
        peer.say(json!({"type": "response.output_audio.delta", "response_id": "nobody", "delta": "AAAA"})).await;
        peer.say(json!({"type": "response.done", "response": {"id": "nobody", "status": "completed"}})).await;
        while peer.next().await.is_some() {}
    });
    let client = Client::connect(&url.await, short()).await.unwrap();
    let mut events = client.events();
    client.send(Command::commit()).await.unwrap();
    let Some(Event::Unknown(value)) = events.next().await else { panic!("not kept") };
    assert_eq!(value, json!({"type": "response.hologram.delta", "x": 1}));
    assert!(matches!(events.next().await, Some(Event::AudioDelta { .. })));
    assert!(matches!(events.next().await, Some(Event::ResponseDone { .. })));
    client.close().await.unwrap();
}

/// Against a server that knows only the stock protocol nothing else is said.
#[tokio::test]
async fn a_stock_server_hears_stock_commands_alone() {
    let (told, mut heard) = mpsc::channel::<Value>(64);
    let mut told = Some(told);
    let url = serve(move |_, mut peer| {
        let told = told.take().unwrap();
        async move {
            peer.created().await;
            while let Some(event) = peer.next().await {
                match event["type"].as_str().unwrap() {
                    "session.update" => {
                        peer.say(json!({"type": "session.updated", "session": {"id": "sess_1"}})).await;
                    }
                    "response.create" => {
                        let metadata = &event["response"]["metadata"];
                        let response = json!({"id": "r1", "status": "in_progress", "metadata": metadata});
                        peer.say(json!({"type": "response.created", "response": response})).await;
                        for _ in 0..40 {
                            let delta =
                                json!({"type": "response.output_audio.delta", "response_id": "r1", "delta": "AAAA"});
                            peer.say(delta).await;
                        }
                        let output = json!([{"id": "i", "type": "message", "role": "assistant",
                            "content": [{"type": "output_audio", "transcript": "Hi."}]}]);
                        let response = json!({"id": "r1", "status": "completed", "output": output, "usage": null});
                        peer.say(json!({"type": "response.done", "response": response})).await;
                    }
                    _ => {}
                }
                told.send(event).await.unwrap();
            }
        }
    });
    let session = Some(SessionConfig::new().voice("ash"));
    let client = Client::connect(&url.await, Options { session, ..short() }).await.unwrap();
    client.send(Command::user_text("Hello")).await.unwrap();
    let whole = client.respond(ResponseConfig::new()).await.unwrap().collect().await.unwrap();
    assert_eq!((whole.outcome.status, whole.outcome.text.as_str()), (Status::Completed, "Hi."));
    assert_eq!(whole.audio.len(), 40);
    client.close().await.unwrap();
    let mut names = Vec::new();
    while let Some(event) = heard.recv().await {
        names.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(names, ["session.update", "conversation.item.create", "response.create"]);
}

#[tokio::test]
async fn a_server_that_never_answers_is_told_apart_from_one_that_refuses() {
    let url = serve(|_, mut peer| async move {
        peer.created().await;
        while peer.next().await.is_some() {}
    });
    let limit = Duration::from_millis(50);
    let mut options = short();
    options.timeouts.create = limit;
    let client = Client::connect(&url.await, options).await.unwrap();
    let refused = client.respond(ResponseConfig::new()).await.err();
    assert_eq!(refused, Some(ClientError::Timeout { what: "beginning a response", limit }));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_response_that_falls_silent_has_an_end() {
    let url = serve(|_, mut peer| async move {
        peer.created().await;
        let asked = peer.next().await.unwrap();
        let response = json!({"id": "r", "metadata": asked["response"]["metadata"]});
        peer.say(json!({"type": "response.created", "response": response})).await;
        while peer.next().await.is_some() {}
    });
    let limit = Duration::from_millis(50);
    let mut options = short();
    options.timeouts.response = limit;
    let client = Client::connect(&url.await, options).await.unwrap();
    let mut response = client.respond(ResponseConfig::new()).await.unwrap();
    assert_eq!(response.next_audio().await, None);
    assert_eq!(response.done().await, Err(ClientError::Timeout { what: "a response", limit }));
}
