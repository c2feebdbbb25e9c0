use serde_json::json;

use super::*;
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::project::{Envelope, name, project};
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::response::Place;

#[test]
fn both_generations_of_names_are_one_event() {
    for kind in ["response.output_audio.delta", "response.audio.delta"] {
        let text = json!({"type": kind, "response_id": "r", "item_id": "i", "delta": "AAE="}).to_string();
        let Event::AudioDelta { at, audio, sample_rate_hz, .. } = Event::parse(&text).unwrap() else {
            panic!("{kind}")
        };
        assert_eq!((at.response_id.as_str(), audio, sample_rate_hz), ("r", vec![0, 1], None));
    }
    for (kind, field) in [
        ("response.output_audio_transcript", "transcript"),
        ("response.audio_transcript", "transcript"),
        ("response.output_text", "text"),
        ("response.text", "text"),
    ] {
        let delta = json!({"type": format!("{kind}.delta"), "response_id": "r", "delta": "a"}).to_string();
        assert!(!matches!(Event::parse(&delta).unwrap(), Event::Unknown(_)), "{kind}");
        let done = json!({"type": format!("{kind}.done"), "response_id": "r", field: "a"}).to_string();
        assert!(!matches!(Event::parse(&done).unwrap(), Event::Unknown(_)), "{kind}");
    }
}

#[test]
fn what_our_server_projects_is_read_under_its_own_name() {
    let place = Place { response_id: "r".into(), item_id: "i".into(), output_index: 0, content_index: 1 };
    let all = [
        ServerEvent::InputCleared,
        ServerEvent::RateLimits,
        ServerEvent::HeartbeatAck { session_id: "s".to_owned() },
        ServerEvent::SessionClosed { session_id: "s".to_owned(), reason: "x".to_owned() },
        ServerEvent::SpeechStarted { item_id: "i".to_owned(), audio_start_ms: 3 },
        ServerEvent::SpeechStopped { item_id: "i".to_owned(), audio_end_ms: 3 },
        ServerEvent::AudioDone { place: place.clone() },
        ServerEvent::TranscriptDelta { place: place.clone(), delta: "d".to_owned() },
        ServerEvent::TextDone { place: place.clone(), text: "t".to_owned() },
        ServerEvent::CallDelta { place: place.clone(), call_id: "c".to_owned(), delta: "{".to_owned() },
        ServerEvent::Speak { place, session_id: "s".to_owned(), epoch: 1 },
        ServerEvent::OutputCleared { response_id: "r".to_owned() },
        ServerEvent::ItemDeleted { item_id: "i".to_owned() },
    ];
    for event in all {
        for profile in Profile::ALL {
            let envelope = Envelope { event_id: "event_1".to_owned(), server_event_seq: Some(7) };
            let Some(value) = project(&event, profile, &envelope) else { continue };
            let received = receive(&value.to_string()).unwrap();
            assert!(!matches!(received.event, Event::Unknown(_)), "{value}");
            assert_eq!((received.seq, received.event.name()), (Some(7), name(&event, Profile::Stock)));
        }
    }
}

#[test]
fn what_is_not_known_or_has_another_shape_is_kept() {
    for text in [
        r#"{"type":"mcp_list_tools.completed","x":1}"#,
        r#"{"type":"response.output_audio.delta","response_id":"r","delta":"???"}"#,
        r#"{"type":"response.done","response":3,"server_event_seq":9}"#,
    ] {
        let received = receive(text).unwrap();
        let Event::Unknown(value) = received.event else { panic!("{text}") };
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(received.seq, value["server_event_seq"].as_u64());
    }
    for wrong in ["", "{", "[]", "3", r#"{"type":3}"#, "\u{0}"] {
        assert!(receive(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn no_token_is_shown() {
    let created = r#"{"type":"session.created","session":{},"resume_token":"very-secret"}"#;
    let odd = r#"{"type":"session.created","resume_token":"very-secret"}"#;
    for text in [created, odd] {
        assert!(!format!("{:?}", Event::parse(text).unwrap()).contains("very"));
    }
}
