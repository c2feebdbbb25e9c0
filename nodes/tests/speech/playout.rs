//! `speech.playout` alone: audio comes as fast as it is made and leaves as fast as it is heard.

use super::*;

const PLAY: &str = "  \
  answer: { use: session.in, audio: { rate: 8000 }, lane: reply }
  playout: { use: speech.playout, lane: reply, in: { from: answer, window: { span: 1s } } }
  speaker: { use: session.out, lane: reply, in: playout.audio }
  played: { use: session.out, in: playout.played }
  ear: { use: session.out, in: mic }
";

struct Stage {
    session: Session,
    answer: Input,
    speaker: JoinHandle<Heard>,
    played: JoinHandle<Heard>,
}

async fn stage() -> Stage {
    let mut session = graph(PLAY).await.open().unwrap();
    let begun = Instant::now();
    session.input("mic").unwrap().end();
    let answer = session.input("answer").unwrap();
    let (speaker, played) = (listen(&mut session, "speaker", begun), listen(&mut session, "played", begun));
    listen(&mut session, "ear", begun);
    Stage { session, answer, speaker, played }
}

fn audio(answer: u32, from: u32, n: u32) -> Pcm {
    Pcm::mono(RATE, (from..from + n).map(|i| sample(answer, i)).collect())
}

fn used(s: &Session, edge: &str) -> Amount {
    s.stats().edges.iter().find(|e| e.name.starts_with(edge)).unwrap().used
}

#[tokio::test(start_paused = true)]
async fn frames_leave_at_the_pace_of_media_time_however_the_audio_comes() {
    for piece in [37, 160, 800, 8_000] {
        let mut s = stage().await;
        let mut at = 0;
        while at < 10 * RATE {
            let n = piece.min(10 * RATE - at);
            let pcm = audio(1, at, n);
            at += n;
            if at == 10 * RATE { s.answer.send_last(pcm).await } else { s.answer.send(pcm).await }.unwrap();
        }
        s.answer.end();
        let all = pieces(&over(s.speaker).await);
        assert_eq!(all.len(), 500, "pieces of {piece}");
        for (k, p) in all.iter().enumerate() {
            assert_eq!((p.first, p.samples), (k as u32 * 160, 160));
            assert_eq!(p.at, all[0].at + 20 * k as u64, "frame {k}, pieces of {piece}");
        }
        // It ends when the last sample has been heard, and says so.
        let told = signals(&over(s.played).await);
        let Some((at, Signal::Played { until })) = told.last() else { panic!("{told:?}") };
        assert_eq!((*at, *until), (all[0].at + 10_000, MediaTime::from_millis(10_000)));
        finish(s.session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn credit_returns_as_audio_leaves_and_is_whole_when_it_is_quiet() {
    let mut s = stage().await;
    let zero = used(&s.session, "answer.");
    assert_eq!(zero, Amount::default());
    // The window is a second: two seconds cannot be pushed before one of them has left.
    let begun = Instant::now();
    for k in 0..20 {
        s.answer.send(audio(1, k * 800, 800)).await.unwrap();
    }
    assert!((900..=1_100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    s.answer.send_last(Pcm::mono(RATE, vec![])).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for edge in ["answer.", "playout.audio", "playout.played"] {
        assert_eq!(used(&s.session, edge), Amount::default(), "{edge}");
    }
    // A fence in the middle of the next answer gives all back at once.
    for k in 0..5 {
        s.answer.send(audio(2, k * 800, 800)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(110)).await;
    assert!(used(&s.session, "answer.").span > MediaTime::ZERO, "it holds what it has not given out");
    s.session.fence(reply());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(used(&s.session, "answer."), Amount::default());
    s.answer.send_last(audio(3, 0, 1_600)).await.unwrap();
    s.answer.end();
    let all = pieces(&over(s.speaker).await);
    let of = |answer: u32| -> Vec<Piece> { all.iter().copied().filter(|p| p.answer == answer).collect() };
    assert_eq!(of(1).iter().map(|p| p.samples).sum::<u32>(), 16_000);
    // At 0, 20, ... and 100 ms.
    assert_eq!(of(2).iter().map(|p| p.samples).sum::<u32>(), 6 * 160);
    assert_eq!(of(3).iter().map(|p| p.samples).sum::<u32>(), 1_600);
    assert_eq!(of(3)[0].first, 0);
    finish(s.session).await;
    over(s.played).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_heard_at_a_fence_is_told() {
    let mut s = stage().await;
    let begun = Instant::now();
    s.answer.send(audio(1, 0, 8_000)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(330)).await;
    s.session.fence(reply());
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Nothing plays: a second fence has nothing to tell.
    s.session.fence(reply());
    tokio::time::sleep(Duration::from_millis(200)).await;
    s.answer.end();
    let told = signals(&over(s.played).await);
    let told: Vec<(u64, u64)> = told
        .iter()
        .filter_map(|(at, s)| match s {
            Signal::Played { until } => Some((*at, until.to_duration().as_millis() as u64)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(330, 330)], "since {begun:?}");
    let all = pieces(&over(s.speaker).await);
    assert!(all.iter().all(|p| p.at <= 330), "{all:?}");
    finish(s.session).await;
}

#[tokio::test(start_paused = true)]
async fn audio_that_is_made_too_slowly_is_played_late_and_whole() {
    let mut s = stage().await;
    for k in 0..10 {
        // 100 ms of audio every 150 ms.
        s.answer.send(audio(1, k * 800, 800)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    s.answer.end();
    let all = pieces(&over(s.speaker).await);
    assert_eq!(all.iter().map(|p| p.samples).sum::<u32>(), 8_000);
    assert!(all.windows(2).all(|w| w[0].first + w[0].samples == w[1].first));
    // What came late does not leave in a burst.
    assert!(all.windows(3).all(|w| w[2].at - w[0].at >= 20), "{all:?}");
    finish(s.session).await;
}
