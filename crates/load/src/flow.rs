//! Consumer: sends Interests by a schedule or by a window, and measures when their answers come.
//!
//! With a rate, every Interest has a time at which it is due, whether the router keeps up or not. Its latency counts
//! from this time. So if a router stops for a second, this shows in all Interests that were due in that second (no
//! coordinated omission). With a window, an Interest is due when another one has ended.
//!
//! An Interest has a PIT token with the number of its slot, so the flow finds the Interest of an answer without its
//! name. If one face has several Interests pending for a name, a router answers the last of them; the others end with
//! it.
//!
//! Limits: at most [`PENDING_MAX`] Interests are pending per flow; further due Interests count as held back.

use crate::{Link, Names};
use fastrand::Rng;
use namewire_packet::{
    Data,
    lp::{LinkFields, LpHeaders, LpPacket, PitToken, write_headers},
    tlv::{self, types},
};
use sketches_ddsketch::{Config, DDSketch};
use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Most pending Interests of a flow.
const PENDING_MAX: usize = 1 << 16;
/// How long a flow sleeps at most.
const PAUSE_NS: u64 = 50_000_000;
/// A flow does not sleep if the next Interest is due so soon: the kernel would wake it late.
const SPIN_NS: u64 = 60_000;
/// How often counts are published.
const PUBLISH_NS: u64 = 250_000_000;

/// Relative error of the times in a report.
const ERROR: f64 = 0.0005;
/// Buckets of times: from a nanosecond to more than an hour.
const BUCKETS_MAX: u32 = 1 << 15;

/// What a flow sends.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Interests per second; without it, as the window allows.
    pub rate: Option<f64>,
    /// Random times in place of equal distances.
    pub is_poisson: bool,
    /// Most pending Interests, without a rate.
    pub window: usize,
    /// InterestLifetime.
    pub lifetime_ms: u64,
    /// Interests have CanBePrefix.
    pub can_be_prefix: bool,
    /// Interests have MustBeFresh.
    pub must_be_fresh: bool,
    /// How many to send.
    pub count: Option<u64>,
    /// How long to send.
    pub duration: Option<Duration>,
}

/// Counts of one flow, or of several.
#[derive(Clone)]
pub struct Counts {
    /// Interests sent.
    pub sent: u64,
    /// Data received in time.
    pub received: u64,
    /// Nacks received.
    pub nacked: u64,
    /// Interests without an answer in their lifetime.
    pub lost: u64,
    /// Interests that were due and not sent, because too many were pending.
    pub held_back: u64,
    /// Packets that answer no pending Interest.
    pub unexpected: u64,
    /// Bytes of the Data received.
    pub data_bytes: u64,
    /// Times from when an Interest was due until its Data came.
    pub times: DDSketch,
}

impl Default for Counts {
    fn default() -> Self {
        let times = DDSketch::new(Config::new(ERROR, BUCKETS_MAX, 1.0));
        let (sent, received, nacked, lost, held_back, unexpected, data_bytes) = Default::default();
        Counts { sent, received, nacked, lost, held_back, unexpected, data_bytes, times }
    }
}

impl Counts {
    /// Adds the time of an answer.
    pub fn note_time(&mut self, time_ns: u64) {
        self.times.add(time_ns as f64);
    }

    /// Adds those of another flow, or of another second.
    pub fn add(&mut self, other: &Counts) {
        self.sent += other.sent;
        self.received += other.received;
        self.nacked += other.nacked;
        self.lost += other.lost;
        self.held_back += other.held_back;
        self.unexpected += other.unexpected;
        self.data_bytes += other.data_bytes;
        let _ = self.times.merge(&other.times); // of the same configuration
    }
}

/// One connection with its Interests.
pub struct Flow {
    plan: Plan,
    link: Link,
    names: Names,
    /// Never from the seed: routers take a nonce that comes again within seconds for a loop.
    nonces: Rng,
    pending: Pending,
    counts: Counts,
    /// When the next Interest is due.
    due_ns: u64,
    published_ns: u64,
}

impl Flow {
    /// A flow that has sent nothing.
    pub fn new(link: Link, names: Names, plan: Plan) -> Self {
        let (pending, counts) = (Pending::default(), Counts::default());
        Flow { plan, link, names, nonces: Rng::new(), pending, counts, due_ns: 0, published_ns: 0 }
    }

    /// Sends until the plan is done or `stop`, and waits for the last answers. Gives the counts since the last call to
    /// `publish`, now and then and at the end.
    ///
    /// # Errors
    /// If the connection is closed or broken.
    pub fn run(mut self, stop: &AtomicBool, mut publish: impl FnMut(&Counts)) -> io::Result<()> {
        let start = Instant::now();
        let now_ns = || start.elapsed().as_nanos() as u64;
        let end_ns = self.plan.duration.map_or(u64::MAX, |duration| duration.as_nanos() as u64);
        let mut sent = 0;
        loop {
            let now = now_ns();
            let is_done = stop.load(Relaxed) || now >= end_ns || self.plan.count.is_some_and(|count| sent >= count);
            if is_done && self.pending.count() == 0 {
                publish(&self.counts);
                return Ok(());
            }
            if !is_done {
                sent += self.send_due(now, self.plan.count.map_or(u64::MAX, |count| count - sent));
            }
            self.link.flush()?;
            let (pending, counts) = (&mut self.pending, &mut self.counts);
            match self.link.receive(|packet, _| take_answer(packet, now_ns(), pending, counts)) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    publish(&self.counts);
                    return Err(io::Error::new(error.kind(), "the connection was closed"));
                }
                received => drop(received?),
            }
            self.counts.lost += self.pending.expire(now);
            if now - self.published_ns >= PUBLISH_NS {
                self.published_ns = now;
                publish(&self.counts);
                self.counts = Counts::default();
            }
            self.rest(now_ns(), is_done)?;
        }
    }

    /// Sends what is due, at most `most`. Returns how many.
    fn send_due(&mut self, now: u64, most: u64) -> u64 {
        let mut sent = 0;
        while sent < most && self.link.has_room() {
            let due = match self.plan.rate {
                Some(_) if self.due_ns > now => break,
                Some(_) => self.due_ns,
                None if self.pending.count() >= self.plan.window => break,
                None => now,
            };
            let name = self.names.next_number();
            let Some(slot) = self.pending.begin(name, due, now + self.plan.lifetime_ms * 1_000_000) else {
                self.counts.held_back += 1;
                self.plan_next();
                continue;
            };
            let (plan, names, nonce) = (&self.plan, &self.names, self.nonces.u32(..));
            self.link.outbox.push(|out| write_interest(plan, names, name, nonce, slot, out));
            sent += 1;
            self.plan_next();
        }
        self.counts.sent += sent;
        sent
    }

    /// When the next Interest is due.
    fn plan_next(&mut self) {
        let Some(rate) = self.plan.rate else { return };
        let mean_ns = 1e9 / rate;
        let step_ns = match self.plan.is_poisson {
            true => -(1.0 - self.names.random().f64()).ln() * mean_ns,
            false => mean_ns,
        };
        self.due_ns += (step_ns as u64).max(1);
    }

    /// Sleeps until there is something to do.
    fn rest(&self, now: u64, is_done: bool) -> io::Result<()> {
        let next_ns = match self.plan.rate {
            Some(_) if !is_done => self.due_ns,
            None if !is_done && self.pending.count() < self.plan.window && self.link.has_room() => now,
            _ => u64::MAX,
        };
        let wait_ns = next_ns.saturating_sub(now).min(PAUSE_NS);
        // With a window, an answer or the end of a lifetime comes first.
        if wait_ns <= SPIN_NS { Ok(()) } else { self.link.wait(Duration::from_nanos(wait_ns - SPIN_NS / 2)) }
    }
}

/// Counts what an answer tells.
fn take_answer(packet: &[u8], now: u64, pending: &mut Pending, counts: &mut Counts) {
    let Ok(LpPacket { headers, fragment: Some(fragment), .. }) = LpPacket::parse(packet) else {
        return counts.unexpected += 1;
    };
    let is_data = headers.nack.is_none() && Data::parse(fragment).is_ok();
    let mut asking = headers.pit_token.as_ref().and_then(Slot::of_token);
    let mut is_expected = false;
    while let Some((due, earlier)) = asking.and_then(|slot| pending.end(slot)) {
        (is_expected, asking) = (true, earlier);
        match (is_data, headers.nack.is_some()) {
            (true, _) => {
                counts.received += 1;
                counts.note_time(now.saturating_sub(due));
            }
            (_, true) => counts.nacked += 1,
            _ => counts.lost += 1,
        }
    }
    counts.unexpected += u64::from(!is_expected);
    counts.data_bytes += if is_expected && is_data { fragment.len() as u64 } else { 0 };
}

/// Appends an Interest with the token of its slot.
fn write_interest(plan: &Plan, names: &Names, name: u64, nonce: u32, slot: Slot, out: &mut Vec<u8>) {
    let mut interest = Vec::with_capacity(128);
    tlv::write_nested(&mut interest, types::INTEREST, |interest| {
        names.write(name, interest);
        if plan.can_be_prefix {
            tlv::write_tlv(interest, types::CAN_BE_PREFIX, &[]);
        }
        if plan.must_be_fresh {
            tlv::write_tlv(interest, types::MUST_BE_FRESH, &[]);
        }
        tlv::write_tlv(interest, types::NONCE, &nonce.to_be_bytes());
        tlv::write_nni(interest, types::INTEREST_LIFETIME, plan.lifetime_ms);
    });
    let headers = LpHeaders { pit_token: slot.to_token(), ..LpHeaders::default() };
    write_headers(out, &headers, &LinkFields::default(), interest.len());
    out.extend_from_slice(&interest);
}

/// The place of a pending Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    number: u32,
    /// How often the place was used before: late answers meet another one.
    round: u32,
}

impl Slot {
    fn to_token(self) -> Option<PitToken> {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.number.to_be_bytes());
        bytes[4..].copy_from_slice(&self.round.to_be_bytes());
        PitToken::new(&bytes)
    }

    fn of_token(token: &PitToken) -> Option<Self> {
        let bytes: u64 = u64::from_be_bytes(token.as_bytes().try_into().ok()?);
        Some(Slot { number: (bytes >> 32) as u32, round: bytes as u32 })
    }
}

/// The pending Interests of a flow.
#[derive(Default)]
struct Pending {
    places: Vec<Place>,
    free: Vec<u32>,
    /// All have the same lifetime: they end in the order in which they began.
    by_end: VecDeque<(u64, Slot)>,
    /// The last Interest for each name.
    by_name: HashMap<u64, Slot>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    round: u32,
    due_ns: u64,
    name: u64,
    /// The Interest before for the same name, which may have ended.
    earlier: Option<Slot>,
}

impl Pending {
    fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// A place for an Interest; `None` if all are taken.
    fn begin(&mut self, name: u64, due_ns: u64, ends_ns: u64) -> Option<Slot> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.places.len() < PENDING_MAX => {
                self.places.push(Place::default());
                self.places.len() as u32 - 1
            }
            None => return None,
        };
        let place = &mut self.places[number as usize];
        let slot = Slot { number, round: place.round };
        let earlier = self.by_name.insert(name, slot);
        *place = Place { due_ns, name, earlier, ..*place };
        self.by_end.push_back((ends_ns, slot));
        Some(slot)
    }

    /// Ends an Interest. If it was pending: when it was due, and the one before for the same name.
    fn end(&mut self, slot: Slot) -> Option<(u64, Option<Slot>)> {
        let place = self.places.get_mut(slot.number as usize).filter(|place| place.round == slot.round)?;
        place.round = place.round.wrapping_add(1);
        self.free.push(slot.number);
        let ended = *place;
        if self.by_name.get(&ended.name) == Some(&slot) {
            self.by_name.remove(&ended.name);
        }
        Some((ended.due_ns, ended.earlier))
    }

    /// Ends those whose lifetime is over; how many.
    fn expire(&mut self, now: u64) -> u64 {
        let mut expired = 0;
        while let Some((_, slot)) = self
            .by_end
            .pop_front_if(|(ends_ns, slot)| *ends_ns <= now || self.places[slot.number as usize].round != slot.round)
        {
            expired += u64::from(self.end(slot).is_some());
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NameSet, Order};
    use namewire_packet::Interest;

    #[test]
    fn an_interest_is_well_formed() {
        let set = NameSet::Numbered { prefix: "/p".parse().unwrap(), count: 9 };
        let names = Names::new(set, Order::Sequential, 1, 0, 1);
        let plan = Plan {
            rate: None,
            is_poisson: false,
            window: 1,
            lifetime_ms: 700,
            can_be_prefix: true,
            must_be_fresh: true,
            count: None,
            duration: None,
        };
        let (slot, mut out) = (Slot { number: 7, round: 3 }, Vec::new());
        write_interest(&plan, &names, 5, 0x0102_0304, slot, &mut out);
        let packet = LpPacket::parse(&out).unwrap();
        assert_eq!(packet.headers.pit_token.as_ref().and_then(Slot::of_token), Some(slot));
        let interest = Interest::parse(packet.fragment.unwrap()).unwrap();
        assert_eq!((interest.name().to_string(), interest.lifetime_ms()), ("/p/00000005".to_owned(), 700));
        assert!(interest.can_be_prefix() && interest.must_be_fresh());
        assert_eq!(interest.nonce().map(|nonce| nonce.to_u32()), Some(0x0102_0304));
    }

    #[test]
    fn places_are_used_again_and_late_answers_meet_nobody() {
        let mut pending = Pending::default();
        let first = pending.begin(11, 1, 100).unwrap();
        let second = pending.begin(12, 2, 101).unwrap();
        assert_eq!((pending.count(), pending.end(first), pending.end(first)), (2, Some((1, None)), None));
        let third = pending.begin(13, 3, 102).unwrap();
        assert_eq!((third.number, pending.count()), (first.number, 2));
        assert_eq!((pending.expire(101), pending.count()), (1, 1), "the second; the first has ended");
        assert_eq!((pending.end(second), pending.end(third), pending.count()), (None, Some((3, None)), 0));
        let all = (0..).map_while(|n| pending.begin(n, n, n)).count();
        assert_eq!((all, pending.expire(u64::MAX), pending.count()), (PENDING_MAX, PENDING_MAX as u64, 0));
        assert!(pending.by_name.is_empty() && pending.by_end.is_empty());
    }

    #[test]
    fn an_answer_ends_all_interests_for_its_name() {
        let (mut pending, mut counts) = (Pending::default(), Counts::default());
        let asked: Vec<Slot> = [7, 7, 8, 7].map(|name| pending.begin(name, 10, 100).unwrap()).into();
        let data = namewire_packet::DataBuilder::new("/p/7".parse::<namewire_packet::NameBuf>().unwrap()).sign_digest();
        let answer = |slot: Slot| {
            let mut packet = Vec::new();
            let headers = LpHeaders { pit_token: slot.to_token(), ..LpHeaders::default() };
            write_headers(&mut packet, &headers, &LinkFields::default(), data.len());
            packet.extend_from_slice(&data);
            packet
        };
        take_answer(&answer(asked[3]), 50, &mut pending, &mut counts);
        assert_eq!((counts.received, counts.unexpected, pending.count()), (3, 0, 1));
        take_answer(&answer(asked[0]), 50, &mut pending, &mut counts);
        assert_eq!((counts.received, counts.unexpected, counts.data_bytes), (3, 1, data.len() as u64));
    }
}
