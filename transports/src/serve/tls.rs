//! TLS: a certificate from files, or one made for development.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

/// Life of a certificate made for development: the longest that browsers allow for one that is known by its hash
/// (WebTransport, `serverCertificateHashes`).
const LIFE: Duration = Duration::from_secs(13 * 24 * 3600);

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or holds something else.
    #[error("{what} {}: {why}", path.display())]
    File {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The key is of another certificate, or of a kind that is not supported.
    #[error("the certificate and the key do not go together: {0}")]
    Pair(rustls::Error),
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Made(String),
}

/// A certificate with its key, ready to be used.
#[derive(Clone)]
pub struct Tls {
    pub(super) acceptor: TlsAcceptor,
    fingerprint: String,
}

impl Tls {
    /// A certificate chain and its key, both PEM files.
    ///
    /// # Errors
    /// [`TlsError`], with the file.
    pub fn files(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let file = |what, path: &Path, why: String| TlsError::File { what, path: path.to_owned(), why };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|e| file("certificate", cert, e.to_string()))?;
        let key_der = PrivateKeyDer::from_pem_file(key).map_err(|e| file("key", key, e.to_string()))?;
        if chain.is_empty() {
            return Err(file("certificate", cert, "it holds no certificate in PEM form".to_owned()));
        }
        Self::new(chain, key_der)
    }
    /// A certificate made now, for development, for `localhost`, the loopback addresses and `names`. ECDSA P-256.
    ///
    /// # Errors
    /// A name that no certificate can bear.
    pub fn self_signed(names: &[String]) -> Result<Self, TlsError> {
        let made = |e: rcgen::Error| TlsError::Made(e.to_string());
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        all.extend(names.iter().filter(|n| !all.contains(n)).cloned().collect::<Vec<_>>());
        let mut params = rcgen::CertificateParams::new(all).map_err(made)?;
        let now = SystemTime::now();
        // A clock that is a little behind accepts it too.
        params.not_before = (now - Duration::from_secs(3600)).into();
        params.not_after = (now + LIFE).into();
        params.distinguished_name.push(rcgen::DnType::CommonName, "omni-flow development");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(made)?;
        let cert = params.self_signed(&key).map_err(made)?;
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        Self::new(vec![cert.der().clone()], der.into())
    }
    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, TlsError> {
        let fingerprint = chain.first().map(|c| hex(&Sha256::digest(c))).unwrap_or_default();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }
    /// SHA-256 of the certificate, in pairs of hex digits with colons.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_and_has_a_fingerprint() {
        let tls = Tls::self_signed(&["example.test".to_owned()]).unwrap();
        assert_eq!(tls.fingerprint().split(':').count(), 32);
        assert_ne!(tls.fingerprint(), Tls::self_signed(&[]).unwrap().fingerprint());
    }
    #[test]
    fn files_that_are_none_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (empty, gone) = (at("empty.pem", ""), folder.path().join("gone.pem"));
        for (cert, key, what) in [(&gone, &empty, "certificate"), (&empty, &empty, "")] {
            let Err(TlsError::File { what: got, .. }) = Tls::files(cert, key) else { panic!("refused") };
            assert!(what.is_empty() || got == what);
        }
    }
}
