//! `util.record`: writes what flows by to a file, with its stamps, for `util.replay`.
//!
//! The format is that of [`super::recording`]; the file can be replayed at any moment. A full disk ends the session with
//! an error that names the file. Pictures are refused.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Make, Node, NodeError, Opt, OptionError, Payload, Port, Schema, Terminal,
};
use serde::Deserialize;
use thiserror::Error;

use super::any;
use super::recording::{MAGIC, encode};
use crate::files::located;

/// The node type.
pub struct RecordNode;

/// Its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecordConfig {
    path: String,
}

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("cannot write the recording `{name}`: {source}; check the path, its permissions and the space left")]
struct WriteError {
    name: String,
    source: io::Error,
}

struct Recording {
    path: PathBuf,
}

impl Node for Recording {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let Self { path } = self;
        let mut input = cx.input::<Payload>("in")?;
        let failed = {
            let name = path.display().to_string();
            move |source| WriteError { name: name.clone(), source }
        };
        let create = move || File::create(&path).and_then(|mut f| f.write_all(&MAGIC).map(|()| f));
        let mut file = cx.offload(&cx.arrival(), create).await?.map_err(&failed)?;
        let mut first = None;
        loop {
            match input.next().await {
                Event::Data(stamp, payload) => {
                    let now = cx.clock().now();
                    let at = now.since(*first.get_or_insert(now));
                    let mut record = Vec::with_capacity(payload.bytes() + 64);
                    encode(at, &stamp, &payload, &mut record)?;
                    let (f, done) = cx
                        .offload(&stamp, move || {
                            let done = file.write_all(&record);
                            (file, done)
                        })
                        .await?;
                    done.map_err(&failed)?;
                    file = f;
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl Make for RecordNode {
    const NAME: &'static str = "util.record";
    type Config = RecordConfig;
    fn schema() -> Schema {
        Schema::new("Writes what flows by to a file, for `util.replay`")
            .input(Port::new("in", any(), "audio, text, tokens, tensors, packets or signals").lossy())
            .option(Opt::required("path", "text", "the file, relative to the graph file; replaced if it exists"))
            .example("keep: { use: util.record, path: talk.ofrec, in: voice }")
    }
    fn refine(config: &Self::Config, _: &mut Schema) -> Result<(), OptionError> {
        if config.path.is_empty() || config.path == "-" {
            return Err(OptionError::new("path", "is not a file", "name one, for instance `talk.ofrec`"));
        }
        Ok(())
    }
    fn build(config: &Self::Config, cx: &BuildCx) -> Result<Body, BuildError> {
        let path = located(&cx.folder, &config.path);
        Ok(Body::node(move || Recording { path: path.clone() }))
    }
}
