//! Requester: an application that asks for names as they come, and notes what became of each request.
//!
//! The names and their times come from an iterator, so a recorded trace, a rate or a random choice is an iterator. A
//! name may come again, even while it is pending. At most [`RequesterOptions::window`] requests are pending: a request
//! whose time has come waits until there is room, so a window without times is a closed loop.

use crate::application::{AppIo, Application};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{Data, Interest, InterestBuilder, NameBuf, Nonce};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::Peekable;

/// How a [`Requester`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterOptions {
    /// Most requests pending.
    pub window: usize,
    /// InterestLifetime.
    pub lifetime_ms: u64,
    /// How long to wait before a name is asked for again.
    pub retransmit_after_ms: u64,
    /// Most Interests of a request.
    pub transmissions: u32,
    /// MustBeFresh on every Interest.
    pub must_be_fresh: bool,
    /// CanBePrefix on every Interest.
    pub can_be_prefix: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// Data came.
    Satisfied,
    /// A Nack answered its last Interest.
    Nacked,
    /// Neither came within the lifetime of its last Interest.
    Expired,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When its first Interest was sent.
    pub at_ns: u64,
    /// From then to its end.
    pub took_ns: u64,
    /// Interests sent.
    pub transmissions: u32,
    /// How it ended.
    pub end: RequestEnd,
    /// Bytes of content that came.
    pub content_bytes: u32,
}

/// A name and the time at which it is wanted.
pub type Wish = (u64, NameBuf);

/// Asks for names.
pub struct Requester {
    options: RequesterOptions,
    wishes: Peekable<Box<dyn Iterator<Item = Wish>>>,
    pending: BTreeMap<u64, Pending>,
    by_name: BTreeMap<NameBuf, VecDeque<u64>>,
    /// Deadlines of pending requests, with their numbers.
    deadlines: BTreeSet<(u64, u64)>,
    next_number: u64,
    /// The earliest call that is scheduled.
    wake_at_ns: u64,
    ended: Vec<Request>,
    /// Data and Nacks for nothing that is pending.
    unexpected: u64,
}

struct Pending {
    name: NameBuf,
    first_ns: u64,
    deadline_ns: u64,
    transmissions: u32,
    last_nonce: Nonce,
    is_nacked: bool,
}

impl Requester {
    /// Asks for these names at these times, which must not fall. The first may be before the start.
    pub fn new(options: RequesterOptions, wishes: impl Iterator<Item = Wish> + 'static) -> Self {
        let wishes: Box<dyn Iterator<Item = Wish>> = Box::new(wishes);
        Requester {
            options,
            wishes: wishes.peekable(),
            pending: BTreeMap::new(),
            by_name: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            next_number: 0,
            wake_at_ns: u64::MAX,
            ended: Vec::new(),
            unexpected: 0,
        }
    }

    /// The requests that have ended, in the order of their ends.
    pub fn ended(&self) -> &[Request] {
        &self.ended
    }

    /// When each pending request began.
    pub fn pending(&self) -> impl Iterator<Item = u64> {
        self.pending.values().map(|pending| pending.first_ns)
    }

    /// Data and Nacks that answered nothing that was pending: late or repeated ones.
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }

    fn go_on(&mut self, io: &mut AppIo<'_>) {
        self.check_deadlines(io);
        let mut wake_at_ns = self.deadlines.first().map_or(u64::MAX, |deadline| deadline.0);
        while self.pending.len() < self.options.window {
            match self.wishes.peek() {
                Some((at_ns, _)) if *at_ns > io.now_ns => {
                    wake_at_ns = wake_at_ns.min(*at_ns);
                    break;
                }
                None => break,
                Some(_) => {}
            }
            let Some((_, name)) = self.wishes.next() else { break };
            self.begin(io, name);
            wake_at_ns = wake_at_ns.min(self.deadlines.first().map_or(u64::MAX, |deadline| deadline.0));
        }
        if wake_at_ns < self.wake_at_ns {
            self.wake_at_ns = wake_at_ns;
            io.wake_at(wake_at_ns);
        }
    }

    fn begin(&mut self, io: &mut AppIo<'_>, name: NameBuf) {
        let number = self.next_number;
        self.next_number += 1;
        self.by_name.entry(name.clone()).or_default().push_back(number);
        let pending = Pending {
            name,
            first_ns: io.now_ns,
            deadline_ns: 0,
            transmissions: 0,
            last_nonce: Nonce::default(),
            is_nacked: false,
        };
        self.pending.insert(number, pending);
        self.express(io, number);
    }

    fn express(&mut self, io: &mut AppIo<'_>, number: u64) {
        let options = &self.options;
        let Some(pending) = self.pending.get_mut(&number) else { return };
        pending.transmissions += 1;
        pending.is_nacked = false;
        pending.last_nonce = Nonce::from_u32(io.rng.u32(..));
        let is_last = pending.transmissions >= options.transmissions;
        let wait_ms = if is_last { options.lifetime_ms } else { options.retransmit_after_ms };
        pending.deadline_ns = io.now_ns + wait_ms * 1_000_000;
        self.deadlines.insert((pending.deadline_ns, number));
        let interest = InterestBuilder::new(pending.name.clone())
            .can_be_prefix(options.can_be_prefix)
            .must_be_fresh(options.must_be_fresh)
            .nonce(pending.last_nonce)
            .lifetime_ms(options.lifetime_ms);
        io.send(interest.build());
    }

    /// Asks again for what was not answered in time, or gives it up.
    fn check_deadlines(&mut self, io: &mut AppIo<'_>) {
        if self.wake_at_ns <= io.now_ns {
            self.wake_at_ns = u64::MAX;
        }
        while let Some(&(deadline_ns, number)) = self.deadlines.first() {
            if deadline_ns > io.now_ns {
                return;
            }
            self.deadlines.pop_first();
            match self.pending.get(&number) {
                Some(pending) if pending.transmissions < self.options.transmissions => self.express(io, number),
                Some(pending) => {
                    let end = if pending.is_nacked { RequestEnd::Nacked } else { RequestEnd::Expired };
                    self.end(io.now_ns, number, end, 0);
                }
                None => {}
            }
        }
    }

    fn end(&mut self, now_ns: u64, number: u64, end: RequestEnd, content_bytes: usize) {
        let Some(pending) = self.pending.remove(&number) else { return };
        self.deadlines.remove(&(pending.deadline_ns, number));
        if let Some(numbers) = self.by_name.get_mut(&pending.name) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_name.remove(&pending.name);
            }
        }
        let Pending { first_ns, transmissions, .. } = pending;
        let content_bytes = content_bytes as u32;
        self.ended.push(Request { at_ns: first_ns, took_ns: now_ns - first_ns, transmissions, end, content_bytes });
    }

    /// Data answer all requests for their name.
    fn receive_data(&mut self, io: &AppIo<'_>, data: &Data<'_>) {
        let mut name = data.name().to_buf();
        while self.options.can_be_prefix && !name.is_empty() && !self.by_name.contains_key(&name) {
            name.pop();
        }
        let Some(numbers) = self.by_name.get(&name).cloned() else {
            self.unexpected += 1;
            return;
        };
        for number in numbers {
            self.end(io.now_ns, number, RequestEnd::Satisfied, data.content().len());
        }
    }

    fn receive_nack(&mut self, io: &AppIo<'_>, interest: &Interest<'_>) {
        let of_name = self.by_name.get(&interest.name().to_buf());
        let is_answered = |number: &&u64| {
            let pending = self.pending.get(number);
            pending.is_some_and(|pending| interest.nonce() == Some(pending.last_nonce))
        };
        let Some(number) = of_name.and_then(|numbers| numbers.iter().find(is_answered)).copied() else {
            self.unexpected += 1;
            return;
        };
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.is_nacked = true;
            if pending.transmissions >= self.options.transmissions {
                self.end(io.now_ns, number, RequestEnd::Nacked, 0);
            }
        }
    }
}

impl Application for Requester {
    fn start(&mut self, io: &mut AppIo<'_>) {
        self.go_on(io);
    }

    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]) {
        match (headers.nack, Interest::parse(packet), Data::parse(packet)) {
            (Some(_), Ok(interest), _) => self.receive_nack(io, &interest),
            (None, _, Ok(data)) => self.receive_data(io, &data),
            _ => self.unexpected += 1,
        }
        self.go_on(io);
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        self.go_on(io);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkOptions, Network, NodeOptions, Producer};

    const OPTIONS: RequesterOptions = RequesterOptions {
        window: 64,
        lifetime_ms: 1_000,
        retransmit_after_ms: 100,
        transmissions: 3,
        must_be_fresh: false,
        can_be_prefix: false,
    };
    const MS_NS: u64 = 1_000_000;

    /// A requester and a producer, 5 ms from each other.
    fn run(options: RequesterOptions, loss: f64, wishes: Vec<Wish>) -> (Vec<Request>, usize) {
        let mut net = Network::new(1, 0);
        let nodes = [0, 1].map(|_| net.add_node(NodeOptions::default()));
        let wire = net.connect(nodes[0], nodes[1], LinkOptions { delay_ns: 5 * MS_NS, loss, ..LinkOptions::default() });
        net.add_route(nodes[0], "/p", wire.face_a, 1);
        let producer = net.attach(nodes[1], Producer::of_content(100, 1_000));
        net.add_route(nodes[1], "/p", producer.face, 0);
        let app = net.attach(nodes[0], Requester::new(options, wishes.into_iter())).app;
        let _ = net.run_for(100_000 * MS_NS);
        let requester = net.application::<Requester>(app);
        (requester.ended().to_vec(), requester.pending().count())
    }

    fn wish(at_ms: u64, name: &str) -> Wish {
        (at_ms * MS_NS, name.parse().expect("a name"))
    }

    #[test]
    fn each_request_is_at_its_time_and_a_name_may_come_twice() {
        let (ended, pending) = run(OPTIONS, 0.0, vec![wish(0, "/p/a"), wish(2_000, "/p/b"), wish(2_001, "/p/b")]);
        assert_eq!((ended.len(), pending), (3, 0));
        assert!(ended.iter().all(|request| request.end == RequestEnd::Satisfied && request.content_bytes == 100));
        assert_eq!(ended[1].at_ns, 2_000 * MS_NS);
        assert!(
            ended[0].took_ns > 10 * MS_NS && ended[2].took_ns < 10 * MS_NS,
            "{ended:?}: the second Interest joined"
        );
    }

    #[test]
    fn a_window_of_one_is_a_closed_loop() {
        let wishes = (0..5).map(|number| wish(0, &format!("/p/{number}"))).collect();
        let (ended, _) = run(RequesterOptions { window: 1, ..OPTIONS }, 0.0, wishes);
        assert_eq!(ended.len(), 5);
        assert!(ended.windows(2).all(|pair| pair[1].at_ns >= pair[0].at_ns + pair[0].took_ns), "{ended:?}");
    }

    #[test]
    fn what_is_lost_is_asked_for_again_and_given_up_in_the_end() {
        let (ended, _) = run(OPTIONS, 1.0, vec![wish(0, "/p/a")]);
        assert_eq!((ended[0].end, ended[0].transmissions, ended[0].took_ns), (RequestEnd::Expired, 3, 1_200 * MS_NS));
        let (ended, _) = run(OPTIONS, 0.0, vec![wish(0, "/elsewhere")]);
        assert_eq!((ended[0].end, ended[0].transmissions), (RequestEnd::Nacked, 3));
    }
}
