//! What the operator has decided.

use namewire_ndncert::challenge::words;
use namewire_packet::NameBuf;
use namewire_security::Certificate;

const HOUR_MS: u64 = 3_600_000;

/// What the operator has decided.
#[derive(Clone, Debug)]
pub struct Settings {
    /// It certifies names under this prefix.
    pub prefix: NameBuf,
    /// What it says about itself.
    pub info: String,
    /// How long a certificate may be valid.
    pub max_validity_ms: u64,
    /// Most components of an identity after the prefix.
    pub max_suffix: usize,
    /// The component that names the issuer in a certificate.
    pub issuer_id: String,
    /// What it takes as proof; each once.
    pub proofs: Vec<Offer>,
}

/// What the operator takes as proof.
#[derive(Clone, Debug)]
pub enum Offer {
    /// A code from the operator.
    Pin,
    /// A code by e-mail.
    Email,
    /// A certificate of this authority, or one that a certificate in this list has signed.
    Possession(Vec<Certificate>),
    /// The operator's command decides; its name as a challenge.
    Command(String),
}

impl Offer {
    /// Its name.
    pub fn id(&self) -> &str {
        match self {
            Offer::Pin => words::PIN,
            Offer::Email => words::EMAIL,
            Offer::Possession(_) => words::POSSESSION,
            Offer::Command(id) => id,
        }
    }

    /// How many answers it takes.
    pub const fn tries(&self) -> u64 {
        match self {
            Offer::Pin | Offer::Email => 3,
            Offer::Possession(_) => 1,
            Offer::Command(_) => 5,
        }
    }

    /// How long it waits for the right one, in milliseconds.
    pub const fn time_ms(&self) -> u64 {
        match self {
            Offer::Pin => HOUR_MS,
            Offer::Email | Offer::Command(_) => 600_000,
            Offer::Possession(_) => 60_000,
        }
    }
}
