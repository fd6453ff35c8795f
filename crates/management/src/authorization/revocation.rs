//! Revocation records of the certificates behind signed commands.
//!
//! Before a command passes that a key signed, the router asks the network for records of each certificate in the chain
//! ([`namewire_security::trust::revocation`]): at most every 8 s for a certificate, and 32 times per second for all.
//!
//! Trade-off: a command changes the router for long, so the first one of a certificate in 16 s waits for the answers,
//! [`RECORD_WAIT_MS`] at most. Commands of a certificate in steady use do not wait; an answer counts from its arrival
//! on. A Nack ends the wait, as Data does. If no answer comes, the command passes: absence is no error, or whoever cuts
//! the router off could lock everyone out. Prefix announcements do not ask, and use the records at hand.

use super::{Authorizer, Claim, Prefix};
use namewire_packet::{KeyLocator, Name, NameBuf};
use namewire_security::trust::{
    RulesOrAny, TrustAnchor,
    revocation::{Link, Lookup, chain},
};

/// Longest wait for revocation records.
pub(crate) const RECORD_WAIT_MS: u64 = 500;

impl Authorizer {
    /// The look-ups that are to be sent for this command, which a key signed, and those that it must wait for.
    pub(super) fn look_up(&mut self, claim: &Claim<'_>) -> (Vec<Lookup>, Vec<NameBuf>) {
        if !self.config.looks_up_revocations {
            return (Vec::new(), Vec::new());
        }
        let mut lookups = std::mem::take(&mut self.lookups);
        let chain = self.chain(claim);
        let now_ns = claim.now.mono_ns;
        let due = lookups.due(&chain, now_ns);
        let open = lookups.open(&chain, now_ns, RECORD_WAIT_MS * 1_000_000);
        self.lookups = lookups;
        (due, open)
    }

    /// The certificates behind a command.
    fn chain(&self, claim: &Claim<'_>) -> Vec<Link<'_>> {
        let Some(signature) = claim.signature else { return Vec::new() };
        let rules = match claim.prefix {
            Prefix::Localhop => self.config.localhop_rib.as_ref(),
            Prefix::Localhost => claim.module.own_rules(&self.config),
        };
        match (rules, signature.key_locator()) {
            (Some(RulesOrAny::Any), _) => Vec::new(),
            (Some(rules), Some(KeyLocator::Name(locator))) => {
                let host = Some(super::gate::teller(claim.face.holder));
                self.links(locator, rules.anchors(), host, claim.now.unix_ms)
            }
            (Some(_), _) => Vec::new(),
            (None, _) => {
                let anchor = self.find_anchor(&signature, claim);
                anchor.map(|(certificate, _)| Link { certificate, issuer: None }).into_iter().collect()
            }
        }
    }

    fn links<'a>(
        &'a self,
        locator: Name<'_>,
        anchors: &'a [TrustAnchor],
        host: Option<namewire_security::trust::Teller>,
        now_unix_ms: u64,
    ) -> Vec<Link<'a>> {
        chain(locator, anchors, &self.certificates, host, now_unix_ms)
    }

    /// Takes an answer to a look-up: Data, or a Nack for its Interest. False if it is none.
    pub(super) fn take_record(&mut self, name: Name<'_>, wire: Option<&[u8]>) -> bool {
        let Some(lookup) = self.lookups.answered_by(name) else { return false };
        if let Some(wire) = wire {
            lookup.answer(wire, self.certificates.revocations_mut());
        }
        true
    }
}
