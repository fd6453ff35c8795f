//! Application: a program on a node that talks to its router over a local face.
//!
//! An application sees network packets with their link headers, as if over a Unix socket. It acts only when called: it
//! may send packets, now or later, and ask to be called again. [`Consumer`](crate::Consumer) and
//! [`Producer`](crate::Producer) serve most tests.

use fastrand::Rng;
use namewire_packet::lp::LpHeaders;
use std::any::Any;

/// A program on a node that sends and receives packets. `Any`, so that a test can inspect it after a run
/// ([`Network::application`](crate::Network::application)).
pub trait Application: Any {
    /// Called once, when the virtual time reaches the application's start.
    fn start(&mut self, _io: &mut AppIo<'_>) {}

    /// Called for each packet from the router: an Interest, a Data or (as the headers say) a Nack.
    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]);

    /// Called at each time given to [`AppIo::wake_at`].
    fn wake(&mut self, _io: &mut AppIo<'_>) {}
}

/// What an application can do during a call.
#[derive(Debug)]
pub struct AppIo<'a> {
    /// Virtual time.
    pub now_ns: u64,
    /// The application's own random source.
    pub rng: &'a mut Rng,
    pub(crate) sent: Vec<(u64, LpHeaders, Vec<u8>)>,
    pub(crate) wake_at_ns: Vec<u64>,
}

impl<'a> AppIo<'a> {
    pub(crate) fn new(now_ns: u64, rng: &'a mut Rng) -> Self {
        AppIo { now_ns, rng, sent: Vec::new(), wake_at_ns: Vec::new() }
    }

    /// Sends a bare packet to the router.
    pub fn send(&mut self, packet: Vec<u8>) {
        self.send_at(self.now_ns, LpHeaders::default(), packet);
    }

    /// Sends a packet at `at_ns`, with link headers.
    pub fn send_at(&mut self, at_ns: u64, headers: LpHeaders, packet: Vec<u8>) {
        self.sent.push((at_ns, headers, packet));
    }

    /// Schedules a call of [`Application::wake`] at `at_ns`.
    pub fn wake_at(&mut self, at_ns: u64) {
        self.wake_at_ns.push(at_ns);
    }
}
