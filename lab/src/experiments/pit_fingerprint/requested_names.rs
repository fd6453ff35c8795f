//! Requested names: a domain and a number, as many as wanted.
//!
//! Source: Yuan15 §5.6.1: a number from 0 to 999 appended to every domain name of a list. The paper does not state the
//! order; here all domains with number 0 come first, then all with number 1. Without `--names` the domains are numbered
//! names of one component, 28 bytes.

use anyhow::ensure;
use namewire_designs::city_hash::city_hash_64;
use namewire_tables::{HashKey, hash_name};

use crate::experiment::Context;
use crate::name_sets::{NameConversion, NameSet, one_name_set};
use crate::numbered_names::{NUMBERED_NAME_BYTES, NumberedNames};

/// Numbers per domain.
const NUMBERS_PER_DOMAIN: u64 = 1000;
/// Domains without `--names`: as many as in the paper's list.
const INVENTED_DOMAINS: u64 = 1_000_000;

/// The names, by index.
pub(super) struct RequestedNames {
    domains: Domains,
    count: u64,
}

enum Domains {
    Given(Box<NameSet>),
    Numbered(NumberedNames),
}

impl RequestedNames {
    /// The names from the user's list of domains, or from numbered domains.
    pub(super) fn new(context: &Context) -> anyhow::Result<Self> {
        let (domains, count) = if context.names.is_some() {
            let set = one_name_set(context.names.as_deref(), 0, NameConversion::Host, context.seed)?;
            let count = set.names.len() as u64;
            (Domains::Given(Box::new(set)), count)
        } else {
            (Domains::Numbered(NumberedNames::new(context.seed)), INVENTED_DOMAINS)
        };
        ensure!(count > 0, "no domain");
        Ok(Self { domains, count })
    }

    /// Number of distinct names.
    pub(super) const fn len(&self) -> u64 {
        self.count * NUMBERS_PER_DOMAIN
    }

    /// A description of the domains.
    pub(super) fn describe(&self) -> String {
        match &self.domains {
            Domains::Given(set) => format!("{} domains of {}", self.count, set.title),
            Domains::Numbered(_) => format!("{} numbered domains", self.count),
        }
    }

    /// Replaces `out` by the TLV-VALUE of name `index`.
    #[inline]
    pub(super) fn write(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        let (domain, mut number) = (index % self.count, index / self.count);
        match &self.domains {
            Domains::Given(set) => out.extend_from_slice(set.names.get(domain as usize)),
            Domains::Numbered(names) => {
                let mut name = [0; NUMBERED_NAME_BYTES];
                names.write(domain, &mut name);
                out.extend_from_slice(&name);
            }
        }
        let mut digits = [0; 20];
        let mut first = digits.len();
        while first == digits.len() || number > 0 {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        out.extend_from_slice(&[8, (digits.len() - first) as u8]); // GenericNameComponent
        out.extend_from_slice(&digits[first..]);
    }
}

/// The hash function of names.
#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "only a few exist, and reading the key costs no pointer")]
pub(super) enum NameHash {
    /// The router's, with a key.
    Keyed(HashKey),
    /// The paper's (§5.6.3).
    City,
}

impl NameHash {
    /// The name in records.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Keyed(_) => "keyed hash",
            Self::City => "CityHash",
        }
    }

    #[inline]
    pub(super) fn of(&self, name_value: &[u8]) -> u64 {
        match self {
            Self::Keyed(key) => hash_name(key, name_value),
            Self::City => city_hash_64(name_value),
        }
    }
}
