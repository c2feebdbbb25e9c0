//! `util.replay`: plays what `util.record` wrote, in its own time or as fast as it is taken.
//!
//! In its own time, a chunk leaves as long after the first as it came, and after a stall what is late leaves at twice the
//! speed, never at once. Epochs and arrival are those of the replay; place and length in media time are as recorded.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Kind, Make, Medium, Mono, Node, NodeError, Opt, OptionError, Payload, Port, Schema,
    Sent,
};
use serde::Deserialize;
use thiserror::Error;

use super::any;
use super::recording::{DecodeError, Records};
use crate::files::located;

/// The node type.
pub struct Replay;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplayConfig {
    path: String,
    #[serde(default = "yes")]
    pace: bool,
    kind: Option<String>,
}
fn yes() -> bool {
    true
}

/// A recording that cannot be played.
#[derive(Debug, Error)]
#[error("`{name}`: {source}")]
struct ReplayError {
    name: String,
    source: DecodeError,
}

fn open(path: &Path) -> Result<Records<BufReader<File>>, ReplayError> {
    let name = || path.display().to_string();
    let file = File::open(path).map_err(|e| ReplayError { name: name(), source: e.into() })?;
    Records::new(BufReader::new(file)).map_err(|source| ReplayError { name: name(), source })
}

/// When the next chunk may leave: on the recorded grid, and no sooner after the last one than half their distance.
fn due(start: Mono, at: Duration, last: Option<(Mono, Duration)>) -> Mono {
    let grid = start.plus(at);
    match last {
        Some((left, was)) => grid.max(left.plus(at.saturating_sub(was) / 2)),
        None => grid,
    }
}

struct Replaying {
    path: PathBuf,
    pace: bool,
}

impl Node for Replaying {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self { path, pace } = self;
        let mut out = cx.output::<Payload>("out")?;
        let name = path.display().to_string();
        let mut records = cx.offload(&cx.arrival(), move || open(&path)).await??;
        let (start, mut last) = (cx.clock().now(), None);
        loop {
            let (r, next) = cx
                .offload(&cx.arrival(), move || {
                    let next = records.read_next();
                    (records, next)
                })
                .await?;
            records = r;
            let Some(record) = next.map_err(|source| ReplayError { name: name.clone(), source })? else {
                if records.cut() > 0 {
                    tracing::warn!(
                        node = cx.path(),
                        path = name,
                        "the recording ends inside a record, which is left out"
                    );
                }
                return Ok(());
            };
            if pace {
                cx.clock().sleep_until(due(start, record.at, last)).await;
                last = Some((cx.clock().now(), record.at));
            }
            let stamp = cx.arrival().child(record.pts, record.len).last(record.last);
            if out.send(&stamp, record.payload).await == Sent::Gone {
                return Ok(());
            }
        }
    }
}

impl Make for Replay {
    const NAME: &'static str = "util.replay";
    type Config = ReplayConfig;
    fn schema() -> Schema {
        Schema::new("Plays what `util.record` wrote")
            .output(Port::new("out", any(), "what was recorded"))
            .option(Opt::required("path", "text", "the file, relative to the graph file"))
            .option(Opt::new("pace", "yes/no", "true", "true: in its own time; false: as fast as it is taken"))
            .option(Opt::maybe("kind", "text", "what is in it, as a port kind: `audio 16000 mono f32`, `text`"))
            .example("mic: { use: util.replay, path: talk.ofrec, kind: audio 16000 mono f32 }")
    }
    fn refine(config: &Self::Config, schema: &mut Schema) -> Result<(), OptionError> {
        if let Some(kind) = &config.kind {
            let parsed = kind.parse::<Kind>();
            let kind = parsed.map_err(|e| OptionError::new("kind", e.to_string(), "for instance `text`"))?;
            if matches!(kind.medium, Medium::Video | Medium::Image) {
                return Err(OptionError::new("kind", "is of pictures, which are not recorded", "leave it out"));
            }
            schema.outputs[0].kind = kind;
        }
        Ok(())
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let (path, pace) = (located(&cx.folder, &config.path), config.pace);
        open(&path).map_err(BuildError::from_error)?;
        Ok(Body::node(move || Replaying { path: path.clone(), pace }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_leaves_at_twice_the_speed() {
        let ms = Duration::from_millis;
        let at = |n| Mono::ZERO.plus(ms(n));
        assert_eq!(due(at(5), ms(20), None), at(25));
        assert_eq!(due(at(0), ms(40), Some((at(20), ms(20)))), at(40));
        assert_eq!(due(at(0), ms(40), Some((at(2_000), ms(20)))), at(2_010));
    }
}
