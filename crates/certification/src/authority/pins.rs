//! Codes that the operator has made for a name and given to its owner: who has one needs nobody's help any more.
//!
//! It serves once, for one identity and those below it, until it expires.
//!
//! Limits: [`PINS_MAX`] codes.

use super::secrets::{random_code, readable, same, typed};
use namewire_packet::{Name, NameBuf};

/// Most codes at a time.
pub const PINS_MAX: usize = 10_000;

/// A code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// For this identity, and those below it.
    pub name: NameBuf,
    /// In capital letters, without the dashes that people see.
    pub code: String,
    /// Its last moment, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl Pin {
    /// A new one; `None` if the system provides no random numbers.
    pub fn generate(name: NameBuf, expires_ms: u64) -> Option<Self> {
        Some(Pin { name, code: random_code().ok()?, expires_ms })
    }

    /// As people read it.
    pub fn readable(&self) -> String {
        readable(&self.code)
    }
}

/// The codes that were not used.
#[derive(Debug, Default)]
pub struct Pins(Vec<Pin>);

impl Pins {
    /// Replaces all codes by those on the disk.
    pub fn set(&mut self, mut pins: Vec<Pin>) {
        pins.truncate(PINS_MAX);
        self.0 = pins;
    }

    /// Uses a code for an identity; returns it as it is kept. Each code of the name is compared in full.
    pub(super) fn take(&mut self, identity: Name<'_>, code: &str, now_ms: u64) -> Option<String> {
        let code = typed(code);
        self.0.retain(|pin| now_ms <= pin.expires_ms);
        let fits = |pin: &Pin| pin.name.as_name().is_prefix_of(&identity) & same(&pin.code, &code);
        let at = self.0.iter().position(fits)?;
        Some(self.0.swap_remove(at).code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_serves_once_for_its_name_until_it_expires() {
        let name = |uri: &str| uri.parse::<NameBuf>().unwrap();
        let pin = Pin::generate(name("/site/bob"), 1000).unwrap();
        let mut pins = Pins::default();
        let mut take = |identity: &str, code: &str, now_ms| {
            pins.set(vec![pin.clone()]);
            let first = pins.take(name(identity).as_name(), code, now_ms).is_some();
            assert!(pins.take(name(identity).as_name(), code, now_ms).is_none(), "it serves once");
            first
        };
        let readable = pin.readable();
        assert_eq!(readable.len(), 14);
        assert!(take("/site/bob", &readable, 1000) && take("/site/bob/phone", &readable.to_lowercase(), 0));
        assert!(!take("/site/bob", &readable, 1001) && !take("/site/alice", &readable, 0));
        assert!(!take("/site/bob", "", 0) && !take("/site/bob", &readable[1..], 0));
    }
}
