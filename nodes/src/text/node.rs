//! `text.sentences`: a stream of text cut into pieces that can be spoken early.
//!
//! Text comes in pieces of any size (whole characters). A chunk marked as the last of its segment ends the answer: what is
//! held goes out, the last piece marked; if none is left, an empty text carries the mark. A fence forgets what is held.

use std::sync::Arc;

use omni_flow::{
    Body, BuildCx, BuildError, Emit, Kind, Make, MediaTime, Medium, Opt, OptionError, Port, Schema, Stamp, Step,
    StepError,
};
use serde::Deserialize;

use super::{Sentences, SentencesConfig, speakable};

/// The node type.
pub struct SentencesNode;

/// Its options.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SentencesOptions {
    first_chars: usize,
    first_words: usize,
    clause_chars: usize,
    max_chars: usize,
    speakable: bool,
}

impl Default for SentencesOptions {
    fn default() -> Self {
        let c = SentencesConfig::default();
        Self {
            first_chars: c.first_chars,
            first_words: c.first_words,
            clause_chars: c.clause_chars,
            max_chars: c.max_chars,
            speakable: false,
        }
    }
}

/// In a graph with `chunked: false`, the most that goes on as one text, bytes: what a talker takes at once.
const WHOLE: usize = 8 << 10;

/// Where in its stream a text stands.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Middle,
    TextEnd,
    StreamEnd,
}

struct Cutting {
    machine: Sentences,
    speakable: bool,
    /// Where whole texts are wanted: the sentences so far.
    kept: Option<String>,
}

impl Cutting {
    /// Gives the pieces, and at an end what is kept; the last of a text is marked.
    fn emit(&mut self, pieces: Vec<super::Piece>, at: At, stamp: &Stamp, out: &mut Emit<Arc<str>>) {
        let texts = pieces.into_iter().map(|p| if self.speakable { speakable(&p.text) } else { p.text });
        let mut texts: Vec<String> = texts.filter(|t| !t.is_empty()).collect();
        if let Some(kept) = &mut self.kept {
            let mut whole = Vec::new();
            for text in texts {
                if !kept.is_empty() && kept.len() + 1 + text.len() > WHOLE {
                    whole.push(std::mem::take(kept));
                }
                if !kept.is_empty() {
                    kept.push(' ');
                }
                kept.push_str(&text);
            }
            if at != At::Middle && !kept.is_empty() {
                whole.push(std::mem::take(kept));
            }
            texts = whole;
        }
        let end = at == At::TextEnd;
        if end && texts.is_empty() {
            texts.push(String::new());
        }
        let count = texts.len();
        for (i, text) in texts.into_iter().enumerate() {
            out.push(stamp.child(stamp.pts, MediaTime::ZERO).last(end && i + 1 == count), text.into());
        }
    }
}

impl Step for Cutting {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, input: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        let mut pieces = self.machine.push(&input);
        if stamp.last {
            pieces.extend(self.machine.finish());
        }
        let at = if stamp.last { At::TextEnd } else { At::Middle };
        self.emit(pieces, at, stamp, out);
        Ok(())
    }
    fn fence(&mut self) {
        self.machine.reset();
        self.kept.iter_mut().for_each(String::clear);
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        let pieces = self.machine.finish();
        self.emit(pieces, At::StreamEnd, stamp, out);
        Ok(())
    }
}

impl Make for SentencesNode {
    const NAME: &'static str = "text.sentences";
    type Config = SentencesOptions;
    fn schema() -> Schema {
        Schema::new("Cuts a stream of text into sentences, the first clause early")
            .input(Port::new("in", Kind::of(Medium::Text), "text in pieces of any size"))
            .output(Port::new("out", Kind::of(Medium::Text), "sentences and clauses"))
            .option(Opt::new("first-chars", "integer", "16", "the first piece may end at a comma from this length on"))
            .option(Opt::new("first-words", "integer", "3", "... if it has this many words"))
            .option(Opt::new("clause-chars", "integer", "160", "later pieces may end at a comma from this length on"))
            .option(Opt::new("max-chars", "integer", "320", "longest piece in characters, 8 to 10000"))
            .option(Opt::new("speakable", "yes/no", "false", "write numbers, dates and symbols as they are said"))
            .example("sentences: { use: text.sentences, in: llm }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        if !(8..=10_000).contains(&config.max_chars) {
            let words = format!("is {}, outside 8 to 10000", config.max_chars);
            return Err(OptionError::new("max-chars", words, "write for instance `max-chars: 320`"));
        }
        if config.clause_chars > config.max_chars {
            let words = format!("is {}, above `max-chars` {}", config.clause_chars, config.max_chars);
            return Err(OptionError::new("clause-chars", words, "lower it"));
        }
        Ok(())
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let (c, whole) = (*config, !cx.chunked);
        let settings = SentencesConfig {
            first_chars: c.first_chars,
            first_words: c.first_words,
            clause_chars: c.clause_chars,
            max_chars: c.max_chars,
        };
        Ok(Body::step(move || Cutting {
            machine: Sentences::new(settings),
            speakable: c.speakable,
            kept: whole.then(String::new),
        }))
    }
}
