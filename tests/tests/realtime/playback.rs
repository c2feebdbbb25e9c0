//! V24 to V27: what was heard, items, and changes.

use serde_json::json;

use crate::world::{done, names, of, scripted, transcript};

#[tokio::test]
async fn v24_an_acknowledgement_names_what_was_played() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    let turn = c.turn(1000).await;
    let id = turn[0]["response_id"].clone();
    let ack = |more: serde_json::Value| {
        let mut event = json!({"type": "playback.ack", "played_ms": 100});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let wrong = ack(json!({"item_id": "item_x", "response_id": id}));
    assert_eq!(c.refused(wrong).await, "playback_item_mismatch");
    assert_eq!(c.refused(ack(json!({"response_id": "r"}))).await, "playback_item_not_found");
    c.say(ack(json!({"response_id": id, "item_id": format!("item_{}", id.as_str().unwrap())}))).await;
    let told = c.until("playback.acknowledged").await;
    assert_eq!((&told["event"]["played_ms"], &told["event"]["playback"]["played_ms"]), (&json!(100), &json!(100)));
    c.append(500).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.until("input_audio_buffer.committed").await;
    assert_eq!(c.refused(ack(json!({"response_id": id}))).await, "playback_ack_too_late");
}

#[tokio::test]
async fn v25_a_cancelled_answer_is_remembered_as_far_as_it_was_played() {
    let w = scripted(json!([{"text": ["hello", ""], "chunks": 2, "step_ms": 1000}])).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    c.until("response.output_audio_transcript.delta").await;
    c.say(json!({"type": "playback.ack", "played_ms": 400})).await;
    c.until("playback.acknowledged").await;
    c.say(json!({"type": "response.cancel"})).await;
    c.until("response.done").await;
    let item = done(&c.seen)["response"]["output"][0]["id"].clone();
    c.say(json!({"type": "conversation.item.retrieve", "item_id": item})).await;
    let kept = c.until("conversation.item.retrieved").await;
    assert_eq!(kept["item"]["content"][0]["transcript"], "he");
}

#[tokio::test]
async fn v26_items_come_and_go() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    let item = json!({"id": "mine", "content": [{"type": "input_text", "text": "hi"}]});
    c.say(json!({"type": "conversation.item.create", "item": item})).await;
    c.until("conversation.item.done").await;
    let want = ["conversation.item.added", "conversation.item.created", "conversation.item.done"];
    assert_eq!(names(&c.seen[1..]), want);
    assert!(c.seen[1..].iter().all(|e| e["item"]["id"] == "mine"));
    let again = json!({"type": "conversation.item.create", "item": {"id": "mine"}});
    assert_eq!(c.refused(again).await, "item_create_duplicate_item_id");
    let delete = json!({"type": "conversation.item.delete", "item_id": "mine"});
    c.say(delete.clone()).await;
    assert_eq!(c.until("conversation.item.deleted").await["item_id"], "mine");
    assert_eq!(c.refused(delete).await, "item_not_found");
    assert_eq!(c.refused(json!({"type": "conversation.item.delete"})).await, "missing_item_id");
    let retrieve = json!({"type": "conversation.item.retrieve", "item_id": "mine"});
    assert_eq!(c.refused(retrieve).await, "item_retrieve_invalid_item_id");
}

#[tokio::test]
async fn v27_a_refused_update_changes_nothing() {
    let w = scripted(json!([{"text": "{voice}"}])).await;
    let mut c = w.connect("/v1/realtime?duplex=1&autostart=0").await;
    c.say(json!({"type": "session.update", "session": {"model": "m", "voice": "joe"}})).await;
    let before = c.until("session.updated").await["session"].clone();
    let model = json!({"type": "session.update", "session": {"model": "other", "temperature": 0.9}});
    assert_eq!(c.refused(model.clone()).await, "model_update_unsupported");
    c.say(json!({"type": "session.update"})).await;
    assert_eq!(c.until("session.updated").await["session"], before);
    assert_eq!(transcript(&c.turn(1000).await), "joe");
    let voice = json!({"type": "session.update", "session": {"voice": "ann", "temperature": 0.9}});
    assert_eq!(c.refused(voice).await, "voice_update_after_audio_unsupported");
    assert_eq!(c.refused(model).await, "model_update_unsupported");
    c.say(json!({"type": "session.update"})).await;
    let session = c.until("session.updated").await["session"].clone();
    for field in ["model", "voice", "temperature"] {
        assert_eq!(session[field], before[field]);
    }
}

#[tokio::test]
async fn a_session_opened_unasked_may_become_anything_before_its_first_input() {
    let w = scripted(json!([{"text": "{voice}"}])).await;
    let mut c = w.connect("/v1/realtime?duplex=1&model=m").await;
    let id = c.until("session.created").await["session"]["id"].clone();
    c.say(json!({"type": "session.update", "session": {"model": "other", "voice": "ann"}})).await;
    let session = c.until("session.updated").await["session"].clone();
    assert_eq!((&session["id"], &session["model"], &session["voice"]), (&id, &json!("other"), &json!("ann")));
    assert_eq!(transcript(&c.turn(1000).await), "ann");
    let model = json!({"type": "session.update", "session": {"model": "third"}});
    assert_eq!(c.refused(model).await, "model_update_unsupported");
    assert_eq!(of(&c.seen, "session.created").len(), 1);
}
