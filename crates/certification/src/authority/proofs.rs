//! Proofs: what must a requester show, and did it?
//!
//! | challenge | begins with | then proven by |
//! | --- | --- | --- |
//! | `pin` | a code, which the operator sees and tells the requester | that code, or one of [`super::pins`] |
//! | `email` | a code, which the operator's command sends to the address that is the name | that code |
//! | `possession` | a certificate of this authority, or of one that the operator trusts | its key signs a nonce |
//! | another | the operator's command sees what the requester says | the command's yes |
//!
//! Limits: [`Offer::tries`] answers within [`Offer::time_ms`]. At most [`MAILS_PER_HOUR`] (and [`MAILS_PER_ASKER`] of
//! one asker) mails to one address in an hour, and [`MAILS_PER_HOUR_IN_ALL`] in all. All secrets are compared in
//! constant time.

use super::{
    outcome::Task,
    policy::{checked_address, fits_address, name_of_possession},
    secrets::{NO_RANDOMNESS, random_code, readable, same, typed},
    settings::{Offer, Settings},
};
use namewire_ndncert::{Parameters, challenge::words};
use namewire_packet::{KeyLocator, Name};
use namewire_security::{Certificate, trust::RevocationRecord};
use std::collections::HashMap;

/// Most mails to one address in an hour.
pub const MAILS_PER_HOUR: u32 = 3;
/// Most mails that one asker causes in an hour.
pub const MAILS_PER_ASKER: u32 = 20;
/// Most mails in an hour.
pub const MAILS_PER_HOUR_IN_ALL: u32 = 600;
const HOUR_MS: u64 = 3_600_000;
const NONCE_BYTES: usize = 16;

/// Begins the challenge.
///
/// # Errors
/// Why it cannot be this requester's.
pub(super) fn begin(
    offer: &Offer,
    authority: &Authority<'_>,
    said: &Parameters,
    mails: &mut Mails,
) -> Result<Begun, String> {
    let ask = |words: &str, parameters| Verdict::Ask(words.to_owned(), parameters);
    Ok(match offer {
        Offer::Pin => {
            let code = random_code()?;
            Begun { proof: Proof::Pin { code }, verdict: ask(words::NEED_CODE, Parameters::default()) }
        }
        Offer::Email => {
            let address = checked_address(said.get(words::EMAIL).unwrap_or_default())?;
            if !fits_address(authority.settings, authority.identity, &address) {
                return Err(format!("{} does not belong to {address}", authority.identity));
            }
            mails.take(&address, authority.asker, authority.now_ms)?;
            let code = random_code()?;
            let task = Task::Mail { address, code: readable(&code) };
            Begun { proof: Proof::Email { code }, verdict: Verdict::Errand(task) }
        }
        Offer::Possession(anchors) => {
            let wire = said.get(words::ISSUED_CERT).ok_or("no certificate was shown")?;
            let held = Certificate::parse(wire).map_err(|error| error.to_string())?;
            check_possession(authority, anchors, &held, authority.identity)?;
            let mut nonce = [0; NONCE_BYTES];
            getrandom::fill(&mut nonce).map_err(|_| NO_RANDOMNESS)?;
            let parameters = Parameters::default().with(words::NONCE, nonce);
            let proof = Proof::Possession { held: Box::new(held), nonce };
            Begun { proof, verdict: ask(words::NEED_PROOF, parameters) }
        }
        Offer::Command(id) => {
            let task = Task::Judge { challenge: id.clone(), parameters: said.clone() };
            Begun { proof: Proof::Command, verdict: Verdict::Errand(task) }
        }
    })
}

/// What the authority knows that a proof may depend on.
#[derive(Debug)]
pub(super) struct Authority<'a> {
    pub(super) settings: &'a Settings,
    pub(super) certificate: &'a Certificate,
    pub(super) now_ms: u64,
    /// The identity that is asked for.
    pub(super) identity: Name<'a>,
    /// Who asks.
    pub(super) asker: u64,
    /// What the operator has revoked.
    pub(super) revoked: &'a [RevocationRecord],
}

/// A challenge that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) proof: Proof,
    pub(super) verdict: Verdict,
}

/// What the authority remembers of a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// This code is awaited.
    Pin { code: String },
    /// This code is awaited.
    Email { code: String },
    /// The signature of the nonce is awaited, by the key of this certificate.
    Possession { held: Box<Certificate>, nonce: [u8; NONCE_BYTES] },
    /// The operator's command decides.
    Command,
}

/// What comes of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The requester may have the certificate.
    Proven,
    /// The authority asks.
    Ask(String, Parameters),
    /// The answer was wrong.
    Wrong(String),
    /// The operator's command has to do something first.
    Errand(Task),
}

/// Judges an answer.
pub(super) fn check(proof: &Proof, challenge: &str, said: &Parameters, now_ms: u64) -> Verdict {
    match proof {
        Proof::Pin { code } | Proof::Email { code } => match said.text(words::CODE) {
            Some(answer) if same(&typed(answer), code) => Verdict::Proven,
            _ => Verdict::Wrong(words::WRONG_CODE.to_owned()),
        },
        Proof::Possession { held, nonce } => {
            let signature = said.get(words::PROOF).unwrap_or_default();
            let is_signed = held
                .public_key()
                .is_ok_and(|key| key.verify(key.algorithm().signature_type(), &[nonce], signature).is_ok());
            match is_signed && held.is_valid_at(now_ms) {
                true => Verdict::Proven,
                false => Verdict::Wrong(words::INVALID_CREDENTIAL.to_owned()),
            }
        }
        Proof::Command => Verdict::Errand(Task::Judge { challenge: challenge.to_owned(), parameters: said.clone() }),
    }
}

/// Checks a certificate that a requester holds: valid, by this authority or one that is trusted, and of the same owner.
fn check_possession(
    authority: &Authority<'_>,
    anchors: &[Certificate],
    held: &Certificate,
    asked: Name<'_>,
) -> Result<(), String> {
    if !held.is_valid_at(authority.now_ms) {
        return Err(format!("{} is not valid now", held.name()));
    }
    if authority.revoked.iter().any(|record| record.is_about(held) && record.refuses(None, authority.now_ms)) {
        return Err(format!("{} was revoked", held.name()));
    }
    let own = authority.certificate;
    let may_have = |issuer: &Certificate, name: Option<namewire_packet::NameBuf>| {
        let is_by = matches!(held.key_locator(), Some(KeyLocator::Name(by)) if issuer.key_name().is_prefix_of(&by));
        let is_valid = issuer.is_valid_at(authority.now_ms);
        is_by
            && is_valid
            && issuer.public_key().is_ok_and(|key| held.verify(&key).is_ok())
            && name.is_some_and(|name| name.as_name().is_prefix_of(&asked))
    };
    let of_anchor =
        |anchor: &Certificate| may_have(anchor, name_of_possession(authority.settings, held, anchor.identity()));
    if may_have(own, Some(held.identity().to_buf())) || anchors.iter().any(of_anchor) {
        Ok(())
    } else {
        Err(format!("{} gives no right to {asked}", held.name()))
    }
}

/// The mails of the last hour.
#[derive(Debug, Default)]
pub(super) struct Mails {
    since_ms: u64,
    by_address: HashMap<String, u32>,
    by_asker: HashMap<u64, u32>,
    in_all: u32,
}

impl Mails {
    fn take(&mut self, address: &str, asker: u64, now_ms: u64) -> Result<(), String> {
        if now_ms.saturating_sub(self.since_ms) > HOUR_MS {
            *self = Mails { since_ms: now_ms, ..Mails::default() };
        }
        if self.in_all >= MAILS_PER_HOUR_IN_ALL {
            return Err("too many mails in this hour; try again later".to_owned());
        }
        let of_asker = self.by_asker.entry(asker).or_default();
        if *of_asker >= MAILS_PER_ASKER {
            return Err(format!("your host has asked for {MAILS_PER_ASKER} mails in this hour; try again later"));
        }
        let to_address = self.by_address.entry(address.to_owned()).or_default();
        if *to_address >= MAILS_PER_HOUR {
            return Err(format!("{address} has had {MAILS_PER_HOUR} mails in this hour; try again later"));
        }
        (*to_address, *of_asker, self.in_all) = (*to_address + 1, *of_asker + 1, self.in_all + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_few_mails_and_all_together_not_many() {
        let mut mails = Mails::default();
        let mut sent =
            |address: &str, asker, now_ms| (0..10).filter(|_| mails.take(address, asker, now_ms).is_ok()).count();
        let now_ms = HOUR_MS * 2;
        assert_eq!((sent("a@x", 1, now_ms), sent("a@x", 2, now_ms + 1), sent("b@x", 2, now_ms)), (3, 0, 3));
        assert_eq!(sent("a@x", 1, HOUR_MS * 3 + 1), 3);
        let of_one: usize = (0..100).map(|i| sent(&format!("{i}@y"), 1, HOUR_MS * 3 + 2)).sum();
        assert_eq!(of_one, MAILS_PER_ASKER as usize - 3);
        let more: usize = (0..1000).map(|i| sent(&format!("{i}@x"), 100 + i, HOUR_MS * 3 + 2)).sum();
        assert_eq!(more, (MAILS_PER_HOUR_IN_ALL - MAILS_PER_ASKER) as usize);
    }
}
