//! A server that does what a test says.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

/// One connection of a client.
pub struct Peer(pub WebSocketStream<TcpStream>);

impl Peer {
    pub async fn text(&mut self, text: impl Into<String>) {
        // The client may be gone already.
        let _ = self.0.send(Message::text(text.into())).await;
    }
    pub async fn say(&mut self, event: Value) {
        self.text(event.to_string()).await;
    }
    pub async fn created(&mut self) {
        let session = json!({"id": "sess_1", "type": "realtime"});
        self.say(json!({"type": "session.created", "event_id": "e", "session": session})).await;
    }
    /// What the client says next; none after its end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }
}

/// What a client asked for when it connected.
#[allow(clippy::result_large_err, reason = "the library's own type")]
pub async fn accept(stream: TcpStream) -> Peer {
    let protocol = |_: &Request, mut response: Response| {
        response.headers_mut().insert("sec-websocket-protocol", "realtime".parse().unwrap());
        Ok(response)
    };
    Peer(accept_hdr_async(stream, protocol).await.unwrap())
}

/// A listener and its address.
pub async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// A server whose n-th connection is treated by `script`.
pub async fn serve<F>(mut script: impl FnMut(usize, Peer) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send,
{
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        for n in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            script(n, accept(stream).await).await;
        }
    });
    url
}
