//! Request: which requests the observer refuses before it asks the router, and the name in a query.
//!
//! Contract: no input from a client causes a panic here.
//!
//! Why hosts are checked: the owner of any web page can make the page's host name resolve to 127.0.0.1. Then the page
//! can read a server there as if it were its own (DNS rebinding). Its requests carry that host name. So a listener on
//! loopback answers only requests for `localhost`, `127.0.0.1`, `[::1]` or the address that it is bound to, at any port
//! (a tunnel has another one).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

/// Why a request is refused: the status, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

/// Refuses what no path of ours answers. `bound` is the address of the listener.
pub(crate) fn check(request: &Parts, bound: IpAddr) -> Result<(), Refusal> {
    check_host(request, bound)?;
    if request.method != Method::GET && request.method != Method::HEAD {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered here."));
    }
    let has_length = request.headers.get_all(CONTENT_LENGTH).iter().any(|length| length.as_bytes() != b"0");
    if has_length || request.headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "A request here has no body."));
    }
    Ok(())
}

fn check_host(request: &Parts, bound: IpAddr) -> Result<(), Refusal> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let host = hosts.next().map(|host| host.to_str().unwrap_or_default());
    if hosts.next().is_some() || (host.is_none() && request.version == Version::HTTP_11) {
        // RFC 9112 section 3.2: a server must refuse such a request.
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "A request must have one Host header."));
    }
    if !bound.is_loopback() {
        return Ok(());
    }
    // A target with an authority (`GET http://host/`) replaces Host.
    let named = [host, request.uri.authority().map(|authority| authority.as_str())];
    match named.into_iter().flatten().find(|host| !is_loopback_host(host, bound)) {
        None => Ok(()),
        Some(host) => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            format!(
                "This server listens on {bound}, for this machine alone, and the request asks for the host {host:?}. \
                 A web page from elsewhere could send such a request (DNS rebinding), so it is refused. \
                 Ask for localhost, 127.0.0.1, [::1] or the address that the server is bound to."
            ),
        )),
    }
}

/// Whether a Host names this machine by loopback or by the bound address, with any port.
fn is_loopback_host(host: &str, bound: IpAddr) -> bool {
    let name = match (host.rfind(']'), host.rsplit_once(':')) {
        (Some(end), _) if !is_port(&host[end + 1..]) => return false,
        (Some(end), _) => &host[..=end],
        (None, Some((name, port))) if is_port(&format!(":{port}")) => name,
        (None, Some(_)) => return false,
        (None, None) => host,
    };
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse().is_ok_and(|address: Ipv6Addr| address == Ipv6Addr::LOCALHOST || bound == address);
    }
    let is_localhost = name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case("localhost");
    is_localhost || name.parse().is_ok_and(|address: Ipv4Addr| address == Ipv4Addr::LOCALHOST || bound == address)
}

/// Empty, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name in the query of `/explain`.
pub(crate) fn name_of(query: Option<&str>) -> Result<String, Refusal> {
    name_value(query, "name=", "Say which name: /explain?name=/example/name")
}

/// What a request for `/trace` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceWanted {
    pub(crate) prefix: String,
    /// One name of this number, with all its packets. At least 1.
    pub(crate) one_in: u64,
}

/// The prefix and the sample (1 if absent) in the query of `/trace`.
pub(crate) fn trace_wanted(query: Option<&str>) -> Result<TraceWanted, Refusal> {
    let prefix = name_value(query, "prefix=", "Say which names: /trace?prefix=/example or /trace?prefix=/")?;
    let refuse = || Refusal::new(StatusCode::BAD_REQUEST, "The sample must be a whole number, at least 1.");
    let one_in = match value_of(query, "sample=") {
        None => 1,
        Some(text) => text.parse().ok().filter(|one_in| *one_in > 0).ok_or_else(refuse)?,
    };
    Ok(TraceWanted { prefix, one_in })
}

/// A name in a query, percent-decoded once. A plus stays a plus: a name URI may have one.
fn name_value(query: Option<&str>, key: &str, hint: &str) -> Result<String, Refusal> {
    let refuse = |text: &str| Refusal::new(StatusCode::BAD_REQUEST, text);
    let value = value_of(query, key).ok_or_else(|| refuse(hint))?;
    let bytes = percent_decoded(value.as_bytes());
    String::from_utf8(bytes).map_err(|_| refuse("The name must be UTF-8 once its percent-encoding is undone."))
}

/// The value behind `key=`, unless it is empty.
fn value_of<'a>(query: Option<&'a str>, key: &str) -> Option<&'a str> {
    let value = query?.split('&').find_map(|pair| pair.strip_prefix(key))?;
    Some(value).filter(|value| !value.is_empty())
}

/// A percent sign without two hexadecimal digits stays as it is.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let code = match after {
            [high, low, ..] if first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (byte, length) = code.map_or((first, 1), |(high, low)| (high << 4 | low, 3));
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use proptest::prelude::*;

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn parts(method: &str, target: &str, headers: &[[&str; 2]]) -> Parts {
        let mut request = Request::builder().method(method).uri(target);
        for [name, value] in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(request: &Parts, bound: IpAddr) -> u16 {
        check(request, bound).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn hosts_on_loopback() {
        for good in ["localhost", "LOCALHOST:1", "localhost.:80", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:80"] {
            assert_eq!(status(&parts("GET", "/", &[["host", good]]), LOOPBACK), 200, "{good}");
        }
        let bad =
            ["evil.example", "localhost.evil.example", "127.0.0.2", "[::2]", "::1", "localhost:x", "", "[::1]x", "]"];
        for bad in bad {
            let refusal = check(&parts("GET", "/", &[["host", bad]]), LOOPBACK).unwrap_err();
            assert_eq!(refusal.status, 403, "{bad}");
            assert!(refusal.text.contains("DNS rebinding"));
        }
        let bound = "127.0.0.2".parse().unwrap();
        assert_eq!(status(&parts("GET", "/", &[["host", "127.0.0.2:80"]]), bound), 200);
    }

    #[test]
    fn hosts_elsewhere_are_not_checked() {
        for bound in ["192.0.2.1", "0.0.0.0", "2001:db8::1"] {
            let bound = bound.parse().unwrap();
            assert_eq!(status(&parts("GET", "/", &[["host", "router.example"]]), bound), 200);
        }
    }

    #[test]
    fn a_request_has_one_host() {
        assert_eq!(status(&parts("GET", "/", &[]), LOOPBACK), 400);
        assert_eq!(status(&parts("GET", "/", &[["host", "localhost"], ["host", "localhost"]]), LOOPBACK), 400);
        let mut old = parts("GET", "/", &[]);
        old.version = Version::HTTP_10;
        assert_eq!(status(&old, LOOPBACK), 200);
    }

    #[test]
    fn an_authority_in_the_target_is_a_host() {
        let request = |target| parts("GET", target, &[["host", "localhost"]]);
        assert_eq!(status(&request("http://evil.example/"), LOOPBACK), 403);
        assert_eq!(status(&request("http://localhost:80/"), LOOPBACK), 200);
    }

    #[test]
    fn methods_and_bodies() {
        let host = ["host", "localhost"];
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
            assert_eq!(status(&parts(method, "/", &[host]), LOOPBACK), 405);
        }
        assert_eq!(status(&parts("HEAD", "/", &[host, ["content-length", "0"]]), LOOPBACK), 200);
        assert_eq!(status(&parts("GET", "/", &[host, ["content-length", "1"]]), LOOPBACK), 413);
        assert_eq!(status(&parts("GET", "/", &[host, ["transfer-encoding", "chunked"]]), LOOPBACK), 413);
    }

    #[test]
    fn names_in_queries() {
        assert_eq!(name_of(Some("name=/a/b")).unwrap(), "/a/b");
        assert_eq!(name_of(Some("x=1&name=%2Fa%2F%2500&y")).unwrap(), "/a/%00");
        assert_eq!(name_of(Some("name=/a+b%zz%")).unwrap(), "/a+b%zz%");
        for bad in [None, Some(""), Some("name"), Some("name="), Some("NAME=/a"), Some("name=%ff")] {
            assert_eq!(name_of(bad).unwrap_err().status, 400, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_host_is_judged(host in "[ -~]{0,40}") {
            let judged = is_loopback_host(&host, LOOPBACK);
            prop_assert!(!judged || host.to_ascii_lowercase().starts_with(['l', '1', '[']));
        }

        #[test]
        fn any_name_survives_its_encoding(name in "\\PC{1,40}") {
            let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(name_of(Some(&format!("name={encoded}"))).unwrap(), name);
        }

        #[test]
        fn any_query_is_answered(query in "[ -~]{0,60}") {
            let _ = name_of(Some(&query));
        }
    }
}
