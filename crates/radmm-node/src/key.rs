//! Ed25519 keys of sites.
//!
//! A secret key is stored in a file of its own, as PKCS#8 in PEM, which other tools read too. Its public half is the party's
//! [`Identity`], by which neighbours know it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use radmm_study::Identity;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use thiserror::Error;
use zeroize::Zeroizing;

/// The bytes of a PKCS#8 key, version 1, before its Ed25519 seed. (Version 2 holds the public key as well; few tools read it.)
const PKCS8_HEADER: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The position of the algorithm in [`PKCS8_HEADER`], and in version 2.
const ALGORITHM: std::ops::Range<usize> = 5..12;

/// The label of a PEM file with an unencrypted PKCS#8 key.
const LABEL: &str = "PRIVATE KEY";

/// The largest key file that is read, in bytes.
const MAX_FILE: u64 = 1 << 14;

/// The secret key that a site signs with.
///
/// It cannot be cloned, and its debug output shows the public half only:
///
/// ```compile_fail
/// let key = radmm_node::key::SecretKey::generate().unwrap();
/// let copy = key.clone();
/// ```
pub struct SecretKey {
    /// Wiped when it is dropped. The library that signs keeps the key in `pair`, and does not wipe it.
    seed: Box<Zeroizing<[u8; 32]>>,
    pair: Ed25519KeyPair,
}

/// The reason why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness for a key")]
    Entropy,
    /// The file is empty.
    #[error("it is empty: make a new key, or restore this one from a copy")]
    Empty,
    /// The file holds an identity.
    #[error("it is a public identity, which others may know: the secret key is needed here")]
    Identity,
    /// The file holds a public key in PEM.
    #[error("it is a public key: the secret key is needed here")]
    Public,
    /// The file holds a certificate.
    #[error("it is a certificate: the secret key is needed here, and no certificates")]
    Certificate,
    /// The key is encrypted.
    #[error("the key is encrypted: decrypt it first, for example with openssl pkey")]
    Encrypted,
    /// The key is of another algorithm.
    #[error("it is a key of another kind: an Ed25519 key is needed, as PKCS#8 in PEM")]
    Kind,
    /// The end of the key is missing.
    #[error("it ends before the key does: restore it from a copy")]
    Truncated,
    /// The file holds something else.
    #[error("it is not a key: PEM is expected, from -----BEGIN PRIVATE KEY----- on")]
    Unknown,
    /// The key is damaged.
    #[error("the key is damaged: restore it from a copy")]
    Damaged,
    /// A file holds no valid key.
    #[error("key file {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: Box<KeyError>,
    },
    /// Others can read the file.
    #[error(
        "key file {}: others can read it (mode {mode:03o}), and who has the key can speak for this site; \
         if nobody has read it, run chmod 600",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// The file exists, and a key is never overwritten.
    #[error("key file {}: there is one already, and a lost key cannot be made again: move it away first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("key file {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl SecretKey {
    /// Generates a key from the operating system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed: Box<Zeroizing<[u8; 32]>> = Box::default();
        SystemRandom::new()
            .fill(&mut seed[..])
            .map_err(|_| KeyError::Entropy)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed[..]).map_err(|_| KeyError::Damaged)?;
        Ok(Self { seed, pair })
    }

    /// Reads the key in the text of a PEM file.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.starts_with("ed25519:") {
            return Err(KeyError::Identity);
        }
        let (_, rest) = text.split_once("-----BEGIN ").ok_or(KeyError::Unknown)?;
        let (label, rest) = rest.split_once("-----").ok_or(KeyError::Truncated)?;
        match label {
            LABEL => {}
            "PUBLIC KEY" => return Err(KeyError::Public),
            "ENCRYPTED PRIVATE KEY" => return Err(KeyError::Encrypted),
            other if other.ends_with("CERTIFICATE") => return Err(KeyError::Certificate),
            other if other.ends_with(LABEL) => return Err(KeyError::Kind),
            _ => return Err(KeyError::Unknown),
        }
        let (body, _) = rest
            .split_once(&format!("-----END {LABEL}-----"))
            .ok_or(KeyError::Truncated)?;
        let mut letters = Zeroizing::new(String::with_capacity(body.len()));
        letters.extend(body.split_whitespace());
        let der = STANDARD.decode(&*letters).map(Zeroizing::new);
        Self::from_der(&der.map_err(|_| KeyError::Damaged)?)
    }

    fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        match der {
            // Long lengths have a byte of their own; no Ed25519 key is that long.
            [0x30, length, ..] if *length >= 0x80 => return Err(KeyError::Kind),
            [0x30, length, rest @ ..] if usize::from(*length) > rest.len() => {
                return Err(KeyError::Truncated);
            }
            [0x30, ..] => {}
            _ => return Err(KeyError::Damaged),
        }
        if der.get(ALGORITHM) != Some(&PKCS8_HEADER[ALGORITHM]) {
            return Err(KeyError::Kind);
        }
        // A public key beside the seed is checked against it.
        let pair =
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| KeyError::Damaged)?;
        let found = der.get(PKCS8_HEADER.len()..PKCS8_HEADER.len() + 32);
        let mut seed: Box<Zeroizing<[u8; 32]>> = Box::default();
        seed.copy_from_slice(found.ok_or(KeyError::Damaged)?);
        Ok(Self { seed, pair })
    }

    /// Returns the key as PKCS#8 in PEM.
    pub fn to_pem(&self) -> Zeroizing<String> {
        let letters = Zeroizing::new(STANDARD.encode(&*self.to_der()));
        let parts = [
            "-----BEGIN ",
            LABEL,
            "-----\n",
            &letters,
            "\n-----END ",
            LABEL,
            "-----\n",
        ];
        Zeroizing::new(parts.concat())
    }

    /// Returns the key as PKCS#8.
    pub(crate) fn to_der(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&PKCS8_HEADER[..], &self.seed[..]].concat())
    }

    /// Returns the public half.
    pub fn public(&self) -> [u8; 32] {
        let mut public = [0; 32];
        public.copy_from_slice(self.pair.public_key().as_ref());
        public
    }

    /// Returns the public half as the identity by which others know the party.
    pub fn identity(&self) -> Identity {
        self.public().into()
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }

    /// Writes the key into a new file that only its owner can read.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.into() },
            _ => failed(path)(error),
        })?;
        file.write_all(self.to_pem().as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| {
                // A part of a key would be in the way of the next attempt.
                let _ = std::fs::remove_file(path);
                failed(path)(error)
            })
    }

    /// Reads the key in a file that only its owner can read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let file = File::open(path).map_err(failed(path))?;
        #[cfg(unix)]
        {
            let permissions = file.metadata().map_err(failed(path))?.permissions();
            let mode = std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777;
            if mode & 0o077 != 0 {
                let path = path.into();
                return Err(KeyError::Exposed { path, mode });
            }
        }
        // As long as it gets, so that it is not moved while it is read.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE as usize + 1));
        file.take(MAX_FILE)
            .read_to_end(&mut bytes)
            .map_err(failed(path))?;
        std::str::from_utf8(&bytes)
            .map_err(|_| KeyError::Unknown)
            .and_then(Self::from_pem)
            .map_err(|error| KeyError::File {
                path: path.into(),
                error: Box::new(error),
            })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret key of {}", self.identity())
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> KeyError {
    let path = path.to_path_buf();
    move |error| KeyError::Io {
        path: path.clone(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;

    /// The key of RFC 8410, section 10.3.
    const PLAIN: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";

    fn error(text: &str) -> KeyError {
        SecretKey::from_pem(text).unwrap_err()
    }

    fn pem(label: &str, der: &[u8]) -> String {
        let body = STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn the_key_of_the_standard_is_read_and_written_back() {
        let key = SecretKey::from_pem(PLAIN).unwrap();
        assert_eq!(*key.to_pem(), PLAIN);
        assert_eq!(
            key.identity().to_string(),
            "ed25519:19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"
        );
    }

    #[test]
    fn a_key_with_its_public_half_is_read_if_they_match() {
        let mut der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .unwrap()
            .as_ref()
            .to_vec();
        let key = SecretKey::from_pem(&pem(LABEL, &der)).unwrap();
        let again = SecretKey::from_pem(&key.to_pem()).unwrap();
        assert_eq!(key.public(), again.public());
        *der.last_mut().unwrap() ^= 1;
        assert!(matches!(error(&pem(LABEL, &der)), KeyError::Damaged));
    }

    #[test]
    fn a_signature_verifies_for_its_key_and_message_only() {
        let [one, other] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let signature = one.sign(b"iteration 7");
        let [one, other] = [one, other].map(|key| PublicKey::new(&key.public()));
        assert!(one.verify(b"iteration 7", &signature));
        assert!(!other.verify(b"iteration 7", &signature));
        assert!(!one.verify(b"iteration 8", &signature));
    }

    #[test]
    fn whatever_is_not_an_ed25519_key_is_named() {
        let key = SecretKey::from_pem(PLAIN).unwrap();
        assert!(matches!(error(" \n"), KeyError::Empty));
        let identity = key.identity().to_string();
        assert!(matches!(error(&identity), KeyError::Identity));
        assert!(matches!(error(&pem("PUBLIC KEY", b"x")), KeyError::Public));
        let certificate = pem("CERTIFICATE", b"x");
        assert!(matches!(error(&certificate), KeyError::Certificate));
        let locked = pem("ENCRYPTED PRIVATE KEY", b"x");
        assert!(matches!(error(&locked), KeyError::Encrypted));
        for other in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
            assert!(matches!(error(&pem(other, b"x")), KeyError::Kind));
        }
        // The first bytes of an RSA key in PKCS#8.
        let rsa = [0x30, 0x82, 0x04, 0xbe, 2, 1, 0, 0x30, 0x0d, 6, 9];
        assert!(matches!(error(&pem(LABEL, &rsa)), KeyError::Kind));
        assert!(matches!(error("hello"), KeyError::Unknown));
    }

    #[test]
    fn a_truncated_key_is_rejected() {
        for end in 0..PLAIN.trim_end().len() {
            SecretKey::from_pem(&PLAIN[..end]).unwrap_err();
        }
        let key = SecretKey::from_pem(PLAIN).unwrap();
        for end in 2..48 {
            let cut = pem(LABEL, &key.to_der()[..end]);
            assert!(matches!(error(&cut), KeyError::Truncated));
        }
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let key = SecretKey::from_pem(PLAIN).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains(&key.identity().to_string()));
        assert!(!shown.contains(&Identity::from(**key.seed).to_string()["ed25519:".len()..]));
    }

    #[test]
    fn a_key_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.key");
        let [one, other] = [(); 2].map(|()| SecretKey::generate().unwrap());
        one.write_new(&path).unwrap();
        let error = other.write_new(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exists { .. }));
        assert_eq!(SecretKey::read(&path).unwrap().public(), one.public());
    }

    #[test]
    fn an_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no.key");
        let error = SecretKey::read(&path).unwrap_err();
        assert!(matches!(error, KeyError::Io { .. }));
        assert!(error.to_string().contains("no.key"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_rejected() {
        use std::fs::{Permissions, metadata, set_permissions, write};
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.key");
        SecretKey::generate().unwrap().write_new(&path).unwrap();
        assert_eq!(metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = SecretKey::read(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("{mode:o}")), "{error}");
        }
        set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        SecretKey::read(&path).unwrap();
        let path = folder.path().join("empty.key");
        write(&path, "").unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let error = SecretKey::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("empty.key") && error.contains("it is empty"),
            "{error}"
        );
    }
}
