//! From what was heard when to the figures of a turn, and of all turns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use omni_flow::SessionStats;
use omni_flow_benches::median;
use serde_json::{Value, json};

use super::alone::Alone;
use super::user::{Clip, Log, Mark, What};

/// The parts of the way from the end of speech to the first audio, in order.
const PARTS: [&str; 5] = ["turn decided", "transcript", "first word", "first clause", "first audio"];

/// One turn. Times in milliseconds after the end of speech.
pub struct Row {
    pub session: usize,
    pub turn: i64,
    pub clip: usize,
    /// Where its speech ended in the clip.
    pub spoken: Vec<f32>,
    pub heard: String,
    pub said: String,
    pub clause: String,
    at: [Option<f64>; 5],
    turns_ended: usize,
    audio: f64,
    /// Where in the answer a player that holds 100 ms had nothing, in seconds, and for how many milliseconds.
    gaps: Vec<(f64, f64)>,
}

/// What became of one clip.
pub fn row(session: usize, mark: &Mark, log: &Log, clips: &[Clip]) -> Row {
    let events = log.of(mark.turn);
    let ms = |t: Instant| t.checked_duration_since(mark.end).map(|d| d.as_secs_f64() * 1e3);
    let first = |want: fn(&What) -> bool| events.iter().filter(|(_, w)| want(w)).find_map(|(t, _)| ms(*t));
    let all = |pick: fn(&What) -> Option<&str>| events.iter().filter_map(|(_, w)| pick(w)).collect::<Vec<_>>();
    let audio: Vec<(Instant, f64)> = events
        .iter()
        .filter_map(|(t, w)| if let What::Audio(s, _) = w { Some((*t, *s)) } else { None })
        .filter(|(t, _)| *t > mark.end)
        .collect();
    // A player that holds 100 ms.
    let mut gaps = Vec::new();
    if let Some((begin, _)) = audio.first() {
        let (mut dry, mut at) = (0.1, 0.0);
        for (t, seconds) in &audio {
            let t = (*t - *begin).as_secs_f64();
            if t > dry + 1e-4 {
                gaps.push((at, (t - dry) * 1e3));
                dry = t;
            }
            dry += seconds;
            at += seconds;
        }
    }
    Row {
        session,
        turn: mark.turn,
        clip: mark.clip,
        spoken: clips[mark.clip].samples.clone(),
        heard: all(|w| if let What::Heard(t) = w { Some(t) } else { None }).join(" "),
        said: all(|w| if let What::Word(t) = w { Some(t) } else { None }).concat(),
        clause: all(|w| if let What::Clause(t) = w { Some(t) } else { None }).first().unwrap_or(&"").to_string(),
        at: [
            first(|w| matches!(w, What::TurnEnded)),
            first(|w| matches!(w, What::Heard(_))),
            first(|w| matches!(w, What::Word(_))),
            first(|w| matches!(w, What::Clause(_))),
            audio.first().and_then(|(t, _)| ms(*t)),
        ],
        turns_ended: events.iter().filter(|(_, w)| matches!(w, What::TurnEnded)).count(),
        audio: audio.iter().map(|(_, s)| s).sum(),
        gaps,
    }
}

impl Row {
    /// From the transcript to the first audio, milliseconds.
    pub fn answering(&self) -> Option<f64> {
        Some(self.at[4]? - self.at[1]?)
    }
    /// False for the turn that warms everything.
    pub fn counts(&self) -> bool {
        self.turn >= 0
    }
    pub fn json(&self) -> Value {
        let parts: BTreeMap<_, _> = PARTS.iter().zip(self.at).collect();
        json!({
            "session": self.session, "turn": self.turn, "clip": self.clip, "ms": parts, "heard": self.heard,
            "said": self.said, "clause": self.clause, "audio_s": self.audio, "gaps": self.gaps, "turns_ended": self.turns_ended,
        })
    }
}

/// All turns of a run.
pub struct Summary {
    sessions: usize,
    turns: usize,
    first_audio: Vec<f64>,
    parts: Vec<(&'static str, f64)>,
    cpu_per_turn: f64,
    peak: u64,
    underruns: usize,
    longest_gap: f64,
    split: usize,
    wall: Duration,
    nodes: Vec<SessionStats>,
    pub alone: Option<Alone>,
}

impl Summary {
    pub fn new(
        sessions: usize,
        rows: &[Row],
        cpu: Duration,
        wall: Duration,
        peak: u64,
        nodes: Vec<SessionStats>,
    ) -> Self {
        let rows: Vec<&Row> = rows.iter().filter(|r| r.counts()).collect();
        let mut first_audio: Vec<f64> = rows.iter().filter_map(|r| r.at[4]).collect();
        first_audio.sort_by(f64::total_cmp);
        let parts =
            (0..PARTS.len()).map(|i| (PARTS[i], median(rows.iter().filter_map(|r| r.at[i]).collect()))).collect();
        Self {
            sessions,
            turns: rows.len(),
            first_audio,
            parts,
            // The turn that warms up is in the CPU time too.
            cpu_per_turn: cpu.as_secs_f64() / (rows.len() + sessions) as f64,
            peak,
            underruns: rows.iter().map(|r| r.gaps.len()).sum(),
            longest_gap: rows.iter().flat_map(|r| &r.gaps).map(|g| g.1).fold(0.0, f64::max),
            split: rows.iter().filter(|r| r.turns_ended > 1).count(),
            wall,
            nodes,
            alone: None,
        }
    }
    fn quantile(&self, q: f64) -> f64 {
        let i = (q * (self.first_audio.len().max(1) - 1) as f64).round() as usize;
        self.first_audio.get(i).copied().unwrap_or(f64::NAN)
    }
    pub fn json(&self) -> Value {
        json!({
            "sessions": self.sessions, "turns": self.turns, "answered": self.first_audio.len(),
            "first_audio_p50": self.quantile(0.5), "p90": self.quantile(0.9), "max": self.quantile(1.0),
            "ms_after_speech_p50": self.parts.iter().map(|(n, v)| json!([n, v])).collect::<Vec<_>>(),
            "cpu_s_per_turn": self.cpu_per_turn, "rss_mb": self.peak / 1_000_000, "underruns": self.underruns,
            "longest_gap_ms": self.longest_gap, "split_turns": self.split, "wall_s": self.wall.as_secs_f64(),
            "alone": self.alone.as_ref().map(Alone::json),
        })
    }
    pub fn print(&self) {
        println!(
            "{} session(s), {} of {} turns answered; end of speech to first audio p50 {:.0} ms, p90 {:.0}, max {:.0}",
            self.sessions,
            self.first_audio.len(),
            self.turns,
            self.quantile(0.5),
            self.quantile(0.9),
            self.quantile(1.0)
        );
        for (name, ms) in &self.parts {
            println!("  {name:<14} {ms:>6.0} ms after the end of speech (p50)");
        }
        println!(
            "  CPU {:.2} s per turn; peak memory {} MB; underruns {} (longest gap beyond 100 ms: {:.0} ms); turns split {}",
            self.cpu_per_turn,
            self.peak / 1_000_000,
            self.underruns,
            self.longest_gap,
            self.split
        );
        let mut busy: BTreeMap<&str, (Duration, u64)> = BTreeMap::new();
        for n in self.nodes.iter().flat_map(|s| &s.nodes) {
            let b = busy.entry(&n.name).or_default();
            *b = (b.0 + n.busy, b.1 + n.steps);
        }
        let turns = (self.turns + self.sessions) as f64;
        for (name, (time, steps)) in busy.iter().filter(|(_, b)| !b.0.is_zero()) {
            println!("  {name:<14} {:>8.1} ms busy per turn, {steps} steps", time.as_secs_f64() * 1e3 / turns);
        }
    }
    pub fn print_alone(&self) {
        if let Some(a) = &self.alone {
            a.print();
        }
    }
}
