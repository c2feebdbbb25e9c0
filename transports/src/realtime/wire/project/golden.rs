//! The shape of every event in every profile.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::realtime::config::capability::Capabilities;
use crate::realtime::config::facts::SessionFacts;
use crate::realtime::config::modality::Modality;
use crate::realtime::config::overlap::OverlapPolicy;
use crate::realtime::config::{Defaults, SessionConfig};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::Committed;
use crate::realtime::wire::server::item::{Content, Item, ItemKind, ItemStatus, Role};
use crate::realtime::wire::server::response::{
    AudioDelta, CancelReason, Created, Done, ListenReason, Mark, Outcome, Part, Usage,
};
use crate::realtime::wire::server::session::{Expiry, Playback, Resync, TurnState};

const S: &str = "duplex-7c1e";

/// An event with what each profile is sent for it, `event_id` left out: stock, beta, duplex.
type Sample = (ServerEvent, [Option<Value>; 3]);

fn same(event: ServerEvent, shape: Value) -> Sample {
    (event, [Some(shape.clone()), Some(shape.clone()), Some(shape)])
}
/// The same in all but its name in the beta.
fn renamed(event: ServerEvent, beta: &str, shape: Value) -> Sample {
    let mut older = shape.clone();
    older["type"] = json!(beta);
    (event, [Some(shape.clone()), Some(older), Some(shape)])
}
fn place() -> Place {
    Place { response_id: "r9".into(), item_id: "item_r9".into(), output_index: 0, content_index: 0 }
}
fn at(kind: &str, more: Value) -> Value {
    let mut shape =
        json!({"type": kind, "response_id": "r9", "item_id": "item_r9", "output_index": 0, "content_index": 0});
    for (key, value) in object(more) {
        shape[key] = value;
    }
    shape
}
fn ledger() -> Playback {
    Playback { generated_ms: 200, sent_ms: 200, played_ms: 0, committed_ms: 0 }
}
fn ledger_shape() -> Value {
    json!({"generated_ms": 200, "sent_ms": 200, "played_ms": 0, "committed_ms": 0})
}
fn view_of(profile: Profile) -> Box<SessionView> {
    let capabilities = Capabilities::profile_d(200);
    let config = SessionConfig::default_for(profile, &capabilities, &Defaults::default());
    let facts = SessionFacts { id: S.into(), capabilities, ..SessionFacts::default() };
    Box::new(SessionView { config: Arc::new(config), facts })
}
fn user() -> Item {
    let content = vec![Content::InputAudio { transcript: Some("turn the light on".into()) }];
    Item::message("item_4f", Role::User, ItemStatus::Completed, content)
}
fn user_shape() -> Value {
    json!({"id": "item_4f", "object": "realtime.item", "type": "message", "role": "user", "status": "completed",
        "content": [{"type": "input_audio", "transcript": "turn the light on"}]})
}
fn spoken() -> Item {
    let content = vec![Content::OutputAudio { transcript: "Done.".into(), audio_duration_ms: Some(200) }];
    Item::message("item_r9", Role::Assistant, ItemStatus::Completed, content)
}
fn spoken_shape() -> Value {
    json!({"id": "item_r9", "object": "realtime.item", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_audio", "transcript": "Done.", "audio_duration_ms": 200}]})
}

fn sessions() -> Vec<Sample> {
    let view = view_of(Profile::Stock);
    let shown = |profile| view.config.to_json(&view.facts, profile);
    let each = |shape: &dyn Fn(Value) -> Value| Profile::ALL.map(|p| Some(shape(shown(p))));
    let created = ServerEvent::SessionCreated {
        session: view.clone(),
        attachment_generation: 1,
        resume_token: Some("b0Qk".into()),
    };
    let resumed =
        ServerEvent::SessionResumed { session: view.clone(), attachment_generation: 2, resume_token: "Zr90".into() };
    vec![
        (
            created,
            each(
                &|s| json!({"type": "session.created", "attachment_generation": 1, "resume_token": "b0Qk", "session": s}),
            ),
        ),
        (
            ServerEvent::SessionCreated { session: view.clone(), attachment_generation: 1, resume_token: None },
            each(&|s| json!({"type": "session.created", "attachment_generation": 1, "session": s})),
        ),
        (
            ServerEvent::SessionUpdated { session: view.clone() },
            each(&|s| json!({"type": "session.updated", "session": s})),
        ),
        (
            resumed,
            each(&|s| {
                json!({"type": "session.resumed", "session_id": S, "attachment_generation": 2, "resume_token": "Zr90",
                "session": s})
            }),
        ),
        same(
            ServerEvent::HeartbeatAck { session_id: S.into() },
            json!({"type": "session.heartbeat_ack", "session_id": S}),
        ),
        same(
            ServerEvent::SessionClosed { session_id: S.into(), reason: "client_close".into() },
            json!({"type": "session.closed", "session_id": S, "reason": "client_close",
                "event": {"type": "session.closed", "reason": "client_close"}}),
        ),
        same(
            ServerEvent::SessionReplaced { session_id: S.into(), attachment_generation: 1 },
            json!({"type": "session.replaced", "session_id": S, "attachment_generation": 1}),
        ),
        same(
            ServerEvent::SessionExpired { session_id: S.into(), reason: Expiry::IdleTtl },
            json!({"type": "session.expired", "session_id": S, "reason": "idle_ttl_expired"}),
        ),
        same(
            ServerEvent::ResyncRequired { session_id: S.into(), reason: Resync::JournalGap },
            json!({"type": "session.resync_required", "session_id": S, "reason": "journal_gap"}),
        ),
        (
            ServerEvent::ConversationCreated { conversation_id: "conv_1".into() },
            [
                None,
                Some(json!({"type": "conversation.created",
                    "conversation": {"id": "conv_1", "object": "realtime.conversation"}})),
                None,
            ],
        ),
    ]
}

fn committed_with(overlap_deferred: bool, no_response: bool) -> ServerEvent {
    ServerEvent::Committed(Committed {
        item_id: "item_4f".into(),
        previous_item_id: None,
        session_id: S.into(),
        turn_id: 0,
        epoch: 0,
        history_len: 1,
        content: vec![Content::InputAudio { transcript: None }],
        overlap_deferred,
        no_response,
    })
}
fn committed_shape(deferred: bool, more: Value) -> Value {
    let mut event = json!({"type": "input.committed", "session_id": S, "turn_id": 0, "epoch": 0, "history_len": 1,
        "response_create_deferred": deferred, "message": {"role": "user", "content": [{"type": "input_audio"}]}});
    for (key, value) in object(more) {
        event[key] = value;
    }
    json!({"type": "input_audio_buffer.committed", "previous_item_id": null, "item_id": "item_4f", "event": event})
}

fn inputs() -> Vec<Sample> {
    let item = |kind: &str| Some(json!({"type": kind, "previous_item_id": null, "item": user_shape()}));
    let request = object(json!({"type": "conversation.item.truncate", "item_id": "item_r9", "audio_end_ms": 450}));
    vec![
        same(
            ServerEvent::SpeechStarted { item_id: "item_4f".into(), audio_start_ms: 640 },
            json!({"type": "input_audio_buffer.speech_started", "audio_start_ms": 640, "item_id": "item_4f"}),
        ),
        same(
            ServerEvent::SpeechStopped { item_id: "item_4f".into(), audio_end_ms: 2310 },
            json!({"type": "input_audio_buffer.speech_stopped", "audio_end_ms": 2310, "item_id": "item_4f"}),
        ),
        same(committed_with(false, false), committed_shape(false, json!({}))),
        same(committed_with(true, false), committed_shape(true, json!({"overlap_deferred": true}))),
        same(committed_with(false, true), committed_shape(false, json!({"no_response": true, "is_speech": false}))),
        same(ServerEvent::InputCleared, json!({"type": "input_audio_buffer.cleared"})),
        (
            ServerEvent::ItemAdded { previous_item_id: None, item: user() },
            [item("conversation.item.added"), None, item("conversation.item.added")],
        ),
        (
            ServerEvent::ItemCreated { previous_item_id: None, item: user() },
            [None, item("conversation.item.created"), item("conversation.item.created")],
        ),
        (
            ServerEvent::ItemDone { previous_item_id: None, item: user() },
            [item("conversation.item.done"), None, item("conversation.item.done")],
        ),
        same(
            ServerEvent::TranscriptionCompleted {
                item_id: "item_4f".into(),
                content_index: 0,
                transcript: "turn the light on".into(),
                duration_ms: 2000,
            },
            json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_4f",
                "content_index": 0, "transcript": "turn the light on", "usage": {"type": "duration", "seconds": 2}}),
        ),
        same(
            ServerEvent::ItemRetrieved { item: spoken() },
            json!({"type": "conversation.item.retrieved", "item": spoken_shape()}),
        ),
        same(
            ServerEvent::ItemDeleted { item_id: "item_4f".into() },
            json!({"type": "conversation.item.deleted", "item_id": "item_4f",
                "event": {"type": "conversation.item.deleted", "item_id": "item_4f"}}),
        ),
        same(
            ServerEvent::ItemTruncated {
                item_id: "item_r9".into(),
                content_index: 0,
                audio_end_ms: 450,
                request: request.clone(),
            },
            json!({"type": "conversation.item.truncated", "item_id": "item_r9", "content_index": 0, "audio_end_ms": 450,
                "event": request}),
        ),
    ]
}

/// `shape` for duplex; in the others what is ours moves into a sibling, beside the strings of the client.
fn split(shape: Value, ours: Value) -> [Option<Value>; 3] {
    let mut duplex = shape.clone();
    duplex["response"]["metadata"] = ours.clone();
    duplex["response"]["metadata"]["tag"] = json!("7");
    let mut stock = shape;
    stock["response"]["metadata"] = json!({"tag": "7"});
    stock["response"]["omni"] = ours;
    [Some(stock.clone()), Some(stock), Some(duplex)]
}
/// What a client gave: one string, and one value that the stock protocol does not have.
fn given() -> Map<String, Value> {
    object(json!({"tag": "7", "nested": {"a": 1}}))
}
fn done_with(outcome: Outcome) -> Done {
    Done {
        response_id: "r9".into(),
        session_id: S.into(),
        epoch: 0,
        outcome,
        output: vec![spoken()],
        usage: Usage { input_text: 3, input_audio: 5, cached_text: 2, output_text: 7, ..Usage::default() },
        metadata: given(),
        committed: true,
        playback: ledger(),
        stage_metrics: None,
    }
}
fn done_shape(status: &str, details: Value) -> [Option<Value>; 3] {
    let usage = json!({"input_tokens": 8, "output_tokens": 7, "total_tokens": 15,
        "input_token_details": {"text_tokens": 3, "audio_tokens": 5, "image_tokens": 0, "cached_tokens": 2,
            "cached_tokens_details": {"text_tokens": 2, "audio_tokens": 0, "image_tokens": 0}},
        "output_token_details": {"text_tokens": 7, "audio_tokens": 0}});
    let shape = json!({"type": "response.done", "response_id": "r9", "response": {"id": "r9",
        "object": "realtime.response", "status": status, "status_details": details, "output": [spoken_shape()],
        "usage": usage}});
    let ours = json!({"type": "response.done", "session_id": S, "response_id": "r9", "epoch": 0, "committed": true,
        "playback": ledger_shape()});
    split(shape, ours)
}

fn responses() -> Vec<Sample> {
    let call = Item {
        id: "item_f1".into(),
        status: ItemStatus::Completed,
        kind: ItemKind::FunctionCall { call_id: "call_3".into(), name: "set_light".into(), arguments: "{}".into() },
    };
    let call_shape = json!({"id": "item_f1", "object": "realtime.item", "type": "function_call", "status": "completed",
        "call_id": "call_3", "name": "set_light", "arguments": "{}"});
    let created = Created {
        response_id: "r9".into(),
        session_id: S.into(),
        epoch: 0,
        turn_id: 0,
        modalities: vec![Modality::Audio, Modality::Text],
        metadata: given(),
    };
    let created_shape = json!({"type": "response.created", "response_id": "r9", "response": {"id": "r9",
        "object": "realtime.response", "status": "in_progress", "status_details": null, "output": [],
        "modalities": ["audio", "text"], "output_modalities": ["audio", "text"]}});
    let created_ours = json!({"duplex_event": {"type": "response.created", "session_id": S, "response_id": "r9",
        "epoch": 0, "turn_id": 0}});
    let refusal = Refusal::new(Code::EngineError, "node `tts` died");
    let failed = json!({"type": "failed", "reason": "engine_error",
        "error": {"type": "server_error", "code": "engine_error", "message": "node `tts` died"}});
    let listen = |id: Option<&str>| ServerEvent::Listen {
        session_id: S.into(),
        epoch: 0,
        response_id: id.map(str::to_owned),
        reason: ListenReason::ModelListen,
    };
    let listen_shape = json!({"type": "response.listen", "session_id": S, "epoch": 0, "response": {
        "object": "realtime.response", "status": "listening",
        "metadata": {"type": "response.listen", "session_id": S, "epoch": 0, "reason": "model_listen"}}});
    let mut ended_shape = listen_shape.clone();
    ended_shape["response_id"] = json!("r9");
    ended_shape["response"]["id"] = json!("r9");
    vec![
        (ServerEvent::ResponseCreated(created), split(created_shape, created_ours)),
        same(
            ServerEvent::OutputItemAdded { response_id: "r9".into(), output_index: 0, item: call.clone() },
            json!({"type": "response.output_item.added", "response_id": "r9", "output_index": 0, "item": call_shape}),
        ),
        same(
            ServerEvent::OutputItemDone { response_id: "r9".into(), output_index: 0, item: spoken() },
            json!({"type": "response.output_item.done", "response_id": "r9", "output_index": 0, "item": spoken_shape()}),
        ),
        same(
            ServerEvent::ContentPartAdded { place: place(), part: Part::Audio(String::new()) },
            at("response.content_part.added", json!({"part": {"type": "audio", "transcript": ""}})),
        ),
        same(
            ServerEvent::ContentPartDone { place: place(), part: Part::Text("Done.".into()) },
            at("response.content_part.done", json!({"part": {"type": "text", "text": "Done."}})),
        ),
        same(
            ServerEvent::Speak { place: place(), session_id: S.into(), epoch: 0 },
            at("response.speak", json!({"metadata": {"session_id": S, "epoch": 0, "model_speak": true}})),
        ),
        renamed(
            ServerEvent::TranscriptDelta { place: place(), delta: "Done.".into() },
            "response.audio_transcript.delta",
            at("response.output_audio_transcript.delta", json!({"delta": "Done."})),
        ),
        renamed(
            ServerEvent::AudioDone { place: place() },
            "response.audio.done",
            at("response.output_audio.done", json!({})),
        ),
        renamed(
            ServerEvent::TranscriptDone { place: place(), transcript: "Done.".into() },
            "response.audio_transcript.done",
            at("response.output_audio_transcript.done", json!({"transcript": "Done."})),
        ),
        renamed(
            ServerEvent::TextDelta { place: place(), delta: "Do".into() },
            "response.text.delta",
            at("response.output_text.delta", json!({"delta": "Do"})),
        ),
        renamed(
            ServerEvent::TextDone { place: place(), text: "Done.".into() },
            "response.text.done",
            at("response.output_text.done", json!({"text": "Done."})),
        ),
        (ServerEvent::ResponseDone(Box::new(done_with(Outcome::Completed))), done_shape("completed", json!(null))),
        (
            ServerEvent::ResponseDone(Box::new(done_with(Outcome::Cancelled(CancelReason::TurnDetected)))),
            done_shape("cancelled", json!({"type": "cancelled", "reason": "turn_detected"})),
        ),
        (
            ServerEvent::ResponseDone(Box::new(done_with(Outcome::Incomplete("max_output_tokens")))),
            done_shape("incomplete", json!({"type": "incomplete", "reason": "max_output_tokens"})),
        ),
        (ServerEvent::ResponseDone(Box::new(done_with(Outcome::Failed(refusal)))), done_shape("failed", failed)),
        same(listen(None), listen_shape),
        same(listen(Some("r9")), ended_shape),
        same(
            ServerEvent::CallDelta { place: place(), call_id: "call_3".into(), delta: "{".into() },
            at("response.function_call_arguments.delta", json!({"call_id": "call_3", "delta": "{"})),
        ),
        same(
            ServerEvent::CallDone {
                place: place(),
                call_id: "call_3".into(),
                name: "set_light".into(),
                arguments: "{}".into(),
            },
            at(
                "response.function_call_arguments.done",
                json!({"call_id": "call_3", "name": "set_light", "arguments": "{}"}),
            ),
        ),
        same(
            ServerEvent::RawCall { session_id: S.into(), epoch: 0, call_id: None, name: None, arguments: "{".into() },
            json!({"type": "duplex.function_call.done", "event": {"type": "function_call.done", "session_id": S, "epoch": 0,
                "call_id": null, "name": null, "arguments": "{"}}),
        ),
    ]
}

fn audio(stage_metrics: Option<Map<String, Value>>) -> ServerEvent {
    ServerEvent::AudioDelta(Box::new(AudioDelta {
        place: place(),
        delta: "AAAA".into(),
        format: "pcm16",
        sample_rate_hz: 24_000,
        session_id: S.into(),
        epoch: 0,
        model_speak: true,
        end_of_turn: false,
        audio_duration_ms: 200,
        marks: vec![Mark { text_chars: 5, audio_end_ms: 200 }],
        playback: ledger(),
        stage_metrics,
    }))
}
fn audio_shape() -> Value {
    at(
        "response.output_audio.delta",
        json!({"delta": "AAAA", "format": "pcm16", "sample_rate_hz": 24000, "metadata": {"session_id": S, "epoch": 0,
            "model_speak": true, "end_of_turn": false, "audio_duration_ms": 200,
            "audio_text_marks": [{"text_chars": 5, "audio_end_ms": 200}], "playback": ledger_shape()}}),
    )
}

fn others() -> Vec<Sample> {
    let metrics = json!({"tts": {"steps": 4}});
    let mut measured = audio_shape();
    measured["metadata"]["vllm_omni"] = json!({ "stage_metrics": metrics });
    measured["metadata"]["omni_flow"] = json!({ "stage_metrics": metrics });
    let refusal = Refusal::new(Code::InputAudioBufferCommitEmpty, "nothing to commit");
    let error = json!({"type": "error", "error": {"type": "invalid_request_error",
        "code": "input_audio_buffer_commit_empty", "message": "nothing to commit", "event_id": "c-17"}});
    let mut full = error.clone();
    full["error"]["param"] = json!(null);
    let busy = Refusal::capacity(4).about("x");
    vec![
        renamed(audio(None), "response.audio.delta", audio_shape()),
        renamed(audio(Some(object(metrics))), "response.audio.delta", measured),
        same(ServerEvent::RateLimits, json!({"type": "rate_limits.updated", "rate_limits": []})),
        same(
            ServerEvent::OutputCleared { response_id: "r9".into() },
            json!({"type": "output_audio_buffer.cleared", "response_id": "r9"}),
        ),
        same(
            ServerEvent::Acknowledged(Acknowledged {
                session_id: S.into(),
                epoch: 0,
                item_id: "item_r9".into(),
                played_ms: 120.7,
                committed_ms: -1.0,
                truncate: false,
                playback: ledger(),
                history_committed: false,
            }),
            json!({"type": "playback.acknowledged", "event": {"type": "playback.acknowledged", "session_id": S, "epoch": 0,
                "item_id": "item_r9", "played_ms": 120, "committed_ms": -1, "truncate": false,
                "playback": ledger_shape(), "history_committed": false}}),
        ),
        same(
            ServerEvent::Overlap(Overlap {
                session_id: S.into(),
                epoch: 0,
                policy: OverlapPolicy::Auto,
                action: "listen",
                reason: "short_ack",
                duration_ms: 300,
                overlap_speech_ms: 300,
                buffer_audio: true,
                defer_runtime_append: true,
            }),
            json!({"type": "overlap.decision", "session_id": S, "epoch": 0, "policy": "auto", "action": "listen",
                "reason": "short_ack", "metadata": {"duration_ms": 300, "overlap_speech_ms": 300, "buffer_audio": true,
                "defer_runtime_append": true}}),
        ),
        same(
            ServerEvent::Turn {
                session_id: S.into(),
                event: "barge_in".into(),
                turn_state: TurnState::BargeIn,
                epoch: 1,
            },
            json!({"type": "turn.event", "session_id": S, "event": "barge_in", "turn_state": "barge_in", "epoch": 1}),
        ),
        (ServerEvent::Error { refusal, event_id: Some("c-17".into()) }, [Some(full.clone()), Some(full), Some(error)]),
        (ServerEvent::Error { refusal: busy, event_id: None }, {
            let duplex = json!({"type": "error", "error": {"type": "rate_limit_error", "code": "resource_exhausted",
                "message": "duplex_session_capacity_exhausted: limit=4", "param": "x", "retryable": true}});
            let mut full = duplex.clone();
            full["error"]["event_id"] = json!(null);
            [Some(full.clone()), Some(full), Some(duplex)]
        }),
    ]
}

fn samples() -> Vec<Sample> {
    [sessions(), inputs(), responses(), others()].into_iter().flatten().collect()
}

#[test]
fn every_event_has_its_shape_in_every_profile() {
    let envelope = Envelope { event_id: "event_1".into(), server_event_seq: None };
    for (event, shapes) in samples() {
        for (profile, shape) in Profile::ALL.into_iter().zip(shapes) {
            let expected = shape.map(|mut shape| {
                shape["event_id"] = json!("event_1");
                shape
            });
            assert_eq!(project(&event, profile, &envelope), expected, "{profile:?}");
            let written = text(&event, profile, &envelope).map(|t| serde_json::from_str::<Value>(&t).unwrap());
            assert_eq!(written, expected, "{profile:?}");
        }
    }
}

#[test]
fn the_samples_are_all_events_and_no_audio_name_is_sent_twice() {
    let names = |profile| -> BTreeSet<_> {
        samples().iter().filter(|(e, _)| told(e, profile)).map(|(e, _)| name(e, profile)).collect()
    };
    assert_eq!(names(Profile::Duplex).len(), 42);
    assert_eq!(names(Profile::Stock).len(), 41);
    assert_eq!(names(Profile::Beta).len(), 41);
    assert!(!names(Profile::Beta).iter().any(|n| n.contains("output_audio.") || n.contains("output_audio_transcript")));
    let older = |n: &&str| n.starts_with("response.audio") || n.starts_with("response.text");
    assert!(!names(Profile::Stock).iter().any(older) && !names(Profile::Duplex).iter().any(older));
}

#[test]
fn a_journal_number_stands_beside_the_event() {
    let numbered = Envelope { event_id: "event_2".into(), server_event_seq: Some(7) };
    let shown = project(&ServerEvent::InputCleared, Profile::Stock, &numbered);
    let expected = json!({"type": "input_audio_buffer.cleared", "event_id": "event_2", "server_event_seq": 7});
    assert_eq!(shown, Some(expected));
}

#[test]
fn metadata_that_nobody_gave_is_null_for_stock_clients() {
    let mut done = done_with(Outcome::Completed);
    done.metadata = object(json!({"only": 1}));
    let event = ServerEvent::ResponseDone(Box::new(done));
    let envelope = Envelope { event_id: "e".into(), server_event_seq: None };
    let shown = project(&event, Profile::Stock, &envelope).unwrap_or_default();
    assert_eq!(shown["response"]["metadata"], Value::Null);
    assert_eq!(shown["response"]["omni"]["committed"], true);
}

#[test]
fn items_leave_out_what_they_do_not_have() {
    let output = ItemKind::FunctionCallOutput { call_id: "c".into(), output: "42".into() };
    let output = Item { id: "o".into(), status: ItemStatus::Completed, kind: output };
    let shape = json!({"id": "o", "object": "realtime.item", "type": "function_call_output", "status": "completed",
        "call_id": "c", "output": "42"});
    assert_eq!(item(&output), shape);
    let content = vec![
        Content::InputText("a".into()),
        Content::InputAudio { transcript: None },
        Content::InputImage { image_url: None },
        Content::OutputText("b".into()),
        Content::OutputAudio { transcript: String::new(), audio_duration_ms: None },
    ];
    let message = Item::message("m", Role::System, ItemStatus::InProgress, content);
    let shape = json!({"id": "m", "object": "realtime.item", "type": "message", "role": "system",
        "status": "in_progress", "content": [{"type": "input_text", "text": "a"}, {"type": "input_audio"},
        {"type": "input_image"}, {"type": "output_text", "text": "b"}, {"type": "output_audio", "transcript": ""}]});
    assert_eq!(item(&message), shape);
}
