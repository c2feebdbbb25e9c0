//! A client that ends turns itself, changes their rules and takes back what it said.

use super::*;

const TALK: &str = "  \
  control: { use: session.in, kind: signal }
  turn: { use: speech.turn, fences: reply, silence-duration: 200ms, in: { in: mic, control: control } }
  guess:
    use: speech.guess
    in: { in: mic, control: control }
    lane: guess
    fences: guess
    silence-duration: 200ms
    speculate-after: 96ms
  asr: { use: test.hear, in: guess, lane: guess, delay: 30ms }
  heard: { use: speech.confirm, in: { text: asr, turn: turn.events } }
  text: { use: session.out, in: heard }
  unheard: { use: session.out, in: heard.unheard }
  events: { use: session.out, in: turn.events }
  utterance: { use: session.out, in: turn.utterance }
  answer: { use: test.answer, length: 1s, in: turn.utterance, lane: reply }
  speaker: { use: session.out, lane: reply, in: { from: answer, window: { span: 2s } } }
";

struct Talk {
    session: Session,
    mic: Option<Input>,
    control: Option<Input>,
    listeners: Vec<JoinHandle<Heard>>,
}

/// What came out of the outputs, in the order of `OUTPUTS`.
struct Came {
    text: Heard,
    unheard: Heard,
    events: Heard,
    utterance: Heard,
    speaker: Heard,
}

impl Talk {
    async fn begin() -> Self {
        let mut session = graph(TALK).await.open().unwrap();
        let begun = Instant::now();
        let listeners = ["text", "unheard", "events", "utterance", "speaker"]
            .map(|o| listen(&mut session, o, begun))
            .into_iter()
            .collect();
        let (mic, control) = (session.input("mic"), session.input("control"));
        Self { session, mic, control, listeners }
    }
    async fn speak(&mut self, pattern: &[(f32, usize)]) {
        speak(self.mic.as_mut().unwrap(), pattern).await;
    }
    async fn commit(&mut self) {
        let mic = self.mic.as_mut().unwrap();
        mic.send_last(Pcm::mono(16_000, Vec::new())).await.unwrap();
    }
    async fn tell(&mut self, name: &str, data: &str) {
        let signal = Signal::Named { name: name.into(), data: data.into() };
        self.control.as_mut().unwrap().send(signal).await.unwrap();
    }
    /// Where the microphone is, in samples.
    fn at(&self) -> u64 {
        self.mic.as_ref().unwrap().position().to_samples(16_000)
    }
    async fn end(mut self) -> Came {
        // Long enough for all that is under way.
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.mic.take().unwrap().end();
        self.control.take().unwrap().end();
        let mut all = Vec::new();
        for l in self.listeners {
            all.push(over(l).await);
        }
        finish(self.session).await;
        let mut all = all.into_iter();
        let mut next = || all.next().unwrap();
        Came { text: next(), unheard: next(), events: next(), utterance: next(), speaker: next() }
    }
}

impl Came {
    /// The turns that ended: start and end, ms, and why.
    fn turns(&self) -> Vec<(i64, i64, TurnEnd)> {
        let turn = |(_, s): &(u64, Signal)| match s {
            Signal::TurnEnded { start, end, reason, .. } => Some((start.as_millis(), end.as_millis(), *reason)),
            _ => None,
        };
        signals(&self.events).iter().filter_map(turn).collect()
    }
    /// Place of each utterance, ms.
    fn utterances(&self) -> Vec<(i64, i64)> {
        let place = |(_, o): &(u64, Out)| match o {
            Out::Data(s, Payload::Audio(a)) => {
                assert_eq!((a.len(), s.last), (s.len, true));
                Some((s.pts.as_millis(), (s.pts + s.len).as_millis()))
            }
            _ => None,
        };
        self.utterance.iter().filter_map(place).collect()
    }
    fn words(&self) -> Vec<String> {
        texts(&self.text).into_iter().map(|t| t.1).collect()
    }
    fn count(&self, is: fn(&Signal) -> bool) -> usize {
        signals(&self.events).iter().filter(|s| is(&s.1)).count()
    }
    fn starts(&self) -> usize {
        self.count(|s| matches!(s, Signal::SpeechStarted { .. }))
    }
    /// Each turn has words or none.
    fn balances(&self) {
        assert_eq!(self.turns().len(), texts(&self.text).len() + texts(&self.unheard).len());
    }
}

const BY_COMMIT: TurnEnd = TurnEnd::Committed;

#[tokio::test(start_paused = true)]
async fn a_commit_ends_the_turn_at_once_and_the_stream_lives_on() {
    let mut t = Talk::begin().await;
    t.speak(&[(0.9, 10)]).await;
    t.commit().await;
    // Nothing was said: only the event.
    t.speak(&[(0.0, 20)]).await;
    t.commit().await;
    t.commit().await;
    t.speak(&[(0.9, 5), (0.0, 20)]).await;
    let got = t.end().await;
    assert_eq!(
        got.turns(),
        [(0, 320, BY_COMMIT), (960, 960, BY_COMMIT), (960, 960, BY_COMMIT), (960, 1344, TurnEnd::Silence)]
    );
    assert_eq!(
        signals(&got.events).iter().find(|s| matches!(s.1, Signal::TurnEnded { .. })).unwrap().0,
        320,
        "at once"
    );
    assert_eq!(got.utterances(), [(0, 320), (960, 1344)]);
    assert_eq!(got.words(), ["0-320", "960-1216"], "the second by a guess");
    assert_eq!((got.starts(), got.count(|s| matches!(s, Signal::SpeechStopped { .. }))), (2, 2));
    got.balances();
}

#[tokio::test(start_paused = true)]
async fn by_hand_a_turn_is_what_was_sent_until_the_commit() {
    let mut t = Talk::begin().await;
    t.tell("turn.config", r#"{"at": 0, "mode": "manual"}"#).await;
    t.speak(&[(0.0, 10), (0.9, 10), (0.0, 40)]).await;
    t.commit().await;
    t.commit().await;
    t.speak(&[(0.0, 2)]).await;
    t.commit().await;
    // Back to detection, and 20 windows later by hand again, in the middle of a word.
    let at = t.at();
    t.tell("turn.config", &format!(r#"{{"at": {at}, "mode": "vad", "silence_duration_ms": 64}}"#)).await;
    let later = at + 20 * 512;
    t.tell("turn.config", &format!(r#"{{"at": {later}, "mode": "manual"}}"#)).await;
    t.speak(&[(0.9, 4), (0.0, 6), (0.9, 20), (0.0, 20)]).await;
    t.commit().await;
    let got = t.end().await;
    let (a, b, c) = (60 * 32, 62 * 32, 112 * 32);
    let want = [
        (0, a, BY_COMMIT),
        (a, a, BY_COMMIT),
        (a, b, BY_COMMIT),
        (b, b + 6 * 32, TurnEnd::Silence),
        (b + 6 * 32, c, BY_COMMIT),
    ];
    assert_eq!(got.turns(), want);
    assert_eq!(got.utterances().len(), 4);
    assert_eq!(got.words().len(), 4);
    assert_eq!(got.starts(), 2, "none by hand");
    got.balances();
}

#[tokio::test(start_paused = true)]
async fn a_clear_drops_what_was_said_before_it() {
    let mut t = Talk::begin().await;
    t.speak(&[(0.9, 10), (0.0, 4)]).await;
    // The guess is out; the turn would end two windows later.
    let at = t.at();
    t.tell("turn.clear", &format!(r#"{{"at": {at}}}"#)).await;
    t.speak(&[(0.0, 20), (0.9, 5)]).await;
    let at = t.at();
    t.tell("turn.clear", &format!(r#"{{"at": {at}}}"#)).await;
    t.speak(&[(0.0, 1)]).await;
    t.commit().await;
    let got = t.end().await;
    let (first, second) = (14 * 32, 39 * 32);
    let cleared: Vec<(u64, String)> = signals(&got.events)
        .into_iter()
        .filter_map(|(at, s)| match s {
            Signal::Named { name, data } if &*name == "turn.cleared" => Some((at, data.to_string())),
            _ => None,
        })
        .collect();
    let start = 34 * 512 - 4_800;
    let want = [
        (first + 32, format!(r#"{{"at":{},"start":0}}"#, 14 * 512)),
        (second + 32, format!(r#"{{"at":{},"start":{start}}}"#, 39 * 512)),
    ];
    assert_eq!(cleared, want);
    let end = second as i64 + 32;
    assert_eq!(got.turns(), [(end, end, BY_COMMIT)]);
    assert!(got.utterances().is_empty() && got.words().is_empty());
    assert_eq!(got.count(|s| matches!(s, Signal::SpeechStopped { .. })), 0);
    got.balances();
}

#[tokio::test(start_paused = true)]
async fn a_control_signal_acts_before_the_audio_that_is_sent_after_it() {
    let mut t = Talk::begin().await;
    let window = || Pcm::mono(16_000, vec![0.1; 512]).with_voice(0.9);
    // Both wait when the nodes run, and the signal counts first: no speech begins under the first rules.
    for data in [r#"{"threshold": 1.0}"#, "{}"] {
        t.tell("turn.config", data).await;
        for _ in 0..5 {
            t.mic.as_mut().unwrap().send(window()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let at = t.at();
        t.tell("turn.clear", &format!(r#"{{"at": {at}}}"#)).await;
    }
    t.speak(&[(0.0, 1)]).await;
    let got = t.end().await;
    let started: Vec<u64> =
        signals(&got.events).iter().filter(|s| matches!(s.1, Signal::SpeechStarted { .. })).map(|s| s.0).collect();
    assert_eq!(started, [100], "only under the second rules");
    assert!(got.turns().is_empty());
}

#[tokio::test(start_paused = true)]
async fn rules_that_are_wrong_change_nothing() {
    let mut t = Talk::begin().await;
    for data in [
        r#"{"at": 0, "threshold": 0.1}"#,
        r#"{"at": 0, "threshold": "loud"}"#,
        r#"{"at": 0, "mode": "magic"}"#,
        r#"{"at": 0, "silence_duration_ms": 99999999}"#,
        r#"{"at": 0, "silence": 1}"#,
        r#"{"at": -5, "mode": "manual"}"#,
        "no",
    ] {
        t.tell("turn.config", data).await;
    }
    t.tell("turn.clear", r#"{"at": 1.5}"#).await;
    t.tell("another", "").await;
    t.speak(&[(0.9, 10), (0.0, 10)]).await;
    let got = t.end().await;
    assert_eq!(got.turns(), [(0, 544, TurnEnd::Silence)]);
}

#[tokio::test(start_paused = true)]
async fn without_interruption_the_answer_plays_on() {
    for interrupt in [true, false] {
        let mut t = Talk::begin().await;
        t.tell("turn.config", &format!(r#"{{"at": 0, "interrupt": {interrupt}}}"#)).await;
        t.speak(&[(0.9, 10), (0.0, 10), (0.9, 5)]).await;
        t.commit().await;
        let got = t.end().await;
        let fences = got.speaker.iter().filter(|s| matches!(s.1, Out::Fence)).count();
        assert_eq!(fences, if interrupt { 2 } else { 0 });
        assert_eq!(got.turns().len(), 2);
        assert_eq!(pieces(&got.speaker).iter().filter(|p| p.last).count(), 2);
    }
}
