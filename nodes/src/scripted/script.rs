//! What the partner has heard, and what it says.

use std::f64::consts::TAU;

use serde::Deserialize;

use super::{Answer, HEARD_RATE, Level, Pieces, ScriptedConfig, TONE_RATE, Words};

/// The tone: an A, at a level that is heard and clips nowhere.
const TONE_HZ: f64 = 440.0;
const TONE_PEAK: f64 = 0.25;
/// Input of a turn that is kept for an echo, samples (262 s); the oldest is dropped.
const MOST_HEARD: usize = 1 << 22;

/// What a client asks with: all that an answer may depend on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Ask {
    /// Text for `{instructions}`.
    pub instructions: Option<String>,
    /// Text for `{voice}`.
    pub voice: Option<String>,
    /// Number of the turn, from 0: which entry answers it. Without it, answers are counted.
    pub turn: Option<u64>,
}

/// What the partner decided.
#[derive(Debug)]
pub enum Begun {
    /// To listen.
    Listen {
        /// Number of the turn.
        turn: u64,
    },
    /// To answer.
    Speak(Box<Speech>),
}

/// One chunk of an answer.
#[derive(Debug, PartialEq)]
pub enum Made {
    /// Text, if there is any to be said with it, and sound.
    Chunk {
        /// Its number, from 0.
        number: u32,
        /// The text.
        text: Option<String>,
        /// Samples of the answer before this chunk; 0 for all so far.
        from: u64,
        /// Mono samples.
        audio: Vec<f32>,
        /// The answer ends with it.
        last: bool,
    },
    /// The answer has failed before the chunk of this number.
    Failed {
        /// The number.
        number: u32,
    },
}

/// The partner of one session.
#[derive(Debug)]
pub struct Partner {
    config: ScriptedConfig,
    samples: u64,
    last_samples: u64,
    begun: u64,
    /// Units at the end of the last turn.
    turn_units: u64,
    /// Input that no answer has taken, if an answer may be its echo, and how much of it is committed.
    heard: Vec<f32>,
    committed: usize,
    /// Input of any kind since the last answer was begun.
    fresh: bool,
}

impl Partner {
    /// At the beginning of a session.
    pub fn new(config: ScriptedConfig) -> Self {
        Self {
            config,
            samples: 0,
            last_samples: 0,
            begun: 0,
            turn_units: 0,
            heard: Vec::new(),
            committed: 0,
            fresh: false,
        }
    }
    /// Who decides turns.
    pub fn level(&self) -> Level {
        self.config.level
    }
    /// Samples heard.
    pub fn samples(&self) -> u64 {
        self.samples
    }
    /// Whole units heard: the model's steps. A part of a unit is none.
    pub fn units(&self) -> u64 {
        self.samples / self.config.unit().max(1)
    }
    /// True if something was heard since the last answer was begun.
    pub fn fresh(&self) -> bool {
        self.fresh
    }
    /// Hears audio; the last of a turn belongs to what came before it. True if the script says that an answer begins here,
    /// without a commit.
    pub fn hear(&mut self, audio: &[f32], last: bool) -> bool {
        if audio.is_empty() {
            return false;
        }
        let before = self.units();
        self.samples += audio.len() as u64;
        self.last_samples = audio.len() as u64 + if last { self.last_samples } else { 0 };
        self.fresh = true;
        if self.config.answers.iter().any(|a| a.echo) {
            self.heard.extend_from_slice(audio);
            let old = self.heard.len().saturating_sub(MOST_HEARD);
            self.heard.drain(..old);
            self.committed = self.committed.saturating_sub(old);
        }
        let due = self.entry(self.begun).after_units.map(|n| self.turn_units + u64::from(n));
        let begins =
            self.level() == Level::ModelNativeDuplex && due.is_some_and(|due| before < due && due <= self.units());
        if begins {
            self.commit();
        }
        begins
    }
    /// What was heard so far is what the next answer is to.
    pub fn commit(&mut self) {
        self.committed = self.heard.len();
        self.turn_units = self.units();
    }
    /// Begins an answer to what was committed.
    pub fn begin(&mut self, ask: &Ask) -> Begun {
        let turn = ask.turn.unwrap_or(self.begun);
        self.begun += 1;
        self.fresh = false;
        let heard: Vec<f32> = self.heard.drain(..std::mem::take(&mut self.committed)).collect();
        let answer = self.entry(turn).clone();
        if answer.listen {
            return Begun::Listen { turn };
        }
        let tone = answer.chunks.saturating_add(answer.silence_units);
        let piece = samples(answer.chunk_ms, HEARD_RATE).max(1);
        let (free, total) = if answer.echo {
            let n = heard.len().div_ceil(piece) as u32;
            (n, n)
        } else {
            (answer.chunks, tone)
        };
        let echo = answer.echo.then_some(heard);
        let mut speech =
            Speech { turn, ask: ask.clone(), answer, echo, free, total, number: 0, words: None, said: String::new() };
        if let Words::Whole(text) = &speech.answer.text {
            speech.words = Some(self.filled(text, &speech));
        }
        Begun::Speak(Box::new(speech))
    }
    fn entry(&self, turn: u64) -> &Answer {
        let last = self.config.answers.len().saturating_sub(1);
        &self.config.answers[(turn.min(last as u64)) as usize]
    }
    /// `text` with its templates filled in, in one pass: what is filled in is not looked at again.
    fn filled(&self, text: &str, speech: &Speech) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let name = rest.find('}').map(|end| &rest[1..end]);
            let value = match name {
                Some("steps" | "units") => Some(self.units().to_string()),
                Some("samples") => Some(self.samples.to_string()),
                Some("last_samples") => Some(self.last_samples.to_string()),
                Some("turn") => Some(speech.turn.to_string()),
                Some("instructions") => Some(speech.ask.instructions.clone().unwrap_or_default()),
                Some("voice") => Some(speech.ask.voice.clone().unwrap_or_default()),
                _ => None,
            };
            let used = if value.is_some() { name.map_or(1, |n| n.len() + 2) } else { 1 };
            out.push_str(value.as_deref().unwrap_or(&rest[..used]));
            rest = &rest[used..];
        }
        out.push_str(rest);
        out
    }
    /// Makes the next chunk of `speech`, with what was heard until now.
    pub fn next(&self, speech: &mut Speech) -> Made {
        let number = speech.number;
        if speech.answer.fail_at == Some(number) {
            return Made::Failed { number };
        }
        speech.number += 1;
        let last = speech.number >= speech.total;
        let from = speech.position(number);
        let audio = speech.audio(number);
        let new = match (&speech.answer.text, &speech.words) {
            (Words::None, _) => None,
            (_, Some(whole)) => Some(share(whole, number, speech.total)),
            (Words::Each(list), None) => {
                let mine = list.get(number as usize..).unwrap_or_default();
                let mine = if last { mine } else { &mine[..mine.len().min(1)] };
                Some(mine.iter().map(|t| self.filled(t, speech)).collect())
            }
            (Words::Whole(_), None) => None,
        };
        let text = new.map(|new: String| match speech.answer.text_mode {
            Pieces::Delta => new,
            Pieces::Cumulative => {
                speech.said.push_str(&new);
                speech.said.clone()
            }
        });
        match speech.answer.audio_mode {
            Pieces::Delta => Made::Chunk { number, text, from, audio, last },
            Pieces::Cumulative => {
                let all = (0..=number).flat_map(|k| speech.audio(k)).collect();
                Made::Chunk { number, text, from: 0, audio: all, last }
            }
        }
    }
}

/// An answer that is being given.
#[derive(Debug)]
pub struct Speech {
    turn: u64,
    ask: Ask,
    answer: Answer,
    echo: Option<Vec<f32>>,
    /// Chunks that need no further unit, and chunks in all.
    free: u32,
    total: u32,
    /// Number of the next chunk.
    number: u32,
    /// A text that is split over the chunks.
    words: Option<String>,
    said: String,
}

impl Speech {
    /// Number of the turn.
    pub fn turn(&self) -> u64 {
        self.turn
    }
    /// Its entry of the script.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }
    /// How many chunks it has.
    pub fn total(&self) -> u32 {
        self.total
    }
    /// Number of the next chunk.
    pub fn number(&self) -> u32 {
        self.number
    }
    /// Ends it: the next chunk is its last, and has no sound.
    pub fn cut(&mut self) {
        (self.total, self.free) = (self.number, self.number);
        if self.answer.text != Words::None {
            (self.answer.text, self.words) = (Words::Each(Vec::new()), Some(String::new()));
        }
    }
    /// True if the next chunk is made only after one more unit of input.
    pub fn needs_unit(&self) -> bool {
        (self.free..self.total).contains(&self.number)
    }
    /// Samples per second of its audio.
    pub fn rate(&self) -> u32 {
        if self.echo.is_some() { HEARD_RATE } else { TONE_RATE }
    }
    /// Samples of it before chunk `number`.
    fn position(&self, number: u32) -> u64 {
        u64::from(number) * samples(self.answer.chunk_ms, self.rate()) as u64
    }
    fn audio(&self, number: u32) -> Vec<f32> {
        if number >= self.total {
            return Vec::new();
        }
        let (from, to) = (self.position(number), self.position(number + 1));
        match &self.echo {
            Some(heard) => heard[(from as usize).min(heard.len())..(to as usize).min(heard.len())].to_vec(),
            None => (from..to).map(tone).collect(),
        }
    }
}

/// Sample `n` of the tone. It has whole turns in a second, so that n is taken modulo one.
fn tone(n: u64) -> f32 {
    let turns = (n % u64::from(TONE_RATE)) as f64 * TONE_HZ / f64::from(TONE_RATE);
    (TONE_PEAK * (TAU * turns.fract()).sin()) as f32
}

fn samples(ms: u32, rate: u32) -> usize {
    (u64::from(ms) * u64::from(rate) / 1000) as usize
}

/// The `k`-th of `n` even shares of a text, in characters; the shares joined are the text.
fn share(text: &str, k: u32, n: u32) -> String {
    let chars: Vec<char> = text.chars().collect();
    if k >= n {
        return text.to_owned();
    }
    let at = |k: u32| (chars.len() as u64 * u64::from(k) / u64::from(n)) as usize;
    chars[at(k)..at(k + 1)].iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partner(answers: serde_json::Value) -> Partner {
        let config: ScriptedConfig = serde_json::from_value(serde_json::json!({ "answers": answers })).unwrap();
        config.check().unwrap();
        Partner::new(config)
    }
    /// The texts, the samples of each chunk and whether it ends, until the end or a failure.
    fn all(p: &mut Partner, ask: &Ask) -> Vec<(Option<String>, u64, usize, bool)> {
        let Begun::Speak(mut s) = p.begin(ask) else { panic!("it listens") };
        let mut out = Vec::new();
        loop {
            let Made::Chunk { text, from, audio, last, .. } = p.next(&mut s) else { return out };
            out.push((text, from, audio.len(), last));
            if last {
                return out;
            }
        }
    }
    fn texts(p: &mut Partner, ask: &Ask) -> Vec<String> {
        all(p, ask).into_iter().map(|c| c.0.unwrap_or_else(|| "-".to_owned())).collect()
    }

    #[test]
    fn the_default_is_three_seconds_of_hello_world() {
        let mut p = Partner::new(ScriptedConfig::default());
        let got = all(&mut p, &Ask::default());
        let t = |s: &str| Some(s.to_owned());
        let want =
            [(t("hel"), 0, 24_000, false), (t("lo w"), 24_000, 24_000, false), (t("orld"), 48_000, 24_000, true)];
        assert_eq!(got, want);
    }
    #[test]
    fn turns_take_their_entry_and_the_last_repeats() {
        let mut p = partner(serde_json::json!([
            { "chunks": 1, "text": "one {turn}" }, { "chunks": 2, "text": ["a", null] }, { "text": null, "chunks": 1 }
        ]));
        let ask = Ask::default();
        assert_eq!(texts(&mut p, &ask), ["one 0"]);
        assert_eq!(texts(&mut p, &ask), ["a", ""]);
        assert_eq!(texts(&mut p, &ask), ["-"]);
        assert_eq!(texts(&mut p, &ask), ["-"]);
        assert_eq!(texts(&mut p, &Ask { turn: Some(0), ..ask }), ["one 0"]);
    }
    #[test]
    fn templates_are_filled_once_and_what_is_none_stays() {
        let text = "{steps}/{units} {samples} {last_samples} {voice}: {instructions} {other} {";
        let mut p = partner(serde_json::json!([{ "chunks": 1, "text": text }]));
        p.hear(&[0.0; 15_999], false);
        assert_eq!(p.units(), 0, "half a unit starts no step");
        p.hear(&[0.0; 16_000], false);
        p.hear(&[0.0; 2], true);
        p.hear(&[], true);
        let ask = Ask { instructions: Some("say {samples}".into()), voice: Some("joe".into()), turn: None };
        assert_eq!(texts(&mut p, &ask), ["2/2 32001 16002 joe: say {samples} {other} {"]);
    }
    #[test]
    fn cumulative_pieces_hold_all_so_far() {
        let answer = serde_json::json!([{ "text": "añb c", "chunk_ms": 10, "text_mode": "cumulative", "audio_mode": "cumulative" }]);
        let got = all(&mut partner(answer), &Ask::default());
        let t = |s: &str| Some(s.to_owned());
        assert_eq!(got, [(t("a"), 0, 240, false), (t("añb"), 0, 480, false), (t("añb c"), 0, 720, true)]);
    }
    #[test]
    fn an_echo_is_the_turns_input_and_no_more() {
        let mut p = partner(serde_json::json!([{ "echo": true, "chunk_ms": 100, "text": "abcd" }]));
        let first: Vec<f32> = (0..2_000).map(|i| i as f32).collect();
        p.hear(&first, false);
        p.commit();
        p.hear(&[-1.0; 50], false);
        for (want, texts) in [(first, vec!["ab", "cd"]), (vec![-1.0; 50], vec!["abcd"])] {
            let Begun::Speak(mut s) = p.begin(&Ask::default()) else { panic!() };
            assert_eq!(s.rate(), 16_000);
            let (mut heard, mut said) = (Vec::new(), Vec::new());
            while let Made::Chunk { audio, text, last, .. } = p.next(&mut s) {
                heard.extend(audio);
                said.extend(text);
                if last {
                    break;
                }
            }
            assert_eq!((heard, said), (want, texts.into_iter().map(str::to_owned).collect()));
            p.commit();
        }
        // Nothing was said: the answer is its end alone.
        assert_eq!(all(&mut p, &Ask::default()), [(Some("abcd".to_owned()), 0, 0, true)]);
    }
    #[test]
    fn an_answer_that_is_cut_has_an_end_and_no_more() {
        for mode in ["delta", "cumulative"] {
            for made in [0, 2] {
                let mut p = partner(serde_json::json!([{ "text": "abc", "text_mode": mode }]));
                let Begun::Speak(mut s) = p.begin(&Ask::default()) else { panic!() };
                (0..made).for_each(|_| drop(p.next(&mut s)));
                s.cut();
                let text = Some(if mode == "delta" { String::new() } else { "abc"[..made as usize].to_owned() });
                let from = u64::from(made) * 24_000;
                let want = Made::Chunk { number: made, text, from, audio: Vec::new(), last: true };
                assert_eq!(p.next(&mut s), want);
            }
        }
    }
    #[test]
    fn failures_and_silence_units_come_where_the_script_says() {
        let mut p = partner(serde_json::json!([{ "fail_at": 2 }, { "chunks": 1, "silence_units": 2, "text": null }]));
        assert_eq!(all(&mut p, &Ask::default()).len(), 2);
        let Begun::Speak(mut s) = p.begin(&Ask::default()) else { panic!() };
        let mut needs = Vec::new();
        for _ in 0..3 {
            needs.push(s.needs_unit());
            p.next(&mut s);
        }
        assert_eq!((needs, s.needs_unit()), (vec![false, true, true], false));
    }
    #[test]
    fn where_the_model_decides_it_begins_after_its_units() {
        let mut config = ScriptedConfig { level: Level::ModelNativeDuplex, unit_ms: 100, ..ScriptedConfig::default() };
        config.answers[0].after_units = Some(3);
        let mut p = Partner::new(config.clone());
        let begins: Vec<bool> = (0..8).map(|_| p.hear(&[0.0; 1_600], false)).collect();
        assert_eq!(begins, [false, false, true, false, false, true, false, false]);
        config.level = Level::TurnBasedDuplex;
        assert!(!Partner::new(config).hear(&[0.0; 160_000], false));
    }
    #[test]
    fn the_tone_has_no_seam() {
        let at = |n: u64| tone(n);
        assert!((0..100u64).all(|n| (at(24_000 + n) - at(n)).abs() < 1e-9));
        assert!((0..24_000u64).all(|n| at(n).abs() <= 0.25 && (at(n + 1) - at(n)).abs() < 0.03));
    }
}
