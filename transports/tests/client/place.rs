//! Where a session is opened: behind a door on a real socket, or in this process.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::Clock;
use omni_flow_transports::client::{Client, ClientError, Options, SessionConfig, TurnDetection};
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::host::{Host, Limits};
use omni_flow_transports::realtime::wire::profile::Profile;
use tokio::net::TcpListener;

use crate::toy;

/// A host, and a way to it.
pub struct Place {
    pub host: Arc<Host>,
    /// Of its door; none in process.
    pub url: Option<String>,
}

impl Place {
    pub async fn in_process() -> Self {
        Self { host: toy::host(Limits::default()).await, url: None }
    }
    pub async fn socket(gate: Gate) -> Self {
        let host = toy::host(Limits::default()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/v1/realtime", listener.local_addr().unwrap());
        let door = Door {
            graph: host.graph().clone(),
            clock: Clock::tokio(),
            host: Some(host.clone()),
            model: "toy".to_owned(),
            gate: Arc::new(gate),
            limits: door::Limits::default(),
        };
        tokio::spawn(async move { axum::serve(listener, door::router(door)).await });
        Self { host, url: Some(url) }
    }
    /// Both ways.
    pub async fn both() -> [Self; 2] {
        [Self::in_process().await, Self::socket(Gate::default()).await]
    }
    pub async fn open(&self, options: Options) -> Result<Client, ClientError> {
        match &self.url {
            Some(url) => Client::connect(url, options).await,
            None => Client::in_process(self.host.clone(), options).await,
        }
    }
    /// Waits until no session is left.
    pub async fn empty(&self) {
        for _ in 0..1000 {
            if self.host.sessions() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} sessions are left", self.host.sessions());
    }
}

/// Turns that the client commits, in a profile.
pub fn manual(profile: Profile) -> Options {
    Options { profile, session: Some(SessionConfig::new().turns(TurnDetection::Manual)), ..Options::default() }
}
