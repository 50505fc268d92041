//! Whoever is not a neighbour is turned away, and neighbours do not notice.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use radmm_node::key::fingerprint;
use radmm_node::machine::link::Link;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use crate::party::{Party, Person, person};

/// A party at whose door somebody knocks while it talks to a neighbour.
struct House {
    owner: (Party, Person, Box<dyn Link>),
    friend: (Party, Person, Box<dyn Link>),
}

impl House {
    fn new() -> Self {
        let (owner, friend) = (person(0), person(1));
        let mut party = owner.start(vec![friend.dialling()]);
        let mut other = friend.start(vec![owner.at(party.address())]);
        let (_, out) = party.up(&friend);
        let (_, back) = other.up(&owner);
        Self {
            owner: (party, owner, out),
            friend: (other, friend, back),
        }
    }

    fn address(&self) -> SocketAddr {
        self.owner.0.address()
    }

    fn knock(&self) -> TcpStream {
        TcpStream::connect(self.address()).unwrap()
    }

    /// What the owner says of whom it turned away.
    fn refused(&mut self) -> String {
        self.owner.0.refused()
    }

    /// The neighbours still talk over the link that they had.
    fn undisturbed(mut self) {
        assert!(self.owner.2.send(b"still there?".to_vec()));
        self.friend.0.hears(&self.owner.1, b"still there?");
        assert!(self.friend.2.send(b"yes".to_vec()));
        self.owner.0.hears(&self.friend.1, b"yes");
        for party in [&mut self.owner.0, &mut self.friend.0] {
            assert_eq!(party.times("down"), 0, "{:#?}", party.log);
        }
    }
}

/// What the owner says of somebody who sends `bytes`.
fn said_of(bytes: &[u8]) -> String {
    let mut house = House::new();
    let mut stream = house.knock();
    stream.write_all(bytes).unwrap();
    let reason = house.refused();
    // Whatever comes back, it ends.
    let _ = stream.read_to_end(&mut Vec::new());
    house.undisturbed();
    reason
}

#[test]
fn plain_text_is_refused() {
    assert_eq!(said_of(b"hello\r\n"), "it does not speak TLS");
}

#[test]
fn a_web_browser_is_refused() {
    let request = b"GET / HTTP/1.1\r\nHost: party\r\n\r\n";
    assert_eq!(said_of(request), "it does not speak TLS");
}

#[test]
fn http_2_without_tls_is_refused() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(said_of(preface), "it does not speak TLS");
}

#[test]
fn noise_is_refused() {
    let mut state = 1_u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    for _ in 0..5 {
        let bytes: Vec<u8> = (0..1000).map(|_| noise()).collect();
        assert_eq!(said_of(&bytes), "it does not speak TLS");
    }
}

#[test]
fn tls_1_2_is_refused() {
    // A record with a handshake in it: a hello of version 1.2, a random number, no session, one suite, no compression.
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
        said_of(&record),
        "it does not speak TLS 1.3 with Ed25519 keys"
    );
}

#[test]
fn who_hangs_up_is_refused() {
    let mut house = House::new();
    drop(house.knock());
    assert_eq!(house.refused(), "it hung up");
    house.undisturbed();
}

#[test]
fn an_unknown_key_is_refused() {
    let mut house = House::new();
    let stranger = person(2);
    let mut party = stranger.start(vec![house.owner.1.at(house.address())]);
    let shown = fingerprint(&stranger.key.public());
    let expected = format!("its key {shown} is not a neighbour's");
    assert_eq!(house.refused(), expected);
    let reason = party.unreachable();
    assert!(
        reason.starts_with("it does not take this side's key"),
        "{reason}"
    );
    house.undisturbed();
}

#[test]
fn a_party_of_the_study_that_is_no_neighbour_is_refused() {
    // On a path of three, the ends are no neighbours, although the middle knows both.
    let (left, middle, right) = (person(0), person(1), person(2));
    let mut left_party = left.start(vec![middle.dialling()]);
    let address = left_party.address();
    let mut middle_party = middle.start(vec![left.at(address), right.dialling()]);
    let pretended = right.start(vec![left.at(address)]);
    let shown = fingerprint(&right.key.public());
    assert!(left_party.refused().contains(&shown));
    drop(pretended);
    let mut right_party = right.start(vec![middle.at(middle_party.address())]);
    right_party.up(&middle);
    middle_party.up(&right);
}

#[test]
fn a_party_with_another_key_is_not_reached() {
    let mut house = House::new();
    let (owner, friend) = (house.owner.1.clone(), house.friend.1.clone());
    let mut expected = owner.at(house.address());
    expected.key = person(0).key.public();
    let mut misled = friend.start(vec![expected]);
    let shown = fingerprint(&owner.key.public());
    let reason = format!("its key is {shown}, not the one in the study");
    assert_eq!(misled.unreachable(), reason);
    let reason = house.refused();
    assert!(
        reason.starts_with("it does not take this side's key"),
        "{reason}"
    );
    house.undisturbed();
}

/// Trusts everyone, and has no key.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
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

#[test]
fn who_has_no_key_is_refused() {
    let mut house = House::new();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    let name = ServerName::try_from("party").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = house.knock();
    // As far as it comes.
    let _ = rustls::Stream::new(&mut client, &mut stream).read_to_end(&mut Vec::new());
    assert_eq!(
        house.refused(),
        "it presents no certificate, and so proves nothing"
    );
    house.undisturbed();
}

#[test]
fn neighbours_get_past_a_crowd_that_says_nothing() {
    let (owner, friend) = (person(0), person(1));
    let mut party = owner.start(vec![friend.dialling()]);
    let address = party.address();
    let crowd: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let reason = party.refused();
    assert!(reason.contains("more than 64 connections"), "{reason}");
    let mut other = friend.start(vec![owner.at(address)]);
    let (_, link) = other.up(&owner);
    assert!(link.send(vec![1]));
    party.hears(&friend, &[1]);
    drop(crowd);
}

#[test]
fn a_crowd_is_told_of_in_few_words() {
    let mut house = House::new();
    for _ in 0..100 {
        let mut stream = house.knock();
        stream.write_all(b"hello\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(house.owner.0.times("refused") < 100);
    house.undisturbed();
}
