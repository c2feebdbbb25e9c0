//! `util.tap`: a sink that says what flows by, and never slows it.
//!
//! Put it on an edge with `policy: drop-oldest` or `latest`: what it could not look at in time is counted as missed. It
//! reports to the log (`omni_flow::tap`) at most once per `every`, and at the end.

use omni_flow::units::Dur;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Make, MediaTime, Medium, Node, NodeError, Opt, Payload, Port, Schema, Stamp,
    Terminal,
};
use omni_flow_media::levels::measure;
use serde::Deserialize;

use super::any;
use super::gate::name_of;

/// The node type.
pub struct Tap;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TapConfig {
    every: Dur,
    label: String,
}

impl Default for TapConfig {
    fn default() -> Self {
        Self { every: Dur(std::time::Duration::from_secs(1)), label: String::new() }
    }
}

/// What went by.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    chunks: u64,
    bytes: u64,
    span: MediaTime,
    missed: u64,
    fences: u64,
}

/// Characters of a text that are shown.
const SHOWN: usize = 60;

/// One chunk in words.
fn summary(stamp: &Stamp, payload: &Payload) -> String {
    let at = format!("{:.3}s", stamp.pts.as_secs_f64());
    let what = match payload {
        Payload::Audio(a) => {
            let level = measure(&a.f32());
            let len = a.len().as_secs_f64() * 1e3;
            format!(
                "audio {} Hz x{} {len:.1}ms rms {:.1} peak {:.1} dBFS",
                a.rate(),
                a.channels(),
                level.rms,
                level.peak
            )
        }
        Payload::Video(f) => format!("picture {}x{} {:?}", f.width, f.height, f.format),
        Payload::Text(t) => {
            let cut = t.char_indices().nth(SHOWN).map_or(t.len(), |(i, _)| i);
            format!("text {:?}{}", &t[..cut], if cut < t.len() { " ..." } else { "" })
        }
        Payload::Tokens(t) => format!("{} tokens", t.len()),
        Payload::Tensor(t) => format!("tensor {:?} {:?}", t.shape, t.dtype),
        Payload::Packet(p) => format!("packet {} {} bytes{}", p.codec, p.data.len(), if p.key { " key" } else { "" }),
        Payload::Signal(s) => format!("signal {}", name_of(s)),
        _ => Medium::Any.name().to_owned(),
    };
    format!("{at} {what}{}", if stamp.last { " (last)" } else { "" })
}

struct Tapping(TapConfig);

impl Node for Tapping {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self(config) = self;
        let mut input = cx.input::<Payload>("in")?;
        let mut counts = Counts::default();
        let mut said = None;
        loop {
            match input.next().await {
                Event::Data(stamp, payload) => {
                    counts.chunks += 1;
                    counts.bytes += payload.bytes() as u64;
                    counts.span += stamp.len;
                    counts.missed += input.take_missed();
                    let now = cx.clock().now();
                    if said.is_none_or(|t| now.since(t) >= config.every.0) {
                        said = Some(now);
                        say(&cx, &config.label, &counts, &summary(&stamp, &payload));
                    }
                }
                Event::Fence(_) => counts.fences += 1,
                Event::End(end) => {
                    counts.missed += input.take_missed();
                    return match end {
                        Terminal::End => {
                            say(&cx, &config.label, &counts, "end");
                            Ok(())
                        }
                        Terminal::Error(e) => {
                            say(&cx, &config.label, &counts, &format!("error: {e}"));
                            Err(e.into())
                        }
                    };
                }
            }
        }
    }
}

fn say(cx: &Ctx, label: &str, c: &Counts, what: &str) {
    let Counts { chunks, bytes, span, missed, fences } = c;
    let seconds = span.as_secs_f64();
    tracing::info!(target: "omni_flow::tap", node = cx.path(), label, chunks, bytes, seconds, missed, fences, "{what}");
}

impl Make for Tap {
    const NAME: &'static str = "util.tap";
    type Config = TapConfig;
    fn schema() -> Schema {
        Schema::new("Says what flows by, and never slows it")
            .input(Port::new("in", any(), "anything").lossy())
            .option(Opt::new("every", "duration", "1s", "shortest time between two lines of the log"))
            .option(Opt::new("label", "text", "\"\"", "a word for the log"))
            .example("look: { use: util.tap, every: 5s, in: { from: voice, policy: latest } }")
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || Tapping(config.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_told_in_few_words() {
        let stamp = Stamp { pts: MediaTime::from_millis(1_250), last: true, ..Stamp::default() };
        let long: std::sync::Arc<str> = "é".repeat(100).into();
        let line = summary(&stamp, &Payload::Text(long));
        assert!(line.starts_with("1.250s text \"é") && line.ends_with("\" ... (last)") && line.len() < 200, "{line}");
        let audio = crate::audio::pcm(8_000, 1, vec![1.0; 160]).unwrap();
        let line = summary(&stamp, &Payload::Audio(audio));
        assert!(line.contains("8000 Hz x1 20.0ms rms 0.0 peak 0.0 dBFS"), "{line}");
    }
}
