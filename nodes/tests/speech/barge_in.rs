//! The user speaks while an answer is played.

use super::*;

const TALK: &str = "  \
  turn: { use: speech.turn, in: mic, fences: reply, silence-duration: 200ms }
  answer: { use: test.answer, length: 4s, in: turn.utterance, lane: reply }
  playout: { use: speech.playout, lane: reply, in: { from: answer, window: { span: 2s } } }
  speaker: { use: session.out, lane: reply, in: { from: playout.audio, window: { span: 200ms } } }
  played: { use: session.out, in: playout.played }
  events: { use: session.out, in: turn.events }
";

#[tokio::test(start_paused = true)]
async fn the_old_answer_falls_silent_and_the_next_one_plays_from_its_beginning() {
    let g = graph(TALK).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let speaker = listen(&mut s, "speaker", begun);
    let played = listen(&mut s, "played", begun);
    let events = listen(&mut s, "events", begun);
    // Turn 1 ends at (10 + 7) · 32 = 544 ms; the user begins again at 30 · 32 = 960 ms.
    speak(&mut mic, &[(0.9, 10), (0.0, 20), (0.9, 10), (0.0, 150)]).await;
    mic.end();
    let (speaker, played, events) = (over(speaker).await, over(played).await, over(events).await);
    finish(s).await;

    let events = signals(&events);
    let started: Vec<u64> =
        events.iter().filter(|e| matches!(e.1, Signal::SpeechStarted { .. })).map(|e| e.0).collect();
    // Three windows make it speech.
    assert_eq!(started, [96, 960 + 96]);
    let ended: Vec<u64> = events.iter().filter(|e| matches!(e.1, Signal::TurnEnded { .. })).map(|e| e.0).collect();
    assert_eq!(ended, [544, 960 + 544]);

    let fence = speaker.iter().rposition(|(_, o)| matches!(o, Out::Fence)).expect("the client is told");
    assert_eq!(speaker[fence].0, started[1], "told at the moment speech begins");
    let (before, after) = (pieces(&speaker[..fence].to_vec()), pieces(&speaker[fence..].to_vec()));
    assert!(before.iter().all(|p| p.answer == 1 && p.at <= started[1]), "{before:?}");
    assert_eq!((before[0].first, before[0].at), (0, ended[0]));
    // Frames of 20 ms on the grid: no more has left than was heard, and the frame that is being heard.
    let out: u32 = before.iter().map(|p| p.samples).sum();
    let heard = (started[1] - ended[0]) as u32 * RATE / 1_000;
    assert!((heard..=heard + RATE / 50).contains(&out), "{out} samples in the time of {heard}");
    // Nothing of the first answer afterwards; the second from its first sample to its last, without a gap.
    assert!(after.iter().all(|p| p.answer == 2), "{after:?}");
    assert_eq!((after[0].first, after[0].at), (0, ended[1]));
    assert!(after.windows(2).all(|w| w[0].first + w[0].samples == w[1].first));
    let end = after.last().unwrap();
    assert_eq!(end.first + end.samples, 4 * RATE);
    // The answer's epoch is that of its turn.
    let epochs: Vec<Epoch> = speaker
        .iter()
        .filter_map(|(_, o)| if let Out::Data(s, _) = o { Some(s.epochs.of(reply())) } else { None })
        .collect();
    assert!(epochs.is_sorted() && epochs[0] < epochs[epochs.len() - 1], "{epochs:?}");

    // What had been heard of the first answer at the fence, and all of the second one at its end.
    let told: Vec<(u64, u64)> = signals(&played)
        .iter()
        .map(|(at, s)| match s {
            Signal::Played { until } => (*at, until.to_duration().as_millis() as u64),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told[0], (started[1], started[1] - ended[0]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn each_of_several_turns_is_answered_once_and_in_order() {
    let g = graph(&TALK.replace("length: 4s", "length: 300ms")).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let speaker = listen(&mut s, "speaker", begun);
    let played = listen(&mut s, "played", begun);
    let events = listen(&mut s, "events", begun);
    for _ in 0..20 {
        // 640 ms of quiet: the answer begins after 224 ms and is over before the next word.
        speak(&mut mic, &[(0.9, 6), (0.0, 20)]).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let used: Vec<(String, Amount)> = s.stats().edges.into_iter().map(|e| (e.name, e.used)).collect();
        assert!(used.iter().all(|(_, u)| *u == Amount::default()), "credit is whole when it is quiet: {used:?}");
    }
    mic.end();
    let (speaker, played, events) = (over(speaker).await, over(played).await, over(events).await);
    finish(s).await;
    assert_eq!(signals(&events).iter().filter(|e| matches!(e.1, Signal::TurnEnded { .. })).count(), 20);
    let all = pieces(&speaker);
    let answers: Vec<u32> = all.chunk_by(|a, b| a.answer == b.answer).map(|c| c[0].answer).collect();
    assert_eq!(answers, (1..=20).collect::<Vec<_>>());
    for answer in all.chunk_by(|a, b| a.answer == b.answer) {
        assert_eq!(answer.iter().map(|p| p.samples).sum::<u32>(), RATE * 3 / 10, "whole: {answer:?}");
        assert_eq!(answer[0].first, 0);
    }
    assert!(!signals(&played).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_barges_in_again_and_again_gets_the_last_answer_alone() {
    let g = graph(TALK).await;
    let mut s = g.open().unwrap();
    let begun = Instant::now();
    let mut mic = s.input("mic").unwrap();
    let speaker = listen(&mut s, "speaker", begun);
    let played = listen(&mut s, "played", begun);
    let events = listen(&mut s, "events", begun);
    for _ in 0..10 {
        speak(&mut mic, &[(0.9, 5), (0.0, 8)]).await;
    }
    speak(&mut mic, &[(0.0, 140)]).await;
    mic.end();
    let (speaker, _, _) = (over(speaker).await, over(played).await, over(events).await);
    finish(s).await;
    let all = pieces(&speaker);
    assert!(all.windows(2).all(|w| w[0].answer <= w[1].answer), "no answer comes back");
    for answer in all.chunk_by(|a, b| a.answer == b.answer) {
        assert!(answer[0].first == 0 && answer.windows(2).all(|w| w[0].first + w[0].samples == w[1].first));
        let whole: u32 = answer.iter().map(|p| p.samples).sum();
        assert_eq!(whole == 4 * RATE, answer[0].answer == 10, "{} samples of {}", whole, answer[0].answer);
    }
}
