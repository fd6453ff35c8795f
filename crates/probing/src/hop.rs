//! What is known of the hops of a way.

use namewire_client::{ProbeAnswer, ReplyCode};
use namewire_packet::{
    NackReason,
    nfd::{ProbeNextHop, ProbeReply, StoredLook},
};
use serde::{Serialize, Serializer};

/// The forwarder at one distance.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hop {
    /// How many hops away it is; 1 is the forwarder at hand.
    pub distance: u8,
    /// What it says; `None` if it does not answer.
    pub answer: Option<Answer>,
    /// A Nack that came in place of an answer.
    #[serde(serialize_with = "as_text")]
    pub nack: Option<NackReason>,
    /// Whether a large packet gets there and back; `None` if that was not tried.
    pub takes_large: Option<bool>,
}

/// What a forwarder says.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Its name.
    pub router: String,
    /// A number that it took by chance when it started.
    #[serde(serialize_with = "as_hex")]
    pub instance: Option<u64>,
    /// Program and version.
    pub software: Option<String>,
    /// From request to answer.
    pub rtt_ms: f64,
    /// How far its clock is ahead of ours; the way back is taken for half of the round trip.
    pub clock_ahead_ms: Option<i64>,
    /// Why it answers.
    pub code: ReplyCode,
    /// The longest prefix of the name in its FIB.
    pub prefix: Option<String>,
    /// The strategy of the name.
    pub strategy: Option<String>,
    /// The next hops, usable ones first.
    pub next_hops: Vec<ProbeNextHop>,
    /// What it would do with an Interest, in words.
    pub outcome: Option<String>,
    /// What its operator could look at.
    pub hints: Vec<String>,
    /// What it refuses of those who asked it.
    pub refusals: Vec<String>,
    /// Stored Data of the name, or under it.
    pub stored: Option<StoredLook>,
    /// The labels of the way to it, the farthest hop first; `None` if a hop on the way knows no labels.
    pub path: Option<Vec<u16>>,
}

/// A way, or a branch of one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Route {
    /// The hop at which it branches off, and the next hop's face there; `None` for the first way.
    pub branch: Option<Branch>,
    /// Its hops, nearest first, from the first one of its own.
    pub hops: Vec<Hop>,
}

/// Where a way branches off.
#[derive(Clone, Debug, Serialize)]
pub struct Branch {
    /// The distance of the hop with several next hops.
    pub distance: u8,
    /// Its name.
    pub router: String,
    /// The next hop that leads here.
    pub face_id: u64,
}

impl Answer {
    /// What a probe brought; `now_ms` is our clock when it came. `None`: it is no answer of a forwarder.
    pub fn of(answer: &ProbeAnswer, now_ms: u64) -> Option<Self> {
        let reply: ProbeReply = answer.reply.clone()?;
        let rtt_ms = answer.rtt.as_secs_f64() * 1000.0;
        let sent_back_ms = now_ms as i64 - (rtt_ms / 2.0) as i64;
        let strategy = reply.strategy.as_ref().map(|name| {
            let whole = name.to_string();
            whole.trim_start_matches("/localhost/nfd/strategy/").split('/').next().unwrap_or(&whole).to_owned()
        });
        Some(Answer {
            router: reply.sender.to_string(),
            instance: reply.instance,
            software: reply.software,
            rtt_ms,
            clock_ahead_ms: reply.time_ms.map(|time_ms| time_ms as i64 - sent_back_ms),
            code: reply.code,
            prefix: reply.prefix.map(|prefix| prefix.to_string()),
            strategy,
            next_hops: reply.next_hops,
            outcome: reply.outcome,
            hints: reply.hints,
            refusals: reply.refusals,
            stored: reply.stored,
            path: answer.path.as_ref().map(|path| path.labels().collect()),
        })
    }

    /// The next hops to which an Interest may go.
    pub fn usable(&self) -> impl Iterator<Item = &ProbeNextHop> {
        self.next_hops.iter().filter(|hop| hop.excluded.is_none())
    }

    /// The next hop that an Interest would go to: the one that the strategy would choose, else the cheapest.
    pub fn chosen(&self) -> Option<&ProbeNextHop> {
        self.usable().find(|hop| hop.is_chosen).or_else(|| self.usable().next())
    }

    /// Whether the way ends here, because the target is here.
    pub fn is_target(&self) -> bool {
        self.code != ReplyCode::HopLimit
    }

    /// Whether an Interest can go on from here.
    pub fn goes_on(&self) -> bool {
        !self.is_target() && self.usable().next().is_some()
    }

    /// Whether two answers are of the same forwarder.
    pub fn is_same(&self, other: &Answer) -> bool {
        self.instance.is_some() && (self.instance, &self.router) == (other.instance, &other.router)
    }
}

impl Hop {
    /// Nothing is known yet.
    pub fn at(distance: u8) -> Self {
        Hop { distance, ..Hop::default() }
    }

    /// A Nack came.
    pub fn refused(distance: u8, reason: NackReason) -> Self {
        Hop { nack: Some(reason), ..Hop::at(distance) }
    }
}

/// As text: programs that read JSON keep 53 bits of a number.
fn as_hex<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| format!("{number:016x}")).serialize(serializer)
}

fn as_text<S: Serializer>(nack: &Option<NackReason>, serializer: S) -> Result<S::Ok, S::Error> {
    nack.map(|reason| reason.to_string()).serialize(serializer)
}
