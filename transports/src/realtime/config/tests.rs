//! Opening, changing and showing a session's configuration.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::capability::Capabilities;
use super::facts::SessionFacts;
use super::format::{AudioFormat, Encoding};
use super::overlap::{CommitPolicy, OverlapPolicy};
use super::*;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::profile::Profile;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
fn open_as(profile: Profile, can: &Capabilities, given: Value) -> Result<SessionConfig, Refusal> {
    SessionConfig::open(profile, &map(given), can, &Defaults { model: Some("m".into()), ..Defaults::default() })
}
fn open(given: Value) -> Result<SessionConfig, Refusal> {
    open_as(Profile::Duplex, &Capabilities::profile_d(20), given)
}
fn show(config: &SessionConfig, profile: Profile) -> Value {
    config.to_json(&SessionFacts::default(), profile)
}
const RUNNING: Phase = Phase { audio_sent: false, context_locked: false, started: true };

#[test]
fn each_profile_has_its_defaults() {
    for (profile, input_rate, vad) in
        [(Profile::Stock, 24_000, true), (Profile::Beta, 24_000, true), (Profile::Duplex, 16_000, false)]
    {
        let config = open_as(profile, &Capabilities::profile_d(20), json!({})).unwrap();
        assert_eq!((config.input, config.output), (AudioFormat::pcm16(input_rate), AudioFormat::pcm16(24_000)));
        assert_eq!(config.turn_detection.is_some(), vad);
        let policy = if vad { OverlapPolicy::BargeInOnSpeech } else { OverlapPolicy::ListenOnly };
        assert_eq!((config.overlap.policy, config.auto_response), (policy, false));
    }
    let native = open_as(Profile::Stock, &Capabilities::profile_b(), json!({})).unwrap();
    assert_eq!((native.turn_detection, native.auto_response), (None, true));
    let defaults = Defaults { input_rate_hz: Some(24_000), server_vad: Some(true), ..Defaults::default() };
    let set = SessionConfig::open(Profile::Duplex, &Map::new(), &Capabilities::profile_d(20), &defaults).unwrap();
    assert_eq!((set.input.rate_hz, set.turn_detection.is_some()), (24_000, true));
}

#[test]
fn nested_wins_over_flat_and_extra_body_over_the_top() {
    let config = open(json!({
        "voice": "flat", "input_audio_format": "g711_ulaw", "output_audio_format": "pcm16", "speed": 2,
        "modalities": ["text", "audio"], "output_modalities": ["audio"], "turn_detection": {"type": "server_vad"},
        "input_audio_transcription": {"model": "flat"}, "max_tokens": 1, "max_output_tokens": 2,
        "overlap_short_ack_ms": 1, "overlap_barge_in_ms": 2, "playback_commit_policy": "commit_all_on_done",
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 48000}, "turn_detection": null,
                "transcription": {"model": "nested"}, "noise_reduction": {"type": "near_field"}},
            "output": {"format": {"type": "audio/pcma"}, "voice": {"id": "nested"}, "speed": 1.5},
        },
        "extra_body": {"overlap_policy": "auto", "overlap_short_ack_ms": 11, "playback_commit_policy": "ack_only",
            "auto_response": true, "force_listen_count": 3, "duplex_initial_user_text": "hi", "mine": 1},
    }))
    .unwrap();
    assert_eq!((config.voice.as_deref(), config.speed), (Some("nested"), Some(1.5)));
    assert!(config.unknown.is_empty());
    assert_eq!(config.input, AudioFormat::pcm16(48_000));
    assert_eq!(config.output, AudioFormat { encoding: Encoding::Alaw, rate_hz: 8_000 });
    assert_eq!(config.modalities, [modality::Modality::Audio]);
    assert_eq!(config.turn_detection, None);
    assert_eq!(config.transcription, Some(json!({"model": "nested"})));
    assert_eq!(config.max_output_tokens, Some(2));
    assert_eq!(config.overlap.policy, OverlapPolicy::Auto);
    assert_eq!((config.overlap.short_ack_ms, config.overlap.barge_in_ms), (11, 2));
    assert_eq!(config.playback_commit_policy, CommitPolicy::AckOnly);
    assert_eq!((config.auto_response, config.force_listen_count), (true, Some(3)));
    assert_eq!(config.initial_user_text.as_deref(), Some("hi"));
    let shown = show(&config, Profile::Duplex);
    assert_eq!(shown["extra_body"]["mine"], 1);
    assert_eq!(shown["extra_body"].get("overlap_policy"), None);
    assert_eq!((&shown["voice"], &shown["audio"]["output"]["voice"]), (&json!("nested"), &json!("nested")));
    assert_eq!((&shown["input_audio_format"], &shown["output_audio_format"]), (&json!("pcm16"), &json!("g711_alaw")));
    let newer = open(json!({"initial_user_text": "new", "extra_body": {"duplex_initial_user_text": "old"}})).unwrap();
    assert_eq!(newer.initial_user_text.as_deref(), Some("new"));
}

#[test]
fn what_cannot_be_had_is_refused_by_code_and_field() {
    let long = "x".repeat(1 << 20);
    for (given, code, param) in [
        (json!({"type": "transcription"}), Code::InvalidSessionConfig, Some("type")),
        (json!({"model": 4}), Code::InvalidSessionConfig, Some("model")),
        (json!({"modalities": ["smell"]}), Code::InvalidSessionConfig, Some("modalities")),
        (json!({"output_modalities": []}), Code::InvalidSessionConfig, Some("output_modalities")),
        (json!({"instructions": []}), Code::InvalidSessionConfig, Some("instructions")),
        (json!({"temperature": true}), Code::InvalidSessionConfig, Some("temperature")),
        (json!({"temperature": -1}), Code::InvalidSessionConfig, Some("temperature")),
        (json!({"speed": 0}), Code::InvalidSessionConfig, Some("speed")),
        (json!({"max_tokens": 0}), Code::InvalidSessionConfig, Some("max_tokens")),
        (json!({"idle_timeout_s": 0}), Code::InvalidSessionConfig, Some("idle_timeout_s")),
        (json!({"idle_timeout_s": true}), Code::InvalidSessionConfig, Some("idle_timeout_s")),
        (json!({"tools": {}}), Code::InvalidSessionConfig, Some("tools")),
        (json!({"tool_choice": 1}), Code::InvalidSessionConfig, Some("tool_choice")),
        (json!({"metadata": []}), Code::InvalidSessionConfig, Some("metadata")),
        (json!({"audio": 1}), Code::InvalidSessionConfig, Some("audio")),
        (json!({"audio": {"input": 1}}), Code::InvalidSessionConfig, Some("audio.input")),
        (
            json!({"audio": {"input": {"transcription": 1}}}),
            Code::InvalidSessionConfig,
            Some("audio.input.transcription"),
        ),
        (json!({"extra_body": 1}), Code::InvalidSessionConfig, Some("extra_body")),
        (json!({"instructions": long}), Code::InvalidSessionConfig, None),
        (json!({"overlap_policy": "loud"}), Code::BadEvent, Some("overlap_policy")),
        (json!({"overlap_policy": 1}), Code::BadEvent, Some("overlap_policy")),
        (json!({"extra_body": {"overlap_policy": "loud"}}), Code::BadEvent, Some("overlap_policy")),
        (json!({"overlap_short_ack_ms": -1}), Code::BadEvent, Some("overlap_short_ack_ms")),
        (json!({"overlap_barge_in_ms": 1.5}), Code::BadEvent, Some("overlap_barge_in_ms")),
        (json!({"overlap_silence_rms": true}), Code::BadEvent, Some("overlap_silence_rms")),
        (json!({"playback_commit_policy": "none"}), Code::BadEvent, Some("playback_commit_policy")),
        (json!({"input_audio_format": "mp3"}), Code::UnsupportedAudioFormat, Some("input_audio_format")),
        (json!({"output_audio_format": "pcm_f32le"}), Code::UnsupportedAudioFormat, Some("output_audio_format")),
        (
            json!({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 4000}}}}),
            Code::UnsupportedAudioFormat,
            Some("audio.output.format.rate"),
        ),
        (json!({"turn_detection": {"type": "magic_vad"}}), Code::UnsupportedTurnDetection, Some("turn_detection.type")),
        (
            json!({"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.1}}}}),
            Code::UnsupportedTurnDetection,
            Some("audio.input.turn_detection.threshold"),
        ),
        (json!({"overlap_policy": "barge_in_on_speech"}), Code::UnsupportedTurnDetection, Some("overlap_policy")),
        (
            json!({"turn_detection": {"type": "server_vad"}, "overlap_policy": "auto"}),
            Code::UnsupportedTurnDetection,
            Some("overlap_policy"),
        ),
        (
            json!({"turn_detection": {"type": "server_vad"}, "overlap_policy": "listen_only"}),
            Code::UnsupportedTurnDetection,
            Some("overlap_policy"),
        ),
        (json!({"ref_audio": "/etc/voice.wav"}), Code::UnsupportedRefAudioPath, Some("ref_audio")),
        (json!({"ref_audio": "file:///x.wav"}), Code::UnsupportedRefAudioPath, Some("ref_audio")),
        (json!({"extra_body": {"epoch": 4}}), Code::InvalidDuplexRuntimeConfig, Some("extra_body.epoch")),
        (json!({"extra_body": {"duplex_x": 4}}), Code::InvalidDuplexRuntimeConfig, Some("extra_body.duplex_x")),
        (
            json!({"extra_body": {"auto_response": 1}}),
            Code::InvalidDuplexRuntimeConfig,
            Some("extra_body.auto_response"),
        ),
        (
            json!({"extra_body": {"force_listen_count": -1}}),
            Code::InvalidDuplexRuntimeConfig,
            Some("extra_body.force_listen_count"),
        ),
    ] {
        let refusal = open(given).unwrap_err();
        assert_eq!((refusal.code, refusal.param.as_deref()), (code, param), "{}", refusal.message);
    }
}

#[test]
fn turn_detection_sets_the_policy_and_back() {
    let can = Capabilities::profile_d(20);
    let start = open(json!({"overlap_policy": "auto"})).unwrap();
    let update = |c: &SessionConfig, given: Value| c.update(&map(given), &can, &RUNNING).unwrap();
    let vad = update(&start, json!({"turn_detection": {"type": "server_vad"}}));
    assert_eq!(vad.overlap.policy, OverlapPolicy::BargeInOnSpeech);
    assert_eq!(update(&vad, json!({"turn_detection": null})).overlap.policy, OverlapPolicy::ListenOnly);
    let auto = update(&vad, json!({"turn_detection": null, "overlap_policy": "auto"}));
    assert_eq!(auto.overlap.policy, OverlapPolicy::Auto);
    assert_eq!(update(&vad, json!({"temperature": 1})).overlap.policy, OverlapPolicy::BargeInOnSpeech);
    let quiet = update(&vad, json!({"turn_detection": {"type": "server_vad", "interrupt_response": false}}));
    assert_eq!(quiet.overlap.policy, OverlapPolicy::ListenOnly);
    let semantic = json!({"type": "semantic_vad", "eagerness": "high"});
    let shown = show(&update(&start, json!({"audio": {"input": {"turn_detection": semantic}}})), Profile::Stock);
    assert_eq!((&shown["turn_detection"], &shown["audio"]["input"]["turn_detection"]), (&semantic, &semantic));
}

#[test]
fn an_update_follows_the_table() {
    let (cascaded, native) = (Capabilities::profile_d(20), Capabilities::profile_a());
    let fixed = Capabilities { fixed_voice: true, fixed_persona: true, ..cascaded.clone() };
    let spoke = Phase { audio_sent: true, context_locked: true, started: true };
    let locked = Phase { context_locked: true, ..RUNNING };
    let ok = None;
    let voice = || json!({"voice": "other"});
    let words = || json!({"instructions": "other"});
    for (can, phase, given, code) in [
        (&cascaded, RUNNING, json!({"model": "other"}), Some(Code::ModelUpdateUnsupported)),
        (&cascaded, RUNNING, json!({"model": "m"}), ok),
        (&cascaded, Phase::default(), json!({"model": "other", "ref_audio": "data:,", "voice": "x"}), ok),
        (&cascaded, RUNNING, voice(), ok),
        (&native, RUNNING, voice(), ok),
        (&cascaded, spoke, voice(), Some(Code::VoiceUpdateAfterAudioUnsupported)),
        (&cascaded, spoke, json!({"audio": {"output": {"voice": "x"}}}), Some(Code::VoiceUpdateAfterAudioUnsupported)),
        (&cascaded, spoke, json!({"voice": "v"}), ok),
        (&fixed, RUNNING, voice(), Some(Code::VoiceUpdateUnsupported)),
        (&fixed, Phase::default(), voice(), ok),
        (&cascaded, RUNNING, json!({"ref_audio": "data:,"}), Some(Code::RefAudioUpdateUnsupported)),
        (&cascaded, spoke, words(), ok),
        (&native, RUNNING, words(), ok),
        (&native, locked, words(), Some(Code::InstructionsUpdateUnsupported)),
        (&native, locked, json!({"instructions": null}), Some(Code::InstructionsUpdateUnsupported)),
        (&native, locked, json!({"instructions": "be kind"}), ok),
        (&fixed, RUNNING, words(), Some(Code::PersonaUpdateUnsupported)),
        (&fixed, Phase::default(), words(), ok),
        (
            &cascaded,
            spoke,
            json!({"temperature": 0.1, "speed": 2, "tools": [], "max_tokens": 9, "overlap_short_ack_ms": 5,
            "playback_commit_policy": "ack_only", "output_audio_format": "g711_ulaw"}),
            ok,
        ),
    ] {
        let start = open_as(Profile::Duplex, can, json!({"voice": "v", "instructions": "be kind"})).unwrap();
        let got = start.update(&map(given.clone()), can, &phase);
        assert_eq!(got.as_ref().err().map(|r| r.code), code, "{given}");
        assert!(code.is_some() || got.is_ok_and(|c| c != start || given.to_string().len() < 30), "{given} did nothing");
    }
}

#[test]
fn null_clears_and_a_shown_session_can_be_sent_back() {
    let full = json!({"tools": [{"name": "t"}], "tool_choice": "none", "metadata": {"a": "b"}, "include": ["x"],
        "prompt": {"id": "p"}, "tracing": "auto", "input_audio_transcription": {"model": "w"},
        "input_audio_noise_reduction": {"type": "near_field"}, "future": [1], "audio": {"input": {"later": 2}}});
    let config = open(full).unwrap();
    let shown = show(&config, Profile::Duplex);
    assert_eq!((&shown["future"], &shown["audio"]["input"]["later"]), (&json!([1]), &json!(2)));
    assert_eq!((&shown["metadata"], &shown["tracing"]), (&json!({"a": "b"}), &json!("auto")));
    let again = config.update(&map(shown.clone()), &Capabilities::profile_d(20), &RUNNING).unwrap();
    assert_eq!(show(&again, Profile::Duplex), shown);
    let nulls = json!({"tools": null, "tool_choice": null, "metadata": null, "include": null, "prompt": null,
        "tracing": null, "audio": null});
    let cleared = show(&config.update(&map(nulls), &Capabilities::profile_d(20), &RUNNING).unwrap(), Profile::Duplex);
    assert_eq!((&cleared["tools"], &cleared["tool_choice"]), (&json!([]), &json!("auto")));
    for name in ["metadata", "include", "prompt", "tracing", "input_audio_transcription", "input_audio_noise_reduction"]
    {
        assert_eq!(cleared[name], Value::Null, "{name}");
    }
    assert_eq!(cleared["audio"]["input"].get("later"), None);
    let mine = open(json!({"id": "mine", "session_id": "mine", "epoch": 9, "state": "closed"})).unwrap();
    assert_eq!((&show(&mine, Profile::Duplex)["id"], mine.unknown.len()), (&json!(""), 0));
}

#[test]
fn stock_clients_get_the_types_they_insist_on() {
    let can = Capabilities::profile_d(20);
    let given = json!({"tool_choice": {"type": "function", "name": "f"},
        "audio": {"input": {"transcription": {"model": "w", "language": "en", "prompt": "p", "delay": 3}}}});
    let facts = SessionFacts { expires_at: 1_900_000_000, capabilities: can.clone(), ..SessionFacts::default() };
    for profile in [Profile::Stock, Profile::Beta] {
        let shown = open_as(profile, &can, given.clone()).unwrap().to_json(&facts, profile);
        let pcm = json!({"type": "audio/pcm", "rate": 24000});
        assert_eq!((&shown["audio"]["input"]["format"], &shown["audio"]["output"]["format"]), (&pcm, &pcm));
        assert_eq!((&shown["type"], &shown["object"]), (&json!("realtime"), &json!("realtime.session")));
        assert!(shown["voice"].is_string() && shown["audio"]["output"]["voice"].is_string());
        assert!(shown["tool_choice"].is_string() && shown["expires_at"].is_u64());
        let words = json!({"model": "w", "language": "en", "prompt": "p"});
        assert_eq!((&shown["audio"]["input"]["transcription"], &shown["input_audio_transcription"]), (&words, &words));
        let td = &shown["audio"]["input"]["turn_detection"];
        assert!(td["silence_duration_ms"].is_u64() && td["threshold"].is_f64() && td["type"] == "server_vad");
        assert_eq!(shown["capabilities"]["implementation_level"], "turn_based_duplex");
    }
    let duplex = open(given.clone()).unwrap();
    assert_eq!(show(&duplex, Profile::Duplex)["tool_choice"], given["tool_choice"]);
    assert_eq!(show(&duplex, Profile::Duplex)["voice"], Value::Null);
}

#[test]
fn a_long_voice_sample_is_not_repeated() {
    let sample = format!("data:audio/wav;base64,{}", "A".repeat(4 << 20));
    let config = open(json!({ "ref_audio": sample })).unwrap();
    assert_eq!(config.ref_audio.as_ref().map(String::len), Some(sample.len()));
    assert!(show(&config, Profile::Stock).to_string().len() < 16 * 1024);
}

fn any_field() -> impl Strategy<Value = (String, Value)> {
    let name = prop::sample::select(vec![
        "model",
        "voice",
        "instructions",
        "temperature",
        "speed",
        "modalities",
        "input_audio_format",
        "turn_detection",
        "overlap_policy",
        "overlap_short_ack_ms",
        "playback_commit_policy",
        "idle_timeout_s",
        "tools",
        "extra_body",
        "audio",
        "max_tokens",
        "ref_audio",
        "future",
    ]);
    let value = prop::sample::select(vec![
        json!(null),
        json!("x"),
        json!("auto"),
        json!("pcm16"),
        json!("barge_in_on_speech"),
        json!("ack_only"),
        json!(1),
        json!(-1),
        json!(0.5),
        json!(true),
        json!(["audio"]),
        json!([]),
        json!({"type": "server_vad"}),
        json!({"auto_response": true, "overlap_policy": "auto"}),
        json!({"input": {"format": "g711_ulaw"}}),
        json!("data:,"),
        json!({"output": {"voice": "y", "speed": 3}}),
        json!({"epoch": 1}),
    ]);
    (name.prop_map(str::to_owned), value)
}

proptest! {
    #[test]
    fn an_update_is_all_or_nothing(
        first in prop::collection::vec(any_field(), 0..3), second in prop::collection::vec(any_field(), 1..5),
        audio_sent in any::<bool>(), context_locked in any::<bool>(), started in any::<bool>(), native in any::<bool>(),
    ) {
        let can = if native { Capabilities::profile_a() } else { Capabilities::profile_d(20) };
        let phase = Phase { audio_sent, context_locked, started };
        let given: Map<_, _> = second.into_iter().collect();
        let Ok(start) = open_as(Profile::Duplex, &can, Value::Object(first.into_iter().collect())) else { return Ok(()) };
        let before = start.clone();
        let after = start.update(&given, &can, &phase);
        prop_assert_eq!(&start, &before);
        // What is accepted is in effect in whole: applying it again changes nothing, and policy and detection agree.
        match after {
            Ok(after) => {
                prop_assert_eq!(after.update(&given, &can, &phase), Ok(after.clone()));
                let barge_in = after.overlap.policy == OverlapPolicy::BargeInOnSpeech;
                prop_assert_eq!(barge_in, after.turn_detection.as_ref().is_some_and(|td| td.interrupt_response));
                if let Some(Value::String(voice)) = given.get("voice") {
                    let nested = given.get("audio").is_some_and(|a| a.get("output").is_some());
                    prop_assert!(nested || after.voice.as_ref() == Some(voice));
                }
            }
            Err(refusal) => prop_assert!(!refusal.message.is_empty()),
        }
    }
}
