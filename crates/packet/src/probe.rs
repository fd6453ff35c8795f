//! Probes: Interests of ICN Ping (RFC 9508) and ICN Traceroute (RFC 9507), which forwarders answer.
//!
//! A probe is an Interest with MustBeFresh whose name is the target, one component that makes it unique, and the
//! keyword component `ping` or `traceroute`:
//!
//! ```text
//! /a/film/8=%1F%02…/32=traceroute          the target is /a/film
//! /a/film/8=%1F%02…/32=ping/params-sha256=…
//! ```
//!
//! A forwarder answers a traceroute whose HopLimit ends there. It answers a ping whose target is its own name, a name
//! in its Content Store, or a name that an application at this forwarder serves.
//! [`nfd::ProbeReply`](crate::nfd::ProbeReply) is what the answer holds.

use crate::{
    Interest,
    name::{Component, Name, NameBuf},
    tlv::types,
};

crate::names! {
    /// What a probe asks.
    pub enum ProbeKind {
        /// Is the target reachable, and who answers for it (RFC 9508)?
        Ping = "ping",
        /// Which forwarder is this many hops away on the way to the target (RFC 9507)?
        Traceroute = "traceroute",
    }
}

/// The last component of a probe's name, as it ends the TLV-VALUE.
const PING_ENDING: &[u8] = b"\x20\x04ping";
const TRACEROUTE_ENDING: &[u8] = b"\x20\x0atraceroute";
/// Bytes of a component that holds a digest of parameters.
const PARAMETERS_DIGEST_BYTES: usize = 34;

/// A probe, read from an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe<'a> {
    /// What it asks.
    pub kind: ProbeKind,
    /// Of which name.
    pub target: Name<'a>,
}

impl<'a> Probe<'a> {
    /// The probe that this Interest is. Cost for any other Interest: a test of MustBeFresh, and for some that have it
    /// a comparison of the name's last bytes.
    #[inline]
    pub fn of(interest: &Interest<'a>) -> Option<Self> {
        if interest.must_be_fresh() { Self::of_name(interest.name()) } else { None }
    }

    /// The probe that has this name.
    pub fn of_name(name: Name<'a>) -> Option<Self> {
        let has_digest = name.last().is_some_and(|last| last.type_number == types::PARAMETERS_SHA256_DIGEST);
        let own = if has_digest { name.parent() } else { name };
        let kind = ProbeKind::ALL.into_iter().find(|kind| own.last() == Some(kind.component()))?;
        let target = own.len().checked_sub(2)?;
        Some(Probe { kind, target: own.prefix(target) })
    }
}

impl ProbeKind {
    /// The keyword component.
    pub const fn component(self) -> Component<'static> {
        Component { type_number: types::KEYWORD_COMPONENT, value: self.name().as_bytes() }
    }

    /// Whether a name with this TLV-VALUE may be that of such a probe: its bytes end so. An exact answer takes
    /// [`Probe::of_name`].
    #[inline]
    pub fn may_end(self, name_value: &[u8]) -> bool {
        let ending = match self {
            ProbeKind::Ping => PING_ENDING,
            ProbeKind::Traceroute => TRACEROUTE_ENDING,
        };
        let before_digest = name_value.len().checked_sub(PARAMETERS_DIGEST_BYTES);
        name_value.ends_with(ending) || before_digest.is_some_and(|end| name_value[..end].ends_with(ending))
    }

    /// The name of a probe of `target`; `unique` must differ from that of any other probe.
    pub fn name_for(self, target: Name<'_>, unique: u64) -> NameBuf {
        let mut name = target.to_buf();
        name.push_generic(&unique.to_be_bytes());
        name.push(self.component());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterestBuilder;

    fn target() -> NameBuf {
        "/a/film".parse().expect("a name")
    }

    /// RFC 9507 §5.1, RFC 9508 §5.1: target, nonce, keyword, and the digest of parameters if there are some.
    #[test]
    fn a_probe_is_known_by_the_end_of_its_name() {
        for kind in ProbeKind::ALL {
            let name = kind.name_for(target().as_name(), 1);
            for parameters in [None, Some(&b"size"[..])] {
                let builder = InterestBuilder::new(name.clone()).must_be_fresh(true);
                let wire = match parameters {
                    Some(parameters) => builder.application_parameters(parameters.to_vec()).build(),
                    None => builder.build(),
                };
                let interest = Interest::parse(&wire).expect("an Interest");
                let probe = Probe::of(&interest).expect("a probe");
                assert_eq!((probe.kind, probe.target), (kind, target().as_name()));
                assert!(kind.may_end(interest.name().value()));
            }
        }
    }

    #[test]
    fn other_interests_are_no_probes() {
        let of = |uri: &str| Probe::of_name(uri.parse::<NameBuf>().expect("a name").as_name()).map(|probe| probe.kind);
        assert_eq!(of("/a/1/32=ping"), Some(ProbeKind::Ping));
        assert_eq!(of("/1/32=traceroute"), Some(ProbeKind::Traceroute), "the target is the root");
        for uri in ["/a/1/ping", "/a/32=ping/1", "/32=ping", "/a/1/32=pings", "/a/1/33=ping"] {
            assert_eq!(of(uri), None, "{uri}");
        }
        let wire = InterestBuilder::new(ProbeKind::Ping.name_for(target().as_name(), 1)).build();
        assert_eq!(Probe::of(&Interest::parse(&wire).expect("an Interest")), None, "it need not be fresh");
    }
}
