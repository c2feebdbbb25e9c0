//! V28 to V32: numbers, coming back, and the end.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Client, World, audio, done, names, of, scripted};

fn claim(session: &Value, token: &Value, seq: impl Into<Value>) -> Value {
    json!({"type": "session.resume", "session_id": session, "resume_token": token,
        "last_received_server_event_seq": seq.into()})
}
async fn back(w: &World, event: Value) -> Client {
    let mut c = w.connect("/v1/realtime?duplex=1&resume=1").await;
    c.say(event).await;
    c
}
fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|e| e["server_event_seq"].as_u64()).collect()
}

#[tokio::test]
async fn v28_what_was_not_sent_cannot_be_acknowledged() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.turn(1000).await;
    let head = *seqs(&c.seen).last().unwrap();
    for seq in [json!(head + 10), json!(-1), json!("x"), Value::Null] {
        c.say(json!({"type": "session.event_ack", "server_event_seq": seq, "event_id": "k"})).await;
        let error = c.until("error").await;
        assert_eq!((&error["error"]["code"], &error["error"]["event_id"]), (&json!("invalid_event_ack"), &json!("k")));
    }
    c.say(json!({"type": "session.event_ack", "server_event_seq": head})).await;
    c.say(json!({"type": "session.heartbeat"})).await;
    assert_eq!(c.next().await["type"], "session.heartbeat_ack");
}

#[tokio::test]
async fn v29_only_the_newest_token_opens() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.turn(1000).await;
    let (id, first) = (c.created["session"]["id"].clone(), c.created["resume_token"].clone());
    let (seen, last) = (seqs(&c.seen), *seqs(&c.seen).last().unwrap());
    drop(c);
    let mut c = back(&w, claim(&id, &first, 3)).await;
    let resumed = c.until("session.resumed").await;
    assert_eq!((&resumed["attachment_generation"], &resumed["session"]["turn_id"]), (&json!(2), &json!(1)));
    while seqs(&c.seen).last() != Some(&last) {
        c.next().await;
    }
    assert_eq!(seqs(&c.seen), seen[3..]);
    let newest = &resumed["resume_token"];
    for (event, code) in [
        (claim(&id, &first, 0), "invalid_resume_token"),
        (claim(&id, newest, -1), "invalid_session_resume"),
        (json!({"type": "session.resume", "session_id": id}), "invalid_session_resume"),
        (claim(&json!("duplex-0"), newest, 0), "session_resume_expired"),
        (claim(&id, newest, 1_000_000), "session_resume_conflict"),
    ] {
        let rest = back(&w, event).await.rest().await;
        assert_eq!(names(&rest), ["error", "close"]);
        assert_eq!(rest[0]["error"]["code"], code);
    }
    assert_eq!(done(&c.turn(1000).await)["response"]["status"], "completed");
}

#[tokio::test]
async fn v30_of_two_that_come_back_at_once_one_wins() {
    let w = scripted(json!([{"chunks": 1, "chunk_ms": 20}])).await;
    let mut winner = w.duplex().await;
    let id = winner.created["session"]["id"].clone();
    let mut token = winner.created["resume_token"].clone();
    let mut last = 0;
    for round in 0..50 {
        let (mut a, mut b) =
            tokio::join!(w.connect("/v1/realtime?duplex=1&resume=1"), w.connect("/v1/realtime?duplex=1&resume=1"));
        tokio::join!(a.say(claim(&id, &token, last)), b.say(claim(&id, &token, last)));
        let (first_a, first_b) = tokio::join!(a.next(), b.next());
        let (won, resumed, lost) =
            if first_a["type"] == "session.resumed" { (a, first_a, first_b) } else { (b, first_b, first_a) };
        assert_eq!(resumed["type"], "session.resumed", "round {round}: {lost}");
        let code = lost["error"]["code"].as_str().unwrap();
        assert!(["session_resume_conflict", "invalid_resume_token"].contains(&code), "round {round}: {code}");
        let rest = winner.rest().await;
        assert_eq!(names(&rest).last(), Some(&"close"), "round {round}: the one before is told");
        assert_eq!(of(&rest, "session.replaced").len(), 1);
        (winner, token) = (won, resumed["resume_token"].clone());
        assert_eq!(done(&winner.turn(200).await)["response"]["status"], "completed");
        let seen = seqs(&winner.seen);
        assert_eq!(seen, (last + 1..=last + seen.len() as u64).collect::<Vec<_>>(), "no gap and no repeat");
        last += seen.len() as u64;
        winner.say(json!({"type": "session.event_ack", "server_event_seq": last})).await;
    }
}

#[tokio::test]
async fn v31_a_journal_that_overflowed_is_given_up() {
    let w = scripted(json!([{"chunks": 200, "chunk_ms": 1000, "step_ms": 10}, {"chunks": 1}])).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    c.until("response.output_audio.delta").await;
    let (id, token) = (c.created["session"]["id"].clone(), c.created["resume_token"].clone());
    drop(c);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut c = back(&w, claim(&id, &token, 1)).await;
    assert_eq!(c.next().await["type"], "session.resumed");
    let resync = c.next().await;
    assert_eq!((&resync["type"], &resync["reason"]), (&json!("session.resync_required"), &json!("journal_overflow")));
    c.say(json!({"type": "session.heartbeat"})).await;
    c.until("session.heartbeat_ack").await;
    if of(&c.seen, "response.done").is_empty() {
        c.say(json!({"type": "response.cancel"})).await;
    }
    let turn = c.turn(1000).await;
    assert_eq!(audio(&turn).len(), 48_000);
    assert!(seqs(&c.seen).is_empty());
    assert_eq!(of(&c.seen, "session.resync_required").len(), 1);
}

#[tokio::test]
async fn v32_closed_is_the_last_word() {
    let w = scripted(json!([{"step_ms": 20, "chunks": 500, "chunk_ms": 100, "text": null}])).await;
    for reason in [None, Some("done with it")] {
        let mut c = w.duplex().await;
        c.ask(1000).await;
        c.until("response.output_audio.delta").await;
        c.say(json!({"type": "session.close", "reason": reason})).await;
        for n in 0..20 {
            let late = json!({"type": "response.create", "event_id": format!("late-{n}")});
            use futures_util::SinkExt as _;
            let _ = c.socket.send(late.to_string().into()).await;
        }
        let rest = c.rest().await;
        let [.., closed, close] = &rest[..] else { panic!() };
        let reason = reason.unwrap_or("client_close");
        assert_eq!((&closed["type"], &closed["reason"]), (&json!("session.closed"), &json!(reason)));
        assert_eq!((&close["code"], &close["reason"]), (&json!(1000), &json!(reason)));
        assert_eq!(done(&rest)["response"]["status"], "cancelled");
        for error in of(&rest, "error") {
            let code = error["error"]["code"].as_str().unwrap();
            assert!(["session_closed", "unknown_session"].contains(&code), "{error}");
            assert!(error["error"]["event_id"].as_str().unwrap().starts_with("late-"));
        }
    }
    w.empty().await;
}
