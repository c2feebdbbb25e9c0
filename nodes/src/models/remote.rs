//! `model.chat` on an OpenAI-compatible server: a node that waits for a socket.

use std::sync::Arc;

use omni_flow::{Body, BuildCx, BuildError, Ctx, Event, MediaTime, Node, NodeError, Out, Sent, Stamp, Terminal};

use super::chat::ChatConfig;
use super::prompts::PromptNode;
use crate::chat::remote::{RemoteChat, RemoteConfig, RemoteEvent};
use crate::chat::{History, Sampling};

pub(super) fn build(config: &ChatConfig, cx: &BuildCx) -> Result<Body, BuildError> {
    let base = config.base_url.clone().unwrap_or_default();
    let mut remote = RemoteConfig::new(base, config.model.clone());
    remote.api_key_env = config.api_key_env.clone();
    let client = Arc::new(RemoteChat::with_env(remote, |name| cx.env.get(name)).map_err(BuildError::from_error)?);
    let (fixed, sampling) = (config.fixed(), config.sampling(cx.seed));
    if config.prompts {
        return Ok(Body::node(move || PromptNode::new(client.clone(), fixed.clone(), sampling.clone())));
    }
    Ok(Body::node(move || RemoteNode {
        client: client.clone(),
        history: History::new(fixed.clone()),
        sampling: sampling.clone(),
    }))
}

struct RemoteNode {
    client: Arc<RemoteChat>,
    history: History,
    sampling: Sampling,
}

impl Node for RemoteNode {
    async fn run(mut self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Arc<str>>("in")?;
        let mut out = cx.output::<Arc<str>>("text")?;
        loop {
            match input.next().await {
                Event::Data(stamp, text) if !text.trim().is_empty() => {
                    self.history.push_user(text.trim());
                    if self.answer(&mut cx, &stamp, &mut out).await? == Sent::Gone {
                        return Ok(());
                    }
                }
                Event::Data(..) | Event::Fence(_) => {}
                Event::End(Terminal::End) => return Ok(()),
                Event::End(Terminal::Error(e)) => return Err(e.into()),
            }
        }
    }
}

impl RemoteNode {
    /// One answer, until it ends, a fence of the reply's lane ends it, or nobody reads. What was given out of it is
    /// part of the history.
    async fn answer(&mut self, cx: &mut Ctx, asked: &Stamp, out: &mut Out<Arc<str>>) -> Result<Sent, NodeError> {
        let stamp = asked.child(MediaTime::ZERO, MediaTime::ZERO);
        let mut said = String::new();
        let result = loop {
            if cx.is_stale(&stamp) {
                break Ok(Sent::Stale);
            }
            let telling = tell(&self.client, &self.history, &self.sampling, &stamp, &mut said, out);
            tokio::select! {
                biased;
                // A fence that this question is newer than changes nothing.
                _ = cx.fenced() => {}
                done = telling => break done,
            }
        };
        self.history.push_assistant(&said);
        result
    }
}

async fn tell(
    client: &RemoteChat,
    history: &History,
    sampling: &Sampling,
    stamp: &Stamp,
    said: &mut String,
    out: &mut Out<Arc<str>>,
) -> Result<Sent, NodeError> {
    said.clear();
    let mut stream = client.stream(&history.messages(), sampling).await?;
    while let Some(event) = stream.next().await? {
        let sent = match event {
            RemoteEvent::Text(t) => {
                let sent = out.send(stamp, t.as_str().into()).await;
                if sent == Sent::Queued {
                    said.push_str(&t);
                }
                sent
            }
            // No tools were offered.
            RemoteEvent::Call(_) => Sent::Queued,
            RemoteEvent::Done { .. } => out.send(&stamp.last(true), "".into()).await,
        };
        if sent != Sent::Queued {
            return Ok(sent);
        }
    }
    Ok(Sent::Queued)
}
