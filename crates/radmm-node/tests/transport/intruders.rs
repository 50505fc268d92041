//! Strangers are rejected, and neighbours are not disturbed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use radmm_node::machine::Link;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use crate::party::{KeyHolder, TestParty, key_holder};

/// Two connected parties, one of which a stranger connects to.
struct Pair {
    victim: (TestParty, KeyHolder, Box<dyn Link>),
    neighbour: (TestParty, KeyHolder, Box<dyn Link>),
}

impl Pair {
    fn new() -> Self {
        let (victim, neighbour) = (key_holder(0), key_holder(1));
        let mut party = victim.start(vec![neighbour.dialling()]);
        let mut other = neighbour.start(vec![victim.at(party.address())]);
        let (_, out) = party.up(&neighbour);
        let (_, back) = other.up(&victim);
        Self {
            victim: (party, victim, out),
            neighbour: (other, neighbour, back),
        }
    }

    fn address(&self) -> SocketAddr {
        self.victim.0.address()
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).unwrap()
    }

    /// Waits for the reason of a rejection by the victim.
    fn refusal(&mut self) -> String {
        self.victim.0.refusal()
    }

    /// Asserts that the link of the two parties still works and never went down.
    fn assert_undisturbed(mut self) {
        assert!(self.victim.2.send(b"still there?".to_vec()));
        self.neighbour.0.receives(&self.victim.1, b"still there?");
        assert!(self.neighbour.2.send(b"yes".to_vec()));
        self.victim.0.receives(&self.neighbour.1, b"yes");
        for party in [&mut self.victim.0, &mut self.neighbour.0] {
            assert_eq!(party.count("down"), 0, "{:#?}", party.log);
        }
    }
}

/// Returns the reason for which a client that sends `bytes` is rejected.
fn refusal_of(bytes: &[u8]) -> String {
    let mut pair = Pair::new();
    let mut stream = pair.connect();
    stream.write_all(bytes).unwrap();
    let reason = pair.refusal();
    // The connection is closed.
    let _ = stream.read_to_end(&mut Vec::new());
    pair.assert_undisturbed();
    reason
}

#[test]
fn plain_text_is_rejected() {
    assert_eq!(refusal_of(b"hello\r\n"), "it does not speak TLS");
}

#[test]
fn http_1_is_rejected() {
    let request = b"GET / HTTP/1.1\r\nHost: party\r\n\r\n";
    assert_eq!(refusal_of(request), "it does not speak TLS");
}

#[test]
fn http_2_without_tls_is_rejected() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(refusal_of(preface), "it does not speak TLS");
}

#[test]
fn noise_is_rejected() {
    let mut state = 1_u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    for _ in 0..5 {
        let bytes: Vec<u8> = (0..1000).map(|_| noise()).collect();
        assert_eq!(refusal_of(&bytes), "it does not speak TLS");
    }
}

#[test]
fn tls_1_2_is_rejected() {
    // A handshake record: a hello of version 1.2, a random number, no session, one suite, no compression.
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    // Extensions: curve x25519, and signatures with Ed25519.
    let extensions = [0, 10, 0, 4, 0, 2, 0, 0x1d, 0, 13, 0, 4, 0, 2, 0x08, 0x07];
    hello.extend([0, extensions.len() as u8]);
    hello.extend(extensions);
    let mut record = vec![
        0x16,
        3,
        1,
        0,
        hello.len() as u8 + 4,
        1,
        0,
        0,
        hello.len() as u8,
    ];
    record.extend(hello);
    assert_eq!(
        refusal_of(&record),
        "it does not speak TLS 1.3 with Ed25519 keys"
    );
}

#[test]
fn a_client_that_disconnects_is_reported() {
    let mut pair = Pair::new();
    drop(pair.connect());
    assert_eq!(pair.refusal(), "it closed the connection");
    pair.assert_undisturbed();
}

#[test]
fn an_unknown_key_is_rejected() {
    let mut pair = Pair::new();
    let stranger = key_holder(2);
    let mut party = stranger.start(vec![pair.victim.1.at(pair.address())]);
    let shown = stranger.key.identity();
    let expected = format!("its key {shown} is not a neighbour's");
    assert_eq!(pair.refusal(), expected);
    let reason = party.unreachable();
    assert!(reason.starts_with("it rejects this side's key"), "{reason}");
    pair.assert_undisturbed();
}

#[test]
fn a_party_of_the_study_that_is_not_a_neighbour_is_rejected() {
    // On a path of three, the ends are not neighbours, although the middle knows both.
    let (left, middle, right) = (key_holder(0), key_holder(1), key_holder(2));
    let mut left_party = left.start(vec![middle.dialling()]);
    let address = left_party.address();
    let mut middle_party = middle.start(vec![left.at(address), right.dialling()]);
    let pretended = right.start(vec![left.at(address)]);
    let shown = right.key.identity().to_string();
    assert!(left_party.refusal().contains(&shown));
    drop(pretended);
    let mut right_party = right.start(vec![middle.at(middle_party.address())]);
    right_party.up(&middle);
    middle_party.up(&right);
}

#[test]
fn a_party_with_another_key_than_expected_is_unreachable() {
    let mut pair = Pair::new();
    let (victim, neighbour) = (pair.victim.1.clone(), pair.neighbour.1.clone());
    let mut expected = victim.at(pair.address());
    expected.key = key_holder(0).key.public();
    let mut misled = neighbour.start(vec![expected]);
    let shown = victim.key.identity();
    let reason = format!("its key is {shown}, not the one in the study");
    assert_eq!(misled.unreachable(), reason);
    let reason = pair.refusal();
    assert!(reason.starts_with("it rejects this side's key"), "{reason}");
    pair.assert_undisturbed();
}

/// A verifier that trusts every server.
#[derive(Debug)]
struct TrustAll;

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Returns the reason for which a client without a certificate, which offers application protocols, is rejected.
fn refusal_of_client(protocols: &[&[u8]]) -> String {
    let mut pair = Pair::new();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustAll))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("party").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = pair.connect();
    let _ = rustls::Stream::new(&mut client, &mut stream).read_to_end(&mut Vec::new());
    let reason = pair.refusal();
    pair.assert_undisturbed();
    reason
}

#[test]
fn a_client_without_a_certificate_is_rejected() {
    for protocols in [&[][..], &[&b"radmm/1"[..]]] {
        assert_eq!(refusal_of_client(protocols), "it presents no certificate");
    }
}

#[test]
fn another_application_protocol_is_rejected() {
    assert_eq!(
        refusal_of_client(&[b"h2", b"http/1.1"]),
        "it speaks TLS, but not this version of radmm's protocol"
    );
}

/// Opens idle connections of strangers, more than a party lets wait, and waits until it has closed some of them.
fn flood(party: SocketAddr) -> Vec<TcpStream> {
    let strangers: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(party).unwrap())
        .collect();
    // Whichever are closed, these are among them: the oldest.
    for mut stranger in &strangers[..150] {
        let _ = stranger.read(&mut [0]);
    }
    strangers
}

/// Relays one connection to a party, and lets strangers flood the party after the first bytes from either side.
fn flooding_relay(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(to).unwrap();
        let mut bytes = [0; 4096];
        let mut strangers = Vec::new();
        let count = near.read(&mut bytes).unwrap();
        far.write_all(&bytes[..count]).unwrap();
        let count = far.read(&mut bytes).unwrap();
        strangers.extend(flood(to));
        near.write_all(&bytes[..count]).unwrap();
        let directions = [
            (near.try_clone().unwrap(), far.try_clone().unwrap()),
            (far, near),
        ];
        for (mut from, mut into) in directions {
            thread::spawn(move || std::io::copy(&mut from, &mut into));
        }
        strangers
    });
    address
}

#[test]
fn silent_strangers_do_not_interrupt_a_neighbours_handshake() {
    let (victim, neighbour) = (key_holder(0), key_holder(1));
    let mut party = victim.start(vec![neighbour.dialling()]);
    let relayed = flooding_relay(party.address());
    // There is one attempt: the relay takes one connection.
    let mut other = neighbour.start(vec![victim.at(relayed)]);
    let (_, link) = party.up(&neighbour);
    other.up(&victim);
    assert!(link.send(vec![1]));
    other.receives(&victim, &[1]);
    assert_eq!(other.count("unreachable"), 0, "{:#?}", other.log);
    let words = "it was silent, while more than 128 silent connections waited";
    assert!(party.log.iter().any(|line| line.contains(words)));
}

#[test]
fn neighbours_connect_despite_many_silent_strangers() {
    let (victim, neighbour) = (key_holder(0), key_holder(1));
    let mut party = victim.start(vec![neighbour.dialling()]);
    let address = party.address();
    let strangers = thread::spawn(move || flood(address));
    let mut other = neighbour.start(vec![victim.at(address)]);
    let (_, link) = other.up(&victim);
    assert!(link.send(vec![1]));
    party.receives(&neighbour, &[1]);
    drop(strangers.join().unwrap());
}

#[test]
fn reports_of_many_strangers_are_rate_limited() {
    let mut pair = Pair::new();
    for _ in 0..100 {
        let mut stream = pair.connect();
        stream.write_all(b"hello\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(pair.victim.0.count("refused") < 100);
    pair.assert_undisturbed();
}
