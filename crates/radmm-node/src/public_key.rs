//! Ed25519 public keys that check many signatures.
//!
//! A signature (R, s) of a message m by the key A is valid if, with B the base point and ℓ its order (RFC 8032, section 5.1.7,
//! without the factor 8),
//!
//! ```text
//! s < ℓ   and   encode(s·B − h·A) = R,   h = SHA-512(R ‖ A ‖ m) mod ℓ.
//! ```
//!
//! A party checks a signature of each neighbour at every iteration, always with the same A. So the multiples of A and B that these
//! products consist of are computed once, and the sum takes a hundred additions and no doubling: half the time of a verifier that
//! meets a key for the first time. Everything here is public, so its running time may depend on it.

use std::sync::LazyLock;

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use sha2::{Digest, Sha512};

/// The number of multiples for each digit.
const MULTIPLES: usize = 16;

/// The number of digits of a scalar to the base 32: it has 253 bits.
const DIGITS: usize = 51;

static BASE_POINT: LazyLock<Multiples> = LazyLock::new(|| Multiples::new(ED25519_BASEPOINT_POINT));

/// A public key, with 130 kB of its multiples.
pub struct PublicKey {
    bytes: [u8; 32],
    /// The multiples of −A; `None` if the bytes are no valid key.
    negated: Option<Multiples>,
}

impl PublicKey {
    /// Prepares the key with this encoding. If it is invalid, so is every signature: it is not the encoding of a point, or not the
    /// shortest one, or the point is of small order, so that everybody can sign for it.
    pub fn new(bytes: &[u8; 32]) -> Self {
        let point = CompressedEdwardsY(*bytes).decompress();
        let valid =
            |point: &EdwardsPoint| point.compress().as_bytes() == bytes && !point.is_small_order();
        Self {
            bytes: *bytes,
            negated: point.filter(valid).map(|point| Multiples::new(-point)),
        }
    }

    /// Returns whether the owner of this key has signed `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let mut halves = [[0; 32]; 2];
        halves.as_flattened_mut().copy_from_slice(signature);
        let [r, s] = halves;
        let canonical: Option<Scalar> = Scalar::from_canonical_bytes(s).into();
        let (Some(negated), Some(s)) = (&self.negated, canonical) else {
            return false;
        };
        let hash = Sha512::new()
            .chain_update(r)
            .chain_update(self.bytes)
            .chain_update(message)
            .finalize();
        let h = Scalar::from_bytes_mod_order_wide(&hash.into());
        let sum = negated.product(&h) + BASE_POINT.product(&s);
        *sum.compress().as_bytes() == r
    }
}

/// The points 1·32ᵏ·P to 16·32ᵏ·P, for every digit k of a scalar.
struct Multiples(Vec<[EdwardsPoint; MULTIPLES]>);

impl Multiples {
    fn new(point: EdwardsPoint) -> Self {
        let mut base = point;
        let row = |_| {
            let mut row = [base; MULTIPLES];
            for k in 1..MULTIPLES {
                row[k] = row[k - 1] + base;
            }
            base = row[MULTIPLES - 1] + row[MULTIPLES - 1];
            row
        };
        Self((0..DIGITS).map(row).collect())
    }

    /// Returns the product of the point and a scalar.
    fn product(&self, scalar: &Scalar) -> EdwardsPoint {
        let mut sum = EdwardsPoint::identity();
        for (row, digit) in self.0.iter().zip(digits(scalar)) {
            match usize::from(digit.unsigned_abs()).checked_sub(1) {
                None => {}
                Some(place) if digit > 0 => sum += &row[place],
                Some(place) => sum -= &row[place],
            }
        }
        sum
    }
}

/// Returns the digits −15 ≤ d ≤ 16 of a scalar to the base 32, lowest first.
fn digits(scalar: &Scalar) -> [i8; DIGITS] {
    let bytes = scalar.as_bytes();
    let mut digits = [0; DIGITS];
    let mut carry = 0;
    for (k, digit) in digits.iter_mut().enumerate() {
        let (byte, bit) = (5 * k / 8, 5 * k % 8);
        let next = bytes.get(byte + 1).copied().unwrap_or(0);
        let pair = u16::from_le_bytes([bytes[byte], next]);
        let unsigned = (pair >> bit & 31) as i8 + carry;
        carry = i8::from(unsigned > 16);
        *digit = unsigned - 32 * carry;
    }
    digits
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use proptest::prelude::*;
    use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

    use super::*;

    /// Returns the verdict of ring on a signature.
    fn ring_verifies(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, public);
        key.verify(message, signature).is_ok()
    }

    /// Returns the verdict on a signature, which must be ring's.
    fn verifies(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        let valid = PublicKey::new(public).verify(message, signature);
        assert_eq!(valid, ring_verifies(public, message, signature));
        valid
    }

    fn pair(seed: [u8; 32]) -> (Ed25519KeyPair, [u8; 32]) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public = pair.public_key().as_ref().try_into().unwrap();
        (pair, public)
    }

    fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> [u8; 64] {
        pair.sign(message).as_ref().try_into().unwrap()
    }

    /// Returns the secret scalar of a seed.
    fn secret_scalar(seed: &[u8; 32]) -> Scalar {
        let hash: [u8; 64] = Sha512::digest(seed).into();
        let mut low: [u8; 32] = hash[..32].try_into().unwrap();
        low[0] &= 248;
        low[31] = low[31] & 127 | 64;
        Scalar::from_bytes_mod_order(low)
    }

    /// Returns the signature with a given R that holds if R encodes r·B.
    fn signature_with(
        r: [u8; 32],
        nonce: Scalar,
        secret: Scalar,
        public: &[u8; 32],
        message: &[u8],
    ) -> [u8; 64] {
        let hash = Sha512::new()
            .chain_update(r)
            .chain_update(public)
            .chain_update(message)
            .finalize();
        let s = nonce + Scalar::from_bytes_mod_order_wide(&hash.into()) * secret;
        [r, s.to_bytes()].as_flattened().try_into().unwrap()
    }

    /// Adds the order ℓ to the second half of a signature.
    fn plus_order(signature: &[u8; 64]) -> [u8; 64] {
        // ℓ − 1 is the largest scalar.
        let largest = (-Scalar::ONE).to_bytes();
        let mut carry = 1;
        let mut sum = *signature;
        for (byte, add) in sum[32..].iter_mut().zip(largest) {
            carry += u16::from(*byte) + u16::from(add);
            *byte = carry as u8;
            carry >>= 8;
        }
        sum
    }

    proptest! {
        #[test]
        fn digits_add_up_to_their_scalar(wide: [[u8; 32]; 2]) {
            let scalar = Scalar::from_bytes_mod_order_wide(wide.as_flattened().try_into().unwrap());
            for scalar in [scalar, -scalar, Scalar::ZERO, -Scalar::ONE] {
                let digits = digits(&scalar);
                prop_assert!(digits.iter().all(|digit| (-15..=16).contains(digit)));
                let sum = digits.iter().rev().fold(Scalar::ZERO, |sum, digit| {
                    let size = Scalar::from(digit.unsigned_abs());
                    sum * Scalar::from(32_u8) + if *digit < 0 { -size } else { size }
                });
                prop_assert_eq!(sum, scalar);
            }
        }

        #[test]
        fn signatures_are_valid_exactly_where_ring_says_so(
            seed: [u8; 32],
            message in prop::collection::vec(any::<u8>(), 0..300),
            flip in 0_usize..8 * 96,
        ) {
            let (pair, public) = pair(seed);
            let signature = sign(&pair, &message);
            prop_assert!(verifies(&public, &message, &signature));
            let mut longer = message.clone();
            longer.push(0);
            prop_assert!(!verifies(&public, &longer, &signature));
            let mut changed = [0; 96];
            changed[..32].copy_from_slice(&public);
            changed[32..].copy_from_slice(&signature);
            changed[flip / 8] ^= 1 << (flip % 8);
            let (public, signature) = changed.split_first_chunk().unwrap();
            prop_assert!(!verifies(public, &message, signature.try_into().unwrap()));
        }
    }

    #[test]
    fn a_second_form_of_a_signature_is_rejected() {
        let (pair, public) = pair([7; 32]);
        let signature = sign(&pair, b"value");
        assert!(verifies(&public, b"value", &signature));
        assert!(!verifies(&public, b"value", &plus_order(&signature)));
        // R = 0·B has two encodings: y = 1 and y = 1 + p. Only the first is what a verifier computes.
        let secret = secret_scalar(&[7; 32]);
        let mut canonical = [0; 32];
        canonical[0] = 1;
        let mut second = [255; 32];
        second[0] = 0xee;
        second[31] = 0x7f;
        let with = |r| signature_with(r, Scalar::ZERO, secret, &public, b"value");
        assert!(verifies(&public, b"value", &with(canonical)));
        assert!(!verifies(&public, b"value", &with(second)));
    }

    #[test]
    fn keys_and_nonces_with_a_part_of_small_order_get_rings_verdict() {
        let (_, public) = pair([7; 32]);
        let secret = secret_scalar(&[7; 32]);
        let point = CompressedEdwardsY(public).decompress().unwrap();
        let nonce = Scalar::from(12_345_u32);
        let mut valid = 0;
        for torsion in EIGHT_TORSION {
            for message in 0..16_u8 {
                let r = (ED25519_BASEPOINT_POINT * nonce).compress().to_bytes();
                let key = (point + torsion).compress().to_bytes();
                let signature = signature_with(r, nonce, secret, &key, &[message]);
                valid += u32::from(verifies(&key, &[message], &signature));
                let r = (ED25519_BASEPOINT_POINT * nonce + torsion).compress();
                let signature = signature_with(r.to_bytes(), nonce, secret, &public, &[message]);
                valid += u32::from(verifies(&public, &[message], &signature));
            }
        }
        // Both occur: a verifier with the factor 8 would accept all.
        assert!(valid > 32 && valid < 200, "{valid}");
    }

    #[test]
    fn keys_of_small_order_sign_nothing() {
        let zero = [0; 32];
        let mut accepted_by_ring = 0;
        for torsion in EIGHT_TORSION {
            let key = torsion.compress().to_bytes();
            for r in EIGHT_TORSION {
                // s = 0: valid if R = −h·A, which everybody can find.
                let signature: [u8; 64] = [r.compress().to_bytes(), zero]
                    .as_flattened()
                    .try_into()
                    .unwrap();
                accepted_by_ring += u32::from(ring_verifies(&key, b"value", &signature));
                assert!(!PublicKey::new(&key).verify(b"value", &signature));
            }
        }
        assert!(accepted_by_ring > 0);
    }

    #[test]
    fn invalid_encodings_of_keys_sign_nothing() {
        let (pair, public) = pair([7; 32]);
        let signature = sign(&pair, b"value");
        // y = 2 is on no point; y = p + 3 is a second form of y = 3.
        let mut none = [0; 32];
        none[0] = 2;
        let mut second = [255; 32];
        second[0] = 0xf0;
        second[31] = 0x7f;
        assert!(CompressedEdwardsY(none).decompress().is_none());
        assert!(CompressedEdwardsY(second).decompress().is_some());
        for key in [none, second] {
            assert!(PublicKey::new(&key).negated.is_none());
            assert!(!PublicKey::new(&key).verify(b"value", &signature));
        }
        assert!(PublicKey::new(&public).negated.is_some());
    }
}
