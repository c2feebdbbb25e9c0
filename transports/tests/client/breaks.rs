//! Connections that break.

use std::time::Duration;

use omni_flow_transports::client::{
    Backoff, Client, ClientError, Command, Event, Options, Reconnect, ResponseConfig, SessionConfig, Status,
};
use omni_flow_transports::door::Gate;
use omni_flow_transports::realtime::wire::profile::Profile;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::fake::{listen, serve};
use crate::place::{Place, manual};

fn quick(options: Options) -> Options {
    let ms = Duration::from_millis;
    Options { backoff: Backoff { first: ms(10), most: ms(50), attempts: 8 }, ..options }
}

/// A wire to `to` that can be cut: each change of the number cuts all that stands.
async fn wire(to: &str) -> (String, watch::Sender<u32>) {
    let to = to.strip_prefix("ws://").unwrap().split('/').next().unwrap().to_owned();
    let (listener, url) = listen().await;
    let (cut, cuts) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let (to, mut cuts) = (to.clone(), cuts.clone());
            cuts.mark_unchanged();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = cuts.changed() => {}
                }
            });
        }
    });
    (url, cut)
}

#[tokio::test]
async fn an_answer_goes_on_after_its_wire_was_cut_twice() {
    let place = Place::socket(Gate::default()).await;
    let (url, cut) = wire(place.url.as_deref().unwrap()).await;
    let client = Client::connect(&url, quick(manual(Profile::Stock))).await.unwrap();
    let mut events = client.events();
    client.send(Command::append_pcm16(&vec![3_000; 6 * 24_000])).await.unwrap();
    client.send(Command::commit()).await.unwrap();
    let mut response = client.respond(ResponseConfig::new()).await.unwrap();
    for n in 1..=2 {
        assert!(response.next_audio().await.is_some());
        cut.send(n).unwrap();
    }
    let whole = response.collect().await.unwrap();
    assert_eq!((whole.outcome.status, whole.outcome.text.as_str()), (Status::Completed, "1 2 3 4 5 6 "));
    assert_eq!(whole.audio.len(), 4, "each piece comes once");
    client.close().await.unwrap();
    let (mut resumed, mut deltas) = (0, 0);
    while let Some(event) = events.next().await {
        match event {
            Event::Reconnected { resumed: true } => resumed += 1,
            Event::AudioDelta { .. } => deltas += 1,
            other => assert!(!matches!(other, Event::Reconnected { .. } | Event::Error { .. }), "{other:?}"),
        }
    }
    assert!((1..=2).contains(&resumed) && deltas == 6, "{resumed} times back, {deltas} pieces");
    place.empty().await;
}

#[tokio::test]
async fn what_was_said_while_the_wire_was_down_arrives() {
    let place = Place::socket(Gate::default()).await;
    let (url, cut) = wire(place.url.as_deref().unwrap()).await;
    let client = Client::connect(&url, quick(manual(Profile::Stock))).await.unwrap();
    let mut events = client.events();
    cut.send(1).unwrap();
    while !matches!(events.next().await, Some(Event::Reconnected { resumed: true })) {}
    client.send(Command::append_pcm16(&vec![3_000; 24_000])).await.unwrap();
    client.send(Command::commit()).await.unwrap();
    let whole = client.respond(ResponseConfig::new()).await.unwrap().collect().await.unwrap();
    assert_eq!(whole.outcome.text, "1 ");
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_given_up() {
    let place = Place::socket(Gate::default()).await;
    let (url, cut) = wire(place.url.as_deref().unwrap()).await;
    let mut options = quick(manual(Profile::Stock));
    options.backoff.attempts = 3;
    let client = Client::connect(&url, options).await.unwrap();
    client.send(Command::append_pcm16(&vec![3_000; 24_000])).await.unwrap();
    client.send(Command::commit()).await.unwrap();
    let mut response = client.respond(ResponseConfig::new().instructions("for ever")).await.unwrap();
    assert!(response.next_audio().await.is_some());
    // The session is gone at the server, and nobody tells.
    place.host.drain(std::time::Duration::ZERO).await;
    cut.send(1).unwrap();
    let end = client.closed().await;
    assert!(matches!(end, Err(ClientError::NotResumed(_) | ClientError::Closed { .. })), "{end:?}");
    assert!(response.done().await.is_err() || response.done().await.unwrap().status != Status::Completed);
    while response.next_audio().await.is_some() {}
}

/// A stock server's session cannot be resumed: one typed end each.
#[tokio::test]
async fn a_server_that_dies_in_an_answer_ends_it_once() {
    for reconnect in [Reconnect::Never, Reconnect::Resume] {
        let url = serve(|_, mut peer| async move {
            peer.created().await;
            let asked = peer.next().await.unwrap();
            let response = json!({"id": "r", "metadata": asked["response"]["metadata"]});
            peer.say(json!({"type": "response.created", "response": response})).await;
            peer.say(json!({"type": "response.audio.delta", "response_id": "r", "delta": "AAAA"})).await;
        });
        let client = Client::connect(&url.await, quick(Options { reconnect, ..Options::default() })).await.unwrap();
        let mut response = client.respond(ResponseConfig::new()).await.unwrap();
        assert_eq!(response.next_audio().await.map(|a| a.bytes.len()), Some(3));
        assert_eq!(response.next_audio().await, None);
        let end = client.closed().await;
        assert!(matches!(end, Err(ClientError::Lost(_))), "{end:?}");
        assert_eq!(response.done().await.map(|_| ()), end.clone().map(|_| ()));
        assert_eq!(client.send(Command::commit()).await, end.map(|_| ()));
    }
}

#[tokio::test]
async fn another_session_takes_the_place_of_one_that_is_lost() {
    let url = serve(|n, mut peer| async move {
        peer.created().await;
        let update = peer.next().await.unwrap();
        assert_eq!(update["session"]["audio"]["output"]["voice"], "ash", "connection {n}");
        if n > 0 {
            assert_eq!(update["session"]["instructions"], "be brief");
        }
        peer.say(json!({"type": "session.updated", "session": {"id": "s"}})).await;
        if n == 0 {
            assert_eq!(peer.next().await.unwrap()["session"]["instructions"], "be brief");
            let asked = peer.next().await.unwrap();
            let response = json!({"id": "r", "metadata": asked["response"]["metadata"]});
            peer.say(json!({"type": "response.created", "response": response})).await;
            return;
        }
        assert_eq!(peer.next().await.unwrap()["type"], "input_audio_buffer.clear");
        peer.say(json!({"type": "input_audio_buffer.cleared"})).await;
        while peer.next().await.is_some() {}
    });
    let session = Some(SessionConfig::new().voice("ash"));
    let options = quick(Options { session, reconnect: Reconnect::Fresh, ..Options::default() });
    let client = Client::connect(&url.await, options).await.unwrap();
    let mut events = client.events();
    client.send(Command::session_update(SessionConfig::new().instructions("be brief"))).await.unwrap();
    let mut response = client.respond(ResponseConfig::new()).await.unwrap();
    assert!(matches!(response.done().await, Err(ClientError::Lost(_))));
    while !matches!(events.next().await.expect("it goes on"), Event::Reconnected { resumed: false }) {}
    client.send(Command::clear_input()).await.unwrap();
    assert!(matches!(events.next().await, Some(Event::InputCleared {})));
    client.close().await.unwrap();
}
