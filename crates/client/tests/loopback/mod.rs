//! A forwarder for tests: real packets over streams, and links with the loss rate that a test sets.
//!
//! It keeps a FIB (filled by `rib/register` commands, whose signature it checks) and a PIT that matches by name. It
//! puts its own token on each Interest that it forwards, and counts answers without the token.

use namewire_client::Client;
use namewire_packet::{
    Data, DataBuilder, Interest, NackReason, NameBuf,
    lp::{LinkFields, LpHeaders, LpPacket, PitToken, write_headers},
    nfd::{ControlParameters, ControlResponse},
    tlv,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream},
    net::UnixStream,
    sync::mpsc,
};

/// How the links behave. The default is perfect.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    /// Share of packets lost, in each direction.
    pub loss: f64,
    /// Each packet takes its own time, at most this, so packets overtake each other.
    pub jitter: Duration,
    /// One Data in this many carries a CongestionMark; 0 means none.
    pub mark_every: u64,
    /// Seed of the random choices.
    pub seed: u64,
}

#[derive(Default)]
pub(crate) struct Observed {
    pub interests: u64,
    pub data: u64,
    pub lost: u64,
    pub missing_tokens: u64,
    pub bad_commands: u64,
    pub last_command_time_ms: u64,
}

struct PitEntry {
    face: usize,
    can_be_prefix: bool,
    wire: Vec<u8>,
}

struct State {
    faces: Vec<mpsc::UnboundedSender<Vec<u8>>>,
    routes: HashMap<NameBuf, usize>,
    pit: HashMap<NameBuf, Vec<PitEntry>>,
    dice: fastrand::Rng,
    weather: Weather,
    observed: Observed,
}

#[derive(Clone)]
pub(crate) struct Forwarder(Arc<Mutex<State>>);

impl Forwarder {
    pub(crate) fn new(weather: Weather) -> Self {
        Forwarder(Arc::new(Mutex::new(State {
            faces: Vec::new(),
            routes: HashMap::new(),
            pit: HashMap::new(),
            dice: fastrand::Rng::with_seed(weather.seed),
            weather,
            observed: Observed::default(),
        })))
    }

    #[allow(dead_code, reason = "not every test has a use for it")]
    pub(crate) fn observe<T>(&self, look: impl FnOnce(&Observed) -> T) -> T {
        look(&self.0.lock().unwrap().observed)
    }

    /// Sends a packet to every client, unchanged and unrequested.
    #[allow(dead_code, reason = "not every test has a use for it")]
    pub(crate) fn send_to_all(&self, packet: &[u8]) {
        self.0.lock().unwrap().faces.iter().for_each(|face| drop(face.send(packet.to_vec())));
    }

    /// A client on a Unix socket pair.
    #[allow(dead_code, reason = "not every test has a use for it")]
    pub(crate) fn attach_unix(&self) -> Client {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.attach(ours);
        Client::from_stream(theirs, true)
    }

    /// A client on a pipe in memory, which works with paused time.
    pub(crate) fn attach_memory(&self) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.attach(ours);
        Client::from_stream(theirs, true)
    }

    /// The far end of a connection, for what comes from elsewhere.
    #[allow(dead_code, reason = "not every test has a use for it")]
    pub(crate) fn attach_pipe(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.attach(ours);
        theirs
    }

    fn attach<S: AsyncRead + AsyncWrite + Send + 'static>(&self, stream: S) {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (sender, mut receiver) = mpsc::unbounded_channel::<Vec<u8>>();
        let face = {
            let mut state = self.0.lock().unwrap();
            state.faces.push(sender);
            state.faces.len() - 1
        };
        tokio::spawn(async move {
            while let Some(frame) = receiver.recv().await {
                if writer.write_all(&frame).await.is_err() {
                    break;
                }
            }
        });
        let this = self.clone();
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            while reader.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
                while let Ok(Some(size)) = tlv::element_size(&buffer)
                    && size <= buffer.len()
                {
                    let frame: Vec<u8> = buffer.drain(..size).collect();
                    this.receive(face, &frame);
                }
            }
        });
    }

    fn receive(&self, face: usize, frame: &[u8]) {
        let mut state = self.0.lock().unwrap();
        let (headers, packet) = match LpPacket::parse(frame) {
            Ok(lp) => (lp.headers, lp.fragment.unwrap()),
            Err(_) => (LpHeaders::default(), frame),
        };
        if let Some(reason) = headers.nack {
            state.nack(&Interest::parse(packet).expect("a Nack quotes an Interest"), reason);
        } else if let Ok(interest) = Interest::parse(packet) {
            state.interest(face, &interest);
        } else {
            state.data(&Data::parse(packet).expect("clients send Interests and Data"), &headers);
        }
    }
}

impl State {
    fn interest(&mut self, face: usize, interest: &Interest<'_>) {
        self.observed.interests += 1;
        let name = interest.name();
        let command_prefix: NameBuf = "/localhost/nfd/rib".parse().unwrap();
        if command_prefix.as_name().is_prefix_of(&name) {
            return self.command(face, interest);
        }
        let next_hop = (0..=name.len()).rev().find_map(|n| self.routes.get(&name.prefix(n).to_buf()).copied());
        let Some(next_hop) = next_hop else {
            return self.send(
                face,
                LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() },
                interest.wire(),
            );
        };
        let entry = PitEntry { face, can_be_prefix: interest.can_be_prefix(), wire: interest.wire().to_vec() };
        self.pit.entry(name.to_buf()).or_default().push(entry);
        let headers = LpHeaders { pit_token: PitToken::new(b"fwd123"), ..LpHeaders::default() };
        self.send(next_hop, headers, interest.wire());
    }

    fn command(&mut self, face: usize, interest: &Interest<'_>) {
        let name = interest.name();
        let info = interest.signature_info();
        let time_ms = info.and_then(|info| info.time_ms()).unwrap_or(0);
        let is_signed = interest.parameters_digest_is_valid()
            && info.is_some_and(|info| info.nonce().is_some_and(|nonce| nonce.len() >= 8))
            && interest.signed_portion().is_some_and(|(a, b)| {
                interest.signature_value() == Some(&namewire_packet::digest::sha256(&[a, b])[..])
            });
        if !is_signed || time_ms <= self.observed.last_command_time_ms {
            self.observed.bad_commands += 1;
        }
        self.observed.last_command_time_ms = time_ms;
        let parameters = ControlParameters::decode(name.get(4).unwrap().value).unwrap();
        let prefix = parameters.name.clone().unwrap();
        let response = if prefix.to_string() == "/forbidden" {
            ControlResponse::new(403, "authorization rejected")
        } else {
            match name.get(3).unwrap().value {
                b"register" => drop(self.routes.insert(prefix, face)),
                _ => drop(self.routes.remove(&prefix)),
            }
            ControlResponse::ok(parameters)
        };
        let answer = DataBuilder::new(name).freshness_ms(1000).content(&response.to_wire()).sign_digest();
        self.send(face, LpHeaders::default(), &answer);
    }

    fn data(&mut self, data: &Data<'_>, headers: &LpHeaders) {
        self.observed.data += 1;
        self.observed.missing_tokens += u64::from(headers.pit_token != PitToken::new(b"fwd123"));
        let marked = self.weather.mark_every > 0 && self.observed.data.is_multiple_of(self.weather.mark_every);
        let name = data.name();
        let mut full_name = name.to_buf();
        let digest = data.implicit_digest();
        full_name.push(namewire_packet::Component { type_number: 1, value: &digest });
        for count in 0..=full_name.len() {
            let prefix = full_name.as_name().prefix(count).to_buf();
            let Some(entries) = self.pit.remove(&prefix) else { continue };
            let (satisfied, rest): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|entry| count >= name.len() || entry.can_be_prefix);
            if !rest.is_empty() {
                self.pit.insert(prefix, rest);
            }
            for entry in satisfied {
                let headers = LpHeaders { congestion_mark: marked.into(), ..LpHeaders::default() };
                self.send(entry.face, headers, data.wire());
            }
        }
    }

    fn nack(&mut self, interest: &Interest<'_>, reason: NackReason) {
        for entry in self.pit.remove(&interest.name().to_buf()).unwrap_or_default() {
            self.send(entry.face, LpHeaders { nack: Some(reason), ..LpHeaders::default() }, &entry.wire);
        }
    }

    fn send(&mut self, face: usize, headers: LpHeaders, packet: &[u8]) {
        if self.dice.f64() < self.weather.loss {
            self.observed.lost += 1;
            return;
        }
        let mut frame = Vec::new();
        if !headers.is_empty() {
            write_headers(&mut frame, &headers, &LinkFields::default(), packet.len());
        }
        frame.extend_from_slice(packet);
        let sender = self.faces[face].clone();
        if self.weather.jitter.is_zero() {
            drop(sender.send(frame));
        } else {
            let delay = self.weather.jitter.mul_f64(self.dice.f64());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                drop(sender.send(frame));
            });
        }
    }
}
