//! TLS 1.3 between parties that know each other's keys.
//!
//! Certificates are self-signed and only carry a key: names and dates are not checked. The study says which party holds which
//! key.

use std::sync::Arc;

use radmm_study::Identity;
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

use crate::key::SecretKey;

/// The application protocol (ALPN): an answer, then frames, as in `framing`.
pub(super) const PROTOCOL: &[u8] = b"radmm/1";

/// The prefix of an Ed25519 key in a certificate (SubjectPublicKeyInfo).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The certificate and key of a party.
pub(super) struct Credentials {
    provider: Arc<CryptoProvider>,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    parties: Arc<PartyKeys>,
}

/// The names and keys of a study's parties.
type PartyKeys = [(String, [u8; 32])];

impl Credentials {
    pub(super) fn new(key: &SecretKey, parties: Arc<PartyKeys>) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from(key.to_der().to_vec());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519);
        let certificate = pair.and_then(|pair| CertificateParams::default().self_signed(&pair));
        let certificate = certificate.map_err(|error| error.to_string())?;
        Ok(Self {
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            certificate: certificate.der().clone(),
            key: der,
            parties,
        })
    }

    /// Returns the configuration for connections from holders of one of `keys`.
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
        // No session resumption: every connection is authenticated.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    /// Returns the configuration for a connection to the holder of `key`.
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

    fn pinned(&self, keys: Vec<[u8; 32]>, side: Side) -> Arc<PinnedKeys> {
        let provider = self.provider.clone();
        Arc::new(PinnedKeys {
            keys,
            side,
            provider,
            parties: self.parties.clone(),
        })
    }
}

/// A reason for which a certificate is rejected.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum PinError {
    #[error("its certificate holds no Ed25519 key")]
    NoKey,
    #[error("its key {} is not a neighbour's", Identity::from(*.0))]
    Stranger([u8; 32]),
    #[error("its key {} is that of party {name}, which is not a neighbour", Identity::from(*.key))]
    NotNeighbour { key: [u8; 32], name: String },
    #[error("its key is {}, not the one in the study", Identity::from(*.0))]
    Impostor([u8; 32]),
    #[error("its key {} is that of party {name}, where {expected} was expected", Identity::from(*.key))]
    OtherParty {
        key: [u8; 32],
        name: String,
        expected: String,
    },
}

/// Returns the key in a certificate. Nobody has proved yet that it holds the key.
pub(super) fn key_in(certificate: &CertificateDer<'_>) -> Result<[u8; 32], PinError> {
    let certificate = ParsedCertificate::try_from(certificate).map_err(|_| PinError::NoKey)?;
    certificate
        .subject_public_key_info()
        .strip_prefix(&SPKI_PREFIX)
        .and_then(|key| key.try_into().ok())
        .ok_or(PinError::NoKey)
}

/// A verifier that accepts only certificates with pinned keys.
#[derive(Debug)]
struct PinnedKeys {
    keys: Vec<[u8; 32]>,
    side: Side,
    provider: Arc<CryptoProvider>,
    parties: Arc<PartyKeys>,
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Accepting,
    Dialling,
}

impl PinnedKeys {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), PinError> {
        let key = key_in(certificate)?;
        if self.keys.contains(&key) {
            return Ok(());
        }
        let expected = self.keys.first().and_then(|key| self.name_of(key));
        Err(match (self.side, self.name_of(&key), expected) {
            (Side::Accepting, Some(name), _) => PinError::NotNeighbour { key, name },
            (Side::Accepting, None, _) => PinError::Stranger(key),
            (Side::Dialling, Some(name), Some(expected)) => PinError::OtherParty {
                key,
                name,
                expected,
            },
            (Side::Dialling, _, _) => PinError::Impostor(key),
        })
    }

    /// Returns the name of the party that holds a key.
    fn name_of(&self, key: &[u8; 32]) -> Option<String> {
        let found = self.parties.iter().find(|(_, other)| other == key);
        found.map(|(name, _)| name.clone())
    }

    /// Verifies that the handshake was signed with the certificate's key.
    fn verify_signature(
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

impl ServerCertVerifier for PinnedKeys {
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
        self.verify_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for PinnedKeys {
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
        self.verify_signature(message, certificate, signed)
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
        let credentials = Credentials::new(&key, Arc::new([])).unwrap();
        (key, credentials)
    }

    #[test]
    fn a_certificate_holds_its_makers_key() {
        let (key, credentials) = party();
        assert_eq!(key_in(&credentials.certificate), Ok(key.public()));
    }

    #[test]
    fn a_key_that_is_not_pinned_is_rejected() {
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
    fn a_key_of_another_party_is_named() {
        let ((birch, mut mine), (cedar, other)) = (party(), party());
        mine.parties = Arc::new([
            ("birch".to_owned(), birch.public()),
            ("cedar".to_owned(), cedar.public()),
        ]);
        let reason = |side| {
            let pinned = mine.pinned(vec![birch.public()], side);
            pinned.check(&other.certificate).unwrap_err().to_string()
        };
        let key = cedar.identity();
        assert_eq!(
            reason(Side::Dialling),
            format!("its key {key} is that of party cedar, where birch was expected")
        );
        assert_eq!(
            reason(Side::Accepting),
            format!("its key {key} is that of party cedar, which is not a neighbour")
        );
    }

    #[test]
    fn invalid_certificates_and_other_kinds_of_keys_are_rejected() {
        let (_, mine) = party();
        let pinned = mine.pinned(vec![[0; 32]], Side::Accepting);
        let bytes = CertificateDer::from(vec![0x30; 100]);
        assert_eq!(pinned.check(&bytes), Err(PinError::NoKey));
        let elliptic = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&elliptic).unwrap();
        assert_eq!(pinned.check(certificate.der()), Err(PinError::NoKey));
    }

    /// Performs a handshake in memory, and returns the result of either side.
    fn handshake(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> [Result<(), String>; 2] {
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
    fn both_sides_must_hold_their_keys() {
        let ((alice_key, alice), (bob_key, bob), (eve_key, eve)) = (party(), party(), party());
        let server = bob.server(vec![alice_key.public()]).unwrap();
        let honest = alice.client(bob_key.public()).unwrap();
        assert_eq!(handshake(honest, server.clone()), [Ok(()), Ok(())]);

        let stranger = eve.client(bob_key.public()).unwrap();
        let [_, refused] = handshake(stranger, server.clone());
        assert!(
            refused
                .unwrap_err()
                .contains(&eve_key.identity().to_string())
        );

        // Alice's certificate is public; her key is not.
        let signer = eve
            .provider
            .key_provider
            .load_private_key(eve.key.clone_key().into());
        let forged = CertifiedKey::new(vec![alice.certificate.clone()], signer.unwrap());
        let mut client = (*alice.client(bob_key.public()).unwrap()).clone();
        client.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(forged));
        let [_, refused] = handshake(Arc::new(client), server);
        assert!(refused.unwrap_err().contains("does not hold the key"));

        let expects_alice = alice.client(alice_key.public()).unwrap();
        let server = bob.server(vec![alice_key.public()]).unwrap();
        let [refused, _] = handshake(expects_alice, server);
        assert!(
            refused
                .unwrap_err()
                .contains(&bob_key.identity().to_string())
        );
    }
}
