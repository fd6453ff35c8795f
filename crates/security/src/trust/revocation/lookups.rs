//! Which records are to be asked for in the network, and when.
//!
//! A decision uses the certificates of one chain. Each of them has one Interest, `/<identity>/REVOKE/…` without the
//! publisher (CanBePrefix), at most every [`LOOKUP_INTERVAL_NS`]. All together have at most
//! [`LOOKUPS_PER_SECOND_MAX`] per second; what is left out is asked for by a later decision. A certificate that is not
//! used costs nothing.
//!
//! Trade-off: a record counts at the latest one interval after it can be fetched, plus the round trip, and the
//! certificates in use cost one Interest each per interval, which often nobody answers.

use super::{RevocationRecord, Revocations, record_prefix};
use crate::{
    Certificate,
    certificate::key_name_in,
    trust::{
        MAX_CHAIN,
        certificates::{Certificates, Teller},
        rules::TrustAnchor,
    },
};
use namewire_packet::{KeyLocator, Name, NameBuf};
use std::collections::VecDeque;

/// Pause between two Interests for records of a certificate. With the round trip, less than 10 s.
pub const LOOKUP_INTERVAL_NS: u64 = 8_000_000_000;
/// Most Interests per second.
pub const LOOKUPS_PER_SECOND_MAX: u32 = 32;
/// Most certificates whose latest look-up is remembered. Beyond that the oldest is forgotten.
pub const MAX_LOOKUPS: usize = 512;

const SECOND_NS: u64 = 1_000_000_000;

/// A look-up: the certificate, and what proves a record of it.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// Name of the Interest.
    pub prefix: NameBuf,
    certificate: Certificate,
    /// `None` for a trust anchor.
    issuer: Option<Certificate>,
    asked_ns: u64,
}

impl Lookup {
    /// Keeps the record in `wire`, which answers this look-up, if it is genuine. Returns whether it is.
    pub fn answer(&self, wire: &[u8], revocations: &mut Revocations) -> bool {
        RevocationRecord::parse(wire)
            .is_ok_and(|record| revocations.add_fetched(record, &self.certificate, self.issuer.as_ref()))
    }
}

/// The look-ups of the last interval.
#[derive(Debug, Default)]
pub struct Lookups {
    latest: VecDeque<Lookup>,
    /// The second that `in_second` counts.
    second: u64,
    in_second: u32,
}

impl Lookups {
    /// The look-ups that are due for a signer with this KeyLocator. From now on they are not due. The certificates at
    /// hand along the chain need not be proven: a record counts only for the certificates that it is proven by.
    pub fn due(
        &mut self,
        locator: Name<'_>,
        anchors: &[TrustAnchor],
        certificates: &Certificates,
        host: Option<Teller>,
        now: Now,
    ) -> Vec<Lookup> {
        let mut due = Vec::new();
        for (certificate, issuer) in chain(locator, anchors, certificates, host, now.unix_ms) {
            let prefix = record_prefix(certificate.name());
            if self.is_recent(&prefix, certificate, issuer, now.mono_ns) || !self.may_ask(now.mono_ns) {
                continue;
            }
            let (certificate, issuer) = (certificate.clone(), issuer.cloned());
            due.push(Lookup { prefix, certificate, issuer, asked_ns: now.mono_ns });
        }
        for lookup in &due {
            self.latest.retain(|one| one.prefix != lookup.prefix);
            if self.latest.len() >= MAX_LOOKUPS {
                self.latest.pop_front();
            }
            self.latest.push_back(lookup.clone());
        }
        due
    }

    /// The look-up that Data of this name answers.
    pub fn answered_by(&self, name: Name<'_>) -> Option<&Lookup> {
        self.latest.iter().rev().find(|one| one.prefix.as_name().is_prefix_of(&name))
    }

    /// True if this certificate was looked up in this interval. A look-up for a forged one of the same name does not
    /// count, because it would not have kept the record of the genuine one.
    fn is_recent(
        &self,
        prefix: &NameBuf,
        certificate: &Certificate,
        issuer: Option<&Certificate>,
        now_ns: u64,
    ) -> bool {
        self.latest.iter().rev().find(|one| one.prefix == *prefix).is_some_and(|one| {
            now_ns.saturating_sub(one.asked_ns) < LOOKUP_INTERVAL_NS
                && (&one.certificate, one.issuer.as_ref()) == (certificate, issuer)
        })
    }

    fn may_ask(&mut self, now_ns: u64) -> bool {
        let second = now_ns / SECOND_NS;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.in_second <= LOOKUPS_PER_SECOND_MAX
    }
}

/// The time in two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Nanoseconds of a clock that is never set.
    pub mono_ns: u64,
}

/// The certificates at hand along the KeyLocators, each with its issuer's; an anchor ends the chain and has none.
fn chain<'a>(
    locator: Name<'_>,
    anchors: &'a [TrustAnchor],
    certificates: &'a Certificates,
    host: Option<Teller>,
    now_unix_ms: u64,
) -> Vec<(&'a Certificate, Option<&'a Certificate>)> {
    let mut chain: Vec<(&Certificate, Option<&Certificate>)> = Vec::new();
    let mut next = Some(locator.to_buf());
    while let Some(locator) = next.take().filter(|locator| key_name_in(locator.as_name()).is_some()) {
        let anchor = certificates.anchor(anchors, locator.as_name());
        let found = anchor.or_else(|| certificates.fetched(locator.as_name(), host, now_unix_ms));
        let Some(certificate) = found else { break };
        if let Some((_, issuer)) = chain.last_mut() {
            *issuer = Some(certificate);
        }
        chain.push((certificate, None));
        if let (None, Some(KeyLocator::Name(issuer))) = (anchor, certificate.key_locator())
            && chain.len() < MAX_CHAIN
        {
            next = Some(issuer.to_buf());
        }
    }
    chain
}
