//! Encrypted connections to a server with a certificate of its own making.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow_transports::client::{Client, ClientError, Options, Trust};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::tungstenite::Message;

use crate::fake::listen;

/// Its address, the PEM text of its certificate, and the fingerprint.
async fn server() -> (String, String, String) {
    let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let print = Sha256::digest(&certificate).iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust it goes away.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut socket = accept(stream).await;
            let _ = socket.send(Message::text(r#"{"type":"session.created","session":{"id":"safe"}}"#)).await;
            drop(socket.collect::<Vec<_>>().await);
        }
    });
    (url.replace("ws:", "wss:"), made.cert.pem(), print)
}

#[allow(clippy::result_large_err, reason = "the library's own type")]
async fn accept<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    stream: S,
) -> tokio_tungstenite::WebSocketStream<S> {
    use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
    let protocol = |_: &Request, mut response: Response| {
        response.headers_mut().insert("sec-websocket-protocol", "realtime".parse().unwrap());
        Ok(response)
    };
    tokio_tungstenite::accept_hdr_async(stream, protocol).await.unwrap()
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_fingerprint_or_its_file_and_no_other() {
    let (url, pem, print) = server().await;
    for trust in [Trust::fingerprint(&print).unwrap(), Trust::pem(pem.as_bytes()).unwrap()] {
        let client = Client::connect(&url, Options { trust, ..Options::default() }).await.unwrap();
        assert_eq!(client.session()["id"], "safe");
        client.close().await.unwrap();
    }
    for trust in [Trust::Roots, Trust::Pinned([7; 32])] {
        let refused = Client::connect(&url, Options { trust, ..Options::default() }).await.err();
        assert!(matches!(refused, Some(ClientError::Connect { .. })), "{refused:?}");
    }
    assert!(Trust::pem(b"no certificate").is_err());
}
