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
    is_answered: bool,
    /// True if what was known of the certificate is older than two intervals, or if nothing was: a decision should wait
    /// for the answer. Otherwise the answer may come behind it.
    pub is_urgent: bool,
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
    /// The look-ups that are due for the certificates of a chain. From now on they are not due. The certificates need
    /// not be proven: a record counts only for the certificates that it is proven by.
    pub fn due(&mut self, chain: &[Link<'_>], now_ns: u64) -> Vec<Lookup> {
        let mut due = Vec::new();
        for link in chain {
            let prefix = record_prefix(link.certificate.name());
            let age_ns = self.latest_of(&prefix, link).map(|latest| now_ns.saturating_sub(latest.asked_ns));
            if age_ns.is_some_and(|age_ns| age_ns < LOOKUP_INTERVAL_NS) || !self.may_ask(now_ns) {
                continue;
            }
            due.push(Lookup {
                prefix,
                certificate: link.certificate.clone(),
                issuer: link.issuer.cloned(),
                asked_ns: now_ns,
                is_answered: false,
                is_urgent: age_ns.is_none_or(|age_ns| age_ns >= 2 * LOOKUP_INTERVAL_NS),
            });
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

    /// The urgent look-ups of a chain that were begun at most `patience_ns` ago and have no answer yet.
    pub fn open(&self, chain: &[Link<'_>], now_ns: u64, patience_ns: u64) -> Vec<NameBuf> {
        let prefixes = chain.iter().map(|link| (record_prefix(link.certificate.name()), link));
        let open = prefixes.filter(|(prefix, link)| {
            self.latest_of(prefix, link).is_some_and(|latest| {
                latest.is_urgent && !latest.is_answered && now_ns.saturating_sub(latest.asked_ns) < patience_ns
            })
        });
        open.map(|(prefix, _)| prefix).collect()
    }

    /// The look-up that Data of this name, or a Nack for it, answers. From now on it is answered.
    pub fn answered_by(&mut self, name: Name<'_>) -> Option<&Lookup> {
        let lookup = self.latest.iter_mut().rev().find(|one| one.prefix.as_name().is_prefix_of(&name))?;
        lookup.is_answered = true;
        Some(lookup)
    }

    /// The latest look-up of this certificate. One for a forged certificate of the same name does not count, because it
    /// would not have kept the record of the genuine one.
    fn latest_of(&self, prefix: &NameBuf, link: &Link<'_>) -> Option<&Lookup> {
        let latest = self.latest.iter().rev().find(|one| one.prefix == *prefix)?;
        ((&latest.certificate, latest.issuer.as_ref()) == (link.certificate, link.issuer)).then_some(latest)
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

/// A certificate of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The certificate.
    pub certificate: &'a Certificate,
    /// The one that proves it; `None` for a trust anchor, or if it is not at hand.
    pub issuer: Option<&'a Certificate>,
}

/// The certificates at hand along the KeyLocators from this one on. An anchor ends the chain.
pub fn chain<'a>(
    locator: Name<'_>,
    anchors: &'a [TrustAnchor],
    certificates: &'a Certificates,
    host: Option<Teller>,
    now_unix_ms: u64,
) -> Vec<Link<'a>> {
    let mut chain: Vec<Link<'a>> = Vec::new();
    let mut next = Some(locator.to_buf());
    while let Some(locator) = next.take().filter(|locator| key_name_in(locator.as_name()).is_some()) {
        let anchor = certificates.anchor(anchors, locator.as_name());
        let found = anchor.or_else(|| certificates.fetched(locator.as_name(), host, now_unix_ms));
        let Some(certificate) = found else { break };
        if let Some(last) = chain.last_mut() {
            last.issuer = Some(certificate);
        }
        chain.push(Link { certificate, issuer: None });
        if let (None, Some(KeyLocator::Name(issuer))) = (anchor, certificate.key_locator())
            && chain.len() < MAX_CHAIN
        {
            next = Some(issuer.to_buf());
        }
    }
    chain
}
