//! `util.tee`: one stream to up to four branches, each an edge with its own window and policy.
//!
//! Nothing is queued here. A chunk is offered to all branches at once, so one that waits delays only the next chunk for
//! the others; a branch that must never slow them down says so by its policy (`drop-oldest`, `latest`). Fences and the
//! terminal pass every branch. A branch that nobody reads any more is left out.

use futures_util::future::join_all;
use omni_flow::{
    Body, BuildCx, BuildError, Ctx, Event, Make, Node, NodeError, Out, Payload, Port, Schema, Sent, Terminal,
};
use serde::Deserialize;

use super::any;

const PORTS: [&str; 4] = ["a", "b", "c", "d"];

/// The node type.
pub struct Tee;

/// Its options: none.
#[derive(Debug, Clone, Deserialize)]
pub struct TeeConfig {}

struct Branching;

impl Node for Branching {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Payload>("in")?;
        let mut branches: Vec<Out<Payload>> = Vec::new();
        for port in PORTS {
            let out = cx.output(port)?;
            if out.connected() {
                branches.push(out);
            }
        }
        loop {
            match input.next().await {
                Event::Data(stamp, payload) => {
                    let sent = join_all(branches.iter_mut().map(|b| b.send(&stamp, payload.clone()))).await;
                    let mut gone = sent.iter().map(|s| *s == Sent::Gone);
                    branches.retain(|_| !gone.next().unwrap_or(false));
                    if branches.is_empty() {
                        return Ok(());
                    }
                }
                Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl Make for Tee {
    const NAME: &'static str = "util.tee";
    type Config = TeeConfig;
    fn schema() -> Schema {
        let out = |name: &str| Port::new(name, any(), "the same").like("in");
        Schema::new("Gives one stream to up to four branches, each with its own window and policy")
            .input(Port::new("in", any(), "anything"))
            .output(out("a"))
            .output(out("b"))
            .output(out("c"))
            .output(out("d"))
            .example("split: { use: util.tee, in: voice }")
    }
    fn build(_: &Self::Config, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::node(|| Branching))
    }
}
