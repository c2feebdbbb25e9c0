//! A microphone that hears nothing for many minutes, through the real detector as fast as it goes. A test of its own
//! process, because it looks at the memory of all of it.

#![cfg(feature = "silero")]

use omni_flow::*;
use omni_flow_nodes::catalogue::cache_root;
use omni_flow_nodes::registry::registry;

const GRAPH: &str = "graph: g\nsession: { mode: duplex }\nlanes: [reply, guess]\nnodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  vad: { use: speech.vad, in: mic }
  turn: { use: speech.turn, in: vad, fences: reply }
  guess: { use: speech.guess, in: vad, lane: guess, fences: guess }
  events: { use: session.out, in: turn.events }
  utterances: { use: session.out, in: turn.utterance }
  guesses: { use: session.out, lane: guess, in: guess }
";

/// Resident bytes of this process, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|k| k << 10)
}

#[tokio::test]
async fn minutes_of_silence_are_no_turn_and_hold_no_memory() {
    let model = cache_root().unwrap().join("models/silero-vad/silero_vad_16k_op15.onnx");
    if !model.is_file() {
        println!("skipped: model `silero-vad` is not in the cache");
        return;
    }
    let file = GraphFile::parse("test.yaml", GRAPH).unwrap();
    let plan = file.check(&registry().unwrap(), &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let engine = Engine::builder().inline().build().unwrap();
    let mut s = engine.start(plan).await.unwrap().open().unwrap();
    let mut mic = s.input("mic").unwrap();
    let ends = ["events", "utterances", "guesses"].map(|name| {
        let mut output = s.output(name).unwrap();
        tokio::spawn(async move {
            loop {
                match output.next().await {
                    Event::Data(_, p) => panic!("{name}: {p:?} out of silence"),
                    Event::Fence(_) => {}
                    Event::End(t) => return matches!(t, Terminal::End),
                }
            }
        })
    });
    // Five minutes: digital silence, then the noise of a quiet room (-70 dBFS), by turns of half a minute.
    let (mut noise, mut after_one) = (1u32, None);
    for second in 0..300 {
        if second == 60 {
            after_one = resident();
        }
        for _ in 0..50 {
            let mut sample = || {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            let quiet = second / 30 % 2 == 0;
            let audio = (0..320).map(|_| if quiet { 0.0 } else { 5e-4 * sample() }).collect();
            assert_eq!(mic.send(Pcm::mono(16_000, audio)).await, Ok(Sent::Queued));
        }
    }
    let grown = resident().zip(after_one).map(|(now, before)| now.saturating_sub(before));
    mic.end();
    for end in ends {
        assert!(end.await.unwrap(), "it ends well");
    }
    s.wait().await.unwrap();
    println!("grew by {grown:?} bytes from the first minute to the fifth");
    // Four minutes as samples would be 15 MB.
    assert!(grown.is_none_or(|g| g < 4 << 20), "{grown:?} bytes");
    for edge in s.stats().edges {
        assert!(edge.counts.span_high <= MediaTime::from_millis(700), "{}: {:?}", edge.name, edge.counts);
        assert_eq!(edge.used, Amount::default(), "{}", edge.name);
    }
}
