//! TLS: the usual roots, or one certificate that is known.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::client::error::ClientError;
use crate::client::options::Trust;

/// The fingerprint of the first certificate of a PEM text.
pub(in crate::client) fn pin(text: &[u8]) -> Result<[u8; 32], ClientError> {
    let first = CertificateDer::pem_slice_iter(text).next();
    match first {
        Some(Ok(certificate)) => Ok(Sha256::digest(&certificate).into()),
        Some(Err(e)) => Err(ClientError::Options(format!("the PEM text cannot be read: {e}"))),
        None => Err(ClientError::Options("there is no certificate in the PEM text".to_owned())),
    }
}

/// What a connection is checked with.
pub(super) fn config(trust: &Trust) -> Result<Arc<ClientConfig>, ClientError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| ClientError::Options(format!("TLS cannot be set up: {e}")))?;
    Ok(Arc::new(match trust {
        Trust::Roots => {
            let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Pinned(pin) => {
            let known = Arc::new(Pinned { pin: *pin, provider });
            builder.dangerous().with_custom_certificate_verifier(known).with_no_client_auth()
        }
    }))
}

/// Takes one certificate, whatever it says of names and dates: stronger than a name, if it comes from whom it should.
#[derive(Debug)]
struct Pinned {
    pin: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found: [u8; 32] = Sha256::digest(certificate).into();
        match bool::from(found.ct_eq(&self.pin)) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("the server's certificate is not the one that is pinned".to_owned())),
        }
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
