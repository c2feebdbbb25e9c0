//! `util.delay`: gives everything later, on the clock or on the media time line.
//!
//! `clock: wall` holds each chunk until so long after it arrived; the chunks held are bounded in number and bytes, and
//! when that is reached the producer waits. `clock: media` moves the chunks' place in media time and holds nothing. A
//! fence drops what is held; the end waits for it.

use std::collections::VecDeque;

use futures_util::future::{Either, select};
use omni_flow::units::{Dur, Size};
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Make, MediaTime, Mono, Node, NodeError, Opt, OptionError, Payload, Port,
    Schema, Sent, Stamp, Terminal,
};
use serde::Deserialize;

use super::any;

/// The node type.
pub struct Delay;

/// Its options.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DelayConfig {
    by: Dur,
    #[serde(default)]
    clock: Which,
    #[serde(default = "most_items")]
    max_items: usize,
    #[serde(default = "most_bytes")]
    max_bytes: Size,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    #[default]
    Wall,
    Media,
}

fn most_items() -> usize {
    4096
}
fn most_bytes() -> Size {
    Size(64 << 20)
}

struct Delaying(DelayConfig);

impl Node for Delaying {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self(config) = self;
        let mut input = cx.input::<Payload>("in")?;
        let mut out = cx.output("out")?;
        let mut held: VecDeque<(Mono, Stamp, Payload)> = VecDeque::new();
        let (mut bytes, mut ended) = (0u64, false);
        loop {
            let due = held.front().map(|h| h.0);
            if ended && due.is_none() {
                return Ok(());
            }
            let room = !ended && held.len() < config.max_items && (held.is_empty() || bytes < config.max_bytes.0);
            let clock = cx.clock().clone();
            let timer = async {
                match due {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let next = async { if room { input.next().await } else { std::future::pending().await } };
            futures_util::pin_mut!(timer, next);
            match select(timer, next).await {
                Either::Left(_) => {
                    let Some((_, stamp, payload)) = held.pop_front() else { continue };
                    bytes -= payload.bytes() as u64;
                    if out.send(&stamp, payload).await == Sent::Gone {
                        return Ok(());
                    }
                }
                Either::Right((Event::Data(mut stamp, payload), _)) => {
                    if config.clock == Which::Media {
                        stamp.pts += MediaTime::from_duration(config.by.0);
                        if out.send(&stamp, payload).await == Sent::Gone {
                            return Ok(());
                        }
                        continue;
                    }
                    bytes += payload.bytes() as u64;
                    held.push_back((cx.clock().now().plus(config.by.0), stamp, payload));
                }
                Either::Right((Event::Fence(_), _)) => {
                    held.clear();
                    bytes = 0;
                }
                Either::Right((Event::End(Terminal::End), _)) => ended = true,
                Either::Right((Event::End(Terminal::Error(e)), _)) => return Err(e.into()),
            }
        }
    }
}

impl Make for Delay {
    const NAME: &'static str = "util.delay";
    type Config = DelayConfig;
    fn schema() -> Schema {
        Schema::new("Gives everything later, on the clock or on the media time line")
            .input(Port::new("in", any(), "anything"))
            .output(Port::new("out", any(), "the same, later").like("in"))
            .option(Opt::required("by", "duration", "how much later, up to 10m"))
            .option(Opt::new(
                "clock",
                "wall|media",
                "wall",
                "wall: hold each chunk; media: move its time and hold nothing",
            ))
            .option(Opt::new("max-items", "integer", "4096", "chunks held at most; then the producer waits"))
            .option(Opt::new("max-bytes", "size", "64MiB", "bytes held at most; then the producer waits"))
            .example("later: { use: util.delay, by: 200ms, in: voice }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        if config.by.0 > std::time::Duration::from_secs(600) {
            return Err(OptionError::new(
                "by",
                format!("is {}, longer than 10m", config.by),
                "write for instance `200ms`",
            ));
        }
        if config.max_items == 0 {
            return Err(OptionError::new("max-items", "is 0: nothing could ever pass", "give at least 1"));
        }
        if config.max_bytes.0 == 0 {
            return Err(OptionError::new("max-bytes", "is 0: nothing could ever pass", "write for instance `64MiB`"));
        }
        Ok(())
    }
    fn build(config: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        let config = *config;
        Ok(Body::node(move || Delaying(config)))
    }
}
