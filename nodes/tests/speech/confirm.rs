//! Guesses, their withdrawal, and the transcripts that come late or never.

use super::*;

fn guessing(hear: &str) -> String {
    format!(
        "  \
  turn: {{ use: speech.turn, in: mic, fences: reply, silence-duration: 200ms }}
  guess: {{ use: speech.guess, in: mic, lane: guess, fences: guess, silence-duration: 200ms, speculate-after: 96ms }}
  asr: {{ use: test.hear, in: guess, lane: guess, {hear} }}
  heard: {{ use: speech.confirm, in: {{ text: asr, turn: turn.events }} }}
  text: {{ use: session.out, in: heard }}
  unheard: {{ use: session.out, in: heard.unheard }}
  raw: {{ use: session.out, in: asr, lane: guess }}
"
    )
}

/// What came out of `heard` and of the recogniser.
async fn listen_to(hear: &str, pattern: &[(f32, usize)]) -> (Heard, Heard) {
    let g = graph(&guessing(hear)).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let (text, raw) = (listen(&mut s, "text", begun), listen(&mut s, "raw", begun));
    speak(&mut mic, pattern).await;
    mic.end();
    let got = (over(text).await, over(raw).await);
    finish(s).await;
    got
}

/// When, and for the turn from where on (ms), no word was heard.
fn unheard(heard: &Heard) -> Vec<(u64, i64)> {
    let empty = |(at, o): &(u64, Out)| match o {
        Out::Data(stamp, Payload::Text(t)) => {
            assert!(t.is_empty() && stamp.last);
            Some((*at, stamp.pts.as_millis()))
        }
        _ => None,
    };
    heard.iter().filter_map(empty).collect()
}

fn words(heard: &Heard) -> Vec<String> {
    texts(heard).into_iter().map(|t| t.1).collect()
}

#[tokio::test(start_paused = true)]
async fn a_guess_that_held_is_heard_the_moment_the_turn_ends() {
    // Speech ends at 320 ms; the guess comes at 416, its transcript at 446, the end of the turn at 544.
    let (text, raw) = listen_to("delay: 30ms", &[(0.9, 10), (0.0, 20)]).await;
    assert_eq!(texts(&raw), [(446, "0-416".to_owned())]);
    assert_eq!(texts(&text), [(544, "0-416".to_owned())]);
    let Out::Data(stamp, _) = &text.iter().find(|t| matches!(t.1, Out::Data(..))).unwrap().1 else { panic!() };
    assert_eq!(stamp.epochs.of(Lane::new(2).unwrap()), Epochs::FIRST.of(reply()), "no epoch of the guesses leaks");
    assert!(stamp.epochs.of(reply()) > Epochs::FIRST.of(reply()), "the answer to it is of the turn");
    assert!(stamp.last && stamp.pts == MediaTime::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_guess_never_passes_and_the_later_transcript_does() {
    // The speaker goes on at 448 ms, after the guess (416 ms) and before the turn's end.
    let pattern = [(0.9, 10), (0.0, 4), (0.9, 5), (0.0, 20)];
    // The first transcript was: not yet there, there and waiting, hours away.
    for (delay, at) in [("delay: 200ms", 704 + 200), ("delay: 10ms", 832), ("delay: 2s", 704 + 2_000)] {
        let (text, raw) = listen_to(delay, &pattern).await;
        assert_eq!(texts(&text), [(at, "0-704".to_owned())], "{delay}");
        assert!(raw.iter().any(|r| matches!(r.1, Out::Fence)), "{delay}: the lane was fenced");
        let last = texts(&raw).pop().unwrap().1;
        assert_eq!(last, "0-704");
    }
}

#[tokio::test(start_paused = true)]
async fn a_speaker_who_hesitates_many_times_is_heard_once() {
    let mut pattern = Vec::new();
    for _ in 0..12 {
        pattern.extend([(0.9, 4), (0.0, 5)]);
    }
    pattern.extend([(0.9, 4), (0.0, 20)]);
    let end = 12 * 9 * 32 + 4 * 32 + 96;
    for delay in ["delay: 1ms", "delay: 60ms", "delay: 500ms"] {
        let (text, _) = listen_to(delay, &pattern).await;
        assert_eq!(words(&text), [format!("0-{end}")], "{delay}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_turns_are_heard_in_order_each_once() {
    let mut pattern = Vec::new();
    for _ in 0..25 {
        pattern.extend([(0.9, 6), (0.0, 20)]);
    }
    for delay in ["delay: 1ms", "delay: 250ms"] {
        let (text, raw) = listen_to(delay, &pattern).await;
        assert_eq!(words(&text), words(&raw), "{delay}");
        assert_eq!(texts(&text).len(), 25, "{delay}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_never_comes_holds_nothing_up() {
    // The first utterance gives none: the second turn's passes, and the stream ends.
    let (text, _) = listen_to("delay: 30ms, deaf: 1", &[(0.9, 6), (0.0, 20), (0.9, 6), (0.0, 20)]).await;
    assert_eq!(texts(&text).len(), 1);
    assert_eq!(texts(&text)[0].0, 832 + 192 + 224);
    // None ever: the stream ends all the same.
    let (text, raw) = listen_to("delay: 30ms, deaf: 9", &[(0.9, 6), (0.0, 20), (0.9, 6), (0.0, 20)]).await;
    assert!(texts(&text).is_empty() && texts(&raw).is_empty());
}

const BARE: &str = "  \
  said: { use: session.in, kind: text }
  ends: { use: session.in, kind: signal }
  heard: { use: speech.confirm, in: { text: said, turn: ends } }
  text: { use: session.out, in: heard }
  unheard: { use: session.out, in: heard.unheard }
  ear: { use: session.out, in: mic }
";

fn ms(ms: i64) -> MediaTime {
    MediaTime::from_millis(ms)
}
fn ended(start: i64, speech_end: i64) -> Signal {
    Signal::TurnEnded {
        start: ms(start),
        speech_end: ms(speech_end),
        end: ms(speech_end + 200),
        reason: TurnEnd::Silence,
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_are_found_in_any_order_and_what_waits_is_bounded() {
    let g = graph(BARE).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    s.input("mic").unwrap().end();
    listen(&mut s, "ear", begun);
    let (mut said, mut ends) = (s.input("said").unwrap(), s.input("ends").unwrap());
    let text = listen(&mut s, "text", begun);
    let without = listen(&mut s, "unheard", begun);
    let step = || tokio::time::sleep(Duration::from_millis(1));
    // Transcripts whose turns never end, more than are kept; then one whose turn does.
    for k in 0..40 {
        said.send_at(ms(k * 10), ms(5), Arc::<str>::from(format!("lost {k}"))).await.unwrap();
        step().await;
    }
    said.send_at(ms(10_000), ms(900), Arc::<str>::from("first")).await.unwrap();
    step().await;
    ends.send(ended(10_000, 10_900)).await.unwrap();
    step().await;
    // Turns without a transcript, more than are kept; then a transcript of the latest.
    for k in 0..40 {
        ends.send(ended(20_000 + k * 100, 20_050 + k * 100)).await.unwrap();
        step().await;
    }
    // One that reaches not quite to the end of the speech is of an earlier guess.
    said.send_at(ms(23_900), ms(49), Arc::<str>::from("too short")).await.unwrap();
    step().await;
    said.send_at(ms(23_900), ms(50), Arc::<str>::from("second")).await.unwrap();
    step().await;
    // Nothing was said in it: its turn passes nothing.
    ends.send(ended(30_000, 30_100)).await.unwrap();
    said.send_at(ms(30_000), ms(100), Arc::<str>::from("  ")).await.unwrap();
    step().await;
    ends.end();
    step().await;
    said.end();
    let (text, without) = (over(text).await, unheard(&over(without).await));
    finish(s).await;
    assert_eq!(words(&text), ["first", "second"]);
    // 42 turns ended: two had words, and each of the others is told once.
    let mut turns: Vec<i64> = without.iter().map(|u| u.1).collect();
    turns.sort_unstable();
    let mut want: Vec<i64> = (0..39).map(|k| 20_000 + k * 100).collect();
    want.push(30_000);
    assert_eq!(turns, want);
}

#[tokio::test(start_paused = true)]
async fn each_turn_has_its_words_or_is_told_to_have_none() {
    let g = graph(&guessing("delay: 30ms, deaf: 1")).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let (text, raw, without) =
        (listen(&mut s, "text", begun), listen(&mut s, "raw", begun), listen(&mut s, "unheard", begun));
    // The recogniser gives nothing for the first turn. The third is committed in silence, and has no audio.
    speak(&mut mic, &[(0.9, 6), (0.0, 20), (0.9, 6), (0.0, 20)]).await;
    mic.send_last(Pcm::mono(16_000, Vec::new())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    mic.end();
    let (text, without) = (over(text).await, over(without).await);
    over(raw).await;
    finish(s).await;
    let second = 26 * 32 + 6 * 32 + 224;
    assert_eq!(texts(&text), [(second, "532-1120".to_owned())]);
    // The first is given up when the second has its words.
    assert_eq!(unheard(&without), [(second, 0), (52 * 32, 52 * 32)]);
}
