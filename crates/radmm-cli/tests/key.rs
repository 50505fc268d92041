//! `radmm key`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;

use radmm_study::Identity;
use support::{radmm, text};

#[test]
fn a_new_key_is_secret_and_its_identity_goes_into_a_study() {
    let folder = tempfile::tempdir().unwrap();
    let made = radmm(folder.path(), &["key", "new", "site.key"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let identity = text(&made.stdout).strip_suffix('\n').unwrap();
    assert!(identity.parse::<Identity>().is_ok(), "{identity}");
    let secret = fs::read_to_string(folder.path().join("site.key")).unwrap();
    assert!(secret.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert!(!text(&made.stderr).contains(secret.lines().nth(1).unwrap()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = fs::metadata(folder.path().join("site.key")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    let shown = radmm(folder.path(), &["key", "show", "site.key"]);
    assert_eq!(shown.status.code(), Some(0));
    assert_eq!(shown.stdout, made.stdout);
}

#[test]
fn a_key_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let first = radmm(folder.path(), &["key", "new", "site.key"]);
    let second = radmm(folder.path(), &["key", "new", "site.key"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(second.stdout.is_empty());
    assert!(text(&second.stderr).contains("error: key file site.key: there is one already"));
    let shown = radmm(folder.path(), &["key", "show", "site.key"]);
    assert_eq!(shown.stdout, first.stdout);
}

#[test]
fn an_invalid_key_is_reported_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = radmm(folder.path(), &["key", "show", "no.key"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("key file no.key: "));
    let usage = radmm(folder.path(), &["key"]);
    assert_eq!(usage.status.code(), Some(2));
}
