//! Requests on the disk: what an authority needs to go on with them after a restart.
//!
//! A request has secrets, its session's key and its code. Whoever stores it must keep others from reading it.

use super::{
    proofs::Proof,
    requests::{Kept, Request},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use namewire_ndncert::{RequestId, SessionKey};
use namewire_security::{Certificate, ValidityPeriod};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct OnDisk {
    session: String,
    certificate: String,
    valid_ms: [u64; 2],
    asker: u64,
    expires_ms: u64,
    challenge: String,
    proof: Option<ProofOnDisk>,
    tries_left: u64,
}

#[derive(Serialize, Deserialize)]
enum ProofOnDisk {
    Pin(String),
    Email(String),
    Possession { held: String, nonce: String },
    Command,
}

/// A request as JSON.
pub fn write(request: &Request) -> String {
    let Kept { session, certificate, validity, asker, expires_ms, challenge, proof, tries_left } = request.kept();
    let on_disk = OnDisk {
        session: STANDARD.encode(session.to_bytes()),
        certificate: STANDARD.encode(certificate.wire()),
        valid_ms: [validity.not_before_ms, validity.not_after_ms],
        asker,
        expires_ms,
        challenge: challenge.to_owned(),
        proof: proof.map(|proof| match proof {
            Proof::Pin { code } => ProofOnDisk::Pin(code.clone()),
            Proof::Email { code } => ProofOnDisk::Email(code.clone()),
            Proof::Possession { held, nonce } => {
                ProofOnDisk::Possession { held: STANDARD.encode(held.wire()), nonce: STANDARD.encode(nonce) }
            }
            Proof::Command => ProofOnDisk::Command,
        }),
        tries_left,
    };
    serde_json::to_string(&on_disk).expect("strings and numbers")
}

/// Reads what [`write()`] wrote; `None` if it is something else.
pub fn read(id: RequestId, text: &str) -> Option<Request> {
    let on_disk: OnDisk = serde_json::from_str(text).ok()?;
    let bytes = |text: &str| STANDARD.decode(text).ok();
    let certificate = |text: &str| Certificate::parse(&bytes(text)?).ok();
    let proof = match on_disk.proof {
        None => None,
        Some(ProofOnDisk::Pin(code)) => Some(Proof::Pin { code }),
        Some(ProofOnDisk::Email(code)) => Some(Proof::Email { code }),
        Some(ProofOnDisk::Command) => Some(Proof::Command),
        Some(ProofOnDisk::Possession { held, nonce }) => {
            let (held, nonce) = (Box::new(certificate(&held)?), bytes(&nonce)?.try_into().ok()?);
            Some(Proof::Possession { held, nonce })
        }
    };
    let session = SessionKey::from_bytes(id, &bytes(&on_disk.session)?)?;
    let [not_before_ms, not_after_ms] = on_disk.valid_ms;
    let validity = ValidityPeriod { not_before_ms, not_after_ms };
    let certificate = certificate(&on_disk.certificate)?;
    certificate.public_key().ok()?;
    let mut request = Request::new(session, certificate, validity, on_disk.asker, on_disk.expires_ms);
    request.go_on(on_disk.challenge, proof, on_disk.tries_left, on_disk.expires_ms);
    Some(request)
}
