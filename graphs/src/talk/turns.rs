//! What happened in a conversation, and how long it took. Pure; given events and the time.

use std::time::Duration;

use omni_flow::Mono;
use omni_flow_transports::client::{Event, Item};
use serde_json::{Value, json};

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// What the user said or wrote, and how long after its end it was heard.
    Heard { text: String, after: Option<Duration> },
    /// More of the answer.
    Words(String),
    /// The answer's audio.
    Audio(Vec<u8>),
    /// The user speaks: what is not played yet is void.
    Interrupted,
    /// A function is called.
    Calls { name: String, arguments: String },
    /// The answer is over.
    Answer(Answer),
    /// Something was refused or failed.
    Error(String),
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// `completed`, `cancelled`, `incomplete` or `failed`.
    pub status: String,
    /// Why, if it is not complete.
    pub reason: Option<String>,
    /// What it says.
    pub text: String,
    /// Bytes of its audio.
    pub bytes: usize,
    /// From the end of the question.
    pub heard: Option<Duration>,
    /// From there to the first word.
    pub first_word: Option<Duration>,
    /// From there to the first audio.
    pub first_audio: Option<Duration>,
}

impl Answer {
    /// For machines; `rate` is the bytes of a second of audio.
    pub fn to_json(&self, rate: usize) -> Value {
        let ms = |d: Option<Duration>| d.map(|d| d.as_millis() as u64);
        json!({
            "event": "answer", "status": self.status, "reason": self.reason, "text": self.text,
            "audio_ms": self.bytes * 1000 / rate.max(1), "heard_ms": ms(self.heard),
            "first_word_ms": ms(self.first_word), "first_audio_ms": ms(self.first_audio),
        })
    }
    /// For people: one line.
    pub fn line(&self, rate: usize) -> String {
        let mut parts = Vec::new();
        for (what, when) in [("heard", self.heard), ("first word", self.first_word), ("first audio", self.first_audio)]
        {
            parts.extend(when.map(|d| format!("{what} {} ms", d.as_millis())));
        }
        if self.bytes > 0 {
            parts.push(format!("{:.1} s of audio", self.bytes as f64 / rate.max(1) as f64));
        }
        match self.status.as_str() {
            "completed" => {}
            status => parts.push(match &self.reason {
                Some(reason) => format!("{status}: {reason}"),
                None => status.to_owned(),
            }),
        }
        parts.join(", ")
    }
}

/// A conversation as it goes.
#[derive(Debug, Default)]
pub struct Turns {
    /// When the question ended that is to be answered next.
    asked: Option<Mono>,
    heard: Option<Duration>,
    /// A turn was handed over, and its answer has not begun.
    awaits: Option<Mono>,
    speaks: bool,
    active: Option<(String, Answer)>,
    /// Answers that are over, and those of them that were.
    answers: u32,
    completed: u32,
}

impl Turns {
    /// A question ended at `end` and was handed over.
    pub fn asked(&mut self, end: Mono) {
        (self.asked, self.awaits, self.heard) = (Some(end), Some(end), None);
    }
    /// Answers that are over.
    pub fn answers(&self) -> u32 {
        self.answers
    }
    /// True if one of them was whole.
    pub fn completed(&self) -> bool {
        self.completed > 0
    }
    /// True if nothing is under way.
    pub fn quiet(&self) -> bool {
        self.active.is_none() && !self.speaks && self.awaits.is_none()
    }
    /// Since when an answer is waited for that has not begun.
    pub fn awaits(&self) -> Option<Mono> {
        self.awaits
    }
    /// Takes an event that came at `now`; `spoken` says when the speech ended that had been sent by then.
    pub fn event(&mut self, event: Event, now: Mono, spoken: impl FnOnce() -> Option<Mono>) -> Option<Shown> {
        let since = |end: Option<Mono>| end.map(|end| now.since(end));
        match event {
            Event::SpeechStarted { .. } => {
                self.speaks = true;
                return self.active.is_some().then_some(Shown::Interrupted);
            }
            Event::SpeechStopped { .. } => {
                self.speaks = false;
                self.asked(spoken().unwrap_or(now));
            }
            Event::Transcription { transcript, .. } => {
                let after = since(self.asked);
                self.heard = after;
                if transcript.trim().is_empty() {
                    self.awaits = None;
                }
                return Some(Shown::Heard { text: transcript, after });
            }
            Event::ResponseCreated { response } => {
                self.awaits = None;
                let answer = Answer { heard: self.heard, ..Answer::default() };
                self.active = Some((response.id, answer));
            }
            Event::TranscriptDelta { at, delta } | Event::TextDelta { at, delta } => {
                let answer = self.of(&at.response_id)?;
                answer.0.first_word = answer.0.first_word.or(since(answer.1));
                answer.0.text.push_str(&delta);
                return Some(Shown::Words(delta));
            }
            Event::AudioDelta { at, audio, .. } => {
                let answer = self.of(&at.response_id)?;
                answer.0.first_audio = answer.0.first_audio.or(since(answer.1));
                answer.0.bytes += audio.len();
                return Some(Shown::Audio(audio));
            }
            Event::OutputItemDone { item: Item { name: Some(name), arguments, .. }, .. } => {
                return Some(Shown::Calls { name, arguments: arguments.unwrap_or_default() });
            }
            Event::ResponseDone { response } => {
                let (_, mut answer) = self.active.take_if(|(id, _)| *id == response.id)?;
                let details = response.status_details.unwrap_or_default();
                let reason = details["error"]["message"].as_str().or(details["reason"].as_str());
                answer.reason = reason.map(str::to_owned);
                answer.heard = answer.heard.or(self.heard);
                self.answers += 1;
                self.completed += u32::from(response.status == "completed");
                answer.status = response.status;
                return Some(Shown::Answer(answer));
            }
            Event::Listen { response_id: None, .. } => self.awaits = None,
            Event::Error { error } => return Some(Shown::Error(error.to_string())),
            Event::Reconnected { resumed: false } => {
                (self.active, self.awaits, self.speaks) = (None, None, false);
                return Some(Shown::Error("the session was lost; this is another one".to_owned()));
            }
            _ => {}
        }
        None
    }
    fn of(&mut self, id: &str) -> Option<(&mut Answer, Option<Mono>)> {
        let asked = self.asked;
        self.active.as_mut().filter(|(active, _)| active == id).map(|(_, answer)| (answer, asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(value: Value) -> Event {
        Event::parse(&value.to_string()).unwrap()
    }
    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    #[test]
    fn times_are_from_the_end_of_the_speech() {
        let mut t = Turns::default();
        let all = [
            (100, json!({"type": "input_audio_buffer.speech_started", "item_id": "u"})),
            (1500, json!({"type": "input_audio_buffer.speech_stopped", "item_id": "u"})),
            (
                1700,
                json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "u", "transcript": "Hi"}),
            ),
            (1710, json!({"type": "response.created", "response": {"id": "r"}})),
            (1800, json!({"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": "Yo."})),
            (1900, json!({"type": "response.output_audio.delta", "response_id": "r", "delta": "AAAA"})),
            (1950, json!({"type": "response.output_audio.delta", "response_id": "old", "delta": "AAAA"})),
            (2000, json!({"type": "response.done", "response": {"id": "r", "status": "completed"}})),
        ];
        let shown: Vec<_> =
            all.into_iter().filter_map(|(ms, e)| t.event(event(e), at(ms), || Some(at(1000)))).collect();
        let ms = Duration::from_millis;
        let Some(Shown::Answer(answer)) = shown.last() else { panic!("{shown:?}") };
        assert_eq!(
            (answer.heard, answer.first_word, answer.first_audio, answer.bytes),
            (Some(ms(700)), Some(ms(800)), Some(ms(900)), 3)
        );
        assert_eq!(answer.line(6), "heard 700 ms, first word 800 ms, first audio 900 ms, 0.5 s of audio");
        assert_eq!(shown.len(), 4);
        assert!(t.quiet() && t.completed() && t.answers() == 1);
    }
    #[test]
    fn speech_in_an_answer_interrupts_it() {
        let mut t = Turns::default();
        t.asked(at(0));
        assert!(!t.quiet() && t.awaits() == Some(at(0)));
        t.event(event(json!({"type": "response.created", "response": {"id": "r"}})), at(1), || None);
        let shown = t.event(event(json!({"type": "input_audio_buffer.speech_started"})), at(2), || None);
        assert_eq!(shown, Some(Shown::Interrupted));
        let done = json!({"type": "response.done", "response": {"id": "r", "status": "cancelled",
            "status_details": {"type": "cancelled", "reason": "turn_detected"}}});
        let Some(Shown::Answer(answer)) = t.event(event(done), at(3), || None) else { panic!("no answer") };
        assert_eq!((answer.line(1).as_str(), t.completed()), ("cancelled: turn_detected", false));
        assert!(!t.quiet(), "the user speaks");
    }
}
