//! One WebSocket.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
use tokio_tungstenite::tungstenite::{Bytes, Error};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::{Address, tls};
use crate::client::error::ClientError;
use crate::client::options::{Options, Timeouts};
use crate::realtime::host::{Out, Said};
use crate::realtime::wire::profile::Profile;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Bytes of an HTTP error's text that are shown.
const SHOWN: usize = 300;

pub(super) async fn open(address: &Address, options: &Options, resume: bool) -> Result<Socket, ClientError> {
    let connect = |why: String| ClientError::Connect { address: address.to_string(), why };
    let mut request = address.url(options, resume).into_client_request().map_err(|e| connect(e.to_string()))?;
    let headers = request.headers_mut();
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("realtime"));
    if options.profile == Profile::Beta {
        headers.insert("openai-beta", HeaderValue::from_static("realtime=v1"));
    }
    if let Some(key) = &options.key {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
        let mut bearer = bearer.map_err(|_| ClientError::Options("the key holds what no header may".to_owned()))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(options.limits.frame))
        .max_frame_size(Some(options.limits.frame));
    let connector = match address.secure() {
        true => Connector::Rustls(tls::config(&options.trust)?),
        false => Connector::Plain,
    };
    match connect_async_tls_with_config(request, Some(limits), true, Some(connector)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => {
            let body = response.body().as_deref().unwrap_or_default();
            let body = String::from_utf8_lossy(&body[..body.len().min(SHOWN * 4)]).into_owned();
            let said: Option<serde_json::Value> = serde_json::from_str(&body).ok();
            let said = said.and_then(|v| v["error"]["message"].as_str().map(str::to_owned)).unwrap_or(body);
            let message: String = said.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
            Err(ClientError::Refused { status: response.status().as_u16(), message })
        }
        // It names the subprotocol or a header: no secret.
        Err(e) => Err(connect(e.to_string())),
    }
}

/// Carries texts until either side is done.
pub(super) async fn serve(
    socket: Socket,
    mut messages: mpsc::Receiver<Said>,
    out: mpsc::Sender<Out>,
    why: Arc<Mutex<Option<ClientError>>>,
    timeouts: Timeouts,
    limit: usize,
) {
    let (mut sink, mut stream) = socket.split();
    // Signs of life, for the pings of the writer.
    let (alive, mut heard) = mpsc::channel::<()>(1);
    let lost = |e: ClientError| {
        why.lock().get_or_insert(e);
    };
    let reader = async {
        loop {
            let message = match stream.next().await {
                Some(Ok(message)) => message,
                Some(Err(Error::Capacity(_))) => return lost(ClientError::TooLarge { what: "a message", limit }),
                Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) | None => return,
                Some(Err(e)) => return lost(ClientError::Lost(e.to_string())),
            };
            let _ = alive.try_send(());
            let next = match message {
                Message::Text(text) => Out::Text(text.as_str().into()),
                Message::Binary(_) => return lost(ClientError::Protocol("a binary frame".to_owned())),
                Message::Close(close) => {
                    let close = close.map_or((1005, String::new()), |c| (c.code.into(), c.reason.to_string()));
                    Out::Close(close.0, close.1)
                }
                // Pings are answered by the socket layer.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            if out.send(next).await.is_err() {
                return;
            }
        }
    };
    let writer = async {
        let (every, mut silent) = (timeouts.heartbeat, 0);
        let mut next_ping = Instant::now() + every;
        loop {
            let message = tokio::select! {
                biased;
                text = messages.recv() => match text {
                    Some(Said::Text(text)) => Message::text(text),
                    Some(Said::Bye) | None => {
                        let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                        let _ = timeout(timeouts.close, sink.send(Message::Close(Some(close)))).await;
                        return true;
                    }
                },
                Some(()) = heard.recv() => {
                    (silent, next_ping) = (0, Instant::now() + every);
                    continue;
                }
                () = sleep_until(next_ping), if !every.is_zero() => {
                    if silent >= 2 {
                        lost(ClientError::Lost("the server is silent".to_owned()));
                        return false;
                    }
                    (silent, next_ping) = (silent + 1, Instant::now() + every);
                    Message::Ping(Bytes::new())
                }
            };
            match timeout(timeouts.send, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => {
                    lost(ClientError::Lost(e.to_string()));
                    return false;
                }
                Err(_) => {
                    lost(ClientError::Timeout { what: "writing to the server", limit: timeouts.send });
                    return false;
                }
            }
        }
    };
    tokio::pin!(reader, writer);
    tokio::select! {
        () = &mut reader => {}
        goodbye = &mut writer => if goodbye {
            // The server's answer to our farewell.
            let _ = timeout(timeouts.close, reader).await;
        },
    }
}
