use proptest::prelude::*;

use super::*;
use crate::realtime::{config::overlap::CommitPolicy, wire::server::response::Mark};

fn message(id: &str, text: &str) -> Item {
    let parts = vec![Part::Text(text.to_owned())];
    Item { id: id.to_owned(), body: Body::Message { role: Role::User, parts } }
}

fn call(id: &str, call_id: &str) -> Item {
    let (call_id, name, arguments) = (call_id.to_owned(), "book".to_owned(), "{}".to_owned());
    Item { id: id.to_owned(), body: Body::Call { call_id, name, arguments, answered: false } }
}

fn output(id: &str, call_id: &str, output: &str) -> Item {
    Item { id: id.to_owned(), body: Body::Output { call_id: call_id.to_owned(), output: output.to_owned() } }
}

fn answer(response: &str, policy: CommitPolicy, text: &str, ms: u64) -> Item {
    let mut answer = Answer::new(response, policy, 1000, true, true);
    answer.write(text);
    answer.generate(ms);
    answer.send(ms);
    Item::answer(answer)
}

fn ids(conversation: &Conversation) -> Vec<&str> {
    conversation.items().iter().map(|i| i.id.as_str()).collect()
}

/// The history as one word per item.
fn seen(conversation: &Conversation) -> Vec<String> {
    let word = |seen: Seen<'_>| match seen {
        Seen::Message { parts, .. } => match &parts[0] {
            Part::Text(text) => format!("user {text}"),
            other => format!("{other:?}"),
        },
        Seen::Answer(text) => format!("assistant {text}"),
        Seen::Call { call_id, output, .. } => format!("call {call_id} {}", output.unwrap_or("cancelled")),
    };
    conversation.history().map(word).collect()
}

fn ack(conversation: &mut Conversation, response: &str, ms: u64) -> Result<(), PlaybackError> {
    let answer = conversation.playing(Some(response), None, None)?;
    answer.ack(Ack { played_ms: ms, committed_ms: ms, truncate: false });
    Ok(())
}

#[test]
fn an_item_stands_where_it_was_put() {
    let mut all = Conversation::default();
    assert_eq!(all.insert(message("a", "1"), Place::End).unwrap().previous, None);
    assert_eq!(all.insert(message("b", "2"), Place::End).unwrap().previous.as_deref(), Some("a"));
    assert_eq!(all.insert(message("c", "3"), Place::After("a")).unwrap().previous.as_deref(), Some("a"));
    assert_eq!(all.insert(message("d", "4"), Place::First).unwrap().previous, None);
    assert_eq!(ids(&all), ["d", "a", "c", "b"]);
    assert_eq!((all.previous("b"), all.previous("d"), all.previous("x")), (Some("c"), None, None));
    assert_eq!(all.insert(message("e", "5"), Place::After("x")), Err(ItemError::NotFound("x".to_owned())));
    assert_eq!(all.insert(message("a", "6"), Place::End), Err(ItemError::Duplicate("a".to_owned())));
    assert_eq!(all.items().len(), 4);
}

#[test]
fn deleting_twice_finds_nothing() {
    let mut all = Conversation::default();
    all.insert(message("a", "1"), Place::End).unwrap();
    assert_eq!(all.delete("a").unwrap().id, "a");
    assert_eq!(all.delete("a").unwrap_err(), ItemError::NotFound("a".to_owned()));
    assert!(all.get("a").is_none() && all.history().next().is_none());
}

#[test]
fn only_heard_text_is_seen_and_it_is_the_same_in_item_and_history() {
    let text = "one two three four five six seven eight nine ten";
    let words: Vec<_> = text.split_inclusive(' ').collect();
    for (ms, want) in [(Some(3000), "one two three"), (Some(3500), "one two three fo"), (Some(0), ""), (None, "")] {
        let mut all = Conversation::default();
        all.insert(answer("r1", CommitPolicy::AckOnly, text, 10_000), Place::End).unwrap();
        let running = all.answer_mut("r1").unwrap();
        let mut chars = 0;
        for (index, word) in words.iter().enumerate() {
            chars += word.len() as u64;
            running.mark(Mark { text_chars: chars, audio_end_ms: 1000 * (index as u64 + 1) });
        }
        if let Some(ms) = ms {
            ack(&mut all, "r1", ms).unwrap();
        }
        assert!(seen(&all).is_empty(), "not while it runs");
        all.answer_mut("r1").unwrap().end(Outcome::Cancelled);
        all.insert(message("u2", "next"), Place::End).unwrap();
        all.freeze();
        assert_eq!(ack(&mut all, "r1", 10_000), Err(PlaybackError::TooLate("r1".to_owned())));
        assert_eq!(all.answer("r1").unwrap().heard(), want);
        let mut history = vec![format!("assistant {want}"), "user next".to_owned()];
        if want.is_empty() {
            history.remove(0);
        }
        assert_eq!(seen(&all), history);
    }
}

#[test]
fn a_deferred_turn_stands_after_the_answer_it_overlapped() {
    let mut all = Conversation::default();
    all.insert(answer("r1", CommitPolicy::CommitAllOnDone, "hello", 1000), Place::End).unwrap();
    all.insert(message("u2", "next"), Place::End).unwrap();
    all.freeze();
    assert!(ack(&mut all, "r1", 400).is_ok(), "a running answer is not settled by it");
    all.answer_mut("r1").unwrap().end(Outcome::Completed);
    assert_eq!(seen(&all), ["assistant hello", "user next"]);
}

#[test]
fn an_acknowledgement_finds_its_answer() {
    let mut all = Conversation::default();
    let found = |all: &mut Conversation, response, item, active| {
        all.playing(response, item, active).map(|a| a.response().to_owned())
    };
    assert!(matches!(found(&mut all, None, None, None), Err(PlaybackError::NotFound(_))));
    all.insert(answer("r1", CommitPolicy::CommitAllOnDone, "a", 1000), Place::End).unwrap();
    all.insert(message("item_x", "user"), Place::End).unwrap();
    let mismatch = PlaybackError::Mismatch { item: "item_x".to_owned(), response: "r1".to_owned() };
    assert_eq!(found(&mut all, Some("r1"), Some("item_x"), None), Err(mismatch));
    for (response, item) in [(Some("r9"), None), (None, Some("r1")), (None, Some("item_x"))] {
        assert!(
            matches!(found(&mut all, response, item, None), Err(PlaybackError::NotFound(_))),
            "{response:?} {item:?}"
        );
    }
    for (response, item) in [(Some("r1"), Some("item_r1")), (Some("r1"), None), (None, Some("item_r1")), (None, None)] {
        assert_eq!(found(&mut all, response, item, None).as_deref(), Ok("r1"));
    }
    // Two that are not settled: the active one.
    all.insert(answer("r2", CommitPolicy::CommitAllOnDone, "b", 1000), Place::End).unwrap();
    assert_eq!(found(&mut all, None, None, Some("r2")).as_deref(), Ok("r2"));
    assert!(found(&mut all, None, None, None).is_err());
    // A complete answer that was acknowledged in full is settled.
    all.answer_mut("r2").unwrap().end(Outcome::Completed);
    ack(&mut all, "r2", 1000).unwrap();
    assert_eq!(found(&mut all, None, None, Some("r2")).as_deref(), Ok("r1"));
}

#[test]
fn a_cut_is_clamped_and_nonsense_is_refused() {
    let mut all = Conversation::default();
    all.insert(answer("r1", CommitPolicy::CommitAllOnDone, "hello", 1000), Place::End).unwrap();
    all.insert(message("u", "x"), Place::End).unwrap();
    all.answer_mut("r1").unwrap().end(Outcome::Completed);
    assert!(matches!(all.truncate("item_r9", 0, 0), Err(PlaybackError::NotFound(_))));
    for (item, index, ms) in [("u", 0, 0), ("item_r1", 1, 0), ("item_r1", -1, 0), ("item_r1", 0, -1)] {
        assert!(matches!(all.truncate(item, index, ms), Err(PlaybackError::BadCut(_))), "{item} {index} {ms}");
    }
    assert_eq!(all.truncate("item_r1", 0, i64::MAX), Ok(1000));
    assert_eq!(seen(&all), ["assistant hello", "user x"]);
    assert_eq!(all.truncate("item_r1", 0, 400), Ok(400));
    assert_eq!(all.truncate("item_r1", 0, 800), Ok(800));
    assert_eq!(seen(&all), ["assistant he", "user x"]);
    all.freeze();
    assert!(matches!(all.truncate("item_r1", 0, 0), Err(PlaybackError::TooLate(_))));
    assert_eq!(seen(&all), ["assistant he", "user x"]);
}

#[test]
fn an_answer_cut_before_its_first_audio_may_be_truncated() {
    let mut all = Conversation::default();
    all.insert(answer("r1", CommitPolicy::CommitAllOnDone, "hello", 0), Place::End).unwrap();
    all.answer_mut("r1").unwrap().end(Outcome::Cancelled);
    assert_eq!(all.truncate("item_r1", 0, 700), Ok(0));
    assert!(seen(&all).is_empty());
}

#[test]
fn each_call_has_one_output_in_every_prompt() {
    let mut all = Conversation::default();
    all.insert(call("f1", "c1"), Place::End).unwrap();
    assert_eq!(all.insert(call("f2", "c1"), Place::End), Err(ItemError::DuplicateCall("c1".to_owned())));
    all.insert(message("u", "and?"), Place::End).unwrap();
    assert_eq!(seen(&all), ["call c1 cancelled", "user and?"]);
    assert_eq!(all.insert(output("o", "c9", "x"), Place::End), Err(ItemError::UnknownCall("c9".to_owned())));
    all.insert(output("o1", "c1", "done"), Place::End).unwrap();
    assert_eq!(seen(&all), ["call c1 done", "user and?"]);
    assert_eq!(all.insert(output("o2", "c1", "x"), Place::End), Err(ItemError::AnsweredCall("c1".to_owned())));
    all.delete("o1").unwrap();
    assert_eq!(seen(&all), ["call c1 cancelled", "user and?"]);
    assert_eq!(all.insert(output("o2", "c1", "x"), Place::End), Err(ItemError::AnsweredCall("c1".to_owned())));
    all.delete("f1").unwrap();
    assert_eq!(all.insert(output("o2", "c1", "x"), Place::End), Err(ItemError::UnknownCall("c1".to_owned())));
}

#[test]
fn a_refused_output_leaves_its_call_open() {
    let mut all = Conversation::default();
    all.insert(call("f1", "c1"), Place::End).unwrap();
    assert!(all.insert(output("f1", "c1", "x"), Place::End).is_err());
    assert!(all.insert(output("o", "c1", "x"), Place::After("none")).is_err());
    all.insert(output("o", "c1", "done"), Place::End).unwrap();
    assert_eq!(seen(&all), ["call c1 done"]);
}

#[test]
fn the_oldest_items_leave_and_a_running_answer_stays() {
    let mut all = Conversation::new(Limits { items: 3, bytes: 100 });
    all.insert(answer("r1", CommitPolicy::CommitAllOnDone, "hello", 1000), Place::End).unwrap();
    for id in ["a", "b"] {
        all.insert(message(id, "x"), Place::End).unwrap();
    }
    assert_eq!(all.insert(message("c", "x"), Place::First).unwrap().evicted, 1);
    assert_eq!(ids(&all), ["c", "item_r1", "b"]);
    let inserted = all.insert(message("d", &"x".repeat(86)), Place::End).unwrap();
    assert_eq!((inserted.evicted, ids(&all)), (2, vec!["item_r1", "d"]));
    let error = all.insert(message("e", &"x".repeat(100)), Place::End).unwrap_err();
    assert_eq!(error, ItemError::TooLarge { bytes: 101, limit: 100 });
}

proptest! {
    #[test]
    fn items_are_those_of_a_plain_list(steps in prop::collection::vec((0u8..5, 0usize..6, 0usize..6), 0..50)) {
        const IDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        let mut all = Conversation::default();
        let mut list: Vec<&str> = Vec::new();
        for (what, id, other) in steps {
            let (id, other) = (IDS[id], IDS[other]);
            if what == 4 {
                prop_assert_eq!(all.delete(id).is_ok(), list.contains(&id));
                list.retain(|i| *i != id);
            } else {
                let (place, at) = match what {
                    0 | 1 => (Place::End, Some(list.len())),
                    2 => (Place::First, Some(0)),
                    _ => (Place::After(other), list.iter().position(|i| *i == other).map(|p| p + 1)),
                };
                let want = at.filter(|_| !list.contains(&id));
                let got = all.insert(message(id, id), place);
                prop_assert_eq!(got.is_ok(), want.is_some());
                if let Some(at) = want {
                    list.insert(at, id);
                    let previous = got.unwrap().previous;
                    prop_assert_eq!(previous.as_deref(), at.checked_sub(1).map(|p| list[p]));
                }
            }
            prop_assert_eq!(ids(&all), list.clone());
            prop_assert_eq!(seen(&all), list.iter().map(|i| format!("user {i}")).collect::<Vec<_>>());
        }
    }
}
