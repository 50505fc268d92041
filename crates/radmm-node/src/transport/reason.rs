//! Errors of connections, in words for an operator.

use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};

/// Describes an error of a connection. "It" is the peer.
pub(super) fn of_connection(error: &io::Error) -> String {
    if let Some(error) = error.get_ref().and_then(|e| e.downcast_ref::<TlsError>()) {
        return of_tls(error);
    }
    let words = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused: nothing listens there",
        io::ErrorKind::TimedOut => "no answer",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no route to its network"
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => "the connection was reset",
        io::ErrorKind::UnexpectedEof => "it closed the connection",
        _ => return error.to_string(),
    };
    words.to_owned()
}

/// Describes an error of TLS.
pub(super) fn of_tls(error: &TlsError) -> String {
    let words = match error {
        TlsError::InvalidCertificate(CertificateError::Other(error)) => return error.to_string(),
        TlsError::InvalidCertificate(_) => {
            "its certificate is invalid, or it does not hold the key"
        }
        TlsError::NoCertificatesPresented => "it presents no certificate",
        TlsError::InvalidMessage(_) => "it does not speak TLS",
        TlsError::PeerIncompatible(_)
        | TlsError::AlertReceived(AlertDescription::ProtocolVersion) => {
            "it does not speak TLS 1.3 with Ed25519 keys"
        }
        TlsError::AlertReceived(
            AlertDescription::CertificateUnknown
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => "it rejects this side's key: is it the one in its study?",
        TlsError::NoApplicationProtocol
        | TlsError::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "it speaks TLS, but not this version of radmm's protocol"
        }
        _ => return format!("TLS failed: {error}"),
    };
    words.to_owned()
}
