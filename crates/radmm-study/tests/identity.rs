//! A party is known by its public key, written in one way.

use radmm_study::{Identity, IdentityError};

const TEXT: &str = "ed25519:bf2d13c09ca7976e4d70bdf0bd16d6a26a37979a65c027057ca55bf610524c15";

fn error(text: &str) -> IdentityError {
    text.parse::<Identity>().expect_err(text)
}

#[test]
fn an_identity_is_written_as_it_is_read() {
    let identity: Identity = TEXT.parse().expect("a key");
    assert_eq!(identity.bytes()[..3], [0xbf, 0x2d, 0x13]);
    assert_eq!(identity.to_string(), TEXT);
    assert_eq!(format!("{identity:?}"), format!("Identity({TEXT})"));
    assert_eq!(Identity::from(identity.bytes()), identity);
    let json = serde_json::to_string(&identity).expect("a string");
    assert_eq!(json, format!("{TEXT:?}"));
}

#[test]
fn identities_are_ordered_as_they_are_written() {
    let of = |first| {
        let mut bytes = [0; 32];
        bytes[0] = first;
        Identity::from(bytes)
    };
    assert!(of(9) < of(10) && of(127) < of(128));
    assert!(of(9).to_string() < of(10).to_string() && of(127).to_string() < of(128).to_string());
}

#[test]
fn an_invalid_text_is_reported_with_its_reason() {
    assert_eq!(error(""), IdentityError::Prefix);
    assert_eq!(error(&TEXT[8..]), IdentityError::Prefix);
    assert_eq!(
        error(&TEXT.replace("ed25519", "x25519")),
        IdentityError::Prefix
    );
    assert_eq!(error(&format!(" {TEXT}")), IdentityError::Prefix);
    assert_eq!(error("ed25519:"), IdentityError::Length(0));
    assert_eq!(error(&TEXT[..71]), IdentityError::Length(63));
    assert_eq!(error(&format!("{TEXT}00")), IdentityError::Length(66));
    assert_eq!(error(&format!("{TEXT}\n")), IdentityError::Digit('\n'));
    assert_eq!(error(&TEXT.replace('b', "B")), IdentityError::Digit('B'));
    assert_eq!(error(&TEXT.replace('b', "é")), IdentityError::Digit('é'));
}

#[test]
fn a_secret_key_is_recognised_and_not_repeated() {
    for header in ["PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        let pem = format!("-----BEGIN {header}-----\nMC4CAQAwBQYDK2VwBCIEIAbc\n");
        assert_eq!(error(&pem), IdentityError::Secret);
        assert!(!error(&pem).to_string().contains("MC4C"));
    }
}
