//! Names, strategies, FaceUris and route origins in the form that people write.

use crate::{InterfacePattern, interface_pattern::is_in_subnet, likeness::nearest};
pub use namewire_engine::strategy::registry::strategy_names;
use namewire_packet::{
    NameBuf,
    nfd::{
        FaceUri, MacAddress,
        face_uri::{OTHER_SCHEMES, SCHEMES_OF_NEW_FACES},
        origin,
    },
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, net::IpAddr, str::FromStr};

/// The names of strategies begin with this prefix.
const STRATEGY_PREFIX: &str = "/localhost/nfd/strategy/";

/// Reads a name. A name without a leading slash is refused, because a forgotten slash is more likely than a relative
/// name.
///
/// # Errors
/// The error in words.
pub fn parse_name(text: &str) -> Result<NameBuf, String> {
    if !text.starts_with('/') && !text.starts_with("ndn:/") {
        return Err(format!("a name begins with a slash; did you mean /{text} ?"));
    }
    text.parse::<NameBuf>().map_err(|error| error.to_string())
}

/// Reads the name of a strategy: `multicast`, `best-route/v=5`, `asf/v=5/max-timeouts~1` or a whole name.
///
/// # Errors
/// The error in words.
pub fn parse_strategy(text: &str) -> Result<NameBuf, String> {
    if text.starts_with('/') || text.starts_with("ndn:/") {
        return parse_name(text);
    }
    let name = parse_name(&format!("{STRATEGY_PREFIX}{text}"))?;
    // After the three components of the prefix: the short name, perhaps its version, perhaps parameters.
    let mut rest = name.as_name().components().skip(3).peekable();
    let has_short_name = rest.next().is_some();
    rest.next_if(|component| component.version().is_some());
    if has_short_name && rest.all(|component| component.value.contains(&b'~')) {
        Ok(name)
    } else {
        Err("expected a short name such as best-route, or a whole name that begins with a slash".to_owned())
    }
}

/// The strategy of ours that a name which is none most likely means.
pub fn nearest_strategy(unknown: &NameBuf) -> Option<&'static str> {
    let prefix: NameBuf = STRATEGY_PREFIX.parse().ok()?;
    let is_short = prefix.as_name().is_prefix_of(&unknown.as_name());
    let short = unknown.as_name().components().nth(if is_short { prefix.len() } else { 0 })?;
    let short = str::from_utf8(short.value).ok()?;
    nearest(short, strategy_names()).filter(|nearest| *nearest != short)
}

/// A prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(pub NameBuf);

/// The full name of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrategyName(pub NameBuf);

/// The remote or local end of a face, possibly with a host name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uri(pub FaceUri);

/// Addresses with the same first bits: `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    bits: u8,
}

impl Subnet {
    /// Whether the address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        is_in_subnet(address.to_canonical(), self.address, self.bits)
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let subnet = text.parse().ok().and_then(|pattern| match pattern {
            InterfacePattern::Subnet(address, bits) => Some(Subnet { address, bits }),
            _ => None,
        });
        subnet.ok_or_else(|| format!("\"{text}\" is no subnet; write for example 192.0.2.0/24 or 192.0.2.7/32"))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The component that registered a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub u64);

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub MacAddress);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = |_| format!("\"{text}\" is not an Ethernet address; write for example 01:00:5e:00:17:aa");
        text.parse().map(Mac).map_err(error)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Uri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: FaceUri = text.parse().map_err(|error| format!("{error}; write for example udp://host:6363"))?;
        let scheme = uri.scheme();
        if SCHEMES_OF_NEW_FACES.iter().chain(&OTHER_SCHEMES).any(|known| *known == scheme) {
            return Ok(Uri(uri));
        }
        Err(format!("no face has the scheme {scheme}; there are {}", SCHEMES_OF_NEW_FACES.join(", ")))
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_name(text).map(Prefix)
    }
}

impl FromStr for StrategyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_strategy(text).map(StrategyName)
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = origin::NAMES.iter().find(|(name, _)| *name == text).map(|(_, code)| *code);
        named.or_else(|| text.parse().ok()).map(Origin).ok_or_else(|| {
            let names = origin::NAMES.map(|(name, _)| name).join(", ");
            format!("unknown origin \"{text}\"; expected one of {names}, or a number")
        })
    }
}

/// Writes the form that people read (`/a/v=1`). If that would be read as another name (a number with leading zeros),
/// writes the form that keeps every byte.
fn write_name(name: &NameBuf, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = name.to_string();
    if text.parse().as_ref() == Ok(name) { f.write_str(&text) } else { f.write_str(&name.as_name().canonical_uri()) }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.0, f)
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.0, f)
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match origin::name(self.0) {
            Some(name) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// In files, all of these are strings.
macro_rules! as_string {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )+};
}

as_string!(Prefix, StrategyName, Uri, Origin, Mac, InterfacePattern, Subnet);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_a_slash() {
        assert_eq!(parse_name("ndn:/a").unwrap().to_string(), "/a");
        assert!(parse_name("a").unwrap_err().contains("/a"));
        assert!(parse_name("/a//b").is_err());
    }

    #[test]
    fn every_byte_of_a_name_is_written() {
        let mut odd = NameBuf::new();
        odd.push(namewire_packet::Component { type_number: 54, value: &[0, 0, 0, 5] });
        assert_eq!(Prefix(odd.clone()).to_string().parse(), Ok(Prefix(odd)));
        assert_eq!(Prefix("/a/v=5".parse().unwrap()).to_string(), "/a/v=5");
    }

    #[test]
    fn strategies_have_short_and_whole_names() {
        let parsed = |text: &str| parse_strategy(text).map(|name| name.to_string());
        assert_eq!(parsed("multicast").unwrap(), "/localhost/nfd/strategy/multicast");
        assert_eq!(parsed("best-route/v=5").unwrap(), "/localhost/nfd/strategy/best-route/v=5");
        assert_eq!(parsed("/my/strategy").unwrap(), "/my/strategy");
        let with_parameters = "asf/v=5/max-timeouts~1/probing-interval~2000";
        assert_eq!(parsed(with_parameters).unwrap(), format!("/localhost/nfd/strategy/{with_parameters}"));
        assert!(parsed("best/route").is_err() && parsed("asf/v=5/max-timeouts").is_err());
        assert!(parsed("").is_err());
    }

    /// `face create http://x` was "Non-canonical remote URI".
    #[test]
    fn an_unknown_scheme_is_answered_with_those_that_exist() {
        let error = |text: &str| text.parse::<Uri>().unwrap_err();
        let schemes = "udp, tcp, ws, wss, ether, udp4, udp6, tcp4, tcp6";
        assert_eq!(error("http://x"), format!("no face has the scheme http; there are {schemes}"));
        assert!(error("host:6363").contains("udp://host:6363"));
        for known in
            ["udp://host", "tcp6://[::1]:1", "wss://host/x", "ether://[02:00:00:00:00:01]", "fd://7", "internal://"]
        {
            assert_eq!(known.parse::<Uri>().unwrap().to_string(), known);
        }
    }

    #[test]
    fn a_misspelt_strategy_is_known_again() {
        let nearest = |text: &str| nearest_strategy(&parse_strategy(text).unwrap());
        assert_eq!(nearest("asff"), Some("asf"));
        assert_eq!(nearest("best-rout/v=5"), Some("best-route"));
        assert_eq!(nearest("mulitcast/v=5/x~1"), Some("multicast"));
        assert_eq!(nearest("/asf"), None, "it is the place that is wrong");
        assert_eq!((nearest("asf/v=9"), nearest("teleport"), nearest("/localhost/nfd/strategy")), (None, None, None));
    }

    #[test]
    fn origins_have_names_or_numbers() {
        assert_eq!("static".parse(), Ok(Origin(255)));
        assert_eq!("77".parse(), Ok(Origin(77)));
        assert_eq!((Origin(128).to_string(), Origin(77).to_string()), ("nlsr".to_owned(), "77".to_owned()));
        assert!("nobody".parse::<Origin>().unwrap_err().contains("autoreg"));
    }
}
