//! `[probes]`: whom the router answers when they ping it or trace a route through it.

use super::{Choice, ranges::probe_rate};
use crate::text::Subnet;
use namewire_engine::AnswersProbes;
use serde::{Deserialize, Serialize};

/// `[probes]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesSection {
    /// Whom the router answers. Probes of others travel like any Interest.
    pub answer: Choice<AnswersProbes>,
    /// Hosts that get no answer nevertheless.
    pub refuse: Vec<Subnet>,
    /// Answers a second for each host and user.
    #[serde(deserialize_with = "probe_rate")]
    pub rate: u32,
    /// Tell other hosts the addresses of next hops, and routes nearby.
    pub addresses: bool,
}

impl Default for ProbesSection {
    fn default() -> Self {
        ProbesSection { answer: Choice::default(), refuse: Vec::new(), rate: 50, addresses: false }
    }
}

#[cfg(test)]
mod tests {
    use crate::from_toml;
    use namewire_engine::AnswersProbes;

    #[test]
    fn who_is_answered_is_read_and_mistakes_are_named() {
        let text = "[router]\nname = \"/site/r1\"\n[probes]\nanswer = \"local\"\nrate = 7\nrefuse = [\"192.0.2.0/24\", \"::/0\"]";
        let settings = from_toml(text).unwrap();
        assert_eq!((settings.probes.answer.0, settings.probes.rate), (AnswersProbes::Local, 7));
        assert_eq!(settings.router.name.as_ref().unwrap().to_string(), "/site/r1");
        assert_eq!(settings.engine_config().answers_probes, AnswersProbes::Local);
        let refuses = |address: &str| {
            let address = address.parse().unwrap();
            settings.probes.refuse.iter().any(|subnet| subnet.contains(address))
        };
        assert!(refuses("192.0.2.9") && refuses("::ffff:192.0.2.9") && refuses("2001:db8::1") && !refuses("192.0.3.1"));
        for (wrong, what) in [
            ("answer = \"all\"", "line 2: probes.answer: unknown value \"all\""),
            ("rate = 0", "line 2: probes.rate: 0 is not from 1 to 100000"),
            ("refuse = [\"eth0\"]", "\"eth0\" is no subnet; write for example 192.0.2.0/24"),
        ] {
            let error = from_toml(&format!("[probes]\n{wrong}")).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
