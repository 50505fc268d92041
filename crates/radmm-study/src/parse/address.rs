//! Network addresses of parties.

use std::net::Ipv6Addr;

use super::entry::Entry;
use crate::error::StudyError;

/// The longest host name of the domain name system.
const MAX_HOST: usize = 253;

/// Reads `host:port`: a name, an IPv4 address, or an IPv6 address in brackets.
pub(crate) fn read(entry: &Entry<'_>) -> Result<String, StudyError> {
    let address = entry.string()?;
    let form = "must be host:port, such as \"alder.example:7411\", \"10.1.2.3:7411\" or \"[2001:db8::1]:7411\"";
    let (host, port) = address.rsplit_once(':').ok_or_else(|| entry.wrong(form))?;
    if !is_host(host) {
        return Err(entry.wrong(form));
    }
    // Digits alone: the number's own parser would take a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(1..) if digits => Ok(address.to_owned()),
        _ => Err(entry.wrong("must end in a port from 1 to 65535")),
    }
}

/// Reads `host` or `host:port`, as a browser names what it asks.
pub(crate) fn read_host(entry: &Entry<'_>) -> Result<String, StudyError> {
    match entry.string()? {
        host if is_host(host) => Ok(host.to_owned()),
        _ => read(entry),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']');
        return inner.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !host.is_empty() && host.len() <= MAX_HOST && host.chars().all(plain)
}
