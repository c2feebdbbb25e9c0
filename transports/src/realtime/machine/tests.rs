//! The session machine against a graph that is played by the test, and against random streams of everything.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::realtime::config::Defaults;
use crate::realtime::wire::client::{MOST_BYTES, parse};
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::project::{Envelope, project};
use crate::realtime::wire::server::response::Usage;

/// A session with what a test wants to know of its effects.
struct Run {
    session: Session,
    profile: Profile,
    /// Events as the client gets them.
    told: Vec<Value>,
    /// Commands for the graph, audio as its length.
    asked: Vec<String>,
    key: u64,
    prompt: Prompt,
    /// The socket takes what it is given.
    reads: bool,
    /// What it has not taken, audio by its response.
    waiting: VecDeque<(Option<Arc<str>>, Vec<Value>)>,
}

impl Run {
    fn new(profile: Profile, capabilities: Capabilities, traits: GraphTraits, given: Value) -> Self {
        let Value::Object(given) = given else { panic!("an object") };
        let config = SessionConfig::open(profile, &given, &capabilities, &Defaults::default()).unwrap();
        let (session, effects) = Session::open(Opening {
            id: "duplex-1".to_owned(),
            config,
            capabilities,
            traits,
            ids: Ids::new(1),
            expires_at: 0,
            short_acks: Vec::new(),
            pending: pending::Limits::default(),
            conversation: conversation::Limits::default(),
            silence_units: 8,
            configured: false,
        });
        let mut me = Self {
            session,
            profile,
            told: Vec::new(),
            asked: Vec::new(),
            key: 0,
            prompt: Prompt::default(),
            reads: true,
            waiting: VecDeque::new(),
        };
        me.take(effects);
        me
    }
    /// A graph that answers committed turns, as the scripted one.
    fn manual() -> Self {
        let traits = GraphTraits { speaks: true, ..GraphTraits::default() };
        let mut capabilities = Capabilities::profile_d(1000);
        capabilities.text_only_turn = false;
        Self::new(Profile::Duplex, capabilities, traits, json!({}))
    }
    /// A cascade: it finds turns and writes down what was said.
    fn cascade(profile: Profile) -> Self {
        let traits = GraphTraits { transcribes: true, detects: true, speaks: true, aligned: true };
        Self::new(profile, Capabilities::profile_d(200), traits, json!({}))
    }
    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Tell(event) => {
                    let envelope = Envelope { event_id: "e".to_owned(), server_event_seq: None };
                    let shown = project(&event, self.profile, &envelope);
                    let of = match &event {
                        ServerEvent::AudioDelta(d) => Some(d.place.response_id.clone()),
                        _ => None,
                    };
                    match (&event, self.waiting.back_mut()) {
                        // The words of audio that waits go with it.
                        (ServerEvent::TranscriptDelta { .. }, Some((Some(_), events))) => events.extend(shown),
                        _ => self.waiting.push_back((of, shown.into_iter().collect())),
                    }
                }
                Effect::Graph(GraphCommand::Audio { samples, .. }) => {
                    self.asked.push(format!("audio {}", samples.len()))
                }
                Effect::Graph(GraphCommand::Answer { key, prompt }) => {
                    self.key = key;
                    self.prompt = *prompt;
                    self.asked.push("answer".to_owned());
                }
                Effect::Graph(GraphCommand::Detect(d)) => self.asked.push(format!("detect {}", d.is_some())),
                Effect::Graph(other) => self.asked.push(format!("{other:?}").to_lowercase()),
                Effect::Purge(response) => {
                    self.waiting.retain(|(of, _)| of.as_ref() != Some(&response));
                    self.asked.push("purge".to_owned());
                }
                Effect::Over { reason } => self.asked.push(format!("over {reason}")),
            }
        }
        self.read(self.reads);
    }
    /// Whether the socket takes what it is given; it takes all that waits once it does. What a cancel takes back it never
    /// gets.
    fn read(&mut self, reads: bool) {
        self.reads = reads;
        while self.reads
            && let Some((response, events)) = self.waiting.pop_front()
        {
            self.told.extend(events);
            if let Some(response) = response {
                let effects = self.session.sent(&response);
                self.take(effects);
            }
        }
    }
    fn say(&mut self, event: Value) -> &mut Self {
        let effects = match parse(&event.to_string(), MOST_BYTES) {
            Ok(incoming) => self.session.client(incoming),
            Err(rejected) => self.session.refuse(rejected.refusal, rejected.event_id),
        };
        self.take(effects);
        self
    }
    fn graph(&mut self, event: GraphEvent) -> &mut Self {
        let effects = self.session.graph(event);
        self.take(effects);
        self
    }
    fn part(&mut self, part: AnswerPart) -> &mut Self {
        let key = self.key;
        self.graph(GraphEvent::Answer { key, part })
    }
    fn speak(&mut self, text: &str, ms: u64) -> &mut Self {
        self.part(AnswerPart::Text(text.to_owned()));
        let samples = vec![0.1; (ms * 24) as usize].into();
        self.part(AnswerPart::Audio { samples, rate_hz: 24_000, spoken_chars: None })
    }
    fn end(&mut self) -> &mut Self {
        self.part(AnswerPart::End { usage: Usage::default(), cut: false })
    }
    /// Appends speech or silence of so many ms.
    fn append(&mut self, ms: u64, speech: bool) -> &mut Self {
        self.say(append(ms, speech))
    }
    /// A turn that is answered.
    fn ask(&mut self) -> &mut Self {
        self.append(500, true).say(json!({"type": "input.commit"}))
    }
    /// Names of the events since the last look.
    fn names(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told).iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect()
    }
    fn last(&self, name: &str) -> &Value {
        self.told.iter().rev().find(|e| e["type"] == name).unwrap_or_else(|| panic!("no {name} in {:#?}", self.told))
    }
    fn code(&self) -> &str {
        self.last("error")["error"]["code"].as_str().unwrap()
    }
}

fn append(ms: u64, speech: bool) -> Value {
    json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(vec![0u8; (ms * 32) as usize]),
        "is_speech": speech})
}

#[test]
fn a_turn_and_its_answer_come_in_the_order_of_the_protocol() {
    let mut run = Run::manual();
    run.ask();
    let input = [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "conversation.item.added",
        "conversation.item.created",
        "input_audio_buffer.committed",
        "conversation.item.done",
        "response.created",
    ];
    let item = run.last("conversation.item.done")["item"]["id"].clone();
    assert!(run.told[..5].iter().all(|e| e["item_id"] == item || e["item"]["id"] == item));
    assert_eq!(run.names(), input);
    run.speak("Hello ", 200).speak("there.", 100);
    assert_eq!(run.told[4]["metadata"]["audio_duration_ms"], 200);
    assert_eq!(
        run.names(),
        [
            "conversation.item.added",
            "conversation.item.created",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_audio.delta",
            "response.output_audio_transcript.delta",
            "response.output_audio.delta",
            "response.output_audio_transcript.delta"
        ]
    );
    run.end();
    assert_eq!(run.last("response.output_audio_transcript.done")["transcript"], "Hello there.");
    assert_eq!(run.last("response.done")["response"]["status"], "completed");
    assert_eq!(
        run.names(),
        [
            "response.output_audio.done",
            "response.output_audio_transcript.done",
            "response.content_part.done",
            "response.output_item.done",
            "conversation.item.done",
            "response.done",
            "rate_limits.updated"
        ]
    );
    assert_eq!(run.session.view().facts.turn_id, 1);
}

#[test]
fn a_cancel_ends_the_answer_with_one_tail_and_nothing_after_it() {
    let mut run = Run::manual();
    run.ask().speak("Hello ", 200);
    run.names();
    run.asked.clear();
    run.say(json!({"type": "response.cancel"}));
    let done = run.last("response.done")["response"].clone();
    assert_eq!((&done["status"], &done["status_details"]["reason"]), (&json!("cancelled"), &json!("client_cancelled")));
    assert_eq!(run.asked, ["purge", "fence"]);
    run.names();
    run.speak("more", 100).end();
    assert_eq!(run.names(), Vec::<String>::new());
    run.say(json!({"type": "response.cancel", "event_id": "c"}));
    assert_eq!(run.code(), "response_cancel_not_active");
    assert_eq!(run.last("error")["error"]["event_id"], "c");
    run.ask().speak("Again.", 100).end();
    assert_eq!(run.last("response.done")["response"]["status"], "completed");
    assert_eq!(run.session.view().facts.epoch, 1);
}

#[test]
fn clearing_the_output_is_told_before_the_tail() {
    let mut run = Run::manual();
    run.ask().speak("Hello", 200);
    run.names();
    run.say(json!({"type": "output_audio_buffer.clear"}));
    assert_eq!(run.last("response.done")["response"]["status_details"]["reason"], "output_audio_buffer_clear");
    assert_eq!(run.names()[0], "output_audio_buffer.cleared");
}

#[test]
fn what_cannot_be_answered_is_refused_and_consumed() {
    let mut run = Run::manual();
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.code(), "response_create_without_input");
    run.say(json!({"type": "conversation.item.create", "item": {"content": [{"type": "input_text", "text": "hi"}]}}));
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.code(), "text_only_turn_unsupported");
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.code(), "response_create_without_input");
    run.say(json!({"type": "input_audio_buffer.commit"}));
    assert_eq!(run.code(), "input_audio_buffer_commit_empty");
    run.append(500, true).say(json!({"type": "input_audio_buffer.clear"}));
    run.say(json!({"type": "input_audio_buffer.commit"}));
    assert_eq!(run.code(), "input_audio_buffer_commit_empty");
    run.ask();
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.code(), "conversation_already_has_active_response");
}

#[test]
fn silence_is_committed_and_not_answered() {
    let mut run = Run::manual();
    run.append(500, false).say(json!({"type": "input.commit"}));
    assert_eq!(run.last("input_audio_buffer.committed")["event"]["no_response"], true);
    assert_eq!(run.last("response.listen")["response"]["metadata"]["reason"], "silence_or_noise");
    assert!(!run.asked.contains(&"answer".to_owned()));
}

#[test]
fn refused_audio_leaves_the_buffer_as_it_was() {
    let mut run = Run::manual();
    run.append(1000, true);
    let audio = STANDARD.encode([0u8; 320]);
    for (event, code) in [
        (json!({"type": "input_audio_buffer.append", "audio": "%%"}), "bad_audio"),
        (json!({"type": "input_audio_buffer.append", "audio": audio, "format": "mp3"}), "unsupported_audio_format"),
        (
            json!({"type": "input_audio_buffer.append", "audio": audio, "video_frames": ["/9j/4AAQ"]}),
            "invalid_video_frames",
        ),
    ] {
        run.asked.clear();
        run.say(event);
        assert_eq!((run.code(), run.asked.len()), (code, 0));
    }
}

#[test]
fn a_fifth_commit_waits_until_a_turn_is_done() {
    let mut run = Run::manual();
    for _ in 0..5 {
        run.ask();
    }
    // The first runs; four wait.
    run.ask();
    assert_eq!(run.code(), "input_backpressure");
    run.told.clear();
    run.end();
    run.say(json!({"type": "input.commit"}));
    assert!(run.told.iter().all(|e| e["type"] != "error"), "{:#?}", run.told);
}

#[test]
fn a_cascade_answers_what_it_heard_and_falls_silent_when_spoken_to() {
    for profile in Profile::ALL {
        let mut run = Run::cascade(profile);
        if profile == Profile::Duplex {
            run.say(json!({"type": "session.update", "session": {"turn_detection": {"type": "server_vad"}}}));
        }
        run.append(1000, true);
        run.graph(GraphEvent::SpeechStarted { at: 3_200 }).graph(GraphEvent::SpeechStopped { at: 14_000 });
        assert_eq!(run.last("input_audio_buffer.speech_started")["audio_start_ms"], 200);
        run.graph(GraphEvent::TurnEnded { start: 3_200, end: 16_000, committed: false });
        assert!(!run.asked.contains(&"answer".to_owned()), "not before the words are known");
        run.graph(GraphEvent::Transcript { start: 3_200, text: "How are you?".into() });
        let heard = run.last("conversation.item.input_audio_transcription.completed");
        assert_eq!((&heard["transcript"], &heard["usage"]["type"]), (&json!("How are you?"), &json!("duration")));
        assert_eq!(run.prompt.messages, [Message::User("How are you?".to_owned())]);
        run.speak("Very well, thank you.", 1000);
        run.say(json!({"type": "playback.ack", "played_ms": 500}));
        run.graph(GraphEvent::SpeechStarted { at: 32_000 });
        let done = &run.last("response.done")["response"];
        assert_eq!(
            (&done["status"], &done["status_details"]["reason"]),
            (&json!("cancelled"), &json!("turn_detected"))
        );
        run.graph(GraphEvent::TurnEnded { start: 32_000, end: 48_000, committed: false });
        run.graph(GraphEvent::Transcript { start: 32_000, text: "Stop.".into() });
        // The model remembers what was heard of its answer, and no more.
        let said = "Very well, thank you.";
        assert_eq!(run.prompt.messages[1], Message::Assistant(said[..10].to_owned()));
        assert_eq!(run.prompt.messages.len(), 3);
    }
}

#[test]
fn a_turn_without_words_is_not_answered() {
    let mut run = Run::cascade(Profile::Duplex);
    run.say(json!({"type": "session.update", "session": {"turn_detection": {"type": "server_vad"}}}));
    run.graph(GraphEvent::SpeechStarted { at: 0 });
    run.graph(GraphEvent::TurnEnded { start: 0, end: 8_000, committed: false });
    run.graph(GraphEvent::Transcript { start: 0, text: "".into() });
    assert_eq!(run.last("response.listen")["response"]["metadata"]["reason"], "silence_or_noise");
    assert!(!run.asked.contains(&"answer".to_owned()));
}

#[test]
fn a_function_is_called_and_its_result_answered() {
    let mut run = Run::cascade(Profile::Stock);
    run.say(json!({"type": "session.update", "session": {"type": "realtime", "tools": [{"type": "function", "name": "light"}]}}));
    run.say(
        json!({"type": "conversation.item.create", "item": {"content": [{"type": "input_text", "text": "Light!"}]}}),
    );
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.prompt.tools.len(), 1);
    run.part(AnswerPart::Call {
        call_id: Some("call_1".to_owned()),
        name: Some("light".to_owned()),
        arguments: "{}".to_owned(),
    });
    run.end();
    let item = &run.last("response.done")["response"]["output"][0];
    assert_eq!((&item["type"], &item["call_id"]), (&json!("function_call"), &json!("call_1")));
    run.say(json!({"type": "conversation.item.create",
        "item": {"type": "function_call_output", "call_id": "call_1", "output": "on"}}));
    run.say(json!({"type": "response.create"}));
    assert!(
        matches!(&run.prompt.messages[..], [Message::User(_), Message::Call { .. }, Message::CallOutput { output, .. }]
        if output == "on")
    );
    for (call, code) in [("call_1", "invalid_function_call_output"), ("call_9", "invalid_function_call_output")] {
        run.say(json!({"type": "conversation.item.create",
            "item": {"type": "function_call_output", "call_id": call, "output": "x"}}));
        assert_eq!(run.code(), code);
    }
    run.part(AnswerPart::Call { call_id: None, name: None, arguments: "{".to_owned() });
    assert_eq!(run.last("duplex.function_call.done")["event"]["arguments"], "{");
}

#[test]
fn a_truncated_answer_is_remembered_as_far_as_it_was_heard() {
    let mut run = Run::manual();
    run.session.traits.aligned = true;
    run.ask().speak("hello", 1000);
    let item = run.last("response.output_audio.delta")["item_id"].clone();
    run.say(json!({"type": "playback.ack", "played_ms": 400})).say(json!({"type": "response.cancel"}));
    run.say(json!({"type": "conversation.item.retrieve", "item_id": item}));
    assert_eq!(run.last("conversation.item.retrieved")["item"]["content"][0]["transcript"], "he");
    run.say(json!({"type": "conversation.item.truncate", "item_id": item, "audio_end_ms": 200}));
    assert_eq!(run.last("conversation.item.truncated")["audio_end_ms"], 200);
    run.say(json!({"type": "conversation.item.retrieve", "item_id": item}));
    assert_eq!(run.last("conversation.item.retrieved")["item"]["content"][0]["transcript"], "h");
    run.say(json!({"type": "playback.ack", "played_ms": 1, "item_id": "item_x", "response_id": "r"}));
    assert_eq!(run.code(), "playback_item_mismatch");
    run.say(json!({"type": "playback.ack", "played_ms": 1, "response_id": "r"}));
    assert_eq!(run.code(), "playback_item_not_found");
}

#[test]
fn a_session_ends_once() {
    let mut run = Run::manual();
    run.ask().speak("Hello", 100);
    run.names();
    run.say(json!({"type": "session.close", "reason": "done"}));
    assert_eq!(run.last("response.done")["response"]["status"], "cancelled");
    assert_eq!(run.asked.last().unwrap(), "over done");
    run.told.clear();
    run.say(json!({"type": "response.create", "event_id": "x"}));
    assert_eq!((run.code(), &run.last("error")["error"]["event_id"]), ("session_closed", &json!("x")));
    run.session.closed("done");
    run.say(json!({"type": "response.create"}));
    assert_eq!(run.code(), "unknown_session");
    assert_eq!(run.asked.iter().filter(|a| a.starts_with("over")).count(), 1);
}

#[test]
fn a_graph_that_fails_ends_the_answer_and_the_session() {
    let mut run = Run::manual();
    run.ask().speak("Hello", 100);
    run.names();
    run.graph(GraphEvent::Failed { message: "g/llm: no memory".to_owned() });
    assert_eq!(run.code(), "engine_error");
    assert_eq!(run.last("response.done")["response"]["status_details"]["error"]["code"], "engine_error");
    assert_eq!(run.names()[0], "error");
    assert_eq!(run.asked.last().unwrap(), "over engine_error");
}

#[derive(Clone, Debug)]
enum Op {
    Client(Value),
    Graph(u8, u64),
    /// The socket takes what it is given from now on, or does not.
    Reads(bool),
}

fn op() -> impl Strategy<Value = Op> {
    let client = prop_oneof![
        (20u64..700, any::<bool>()).prop_map(|(ms, speech)| append(ms, speech)),
        any::<Option<bool>>().prop_map(|r| json!({"type": "input_audio_buffer.commit", "response_create": r})),
        Just(json!({"type": "input.commit"})),
        Just(json!({"type": "input_audio_buffer.clear"})),
        Just(json!({"type": "input.cancel"})),
        Just(json!({"type": "input.text.append", "text": "more"})),
        Just(json!({"type": "response.create"})),
        Just(json!({"type": "response.create", "response": {"output_modalities": ["text"], "metadata": {"a": "b"}}})),
        Just(json!({"type": "response.cancel"})),
        Just(json!({"type": "response.cancel", "response_id": "none"})),
        Just(json!({"type": "output_audio_buffer.clear"})),
        Just(json!({"type": "barge_in"})),
        (0u64..2000, any::<bool>()).prop_map(|(ms, t)| json!({"type": "playback.ack", "played_ms": ms, "truncate": t})),
        Just(
            json!({"type": "conversation.item.create", "item": {"id": "a", "content": [{"type": "input_text", "text": "hi"}]}})
        ),
        Just(json!({"type": "conversation.item.delete", "item_id": "a"})),
        Just(json!({"type": "conversation.item.truncate", "item_id": "a", "audio_end_ms": 1})),
        prop_oneof![
            Just(json!(null)),
            Just(json!({"type": "server_vad"})),
            Just(json!({"type": "server_vad", "interrupt_response": false}))
        ]
        .prop_map(|t| json!({"type": "session.update", "session": {"turn_detection": t}})),
        Just(json!({"type": "session.update", "session": {"overlap_policy": "auto", "turn_detection": null}})),
        Just(json!({"type": "turn.signal", "event": "user_started"})),
    ];
    prop_oneof![
        3 => client.prop_map(Op::Client),
        4 => (0u8..12, 0u64..4).prop_map(|(k, n)| Op::Graph(k, n)),
        1 => any::<bool>().prop_map(Op::Reads),
    ]
}

/// Everything the events of one session must keep, whatever happened.
#[derive(Default)]
struct Law {
    /// Responses created, and those that are done.
    created: BTreeSet<String>,
    done: BTreeSet<String>,
    active: Option<String>,
    epoch: u64,
    transcripts: BTreeMap<String, String>,
    items: BTreeSet<String>,
}

impl Law {
    fn check(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        let id = event["response_id"].as_str().map(str::to_owned);
        match kind {
            "response.created" => {
                assert!(self.active.is_none(), "two at once");
                assert!(self.created.insert(id.clone().unwrap()), "a name twice");
                self.active = id;
            }
            "response.done" => {
                assert_eq!(self.active, id, "the end of another");
                assert!(self.done.insert(id.unwrap()), "two ends");
                self.active = None;
            }
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                assert_eq!(self.active, id);
                let delta = event["delta"].as_str().unwrap();
                self.transcripts.entry(id.unwrap()).or_default().push_str(delta);
            }
            "response.output_audio_transcript.done" => {
                assert_eq!(self.transcripts[&id.unwrap()], event["transcript"].as_str().unwrap());
            }
            "output_audio_buffer.cleared" => {}
            _ if id.is_some() && kind.starts_with("response.") => {
                assert_eq!(self.active, id, "{kind} of no active one")
            }
            "conversation.item.added" => {
                assert!(self.items.insert(event["item"]["id"].as_str().unwrap().to_owned()), "announced twice");
            }
            "conversation.item.deleted" => assert!(self.items.remove(event["item_id"].as_str().unwrap())),
            _ => {}
        }
        if let Some(epoch) = event["epoch"].as_u64() {
            assert!(epoch >= self.epoch, "the epoch goes back");
            self.epoch = epoch;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_law_holds_whatever_happens(ops in prop::collection::vec(op(), 1..60), cascade in any::<bool>()) {
        let mut run = if cascade { Run::cascade(Profile::Duplex) } else { Run::manual() };
        let mut law = Law::default();
        let (mut start, mut heard) = (0u64, 0u64);
        for op in ops {
            match op {
                Op::Client(event) => drop(run.say(event)),
                Op::Reads(reads) => run.read(reads),
                Op::Graph(kind, n) => {
                    let key = run.key.saturating_sub(n / 2);
                    let part = |part| GraphEvent::Answer { key, part };
                    let event = match kind {
                        0 => { start += 16_000; GraphEvent::SpeechStarted { at: start } }
                        1 => GraphEvent::SpeechStopped { at: start + 8_000 },
                        2 => GraphEvent::TurnEnded { start, end: start + 9_000, committed: n == 0 },
                        3 => { heard += 16_000; GraphEvent::Transcript { start: heard.min(start), text: "words".into() } }
                        4 => GraphEvent::Transcript { start, text: if n == 0 { "" } else { "words" }.into() },
                        5 | 6 => part(AnswerPart::Text("some text ".to_owned())),
                        7 | 8 => part(AnswerPart::Audio { samples: vec![0.1; 2400].into(), rate_hz: 24_000, spoken_chars: None }),
                        9 => part(AnswerPart::End { usage: Usage::default(), cut: n == 3 }),
                        10 => part(AnswerPart::Call { call_id: Some(format!("c{start}")), name: (n > 0).then(|| "f".to_owned()), arguments: "{}".to_owned() }),
                        _ => part(AnswerPart::Failed { message: "no".to_owned() }),
                    };
                    run.graph(event);
                }
            }
            for event in std::mem::take(&mut run.told) {
                law.check(&event);
            }
            let facts = run.session.view().facts;
            prop_assert!(!run.reads || facts.active_response_id == law.active);
            prop_assert!(facts.epoch >= law.epoch);
        }
        run.say(json!({"type": "session.close"}));
        run.read(true);
        for event in std::mem::take(&mut run.told) {
            law.check(&event);
        }
        prop_assert_eq!(law.created, law.done);
    }
}
