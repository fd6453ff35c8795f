//! Attacks on a router, from a separate process (`namewire-lab attack`): each takes as much of one pool as it can.
//!
//! Question answered: none here; `hostile` runs them together with honest load. Every attack is paced except those by
//! streams that write as fast as they can. Packets are just valid enough to pass the first check.
//!
//! | attack | takes | how |
//! | --- | --- | --- |
//! | `pending` | PIT entries | Interests of new names that live for an hour, from one of [`PORTS`] sockets after the other |
//! | `long` | bytes of long Interests | the same, of 8 kB |
//! | `joined` | downstreams | many sockets ask for the same names |
//! | `faces` | faces | over UDP a datagram of two bytes from each new port; over streams connections that stay silent; over Ethernet an Interest from each new, forged station address |
//! | `unread` | bytes of send queues | connections that ask for stored Data of 8 kB and never read |
//! | `fragments` | bytes of reassembly | first fragments from many ports |
//! | `forged` | other producers' consumers | Data for names that others are asked for, and for `status/general` |
//! | `probes` | the control thread's time, other hosts' answers | pings and traceroutes that the router answers, with forged path labels too, and answers that nobody asked for |
//! | `stream` | rings and time | one stream that writes as fast as it can |
//! | `websocket-places`, `observer-places` | connections of these listeners | connections that are let in and kept |
//! | `many-streams`, `greedy`, `unread-producer` | turns, the way to a producer | see [`streams`] |
//! | `heavy-tags` | the time of tag searches | a neighbour in TagNet's tree, see `attack/tag_neighbour.rs` |
//! | `forged-hellos` | a place in TagNet's tree | the same file |
//!
//! Over Ethernet, `pending`, `long`, `joined` and `fragments` come from one station, as a host has one address there.
//!
//! Limits: the limit of file descriptors, which the process raises as far as it may, limits the number of sockets.

mod places;
pub mod streams;
#[cfg(feature = "complete")]
mod tag_neighbour;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use namewire_faces::ethernet;
use namewire_packet::{
    DataBuilder, InterestBuilder, NameBuf, Nonce,
    lp::{self, LinkFields, LpHeaders},
    nfd::MacAddress,
    path_label::{PathLabel, PathMode},
    probe::ProbeKind,
    tlv,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::knock::Door;

/// Sockets of an attack that needs several.
const PORTS: usize = 40;
/// What each of them sends before it is the turn of the next. So each fills the share of a face in what the others
/// left.
const PER_PORT: u64 = 2_005;
/// Sockets that send fragments.
const FRAGMENTING: usize = 2_000;
/// Silent connections: more than a worker has places for.
const SILENT: usize = 20_000;
/// Sockets and names of `joined`.
const JOINING: usize = 300;
const JOINED_NAMES: u64 = 500;
/// Where NDN is sent to all routers of a link (drop-in.md §2).
const GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa]);
/// Connections that never read.
const UNREAD: usize = 150;
/// Names of the stored Data that `unread` asks for: `/stored/0` and so on.
pub const STORED_NAMES: u64 = 64;
/// Prefix of the names that attackers ask for.
pub const ATTACK_PREFIX: &str = "/attack";
/// Prefix of the stored Data.
pub const STORED_PREFIX: &str = "/stored";
/// Prefix of the names for which Data is forged: `/asked/0` and so on.
pub const FORGED_PREFIX: &str = "/asked";
/// How many of them there are.
pub const FORGED_NAMES: u64 = 500;
/// The root that `forged-hellos` claims to be next to.
pub const FORGED_ROOT: u64 = 1;
const HOUR_MS: u64 = 3_600_000;
const LARGE_BYTES: usize = 8_000;
/// The same in one frame.
const LARGE_IN_FRAME_BYTES: usize = 1_350;
/// Time between two looks at the clock.
const TICK: Duration = Duration::from_millis(5);

/// What to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs, reason = "the module's table says what each does")]
pub enum Attack {
    Pending,
    Long,
    Joined,
    Faces,
    Unread,
    Fragments,
    Forged,
    Probes,
    Stream,
    WebsocketPlaces,
    ObserverPlaces,
    ManyStreams,
    Greedy,
    UnreadProducer,
    #[cfg(feature = "complete")]
    HeavyTags,
    #[cfg(feature = "complete")]
    ForgedHellos,
}

/// Over which sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs, reason = "names say it")]
pub enum Way {
    Udp,
    Tcp,
    Unix,
    /// To the router's station
    Ethernet,
    /// To the group that routers join
    EthernetGroup,
}

/// The options of `namewire-lab attack`.
#[derive(Clone, Debug, clap::Args)]
pub struct AttackPlan {
    /// What to take
    #[arg(value_enum)]
    pub attack: Attack,
    /// Sockets to use
    #[arg(long, value_enum)]
    pub way: Way,
    /// Where the router listens for UDP and TCP, or where the listener is whose places are to be taken
    #[arg(long)]
    pub router: Option<SocketAddr>,
    /// The router's Unix socket
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// Address to send from
    #[arg(long)]
    pub bind: Option<IpAddr>,
    /// Interface to send from
    #[arg(long)]
    pub interface: Option<String>,
    /// The router's Ethernet address
    #[arg(long)]
    pub station: Option<MacAddress>,
    /// How long
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Packets per second
    #[arg(long, default_value_t = 10_000)]
    pub rate: u64,
    /// Sets of tags to announce
    #[arg(long, default_value_t = 60_000)]
    pub sets: u64,
}

enum Socket {
    Datagram(UdpSocket),
    Stream(Box<dyn Stream>),
    Link(Link),
}

/// The way to a station.
struct Link {
    socket: socket2::Socket,
    to: MacAddress,
}

impl Link {
    /// Sends a packet from the station of this number.
    fn send(&self, from: u64, packet: &[u8]) -> bool {
        let [.., a, b, c, d] = from.to_be_bytes();
        let frame = ethernet::whole_frame(self.to, MacAddress([2, 1, a, b, c, d]), packet);
        self.socket.send(&frame).is_ok()
    }
}

trait Stream: std::io::Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Socket {
    /// Sends a packet; what the router does not take is lost.
    fn send(&mut self, packet: &[u8]) -> bool {
        match self {
            Socket::Datagram(socket) => socket.send(packet).is_ok(),
            Socket::Link(link) => link.send(0, packet),
            // A stream that took a part of a packet is of no further use.
            Socket::Stream(stream) => matches!(stream.write(packet), Ok(written) if written == packet.len()),
        }
    }
}

impl AttackPlan {
    fn open(&self) -> anyhow::Result<Socket> {
        let router = self.router.context("--router must say where the router listens");
        let socket = match self.way {
            Way::Udp => {
                let own = self.bind.unwrap_or(IpAddr::from([127, 0, 0, 1]));
                let (socket, router) = (UdpSocket::bind((own, 0))?, router?);
                socket.connect(router)?;
                socket.set_nonblocking(true)?;
                Socket::Datagram(socket)
            }
            Way::Tcp => {
                let stream = TcpStream::connect_timeout(&router?, Duration::from_secs(1))?;
                stream.set_nonblocking(true)?;
                Socket::Stream(Box::new(stream))
            }
            Way::Unix => {
                let path = self.socket.as_ref().context("--socket must name the router's Unix socket")?;
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Socket::Stream(Box::new(stream))
            }
            Way::Ethernet | Way::EthernetGroup => Socket::Link(self.open_link()?),
        };
        Ok(socket)
    }

    fn is_over_ethernet(&self) -> bool {
        matches!(self.way, Way::Ethernet | Way::EthernetGroup)
    }

    fn open_link(&self) -> anyhow::Result<Link> {
        let station = self.station.context("--station must name the router's Ethernet address")?;
        let interface = self.interface.as_ref().context("--interface must say where to send from")?;
        let any = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
        let index = rustix::net::netdevice::name_to_index(&any, interface)?;
        let socket = ethernet::open_whole_frames(index)?;
        socket.set_nonblocking(true)?;
        Ok(Link { socket, to: if self.way == Way::EthernetGroup { GROUP } else { station } })
    }

    /// As many sockets as the router and the system allow, up to `count`.
    fn open_many(&self, count: usize) -> Vec<Socket> {
        (0..count).map_while(|_| self.open().ok()).collect()
    }

    /// Calls `send` as often as the rate says, until the time is over; returns how often it said that it sent.
    fn paced(&self, mut send: impl FnMut(u64) -> bool) -> u64 {
        let (started, duration) = (Instant::now(), Duration::from_secs(self.seconds));
        let (mut number, mut sent) = (0, 0);
        while started.elapsed() < duration {
            let due = (started.elapsed().min(duration).as_secs_f64() * self.rate as f64) as u64;
            while number < due {
                sent += u64::from(send(number));
                number += 1;
            }
            std::thread::sleep(TICK);
        }
        sent
    }
}

/// Runs the attack and returns how many packets left, or connections were made.
///
/// # Errors
/// If not even one socket can be made.
pub fn run(plan: &AttackPlan) -> anyhow::Result<u64> {
    raise_descriptor_limit();
    plan.open().context("the router cannot be reached")?;
    let sent = match plan.attack {
        Attack::Pending => {
            spread(plan, (PORTS, PER_PORT), |number| interest(&format!("{ATTACK_PREFIX}/{number}"), number, 0))
        }
        Attack::Long => {
            let bytes = if plan.is_over_ethernet() { LARGE_IN_FRAME_BYTES } else { LARGE_BYTES };
            spread(plan, (PORTS, 1), |number| interest(&format!("{ATTACK_PREFIX}/{number}"), number, bytes))
        }
        Attack::Joined => spread(plan, (JOINING, 1), |number| {
            interest(&format!("{ATTACK_PREFIX}/{}", number / JOINING as u64 % JOINED_NAMES), number, 0)
        }),
        Attack::Faces if plan.way == Way::Udp => plan.paced(|_| plan.open().is_ok_and(|mut port| port.send(&[5, 0]))),
        Attack::Faces if plan.is_over_ethernet() => {
            let link = plan.open_link()?;
            plan.paced(|number| link.send(number, &interest(&format!("{ATTACK_PREFIX}/{number}"), number, 0)))
        }
        Attack::Faces => {
            let mut silent = Vec::new();
            plan.paced(|_| silent.len() < SILENT && plan.open().map(|socket| silent.push(socket)).is_ok())
        }
        Attack::Unread => spread(plan, (UNREAD, 1), |number| {
            let name = format!("{STORED_PREFIX}/{}", number / UNREAD as u64 % STORED_NAMES);
            InterestBuilder::new(name_of(&name)).nonce(Nonce::from_u32(number as u32)).build()
        }),
        Attack::Fragments => spread(plan, (FRAGMENTING, 1), first_fragment),
        Attack::Forged => spread(plan, (PORTS, 1), forged),
        Attack::Probes => spread(plan, (PORTS, 1), probe),
        Attack::Stream => write_on(plan)?,
        Attack::WebsocketPlaces => places::run(plan, Door::Websocket, plan.router.context("--router is missing")?),
        Attack::ObserverPlaces => places::run(plan, Door::Observer, plan.router.context("--router is missing")?),
        Attack::ManyStreams | Attack::Greedy | Attack::UnreadProducer => streams::run(plan)?,
        #[cfg(feature = "complete")]
        Attack::HeavyTags => tag_neighbour::heavy_tags(plan)?,
        #[cfg(feature = "complete")]
        Attack::ForgedHellos => tag_neighbour::forged_hellos(plan)?,
    };
    Ok(sent)
}

/// Sends packets over several sockets in turn, some from each at a time.
fn spread(plan: &AttackPlan, (sockets, at_a_time): (usize, u64), packet: impl Fn(u64) -> Vec<u8>) -> u64 {
    let mut sockets = plan.open_many(sockets);
    let count = sockets.len().max(1) as u64;
    plan.paced(|number| {
        let socket = sockets.get_mut((number / at_a_time % count) as usize);
        socket.is_some_and(|socket| socket.send(&packet(number)))
    })
}

/// Writes Interests of new names as fast as the router takes them.
fn write_on(plan: &AttackPlan) -> anyhow::Result<u64> {
    let mut stream: Box<dyn Stream> = match plan.way {
        Way::Unix => Box::new(UnixStream::connect(plan.socket.as_ref().context("--socket is missing")?)?),
        _ => Box::new(TcpStream::connect(plan.router.context("--router is missing")?)?),
    };
    let (started, duration, mut sent) = (Instant::now(), Duration::from_secs(plan.seconds), 0);
    while started.elapsed() < duration {
        let batch: Vec<u8> = (sent..sent + 64).flat_map(|n| interest(&format!("{ATTACK_PREFIX}/{n}"), n, 0)).collect();
        if stream.write_all(&batch).is_err() {
            break;
        }
        sent += 64;
    }
    Ok(sent)
}

/// In turn: a traceroute that ends at the router, a ping for a name that an application there serves, a probe with a
/// forged path, and an answer to a probe of others with a path.
fn probe(number: u64) -> Vec<u8> {
    let target = name_of(ATTACK_PREFIX);
    let name = |kind: ProbeKind| kind.name_for(target.as_name(), number);
    let request = |kind| InterestBuilder::new(name(kind)).must_be_fresh(true).nonce(Nonce::from_u32(number as u32));
    let path = PathLabel::of(PathMode::Strict, &[number as u16 & 0xfff; 8]);
    match number % 4 {
        0 => request(ProbeKind::Traceroute).hop_limit(1).build(),
        1 => request(ProbeKind::Ping).build(),
        2 => behind(&path, &request(ProbeKind::Traceroute).hop_limit(9).build()),
        _ => behind(&path, &DataBuilder::new(name(ProbeKind::Traceroute)).freshness_ms(1).content(b"me").sign_digest()),
    }
}

/// A packet behind a path label.
fn behind(path: &PathLabel, packet: &[u8]) -> Vec<u8> {
    let (mut frame, mut label) = (Vec::new(), Vec::new());
    path.write_tlv(&mut label);
    let headers = LpHeaders { lead_bytes: label.len() as u16, ..LpHeaders::default() };
    lp::write_headers(&mut frame, &headers, &LinkFields { lead: Some(&label), ..LinkFields::default() }, packet.len());
    frame.extend_from_slice(packet);
    frame
}

fn name_of(uri: &str) -> NameBuf {
    uri.parse().unwrap_or_default()
}

fn interest(uri: &str, number: u64, parameters: usize) -> Vec<u8> {
    let parameters = vec![0; parameters];
    let builder = InterestBuilder::new(name_of(uri)).nonce(Nonce::from_u32(number as u32)).lifetime_ms(HOUR_MS);
    match parameters.is_empty() {
        true => builder.build(),
        false => builder.application_parameters(parameters).build(),
    }
}

/// Data that others produce; each tenth one that management does.
fn forged(number: u64) -> Vec<u8> {
    let name = match number % 10 {
        0 => "/localhost/nfd/status/general/v=18446744073709551615/seg=0".to_owned(),
        _ => format!("{FORGED_PREFIX}/{}", number / 10 * 7919 % FORGED_NAMES),
    };
    DataBuilder::new(name_of(&name)).freshness_ms(HOUR_MS).content(b"forged").sign_digest()
}

/// The first of two fragments.
fn first_fragment(number: u64) -> Vec<u8> {
    const LP_PACKET: u32 = 0x64;
    const SEQUENCE: u32 = 0x51;
    const FRAG_INDEX: u32 = 0x52;
    const FRAG_COUNT: u32 = 0x53;
    const FRAGMENT: u32 = 0x50;
    let mut packet = Vec::new();
    tlv::write_nested(&mut packet, LP_PACKET, |out| {
        tlv::write_tlv(out, SEQUENCE, &number.to_be_bytes());
        tlv::write_tlv(out, FRAG_INDEX, &[0]);
        tlv::write_tlv(out, FRAG_COUNT, &[2]);
        tlv::write_tlv(out, FRAGMENT, &[0; 1_000]);
    });
    packet
}

fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Interest;

    #[test]
    fn what_is_sent_is_what_the_table_says() {
        let long = interest("/attack/1", 1, LARGE_BYTES);
        let parsed = Interest::parse(&long).unwrap();
        assert!(long.len() > LARGE_BYTES && parsed.lifetime_ms() == HOUR_MS);
        let fragment = first_fragment(7);
        assert!(fragment.starts_with(&[0x64]) && fragment.len() > 1_000 && fragment.len() < 1_100);
    }

    #[test]
    fn an_attack_keeps_its_pace_and_its_time() {
        let router = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = AttackPlan {
            attack: Attack::Pending,
            way: Way::Udp,
            router: Some(router.local_addr().unwrap()),
            socket: None,
            bind: None,
            interface: None,
            station: None,
            seconds: 1,
            rate: 200,
            sets: 0,
        };
        let sent = run(&plan).unwrap();
        assert!(sent <= 200, "{sent} in one second");
        let mut bytes = [0; 100];
        let (length, _) = router.recv_from(&mut bytes).unwrap();
        assert!(Interest::parse(&bytes[..length]).is_ok());
    }
}
