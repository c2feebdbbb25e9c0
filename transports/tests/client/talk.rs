//! What holds over a socket and in process alike.

use std::time::Duration;

use futures_util::StreamExt as _;
use omni_flow_transports::client::{
    AudioFormat, Client, ClientError, Closed, Command, Event, Limits, Options, ResponseConfig, Status, Timeouts,
};
use omni_flow_transports::door::Gate;
use omni_flow_transports::realtime::wire::profile::Profile;
use serde_json::json;

use crate::place::{Place, manual};

/// Says so many seconds of sound, as one turn.
async fn turn(client: &Client, seconds: usize) {
    let rate = client.input_format().rate() as usize;
    for _ in 0..seconds {
        client.send(Command::append_pcm16(&vec![3_000; rate])).await.unwrap();
    }
    client.send(Command::commit()).await.unwrap();
}

#[tokio::test]
async fn a_conversation_in_every_profile_over_both_carriers() {
    for place in Place::both().await {
        for profile in Profile::ALL {
            let client = place.open(manual(profile)).await.unwrap();
            assert_eq!(client.input_format(), AudioFormat::Pcm16(profile.input_rate_hz()));
            let mut events = client.events();
            for seconds in [2, 1] {
                turn(&client, seconds).await;
                let mut response = client.respond(ResponseConfig::new().metadata("who", "me")).await.unwrap();
                let text: String = (1..=seconds).map(|i| format!("{i} ")).collect();
                let said: Vec<String> = response.texts().collect().await;
                assert_eq!((said.concat(), response.text()), (text.clone(), text.clone()));
                let whole = response.collect().await.unwrap();
                assert_eq!((whole.outcome.status, whole.outcome.text), (Status::Completed, text));
                let samples: usize = whole.audio.iter().map(|a| a.samples().len()).sum();
                assert_eq!((samples, whole.audio[0].format), (seconds * 4_800, AudioFormat::Pcm16(24_000)));
                assert!((whole.audio[0].samples()[100] - 0.1).abs() < 1e-3);
            }
            let closed = client.close().await;
            assert_eq!(closed, Ok(Closed { reason: "client_close".to_owned() }));
            // All events of both responses, in order, then the end.
            let all: Vec<Event> = events.stream().collect().await;
            let ends = all.iter().filter_map(|e| match e {
                Event::ResponseCreated { response } | Event::ResponseDone { response } => {
                    Some(response.status.as_str())
                }
                _ => None,
            });
            let ends: Vec<_> = ends.collect();
            assert_eq!(ends, ["in_progress", "completed", "in_progress", "completed"], "{profile:?}");
            let notes = all.iter().filter(|e| match e {
                Event::ResponseDone { response } => response.metadata["who"] == "me",
                _ => false,
            });
            assert_eq!(notes.count(), 2);
            assert!(!all.iter().any(|e| matches!(e, Event::Unknown(_) | Event::Error { .. })), "{all:?}");
            assert!(matches!(all.last(), Some(Event::SessionClosed { .. })));
        }
        place.empty().await;
    }
}

#[tokio::test]
async fn an_answer_is_interrupted_and_another_follows() {
    for place in Place::both().await {
        let client = place.open(manual(Profile::Stock)).await.unwrap();
        turn(&client, 1).await;
        let mut endless = client.respond(ResponseConfig::new().instructions("for ever")).await.unwrap();
        let first = endless.next_audio().await.expect("audio");
        assert_eq!(first.duration(), Duration::from_millis(200));
        client.send(Command::cancel(Some(endless.id()))).await.unwrap();
        assert_eq!(endless.done().await.unwrap().status, Status::Cancelled);
        assert_eq!(endless.done().await.unwrap().status, Status::Cancelled, "asked again, it is the same");
        turn(&client, 1).await;
        let whole = client.respond(ResponseConfig::new()).await.unwrap().collect().await.unwrap();
        assert_eq!((whole.outcome.status, whole.outcome.text.as_str()), (Status::Completed, "1 "));
        drop(client);
        place.empty().await;
    }
}

#[tokio::test]
async fn refusals_are_typed_and_the_session_goes_on() {
    for place in Place::both().await {
        let client = place.open(manual(Profile::Stock)).await.unwrap();
        let mut events = client.events();
        let Err(ClientError::Server(refused)) = client.respond(ResponseConfig::new()).await else { panic!("answered") };
        assert_eq!(refused.code.as_deref(), Some("response_create_without_input"));
        client.send(Command::raw(json!({"type": "no.such"})).unwrap().id("mine")).await.unwrap();
        let error = loop {
            match events.next().await.expect("events") {
                Event::Error { error } if error.event_id.as_deref() == Some("mine") => break error,
                _ => {}
            }
        };
        assert_eq!(error.code.as_deref(), Some("unknown_event"));
        // The graph breaks: this response fails, and the session with it.
        turn(&client, 1).await;
        let broken = client.respond(ResponseConfig::new().instructions("break")).await.unwrap().collect().await;
        assert!(broken.is_err() || broken.is_ok_and(|w| w.outcome.status == Status::Failed));
        assert!(client.closed().await.is_err());
        assert_eq!(client.closed().await, client.closed().await);
        assert!(client.send(Command::commit()).await.is_err());
        assert_eq!(client.events().next().await.map(|e| e.name().to_owned()), None);
        place.empty().await;
    }
}

#[tokio::test]
async fn responses_that_nobody_asked_for_are_given_to_who_reads_them() {
    for place in Place::both().await {
        let client = place.open(manual(Profile::Duplex)).await.unwrap();
        let mut responses = client.responses();
        client.send(Command::append_pcm16(&vec![3_000; 16_000])).await.unwrap();
        client.send(Command::commit().with("response_create", true)).await.unwrap();
        let whole = responses.next().await.expect("a response").collect().await.unwrap();
        assert_eq!(whole.outcome.text, "1 ");
        client.close().await.unwrap();
        assert!(responses.next().await.is_none());
    }
}

#[tokio::test]
async fn a_place_is_refused_and_free_again_at_once() {
    for place in Place::both().await {
        let first = place.open(Options::default()).await.unwrap();
        let _second = place.open(Options::default()).await.unwrap();
        let Err(ClientError::Server(full)) = place.open(Options::default()).await else { panic!("opened") };
        assert_eq!((full.code.as_deref(), full.retryable), (Some("resource_exhausted"), true));
        first.close().await.unwrap();
        place.open(Options::default()).await.unwrap();
    }
}

#[tokio::test]
async fn two_hundred_connects_and_drops_leave_nothing_behind() {
    for place in Place::both().await {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for i in 0..200 {
            let client = place.open(manual(Profile::Stock)).await.unwrap();
            match i % 4 {
                0 => drop(client.close().await.unwrap()),
                1 => {
                    turn(&client, 1).await;
                    let response = client.respond(ResponseConfig::new().instructions("for ever")).await.unwrap();
                    drop(client);
                    // The server's end of it, or the connection's.
                    let end = response.collect().await;
                    assert!(end.is_err() || end.is_ok_and(|w| w.outcome.status != Status::Completed));
                }
                2 => {
                    let _events = client.events();
                    drop(client);
                }
                _ => drop(client),
            }
            place.empty().await;
        }
        for _ in 0..1000 {
            if tasks() <= before {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(tasks() <= before, "{} tasks, {before} before", tasks());
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_nobody_reads_end_the_connection_and_not_the_program() {
    let place = Place::in_process().await;
    let limits = Limits { events: 2, ..Limits::default() };
    let client = place.open(Options { limits, ..manual(Profile::Stock) }).await.unwrap();
    let mut events = client.events();
    turn(&client, 3).await;
    assert_eq!(client.closed().await, Err(ClientError::Unread("events")));
    // What was queued can still be read.
    assert!(events.next().await.is_some() && events.next().await.is_some());
    assert!(events.next().await.is_none());
    place.empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_too_large_fails_alone() {
    let place = Place::in_process().await;
    let limits = Limits { response: 20_000, ..Limits::default() };
    let client = place.open(Options { limits, ..manual(Profile::Stock) }).await.unwrap();
    turn(&client, 3).await;
    let mut response = client.respond(ResponseConfig::new()).await.unwrap();
    assert_eq!(response.done().await, Err(ClientError::TooLarge { what: "a response", limit: 20_000 }));
    assert_eq!(response.next_audio().await.map(|a| a.bytes.len()), Some(9_600), "what fitted is there");
    // Taken as it comes, the same response has room.
    turn(&client, 3).await;
    let mut response = loop {
        // The first one still runs at the server.
        match client.respond(ResponseConfig::new()).await {
            Ok(response) => break response,
            Err(ClientError::Server(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(e) => panic!("{e}"),
        }
    };
    let pieces = response.audio().count().await;
    assert_eq!((pieces, response.done().await.unwrap().status), (3, Status::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_session_lives_by_heartbeats() {
    let place = Place::in_process().await;
    let client = place.open(manual(Profile::Stock)).await.unwrap();
    // Longer than a session without a sign of life has.
    tokio::time::sleep(Duration::from_secs(1000)).await;
    turn(&client, 1).await;
    assert_eq!(client.respond(ResponseConfig::new()).await.unwrap().collect().await.unwrap().outcome.text, "1 ");
    drop(client);
    place.empty().await;
    let timeouts = Timeouts { heartbeat: Duration::ZERO, ..Timeouts::default() };
    let silent = place.open(Options { timeouts, ..manual(Profile::Stock) }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(silent.closed().await.is_err(), "without them it does not");
}

#[tokio::test]
async fn a_key_opens_the_door() {
    let place = Place::socket(Gate::new(["sk-1"], [])).await;
    let refused = place.open(Options::default()).await.err();
    assert!(matches!(refused, Some(ClientError::Refused { status: 401, ref message }) if message.contains("API key")));
    let key = Some("sk-1".into());
    let client = place.open(Options { key, ..Options::default() }).await.unwrap();
    client.close().await.unwrap();
}
