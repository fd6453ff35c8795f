//! A small blocking client of the router's management protocol, over its Unix socket.
//!
//! The lab has its own client, so that it shares no code with the measured router beyond the packet crate. It
//! sends one request at a time; every wait has a limit.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use namewire_packet::nfd::{ControlParameters, ControlResponse, FaceStatus, ForwarderStatus, decode_dataset};
use namewire_packet::tlv::{Reader, element_size, types};
use namewire_packet::{Data, FaceId, InterestBuilder, NameBuf, Nonce, SignedInterestFields};

/// How long one answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Most segments of one dataset: 8,000 bytes each, so 8 MB.
const SEGMENTS_MAX: u64 = 1_000;
/// Largest element accepted from the router.
pub(crate) const ELEMENT_BYTES_MAX: usize = 9_216;

/// A connection for commands and datasets.
#[derive(Debug)]
pub struct RouterControl {
    stream: UnixStream,
    buffer: Vec<u8>,
    nonce: u64,
    last_time_ms: u64,
}

impl RouterControl {
    /// Connects to the router's socket at `path`.
    ///
    /// # Errors
    /// If no process listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self::over(UnixStream::connect(path)?))
    }

    /// Uses an existing connection: routes registered without a FaceId are its own.
    pub fn over(stream: UnixStream) -> Self {
        // A different start per connection: two clients with one key, equal nonces and equal times would look like a
        // replay.
        let nonce = unix_time().as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        Self { stream, buffer: Vec::new(), nonce, last_time_ms: 0 }
    }

    /// Gives the connection back.
    ///
    /// # Errors
    /// If the router sent a packet that was not requested.
    pub fn into_stream(self) -> anyhow::Result<UnixStream> {
        ensure!(self.buffer.is_empty(), "the router sent a packet that was not requested");
        self.stream.set_read_timeout(None)?;
        Ok(self.stream)
    }

    /// Gives the connection back, and the bytes that came behind the last answer: Interests for what was registered.
    ///
    /// # Errors
    /// If the connection cannot be changed.
    pub(crate) fn into_parts(self) -> io::Result<(UnixStream, Vec<u8>)> {
        self.stream.set_read_timeout(None)?;
        Ok((self.stream, self.buffer))
    }

    /// Sends `/localhost/nfd/<module>/<verb>` and returns the answer, whatever its code.
    ///
    /// # Errors
    /// If no answer comes or it is not a ControlResponse.
    pub fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> anyhow::Result<ControlResponse> {
        let mut name: NameBuf = format!("/localhost/nfd/{module}/{verb}").parse()?;
        name.push_generic(&parameters.to_wire());
        // The router takes two commands of one key in the same millisecond for a replay.
        self.last_time_ms = (unix_time().as_millis() as u64).max(self.last_time_ms + 1);
        let nonce = self.next_nonce();
        let interest =
            InterestBuilder::new(name).nonce(Nonce((nonce as u32).to_be_bytes())).sign_digest(&SignedInterestFields {
                nonce: nonce.to_be_bytes().to_vec(),
                time_ms: Some(self.last_time_ms),
                seq_num: None,
            });
        let answer = self.exchange(&interest).with_context(|| format!("{module}/{verb}"))?;
        let data = Data::parse(&answer)?;
        Ok(ControlResponse::decode(data.content())?)
    }

    /// Registers `name` to face `face`, or to this connection's own face.
    ///
    /// # Errors
    /// If the router does not answer 200.
    pub fn register(&mut self, name: NameBuf, face: Option<FaceId>) -> anyhow::Result<()> {
        let parameters = ControlParameters { name: Some(name), face_id: face, ..ControlParameters::default() };
        let response = self.command("rib", "register", &parameters)?;
        ensure!(response.code == 200, "rib/register: {} {}", response.code, response.text);
        Ok(())
    }

    /// Creates the face `uri`, an Ethernet one on the interface `local`, or finds the one that exists.
    ///
    /// # Errors
    /// If the router refuses.
    pub fn create_face(&mut self, uri: &str, local: Option<&str>) -> anyhow::Result<FaceId> {
        let (uri_text, local_uri) = (Some(uri.to_owned()), local.map(str::to_owned));
        let parameters = ControlParameters { uri: uri_text, local_uri, ..ControlParameters::default() };
        let response = self.command("faces", "create", &parameters)?;
        match (response.code, response.body.and_then(|body| body.face_id)) {
            (200 | 409, Some(face)) => Ok(face),
            (code, _) => bail!("faces/create {uri}: {code} {}", response.text),
        }
    }

    /// Destroys a face.
    ///
    /// # Errors
    /// If the router refuses.
    pub fn destroy_face(&mut self, face: FaceId) -> anyhow::Result<()> {
        let parameters = ControlParameters { face_id: Some(face), ..ControlParameters::default() };
        let response = self.command("faces", "destroy", &parameters)?;
        ensure!(response.code == 200, "faces/destroy: {} {}", response.code, response.text);
        Ok(())
    }

    /// The general status.
    ///
    /// # Errors
    /// If no answer comes or it is malformed.
    pub fn status(&mut self) -> anyhow::Result<ForwarderStatus> {
        Ok(ForwarderStatus::decode(&self.dataset("status/general")?)?)
    }

    /// All faces but the forwarder's own.
    ///
    /// # Errors
    /// If no answer comes or it is malformed.
    pub fn faces(&mut self) -> anyhow::Result<Vec<FaceStatus>> {
        let mut faces: Vec<FaceStatus> = decode_dataset(&self.dataset("faces/list")?)?;
        faces.retain(|face| face.face_id >= FaceId::FIRST_DYNAMIC);
        Ok(faces)
    }

    /// Fetches `/localhost/nfd/<dataset>`, all segments put together.
    ///
    /// # Errors
    /// If a segment does not come.
    pub fn dataset(&mut self, dataset: &str) -> anyhow::Result<Vec<u8>> {
        let name: NameBuf = format!("/localhost/nfd/{dataset}").parse()?;
        let nonce = self.next_nonce() as u32;
        let request = InterestBuilder::new(name)
            .can_be_prefix(true)
            .must_be_fresh(true)
            .nonce(Nonce(nonce.to_be_bytes()))
            .build();
        let mut answer = self.exchange(&request).with_context(|| dataset.to_owned())?;
        let mut content = Vec::new();
        for segment in 0..SEGMENTS_MAX {
            let data = Data::parse(&answer)?;
            let last = data.name().last().context("a dataset segment without a name")?;
            ensure!(last.segment() == Some(segment), "{} is not segment {segment}", data.name());
            content.extend_from_slice(data.content());
            if data.final_block_id() == Some(last) {
                return Ok(content);
            }
            let mut next = data.name().parent().to_buf();
            next.push_segment(segment + 1);
            let nonce = self.next_nonce() as u32;
            answer = self.exchange(&InterestBuilder::new(next).nonce(Nonce(nonce.to_be_bytes())).build())?;
        }
        bail!("{dataset} has more than {SEGMENTS_MAX} segments")
    }

    /// Sends one Interest and waits for the Data that matches it.
    fn exchange(&mut self, interest: &[u8]) -> anyhow::Result<Vec<u8>> {
        let asked = namewire_packet::Interest::parse(interest)?;
        self.stream.write_all(interest)?;
        let deadline = Instant::now() + ANSWER_LIMIT;
        loop {
            let packet = self.next_packet(deadline)?;
            let packet = without_link_header(&packet);
            if let Ok(data) = Data::parse(packet)
                && asked.matches(&data)
            {
                return Ok(packet.to_vec());
            }
        }
    }

    fn next_packet(&mut self, deadline: Instant) -> anyhow::Result<Vec<u8>> {
        loop {
            match element_size(&self.buffer)? {
                Some(size) if size > ELEMENT_BYTES_MAX => bail!("the router sent an element of {size} bytes"),
                Some(size) if size <= self.buffer.len() => return Ok(self.buffer.drain(..size).collect()),
                _ => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "no answer within {ANSWER_LIMIT:?}");
            self.stream.set_read_timeout(Some(left))?;
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => bail!("the router closed the connection"),
                Ok(bytes) => self.buffer.extend_from_slice(&chunk[..bytes]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    bail!("no answer within {ANSWER_LIMIT:?}")
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn next_nonce(&mut self) -> u64 {
        self.nonce = self.nonce.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.nonce.rotate_left(32)
    }
}

/// The network packet inside `wire`, which may be in an LpPacket.
pub(crate) fn without_link_header(wire: &[u8]) -> &[u8] {
    let Ok(outer) = namewire_packet::tlv::read_element(wire) else { return wire };
    if outer.type_number != types::LP_PACKET {
        return wire;
    }
    let mut fields = Reader::new(outer.value);
    while let Ok(Some(field)) = fields.next_element() {
        if field.type_number == types::LP_FRAGMENT {
            return field.value;
        }
    }
    wire
}

pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
