//! Registers many routes, one command each, over one connection with a window of commands in flight.
//!
//! Commands are made and signed before the clock starts, [`CHUNK_ROUTES`] at a time, so that the router, not this
//! process, is the limit. The time between chunks does not count. Every answer must be a 200 for a command in flight.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use namewire_packet::nfd::{ControlParameters, ControlResponse};
use namewire_packet::tlv::element_size;
use namewire_packet::{Data, Interest, InterestBuilder, Name, NameBuf, Nonce, SignedInterestFields};

use crate::router_control::{ELEMENT_BYTES_MAX, unix_time, without_link_header};
use crate::synthetic_names::SyntheticNames;

/// Commands made ahead of the clock: some 30 MB.
const CHUNK_ROUTES: u64 = 100_000;
/// Silence after which the router counts as stuck.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A connection whose face owns the routes; the router removes them when the connection closes.
#[derive(Debug)]
pub struct RouteLoad {
    stream: UnixStream,
    received: Vec<u8>,
    time_ms: u64,
}

impl RouteLoad {
    /// Connects to the router's socket at `path`.
    ///
    /// # Errors
    /// If no process listens there.
    pub fn connect(path: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(path).with_context(|| format!("cannot connect to {}", path.display()))?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream, received: Vec::new(), time_ms: unix_time().as_millis() as u64 })
    }

    /// Registers prefixes 0 to `names.prefixes()` to this connection's face, with `window` commands in flight; returns
    /// the time that the router took.
    ///
    /// # Errors
    /// If the router refuses one or does not answer.
    pub fn register(&mut self, names: &SyntheticNames, window: usize) -> anyhow::Result<Duration> {
        let mut elapsed = Duration::ZERO;
        let mut first = 0;
        while first < names.prefixes() {
            let end = names.prefixes().min(first + CHUNK_ROUTES);
            let commands: Vec<Vec<u8>> =
                (first..end).map(|number| self.command(names, number)).collect::<anyhow::Result<_>>()?;
            let started = Instant::now();
            self.exchange(&commands, window)?;
            elapsed += started.elapsed();
            first = end;
        }
        Ok(elapsed)
    }

    fn command(&mut self, names: &SyntheticNames, number: u64) -> anyhow::Result<Vec<u8>> {
        let mut prefix = Vec::new();
        names.write_prefix(number, &mut prefix);
        let prefix = Name::parse_value(&prefix)?.to_buf();
        let mut name: NameBuf = "/localhost/nfd/rib/register".parse()?;
        name.push_generic(&ControlParameters { name: Some(prefix), ..ControlParameters::default() }.to_wire());
        self.time_ms += 1;
        let fields =
            SignedInterestFields { nonce: number.to_be_bytes().to_vec(), time_ms: Some(self.time_ms), seq_num: None };
        Ok(InterestBuilder::new(name).nonce(Nonce((number as u32).to_be_bytes())).sign_digest(&fields))
    }

    fn exchange(&mut self, commands: &[Vec<u8>], window: usize) -> anyhow::Result<()> {
        let mut waiting = commands.iter();
        let mut in_flight: VecDeque<Interest<'_>> = VecDeque::with_capacity(window);
        let mut burst = Vec::new();
        loop {
            burst.clear();
            for command in waiting.by_ref().take(window - in_flight.len()) {
                burst.extend_from_slice(command);
                in_flight.push_back(Interest::parse(command)?);
            }
            self.stream.write_all(&burst)?;
            if in_flight.is_empty() {
                return Ok(());
            }
            self.take_answers(&mut in_flight)?;
        }
    }

    /// Reads once and takes every whole answer.
    fn take_answers(&mut self, in_flight: &mut VecDeque<Interest<'_>>) -> anyhow::Result<()> {
        let mut chunk = [0; 64 * 1024];
        let bytes = self.stream.read(&mut chunk).context("no answer")?;
        ensure!(bytes > 0, "the router closed the connection");
        self.received.extend_from_slice(&chunk[..bytes]);
        let mut taken = 0;
        while let Some(size) = element_size(&self.received[taken..])? {
            ensure!(size <= ELEMENT_BYTES_MAX, "the router sent an element of {size} bytes");
            let Some(element) = self.received.get(taken..taken + size) else { break };
            let data = Data::parse(without_link_header(element))?;
            let Some(place) = in_flight.iter().position(|command| command.name() == data.name()) else {
                bail!("an answer to no command in flight: {}", data.name());
            };
            in_flight.remove(place);
            let response = ControlResponse::decode(data.content())?;
            ensure!(response.code == 200, "rib/register: {} {}", response.code, response.text);
            taken += size;
        }
        self.received.drain(..taken);
        Ok(())
    }
}
