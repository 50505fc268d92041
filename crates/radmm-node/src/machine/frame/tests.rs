use super::*;

const STUDY: [u8; 32] = [7; 32];

fn message(from: u32, iteration: u32, units: Vec<i64>) -> Message {
    Message {
        from: NodeId(from),
        iteration,
        release: Release::from_units(units).unwrap(),
    }
}

#[test]
fn a_signature_is_for_one_study_sender_iteration_and_value() {
    let key = SecretKey::generate().unwrap();
    let public = PublicKey::new(&key.public());
    let signed = SignedMessage::new(message(3, 17, vec![5, -6]), &STUDY, &key);
    assert!(signed.is_signed_by(&public, &STUDY));
    assert!(!signed.is_signed_by(&public, &[8; 32]));
    let other = SecretKey::generate().unwrap();
    assert!(!signed.is_signed_by(&PublicKey::new(&other.public()), &STUDY));
    let others = [
        message(4, 17, vec![5, -6]),
        message(3, 18, vec![5, -6]),
        message(3, 17, vec![5, -7]),
        message(3, 17, vec![5]),
    ];
    for message in others {
        let forged = SignedMessage {
            message,
            signature: signed.signature,
        };
        assert!(!forged.is_signed_by(&public, &STUDY), "{forged:?}");
    }
}
