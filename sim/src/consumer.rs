//! Consumer: an application that expresses Interests and accounts for every one.
//!
//! Each name of its plan ends in exactly one [`Outcome`]. A name is expressed at most
//! [`ConsumerOptions::transmissions`] times, each time with a new Nonce. It fails when the lifetime of its last
//! Interest ends.

use crate::application::{AppIo, Application};
use crate::producer;
use namewire_packet::lp::{LpHeaders, PitToken};
use namewire_packet::{Data, Interest, InterestBuilder, NackReason, NameBuf, Nonce};
use std::collections::{BTreeMap, VecDeque};

/// How a [`Consumer`] sends Interests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// Most names pending.
    pub window: usize,
    /// Shortest time between two new names.
    pub interval_ns: u64,
    /// InterestLifetime.
    pub lifetime_ms: u64,
    /// How long to wait before a name is expressed again.
    pub retransmit_after_ms: u64,
    /// Most transmissions of a name.
    pub transmissions: u32,
    /// CanBePrefix on every Interest.
    pub can_be_prefix: bool,
    /// MustBeFresh on every Interest.
    pub must_be_fresh: bool,
    /// HopLimit on every Interest; `None` sends none.
    pub hop_limit: Option<u8>,
    /// Bytes of the PIT token on every Interest, 0 to 32; 0 sends none.
    pub token_bytes: usize,
}

impl Default for ConsumerOptions {
    /// One transmission, 4 s, a window of 64, a new name each 100 µs.
    fn default() -> Self {
        ConsumerOptions {
            window: 64,
            interval_ns: 100_000,
            lifetime_ms: 4_000,
            retransmit_after_ms: 4_000,
            transmissions: 1,
            can_be_prefix: false,
            must_be_fresh: false,
            hop_limit: None,
            token_bytes: 0,
        }
    }
}

/// The end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Data came.
    Satisfied {
        /// Time since it was first expressed.
        after_ns: u64,
        /// How often it was expressed.
        transmissions: u32,
    },
    /// A Nack answered its last transmission.
    Nacked(NackReason),
    /// Neither Data nor Nack came in time.
    Expired,
}

/// Counts of a [`Consumer`] besides outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerTally {
    /// Interests sent, retransmissions included.
    pub interests: u64,
    /// Nacks received for pending names.
    pub nacks: u64,
    /// Data or Nacks for a name that is not pending: late, or repeated.
    pub unexpected: u64,
    /// Data whose content does not match its name, or whose digest is wrong. Always a defect.
    pub damaged: u64,
    /// Data or Nacks without the token of the Interest, if it had one. Always a defect.
    pub wrong_token: u64,
}

/// Requests a list of names.
#[derive(Debug)]
pub struct Consumer {
    options: ConsumerOptions,
    plan: VecDeque<NameBuf>,
    pending: BTreeMap<NameBuf, Pending>,
    outcomes: BTreeMap<NameBuf, Outcome>,
    tally: ConsumerTally,
    /// The earliest time for a new name.
    next_name_ns: u64,
    /// The last [`Self::next_name_ns`] for which a call was scheduled.
    asked_for_ns: u64,
    /// When the next look at deadlines is scheduled.
    check_at_ns: u64,
}

#[derive(Debug)]
struct Pending {
    first_ns: u64,
    transmissions: u32,
    /// The time at which it is expressed again or given up.
    deadline_ns: u64,
    last_nonce: Nonce,
    nack: Option<NackReason>,
    token: Option<PitToken>,
}

impl Consumer {
    /// A consumer that requests `names` in this order, each once.
    ///
    /// # Panics
    /// If a name occurs twice, because its outcome would be ambiguous.
    pub fn new(names: impl IntoIterator<Item = NameBuf>, options: ConsumerOptions) -> Self {
        let plan: VecDeque<NameBuf> = names.into_iter().collect();
        let distinct: std::collections::BTreeSet<&NameBuf> = plan.iter().collect();
        assert_eq!(distinct.len(), plan.len(), "a name occurs twice in the plan of a consumer");
        Consumer {
            options,
            plan,
            pending: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            tally: ConsumerTally::default(),
            next_name_ns: 0,
            asked_for_ns: 0,
            check_at_ns: u64::MAX,
        }
    }

    /// The outcome of each finished name.
    pub fn outcomes(&self) -> &BTreeMap<NameBuf, Outcome> {
        &self.outcomes
    }

    /// Number of names for which Data came.
    pub fn satisfied(&self) -> usize {
        self.outcomes.values().filter(|outcome| matches!(outcome, Outcome::Satisfied { .. })).count()
    }

    /// Names that ended without Data.
    pub fn failed(&self) -> impl Iterator<Item = (&NameBuf, Outcome)> {
        self.outcomes
            .iter()
            .filter(|(_, outcome)| !matches!(outcome, Outcome::Satisfied { .. }))
            .map(|(name, outcome)| (name, *outcome))
    }

    /// Number of names that were requested and have no outcome yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// True once every name of the plan has its outcome.
    pub fn is_done(&self) -> bool {
        self.plan.is_empty() && self.pending.is_empty()
    }

    /// The counts so far.
    pub fn tally(&self) -> ConsumerTally {
        self.tally
    }

    fn express_new(&mut self, io: &mut AppIo<'_>) {
        while self.pending.len() < self.options.window {
            if io.now_ns < self.next_name_ns {
                if std::mem::replace(&mut self.asked_for_ns, self.next_name_ns) != self.next_name_ns {
                    io.wake_at(self.next_name_ns);
                }
                return;
            }
            let Some(name) = self.plan.pop_front() else { return };
            self.next_name_ns = io.now_ns + self.options.interval_ns;
            let mut pending = Pending {
                first_ns: io.now_ns,
                transmissions: 0,
                deadline_ns: 0,
                last_nonce: Nonce::default(),
                nack: None,
                token: None,
            };
            self.express(io, &name, &mut pending);
            self.pending.insert(name, pending);
        }
    }

    fn express(&mut self, io: &mut AppIo<'_>, name: &NameBuf, pending: &mut Pending) {
        let options = &self.options;
        pending.transmissions += 1;
        pending.nack = None;
        pending.last_nonce = Nonce::from_u32(io.rng.u32(..));
        let token: Vec<u8> = (0..options.token_bytes).map(|_| io.rng.u8(..)).collect();
        pending.token = PitToken::new(&token);
        let is_last = pending.transmissions >= options.transmissions;
        let wait_ms = if is_last { options.lifetime_ms } else { options.retransmit_after_ms };
        pending.deadline_ns = io.now_ns + wait_ms * 1_000_000;
        if pending.deadline_ns < self.check_at_ns {
            self.check_at_ns = pending.deadline_ns;
            io.wake_at(pending.deadline_ns);
        }

        let mut interest = InterestBuilder::new(name.clone())
            .can_be_prefix(options.can_be_prefix)
            .must_be_fresh(options.must_be_fresh)
            .nonce(pending.last_nonce)
            .lifetime_ms(options.lifetime_ms);
        if let Some(hop_limit) = options.hop_limit {
            interest = interest.hop_limit(hop_limit);
        }
        let headers = LpHeaders { pit_token: pending.token, ..LpHeaders::default() };
        io.send_at(io.now_ns, headers, interest.build());
        self.tally.interests += 1;
    }

    /// Expresses names again whose time has passed, or lets them fail.
    fn check_deadlines(&mut self, io: &mut AppIo<'_>) {
        if self.check_at_ns > io.now_ns {
            return;
        }
        self.check_at_ns = u64::MAX;
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|name, pending| {
            if pending.deadline_ns > io.now_ns {
                return true;
            }
            if pending.transmissions < self.options.transmissions {
                self.express(io, name, pending);
                return true;
            }
            self.outcomes.insert(name.clone(), pending.nack.map_or(Outcome::Expired, Outcome::Nacked));
            false
        });
        self.pending = pending;
        let next_ns = self.pending.values().map(|pending| pending.deadline_ns).min();
        if let Some(next_ns) = next_ns.filter(|next_ns| *next_ns < self.check_at_ns) {
            self.check_at_ns = next_ns;
            io.wake_at(next_ns);
        }
    }

    fn receive_data(&mut self, io: &AppIo<'_>, headers: &LpHeaders, data: &Data<'_>) {
        self.tally.damaged += u64::from(!producer::is_intact(data));
        let mut name = data.name().to_buf();
        if self.options.can_be_prefix {
            while !name.is_empty() && !self.pending.contains_key(&name) {
                name.pop();
            }
        }
        let Some(pending) = self.pending.remove(&name) else {
            self.tally.unexpected += 1;
            return;
        };
        self.tally.wrong_token += u64::from(headers.pit_token != pending.token);
        let after_ns = io.now_ns - pending.first_ns;
        self.outcomes.insert(name, Outcome::Satisfied { after_ns, transmissions: pending.transmissions });
    }

    fn receive_nack(&mut self, headers: &LpHeaders, reason: NackReason, interest: &Interest<'_>) {
        let name = interest.name().to_buf();
        match self.pending.get_mut(&name) {
            Some(pending) if interest.nonce() == Some(pending.last_nonce) => {
                self.tally.nacks += 1;
                self.tally.wrong_token += u64::from(headers.pit_token != pending.token);
                pending.nack = Some(reason);
                if pending.transmissions >= self.options.transmissions {
                    self.pending.remove(&name);
                    self.outcomes.insert(name, Outcome::Nacked(reason));
                }
            }
            _ => self.tally.unexpected += 1,
        }
    }
}

impl Application for Consumer {
    fn start(&mut self, io: &mut AppIo<'_>) {
        self.express_new(io);
    }

    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]) {
        match (headers.nack, Interest::parse(packet), Data::parse(packet)) {
            (Some(reason), Ok(interest), _) => self.receive_nack(headers, reason, &interest),
            (None, _, Ok(data)) => self.receive_data(io, headers, &data),
            _ => self.tally.unexpected += 1,
        }
        self.express_new(io);
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        self.check_deadlines(io);
        self.express_new(io);
    }
}
