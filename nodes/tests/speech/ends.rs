//! The user hangs up: in every phase, what was said is answered, and the stream ends.

use super::*;

const TALK: &str = "  \
  turn: { use: speech.turn, in: mic, fences: reply, silence-duration: 200ms }
  guess: { use: speech.guess, in: mic, lane: guess, fences: guess, silence-duration: 200ms, speculate-after: 96ms }
  asr: { use: test.hear, in: guess, lane: guess, delay: 100ms }
  heard: { use: speech.confirm, in: { text: asr, turn: turn.events } }
  text: { use: session.out, in: heard }
  answer: { use: test.answer, length: 1s, in: turn.utterance, lane: reply }
  playout: { use: speech.playout, lane: reply, in: { from: answer, window: { span: 2s } } }
  speaker: { use: session.out, lane: reply, in: playout.audio }
";

/// Probabilities of speech, each with a number of windows.
type Spoken = &'static [(f32, usize)];

#[tokio::test(start_paused = true)]
async fn hanging_up_ends_the_stream_in_every_phase() {
    // What is spoken before the end, and how many turns it is.
    let phases: [(&str, Spoken, usize); 8] = [
        ("nothing came", &[], 0),
        ("silence", &[(0.0, 30)], 0),
        ("a sound too short", &[(0.0, 5), (0.9, 2)], 0),
        ("in the middle of a word", &[(0.9, 10)], 1),
        ("in the silence before the guess", &[(0.9, 10), (0.0, 2)], 1),
        ("between the guess and the end of the turn", &[(0.9, 10), (0.0, 4)], 1),
        ("the answer has begun", &[(0.9, 10), (0.0, 12)], 1),
        ("after a barge-in", &[(0.9, 10), (0.0, 12), (0.9, 6)], 2),
    ];
    for (phase, pattern, turns) in phases {
        let mut s = graph(TALK).await.open().unwrap();
        let begun = Instant::now();
        let mut mic = s.input("mic").unwrap();
        let (text, speaker) = (listen(&mut s, "text", begun), listen(&mut s, "speaker", begun));
        speak(&mut mic, pattern).await;
        mic.end();
        let (text, speaker) = (over(text).await, over(speaker).await);
        finish(s).await;
        assert_eq!(texts(&text).len(), turns, "{phase}: {text:?}");
        let last: Vec<Piece> = pieces(&speaker).into_iter().filter(|p| p.answer == turns as u32).collect();
        assert_eq!(last.iter().map(|p| p.samples).sum::<u32>(), RATE * turns.min(1) as u32, "{phase}: whole");
        if turns > 0 {
            let s = speaker.iter().rev().find_map(|(at, o)| matches!(o, Out::End(_)).then_some(*at)).unwrap();
            assert!(s >= last[0].at + 980, "{phase}: at the pace of a listener");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_without_a_word_ends_the_session_in_error() {
    let mut s = graph(TALK).await.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let (text, speaker) = (listen(&mut s, "text", begun), listen(&mut s, "speaker", begun));
    speak(&mut mic, &[(0.9, 10), (0.0, 12)]).await;
    drop(mic);
    for listener in [text, speaker] {
        let all = tokio::time::timeout(MOST, listener).await.expect("it ends").unwrap();
        assert!(matches!(all.last(), Some((_, Out::End(Some(_))))), "{:?}", all.last());
    }
    tokio::time::timeout(MOST, s.wait()).await.expect("it ends").unwrap_err();
}
