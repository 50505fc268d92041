//! TLS 1.3 between parties that know each other's keys.
//!
//! A certificate is an envelope for a key: it is signed by the key itself, and nothing else in it is looked at, neither
//! names nor dates. Who holds which key was written down beforehand, in the study.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error as TlsError,
    OtherError, PeerIncompatible, ServerConfig, SignatureScheme,
};
use thiserror::Error;

use crate::key::{SecretKey, fingerprint};

/// What is spoken within TLS.
pub(super) const PROTOCOL: &[u8] = b"h2";

/// How every Ed25519 key begins in a certificate.
const HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// What a party shows of itself.
pub(super) struct Credentials {
    provider: Arc<CryptoProvider>,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Credentials {
    pub(super) fn new(key: &SecretKey) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from(key.to_der());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519);
        let certificate = pair.and_then(|pair| CertificateParams::default().self_signed(&pair));
        let certificate = certificate.map_err(|error| error.to_string())?;
        Ok(Self {
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            certificate: certificate.der().clone(),
            key: der,
        })
    }

    /// For connections of those who hold one of `keys`.
    pub(super) fn server(&self, keys: Vec<[u8; 32]>) -> Result<Arc<ServerConfig>, String> {
        let pinned = self.pinned(keys, Side::Accepting);
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map(|builder| builder.with_client_cert_verifier(pinned))
            .and_then(|builder| {
                builder
                    .with_single_cert(vec![self.certificate.clone()], self.key.clone_key().into())
            })
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Everyone proves who they are every time.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    /// For a connection to whom holds `key`.
    pub(super) fn client(&self, key: [u8; 32]) -> Result<Arc<ClientConfig>, String> {
        let pinned = self.pinned(vec![key], Side::Dialling);
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map(|builder| builder.dangerous().with_custom_certificate_verifier(pinned))
            .and_then(|builder| {
                builder.with_client_auth_cert(
                    vec![self.certificate.clone()],
                    self.key.clone_key().into(),
                )
            })
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    fn pinned(&self, keys: Vec<[u8; 32]>, side: Side) -> Arc<Pinned> {
        let provider = self.provider.clone();
        Arc::new(Pinned {
            keys,
            side,
            provider,
        })
    }
}

/// A certificate that is not let in.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum PinError {
    #[error("its certificate holds no Ed25519 key")]
    NoKey,
    #[error("its key {} is not a neighbour's", fingerprint(.0))]
    Stranger([u8; 32]),
    #[error("its key is {}, not the one in the study", fingerprint(.0))]
    Impostor([u8; 32]),
}

/// The key in a certificate, which was proved to be held by nobody yet.
pub(super) fn key_in(certificate: &CertificateDer<'_>) -> Result<[u8; 32], PinError> {
    let certificate = ParsedCertificate::try_from(certificate).map_err(|_| PinError::NoKey)?;
    certificate
        .subject_public_key_info()
        .strip_prefix(&HEAD)
        .and_then(|key| key.try_into().ok())
        .ok_or(PinError::NoKey)
}

/// Lets in who holds a key that was written down.
#[derive(Debug)]
struct Pinned {
    keys: Vec<[u8; 32]>,
    side: Side,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Accepting,
    Dialling,
}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), PinError> {
        let key = key_in(certificate)?;
        match self.side {
            _ if self.keys.contains(&key) => Ok(()),
            Side::Accepting => Err(PinError::Stranger(key)),
            Side::Dialling => Err(PinError::Impostor(key)),
        }
    }

    /// Whether the handshake was signed with the certificate's key.
    fn proved(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }
}

impl From<PinError> for TlsError {
    fn from(error: PinError) -> Self {
        CertificateError::Other(OtherError(Arc::new(error))).into()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        self.check(certificate)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.proved(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.check(certificate)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Err(PeerIncompatible::SupportedVersionsExtensionRequired.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.proved(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

#[cfg(test)]
mod tests {
    use rustls::sign::{CertifiedKey, SingleCertAndKey};

    use super::super::reason;
    use super::*;

    fn party() -> (SecretKey, Credentials) {
        let key = SecretKey::generate().unwrap();
        let credentials = Credentials::new(&key).unwrap();
        (key, credentials)
    }

    #[test]
    fn a_certificate_holds_its_makers_key() {
        let (key, credentials) = party();
        assert_eq!(key_in(&credentials.certificate), Ok(key.public()));
    }

    #[test]
    fn who_is_not_written_down_is_not_let_in() {
        let ((key, mine), (other_key, other)) = (party(), party());
        let accepting = mine.pinned(vec![key.public()], Side::Accepting);
        assert_eq!(accepting.check(&mine.certificate), Ok(()));
        let stranger = PinError::Stranger(other_key.public());
        assert_eq!(accepting.check(&other.certificate), Err(stranger));
        let dialling = mine.pinned(vec![key.public()], Side::Dialling);
        let impostor = PinError::Impostor(other_key.public());
        assert_eq!(dialling.check(&other.certificate), Err(impostor));
    }

    #[test]
    fn bytes_and_other_keys_are_no_certificates() {
        let (_, mine) = party();
        let pinned = mine.pinned(vec![[0; 32]], Side::Accepting);
        let bytes = CertificateDer::from(vec![0x30; 100]);
        assert_eq!(pinned.check(&bytes), Err(PinError::NoKey));
        let elliptic = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&elliptic).unwrap();
        assert_eq!(pinned.check(certificate.der()), Err(PinError::NoKey));
    }

    /// A handshake in memory: what either side makes of the other.
    fn shake(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> [Result<(), String>; 2] {
        let name = ServerName::try_from("party").unwrap();
        let mut client = rustls::ClientConnection::new(client, name).unwrap();
        let mut server = rustls::ServerConnection::new(server).unwrap();
        let mut results = [Ok(()), Ok(())];
        for _ in 0..4 {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            let mut wire = wire.as_slice();
            while !wire.is_empty() && results[1].is_ok() {
                server.read_tls(&mut wire).unwrap();
                results[1] = server
                    .process_new_packets()
                    .map(drop)
                    .map_err(|error| reason::of_tls(&error));
            }
            let mut wire = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            let mut wire = wire.as_slice();
            while !wire.is_empty() && results[0].is_ok() {
                client.read_tls(&mut wire).unwrap();
                results[0] = client
                    .process_new_packets()
                    .map(drop)
                    .map_err(|error| reason::of_tls(&error));
            }
        }
        results
    }

    #[test]
    fn both_sides_prove_that_they_hold_their_keys() {
        let ((alice_key, alice), (bob_key, bob), (eve_key, eve)) = (party(), party(), party());
        let server = bob.server(vec![alice_key.public()]).unwrap();
        let honest = alice.client(bob_key.public()).unwrap();
        assert_eq!(shake(honest, server.clone()), [Ok(()), Ok(())]);

        let stranger = eve.client(bob_key.public()).unwrap();
        let [_, refused] = shake(stranger, server.clone());
        assert!(
            refused
                .unwrap_err()
                .contains(&fingerprint(&eve_key.public()))
        );

        // Alice's certificate is public; her key is not.
        let signer = eve
            .provider
            .key_provider
            .load_private_key(eve.key.clone_key().into());
        let forged = CertifiedKey::new(vec![alice.certificate.clone()], signer.unwrap());
        let mut client = (*alice.client(bob_key.public()).unwrap()).clone();
        client.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(forged));
        let [_, refused] = shake(Arc::new(client), server);
        assert!(refused.unwrap_err().contains("does not hold the key"));

        let expects_alice = alice.client(alice_key.public()).unwrap();
        let server = bob.server(vec![alice_key.public()]).unwrap();
        let [refused, _] = shake(expects_alice, server);
        assert!(
            refused
                .unwrap_err()
                .contains(&fingerprint(&bob_key.public()))
        );
    }
}
