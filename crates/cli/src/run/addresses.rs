//! Addresses to listen on, in the form that people type: `127.0.0.1:6363`, or a port alone.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

/// The addresses that one argument means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses(Vec<SocketAddr>);

/// Exists if the kernel has IPv6.
const OF_IPV6: &str = "/proc/net/if_inet6";

/// An address, or a port of all addresses of this machine, of both families if it has both: without IPv6, its address
/// would be an error.
pub(crate) fn of_all(text: &str) -> Result<Addresses, String> {
    let ipv6 = Path::new(OF_IPV6).exists().then_some(Ipv6Addr::UNSPECIFIED);
    parse(text, |port| {
        let ipv6 = ipv6.map(|all| (all, port).into());
        [(Ipv4Addr::UNSPECIFIED, port).into()].into_iter().chain(ipv6).collect()
    })
}

/// An address, or a port of the loopback address.
pub(crate) fn of_loopback(text: &str) -> Result<Addresses, String> {
    parse(text, |port| vec![(Ipv4Addr::LOCALHOST, port).into()])
}

fn parse(text: &str, of_port: impl Fn(u16) -> Vec<SocketAddr>) -> Result<Addresses, String> {
    if let Ok(port) = text.parse() {
        return Ok(Addresses(of_port(port)));
    }
    let expected = "expected an address and a port such as 127.0.0.1:6363 or [::1]:6363, or a port such as 6363";
    text.parse().map(|address| Addresses(vec![address])).map_err(|_| expected.to_owned())
}

impl Addresses {
    /// Those of all arguments.
    pub(crate) fn join(arguments: &[Addresses]) -> Vec<SocketAddr> {
        arguments.iter().flat_map(|argument| argument.0.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The story: `--listen-udp 6363` and `--observe 9695` were "invalid socket address syntax".
    #[test]
    fn a_port_alone_has_the_usual_addresses() {
        let joined = |arguments: &[Result<Addresses, String>]| {
            let arguments: Vec<Addresses> = arguments.iter().map(|argument| argument.clone().unwrap()).collect();
            Addresses::join(&arguments).iter().map(SocketAddr::to_string).collect::<Vec<_>>()
        };
        let all: &[&str] = if Path::new(OF_IPV6).exists() { &["0.0.0.0:6363", "[::]:6363"] } else { &["0.0.0.0:6363"] };
        assert_eq!(joined(&[of_all("6363")]), all);
        assert_eq!(joined(&[of_all("[::1]:7")]), ["[::1]:7"]);
        assert_eq!(joined(&[of_loopback("9695"), of_loopback("0.0.0.0:9695")]), ["127.0.0.1:9695", "0.0.0.0:9695"]);
        for wrong in ["", "65536", "-1", "localhost", "localhost:6363", "127.0.0.1", ":6363"] {
            assert!(of_all(wrong).unwrap_err().contains("such as 127.0.0.1:6363"), "{wrong}");
        }
    }
}
