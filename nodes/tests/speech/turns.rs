//! `chat.turns`: what is asked of a model, after what was said, heard and interrupted.

use omni_flow_nodes::chat::{Message, Prompt, Role};
use tokio::time::sleep;

use super::*;

/// Answers each prompt word by word, each after so long: with what the last message said, and a word more.
struct Model {
    pause: Duration,
}
#[derive(Deserialize)]
struct ModelConfig {
    pause: Dur,
}
impl Node for Model {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Signal>("in")?;
        let mut out = cx.output::<Arc<str>>("text")?;
        let clock = cx.clock().clone();
        loop {
            let (stamp, signal) = match input.next().await {
                Event::Data(stamp, signal) => (stamp, signal),
                Event::Fence(_) => continue,
                Event::End(_) => return Ok(()),
            };
            let last = prompt(&signal).messages.pop().unwrap();
            for word in last.content.split_whitespace().chain(["indeed."]) {
                clock.sleep_until(clock.now().plus(self.pause)).await;
                out.send(&stamp.last(false), format!("{word} ").into()).await;
            }
            out.send(&stamp.last(true), "".into()).await;
        }
    }
}
impl Make for Model {
    const NAME: &'static str = "test.model";
    type Config = ModelConfig;
    fn schema() -> Schema {
        Schema::new("answers prompts")
            .input(Port::new("in", Kind::of(Medium::Signal), "prompts"))
            .output(Port::new("text", Kind::of(Medium::Text), "answers"))
            .option(Opt::required("pause", "duration", "before each word"))
            .example("x: { use: test.model, pause: 1s, in: y }")
    }
    fn build(c: &ModelConfig, _: &BuildCx) -> Result<Body, BuildError> {
        let pause = c.pause.0;
        Ok(Body::node(move || Model { pause }))
    }
}

fn prompt(signal: &Signal) -> Prompt {
    match signal {
        Signal::Named { name, data } if **name == *Prompt::NAME => Prompt::parse(data).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A graph with these nodes, and a model among the types; the microphone is not used.
async fn open(nodes: &str) -> Session {
    let yaml = format!("graph: g\nsession: {{ mode: duplex }}\nlanes: [reply]\nnodes:\n{nodes}");
    let mut known = registry().unwrap();
    known.add::<Model>().unwrap();
    let file = GraphFile::parse("test.yaml", &yaml).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&known, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let engine = Engine::builder().clock(Clock::tokio()).inline().build().unwrap();
    engine.start(plan).await.unwrap().open().unwrap()
}

/// A conversation with the model, whose answers come back.
const LOOP: &str = "  heard: { use: session.in, kind: text }
  turns: { use: chat.turns, in: { heard: heard, said: llm }, system: Be kind., max-turns: 3 }
  llm: { use: test.model, pause: 100ms, lane: reply, in: turns.prompt }
  said: { use: session.out, lane: reply, in: llm }
  prompts: { use: session.out, in: turns.prompt }
";

/// The same without a model: the test says what comes back.
const OPEN: &str = "  heard: { use: session.in, kind: text }
  said: { use: session.in, kind: text, lane: reply }
  played: { use: session.in, kind: signal, lane: reply }
  turns: { use: chat.turns, in: { heard: heard, said: said, played: played } }
  prompts: { use: session.out, in: turns.prompt }
";

/// Takes one prompt; the messages, each as `u:...`, `a:...` or `s:...`.
async fn asked(prompts: &mut In<Payload>) -> Vec<String> {
    match tokio::time::timeout(MOST, prompts.next()).await.expect("a prompt comes") {
        Event::Data(stamp, Payload::Signal(s)) => {
            assert!(stamp.last, "a prompt is a whole segment");
            told(prompt(&s).messages)
        }
        other => panic!("{other:?}"),
    }
}

fn told(messages: Vec<Message>) -> Vec<String> {
    let role = |m: &Message| match m.role {
        Role::System => "s",
        Role::User => "u",
        _ => "a",
    };
    messages.iter().map(|m| format!("{}:{}", role(m), m.content)).collect()
}

async fn nothing(prompts: &mut In<Payload>) {
    assert!(tokio::time::timeout(Duration::from_millis(50), prompts.next()).await.is_err(), "no prompt comes");
}

async fn say(input: &mut Input, text: &str) {
    input.send(Arc::<str>::from(text)).await.unwrap();
}

async fn part(input: &mut Input, text: &str, last: bool) {
    let text = Arc::<str>::from(text);
    let sent = if last { input.send_last(text).await } else { input.send(text).await };
    sent.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_text_is_answered_once_the_answer_before_it_is_whole() {
    let mut s = open(LOOP).await;
    let begun = Instant::now();
    let mut heard = s.input("heard").unwrap();
    let said = listen(&mut s, "said", begun);
    let prompts = listen(&mut s, "prompts", begun);
    for text in [" Rome is old. ", "  ", "So is Paris.", "And Bonn?", "Is it?"] {
        say(&mut heard, text).await;
    }
    heard.end();
    let (said, prompts) = (over(said).await, over(prompts).await);
    finish(s).await;
    let got: Vec<(u64, Vec<String>)> =
        signals(&prompts).iter().map(|(at, s)| (*at, told(prompt(s).messages))).collect();
    // Four words, four, three: a hundred milliseconds each.
    assert_eq!(got.iter().map(|g| g.0).collect::<Vec<_>>(), [0, 400, 800, 1_100]);
    assert_eq!(got[0].1, ["s:Be kind.", "u:Rome is old."]);
    let second = ["s:Be kind.", "u:Rome is old.", "a:Rome is old. indeed. ", "u:So is Paris."];
    assert_eq!(got[1].1, second);
    // Three turns are kept.
    assert_eq!(got[3].1.len(), 6);
    assert_eq!(got[3].1[1..3], ["u:So is Paris.", "a:So is Paris. indeed. "]);
    assert_eq!(texts(&said).len(), 4 + 4 + 3 + 3 + 4);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_answer_is_kept_as_far_as_it_was_heard() {
    let mut s = open(OPEN).await;
    let [mut heard, mut said, mut played] = ["heard", "said", "played"].map(|n| s.input(n).unwrap());
    let mut prompts = s.output("prompts").unwrap();
    say(&mut heard, "One?").await;
    assert_eq!(asked(&mut prompts).await, ["u:One?"]);
    part(&mut said, "Well, ", false).await;
    // It waits for the answer, and a fence makes it void with that; of which nothing was played.
    say(&mut heard, "Two?").await;
    nothing(&mut prompts).await;
    s.fence(reply());
    nothing(&mut prompts).await;
    say(&mut heard, "Three?").await;
    assert_eq!(asked(&mut prompts).await, ["u:One?\nTwo?\nThree?"]);
    part(&mut said, "It is ", false).await;
    part(&mut said, "two.", true).await;
    sleep(Duration::from_millis(1)).await;
    s.fence(reply());
    played.send(Signal::Played { until: MediaTime::from_millis(300) }).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    say(&mut heard, "Four?").await;
    assert_eq!(asked(&mut prompts).await[1..], ["a:It is two.", "u:Four?"]);
    // Whole, and played to its end: nothing is cut by what comes after it.
    part(&mut said, "Four.", true).await;
    sleep(Duration::from_millis(1)).await;
    played.send(Signal::Played { until: MediaTime::from_millis(900) }).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    s.fence(reply());
    say(&mut heard, "Five?").await;
    assert_eq!(asked(&mut prompts).await[3..], ["a:Four.", "u:Five?"]);
    drop((heard, said, played));
    assert!(matches!(prompts.next().await, Event::End(_)));
}

#[tokio::test(start_paused = true)]
async fn with_its_audio_an_answer_is_cut_where_it_was_interrupted() {
    let graph = OPEN.replace(
        "turns: { use: chat.turns, in: { heard: heard, said: said,",
        "spoken: { use: session.in, audio: { rate: 16000 }, lane: reply }\n  \
         turns: { use: chat.turns, in: { heard: heard, said: said, spoken: spoken,",
    );
    let mut s = open(&graph).await;
    let [mut heard, mut said, mut spoken, mut played] =
        ["heard", "said", "spoken", "played"].map(|n| s.input(n).unwrap());
    let mut prompts = s.output("prompts").unwrap();
    say(&mut heard, "Tell me.").await;
    asked(&mut prompts).await;
    for (text, last) in [("One two three.", false), ("0123456789", false), ("And so on.", true)] {
        part(&mut said, text, last).await;
    }
    // A second of audio for each of the first two.
    for last in [false, true, false, true] {
        let audio = Pcm::mono(16_000, vec![0.0; 8_000]);
        let sent = if last { spoken.send_last(audio).await } else { spoken.send(audio).await };
        sent.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(1)).await;
    s.fence(reply());
    played.send(Signal::Played { until: MediaTime::from_millis(1_400) }).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    say(&mut heard, "Stop.").await;
    assert_eq!(asked(&mut prompts).await, ["u:Tell me.", "a:One two three. 0123", "u:Stop."]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_owns_the_conversation() {
    let nodes = "  heard: { use: session.in, kind: text }
  ask: { use: session.in, kind: signal }
  turns: { use: chat.turns, in: { heard: heard, ask: ask } }
  prompts: { use: session.out, in: turns.prompt }
";
    let named = |name: &str, data: &str| Signal::Named { name: name.into(), data: data.into() };
    for first in [Prompt::NAME, "chat.own"] {
        let mut s = open(nodes).await;
        let [mut heard, mut ask] = ["heard", "ask"].map(|n| s.input(n).unwrap());
        let mut prompts = s.output("prompts").unwrap();
        ask.send(named("other", "{}")).await.unwrap();
        say(&mut heard, "Hello?").await;
        assert_eq!(asked(&mut prompts).await, ["u:Hello?"]);
        let json = Prompt::new(vec![Message::user("Theirs.")]).to_json();
        ask.send(named(first, &json)).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        say(&mut heard, "Hello again?").await;
        if first == Prompt::NAME {
            assert_eq!(asked(&mut prompts).await, ["u:Theirs."]);
        }
        nothing(&mut prompts).await;
        // What it asks passes at once, as it is.
        for _ in 0..3 {
            ask.send(named(Prompt::NAME, &json)).await.unwrap();
        }
        for _ in 0..3 {
            assert_eq!(asked(&mut prompts).await, ["u:Theirs."]);
        }
        heard.end();
        ask.end();
        assert!(matches!(prompts.next().await, Event::End(Terminal::End)));
        finish(s).await;
    }
}
