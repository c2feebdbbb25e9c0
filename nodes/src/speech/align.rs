//! `speech.align`: tells which piece of an answer's text has been spoken by when.
//!
//! A voice speaks its text piece by piece (a sentence at a time), and its audio comes in one segment for each. So the n-th
//! segment of the audio says the n-th piece, and when the segment ends, it is known how long that took: whoever plays or
//! keeps the answer can tell how far it was heard.

use std::collections::VecDeque;
use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, In, Kind, Make, MediaTime, Medium, Node, NodeError, Pcm, Port, Schema, Sent,
    Signal, Stamp, Terminal,
};
use serde::{Deserialize, Serialize};

/// The node type `speech.align`.
pub struct SpeechAlign;

/// Options of `speech.align`: none.
#[derive(Debug, Deserialize)]
pub struct AlignConfig {}

/// What it tells of each piece, as the data of a signal [`Spoken::NAME`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    /// The piece, as the voice was given it.
    pub text: String,
    /// Where its audio ends, in ms since the answer's began.
    pub until_ms: f64,
}

impl Spoken {
    /// The name of the signal.
    pub const NAME: &'static str = "speech.spoken";
}

/// Pieces whose audio has not ended yet: beyond that the text waits.
const MOST: usize = 64;

impl Make for SpeechAlign {
    const NAME: &'static str = "speech.align";
    type Config = AlignConfig;
    fn schema() -> Schema {
        Schema::new("Tells which piece of an answer's text has been spoken by when")
            .input(Port::new("text", Kind::of(Medium::Text), "what the voice is given, a piece at a time"))
            .input(Port::new("audio", Kind::of(Medium::Audio), "what it makes of it, a segment for each piece"))
            .output(Port::new(
                "spoken",
                Kind::of(Medium::Signal),
                "`speech.spoken` as each segment ends: `text`, and `until_ms` since the answer's audio began; the last of an \
                 answer is marked",
            ))
            .example("spoken: { use: speech.align, in: { text: sentences, audio: voice.audio } }")
    }
    fn build(_: &AlignConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(Align::default))
    }
}

/// Pieces that wait for the end of their audio.
#[derive(Debug, Default)]
struct Align {
    /// Each with whether the answer ends with it.
    texts: VecDeque<(Arc<str>, bool)>,
    /// Audio of the answer so far.
    made: MediaTime,
}

impl Align {
    /// More audio came; what is told if it ends a piece, and whether the answer ends with it.
    fn audio(&mut self, stamp: &Stamp, len: MediaTime) -> Option<(Spoken, bool)> {
        self.made += len;
        if !stamp.last {
            return None;
        }
        let until_ms = self.made.as_secs_f64() * 1e3;
        let piece = self.texts.pop_front();
        if stamp.over {
            self.made = MediaTime::ZERO;
            // What a voice said in more or in fewer segments does not shift the next answer.
            let mut ended = piece.as_ref().is_none_or(|(_, last)| *last);
            while !ended && let Some((_, last)) = self.texts.pop_front() {
                ended = last;
            }
        }
        let text = piece?.0.to_string();
        Some((Spoken { text, until_ms }, stamp.over))
    }
    fn void(&mut self) {
        *self = Self::default();
    }
}

impl Node for Align {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut texts: Option<In<Arc<str>>> = Some(cx.input("text")?);
        let mut audio = cx.input::<Pcm>("audio")?;
        let mut out = cx.output::<Signal>("spoken")?;
        loop {
            tokio::select! {
                // A piece is known before its audio is.
                biased;
                event = next(&mut texts), if self.texts.len() < MOST => match event {
                    Event::Data(stamp, text) => self.texts.push_back((text, stamp.last)),
                    Event::Fence(_) => self.void(),
                    Event::End(Terminal::End) => texts = None,
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                event = audio.next() => match event {
                    Event::Data(stamp, pcm) => {
                        let len = MediaTime::from_samples(pcm.frames() as u64, pcm.rate());
                        let Some((spoken, over)) = self.audio(&stamp, len) else { continue };
                        let signal = Signal::named(Spoken::NAME, &spoken)?;
                        if out.send(&stamp.child(stamp.pts, MediaTime::ZERO).last(over), signal).await == Sent::Gone {
                            return Ok(());
                        }
                    }
                    Event::Fence(_) => self.void(),
                    Event::End(Terminal::End) => return Ok(()),
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
            }
        }
    }
}

async fn next(input: &mut Option<In<Arc<str>>>) -> Event<Arc<str>> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_told_with_the_end_of_its_audio() {
        let mut a = Align::default();
        a.texts.extend([("One.", false), ("Two.", true), ("Three.", false)].map(|(t, last)| (Arc::from(t), last)));
        let ms = MediaTime::from_millis;
        let (part, last) = (Stamp::default(), Stamp::default().last(true));
        assert_eq!(a.audio(&part, ms(300)), None);
        let told = |text: &str, until_ms| Spoken { text: text.to_owned(), until_ms };
        assert_eq!(a.audio(&last, ms(200)), Some((told("One.", 500.0), false)));
        assert_eq!(a.audio(&last.over(true), ms(250)), Some((told("Two.", 750.0), true)));
        assert_eq!(a.audio(&last, ms(100)), Some((told("Three.", 100.0), false)), "another answer");
        assert_eq!(a.audio(&last, ms(100)), None, "audio that nobody asked for tells nothing");
        a.texts.extend([("Four.", false), ("Five.", true), ("Six.", true)].map(|(t, last)| (Arc::from(t), last)));
        assert_eq!(a.audio(&last.over(true), ms(100)), Some((told("Four.", 300.0), true)), "two pieces in one segment");
        assert_eq!(a.audio(&last.over(true), ms(100)), Some((told("Six.", 100.0), true)));
        a.texts.push_back(("Seven.".into(), true));
        a.void();
        assert_eq!(a.audio(&last, ms(100)), None);
    }
}
