//! Readvertise: announces the prefixes of this node's clients to its routing daemon.
//!
//! Source: forwarding.md §6.2, policy *client-to-nlsr*. A prefix with a route of one of the
//! [`ReadvertiseConfig::origins`] is announced by a signed `/localhost/nlsr/rib/register` with its Name and the lowest
//! Cost of these routes (NFD and NLSR since March 2025). It is announced again when that Cost changes. It is withdrawn
//! by `unregister` when the last such route is removed. The daemon is *present* while the RIB has a route to
//! `/localhost/nlsr`. When this route is added, everything is announced; when it is removed, sending stops.
//!
//! ```text
//!             route appears                 success of register: again in 1 h
//!   (none) ─────────────────► due ──► asked ─────────────────────────────┐
//!                              ▲  ▲     │ no success: again in 50 s, 100 s … 1 h
//!                              │  └─────┴────────────────────────────────┘
//!                              │ last route goes: due, to withdraw; success of unregister: forgotten
//! ```
//!
//! Success is a code below 400, as for the clients of ndn-cxx. NLSR (bb59d40) answers 205 to `register`, because the
//! default Flags mean "save it" to it, and 204 to `unregister` of a prefix that it does not have. It uses another cost
//! only after the prefix was withdrawn. The router does not withdraw a prefix because its cost changed, as the other
//! routers would have no route until it is announced again.
//!
//! Deviations: NFD waits 100 s before the first retry (it doubles first), and shifts by 5 ms. Here a hash of prefix and
//! attempt makes each pause up to a twentieth longer, so that a thousand prefixes are not sent at once every hour.
//!
//! Limits: at most [`MAX_PREFIXES`] prefixes; further ones are counted and not announced. At most [`MAX_ASKED`]
//! commands wait for an answer at a time.

use crate::{
    counters::ManagementCounters,
    effect::Effect,
    environment::Times,
    name_key::{NameKey, fixed_name},
    own_interests::{Answer, OwnInterests, Purpose},
    rib::Rib,
};
use namewire_packet::{
    Name, NameBuf,
    digest::sha256,
    nfd::{ControlParameters, ControlResponse, origin},
};
use std::collections::{BTreeMap, BTreeSet};

/// Most prefixes that are announced or being withdrawn.
pub const MAX_PREFIXES: usize = 100_000;
/// Most commands to the daemon that wait for their answer. NFD's clients have as many in flight.
const MAX_ASKED: usize = 64;
/// How long the daemon may take for an answer.
const ANSWER_MS: u64 = 10_000;
/// Codes below this one are a success.
const FAILURE_CODE_MIN: u64 = 400;
/// Pause after a success.
const REFRESH_MS: u64 = 3_600_000;
/// Pause after the first failure. It doubles with each further failure.
const RETRY_MS: u64 = 50_000;
/// Longest pause after a failure.
const RETRY_MS_MAX: u64 = 3_600_000;

/// What the routing daemon is told, if anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadvertiseConfig {
    /// True: NLSR is told the routes of `origins`. Default false, as `readvertise_nlsr` in NFD.
    pub nlsr: bool,
    /// Origins of the routes that NLSR is told. Default: 65, *client*.
    pub origins: Vec<u64>,
}

impl Default for ReadvertiseConfig {
    fn default() -> Self {
        ReadvertiseConfig { nlsr: false, origins: vec![origin::CLIENT] }
    }
}

/// What the daemon knows about a prefix.
#[derive(Debug)]
struct State {
    /// The lowest cost of its routes, while there is one.
    cost: Option<u64>,
    /// The cost in the command that waits for its answer; `Some(None)` for `unregister`.
    asked: Option<Option<u64>>,
    failures: u32,
    attempts: u64,
    /// When to send the next command, if ever.
    due_ns: Option<u64>,
}

/// The prefixes that the daemon is told.
#[derive(Debug)]
pub(crate) struct Readvertise {
    config: ReadvertiseConfig,
    daemon: NameBuf,
    is_available: bool,
    prefixes: BTreeMap<NameKey, State>,
    by_due: BTreeSet<(u64, NameKey)>,
    asked: usize,
}

impl Readvertise {
    pub(crate) fn new(config: ReadvertiseConfig) -> Self {
        Readvertise {
            config,
            daemon: fixed_name("/localhost/nlsr"),
            is_available: false,
            prefixes: BTreeMap::new(),
            by_due: BTreeSet::new(),
            asked: 0,
        }
    }

    /// Records that the routes of a prefix may have changed. False if there is no room for the prefix.
    pub(crate) fn note(&mut self, rib: &Rib, prefix: Name<'_>) -> bool {
        if !self.config.nlsr {
            return true;
        }
        if prefix == self.daemon.as_name() {
            self.set_available(!rib.routes(prefix).is_empty());
        }
        let told = rib.routes(prefix).iter().filter(|route| self.config.origins.contains(&route.origin));
        let cost = told.map(|route| route.cost).min();
        let is_full = self.prefixes.len() >= MAX_PREFIXES;
        match self.prefixes.get_mut(prefix.value()) {
            None if cost.is_none() => return true,
            None if is_full => return false,
            None => {
                let state = State { cost, asked: None, failures: 0, attempts: 0, due_ns: None };
                self.prefixes.insert(NameKey::new(prefix), state);
            }
            Some(state) if state.cost == cost => return true,
            Some(state) => (state.cost, state.failures) = (cost, 0),
        }
        if self.is_available {
            self.schedule(prefix, Some(0));
        } else if cost.is_none() {
            self.forget(prefix);
        }
        true
    }

    /// When the next command is due.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.by_due.first().map(|(due_ns, _)| *due_ns).filter(|_| self.asked < MAX_ASKED)
    }

    fn set_available(&mut self, is_available: bool) {
        if is_available == self.is_available {
            return;
        }
        self.is_available = is_available;
        self.by_due.clear();
        // The daemon is gone, and with it what it knew.
        self.prefixes.retain(|_, state| state.cost.is_some() || state.asked.is_some());
        for (key, state) in &mut self.prefixes {
            (state.failures, state.due_ns) = (0, is_available.then_some(0));
            if is_available && state.asked.is_none() {
                self.by_due.insert((0, key.clone()));
            }
        }
    }

    /// Sets when the next command for a prefix is due. While a command is under way, its answer decides that.
    fn schedule(&mut self, prefix: Name<'_>, due_ns: Option<u64>) {
        let Some(state) = self.prefixes.get_mut(prefix.value()) else { return };
        let key = NameKey::new(prefix);
        if let Some(before_ns) = std::mem::replace(&mut state.due_ns, due_ns) {
            self.by_due.remove(&(before_ns, key.clone()));
        }
        if let Some(due_ns) = due_ns.filter(|_| state.asked.is_none()) {
            self.by_due.insert((due_ns, key));
        }
    }

    fn forget(&mut self, prefix: Name<'_>) {
        if self.prefixes.get(prefix.value()).is_some_and(|state| state.asked.is_none()) {
            self.schedule(prefix, None);
            self.prefixes.remove(prefix.value());
        }
    }

    /// Takes the next prefix that is due, with its cost if it must be announced. From now on, its command counts as
    /// sent.
    fn take_due(&mut self, now_ns: u64) -> Option<(NameBuf, Option<u64>)> {
        let due_ns = self.next_due_ns()?;
        if due_ns > now_ns {
            return None;
        }
        let (_, key) = self.by_due.pop_first()?;
        let state = self.prefixes.get_mut(key.value())?;
        state.due_ns = None;
        state.asked = Some(state.cost);
        state.attempts += 1;
        self.asked += 1;
        Some((key.to_buf(), state.cost))
    }

    fn answered(&mut self, now_ns: u64, prefix: Name<'_>, is_done: bool) {
        let Some(state) = self.prefixes.get_mut(prefix.value()) else { return };
        let Some(told) = state.asked.take() else { return };
        self.asked -= 1;
        let cost = state.cost;
        if !self.is_available {
            if cost.is_none() {
                self.forget(prefix);
            }
            return;
        }
        if told != cost || state.due_ns.is_some() {
            // The routes changed while the command was under way.
            return self.schedule(prefix, Some(0));
        }
        if is_done && cost.is_none() {
            return self.forget(prefix);
        }
        state.failures = if is_done { 0 } else { state.failures + 1 };
        let pause_ms = match state.failures {
            0 => REFRESH_MS,
            failures => RETRY_MS_MAX.min(RETRY_MS << (failures - 1).min(16)),
        };
        let pause_ms = pause_ms + jitter_ms(prefix, state.attempts, pause_ms);
        self.schedule(prefix, Some(now_ns.saturating_add(pause_ms * 1_000_000)));
    }
}

/// Up to a twentieth of the pause, different for each prefix and attempt.
fn jitter_ms(prefix: Name<'_>, attempt: u64, pause_ms: u64) -> u64 {
    let hash = sha256(&[prefix.value(), &attempt.to_be_bytes()]);
    (u64::from(u16::from_be_bytes([hash[0], hash[1]])) * (pause_ms / 20)) >> 16
}

impl Readvertise {
    /// Sends the commands that are due.
    pub(crate) fn run(&mut self, now: Times, own_interests: &mut OwnInterests, out: &mut Vec<Effect>) {
        while own_interests.has_room()
            && let Some((prefix, cost)) = self.take_due(now.mono_ns)
        {
            let mut name = self.daemon.clone();
            let verb: &[u8] = if cost.is_some() { b"register" } else { b"unregister" };
            let parameters = ControlParameters { name: Some(prefix.clone()), cost, ..ControlParameters::default() };
            name.push_generic(b"rib").push_generic(verb).push_generic(&parameters.to_wire());
            let purpose = Purpose::Readvertise(prefix.clone());
            if !own_interests.express_command(now, name, ANSWER_MS, purpose, out) {
                self.answered(now.mono_ns, prefix.as_name(), false);
            }
        }
    }

    /// Handles the outcome of a command to the daemon.
    pub(crate) fn on_answer(
        &mut self,
        now: Times,
        prefix: Name<'_>,
        answer: &Answer<'_>,
        counters: &mut ManagementCounters,
    ) {
        let is_done = match answer {
            Answer::Data(data) => {
                ControlResponse::decode(data.content()).is_ok_and(|response| response.code < FAILURE_CODE_MIN)
            }
            Answer::Nack | Answer::TimedOut => false,
        };
        match is_done {
            true => counters.readvertised += 1,
            false => counters.readvertise_failed += 1,
        }
        self.answered(now.mono_ns, prefix, is_done);
    }
}
