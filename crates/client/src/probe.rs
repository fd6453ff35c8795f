//! Probes: pings and traceroutes that forwarders answer (RFC 9508, RFC 9507).
//!
//! ```no_run
//! use namewire_client::{Client, ProbeKind, ProbeRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::connect().await?;
//!     for hop_limit in 1..=30 {
//!         let request = ProbeRequest::new(ProbeKind::Traceroute, "/a".parse()?);
//!         let request = ProbeRequest { hop_limit: Some(hop_limit), ..request };
//!         let Ok(answer) = client.probe(&request).await else { continue };
//!         let Some(reply) = answer.reply else { break };
//!         println!("{hop_limit} {} {:?} {:?}", reply.sender, answer.rtt, reply.outcome);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! NFD and ndnd answer no probes: they forward them, and drop those whose HopLimit ends.

use crate::{client::Client, express_error::ExpressError};
use namewire_packet::{
    InterestBuilder, MAX_PACKET_BYTES, NameBuf,
    lp::{self, LinkFields, LpHeaders},
    nfd::ProbeReply,
    path_label::PathLabel,
    probe::ProbeKind,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// What to ask.
#[derive(Clone, Debug)]
pub struct ProbeRequest {
    /// Ping or traceroute.
    pub kind: ProbeKind,
    /// The name that is asked for.
    pub target: NameBuf,
    /// How many hops away the forwarder is that should answer a traceroute; 1 is the one at hand.
    pub hop_limit: Option<u8>,
    /// How long to wait for an answer, in milliseconds.
    pub lifetime_ms: u64,
    /// The way that the probe should take, as answers told it.
    pub path: Option<PathLabel>,
    /// Make the request, and with it the answer, about as large as this, in bytes.
    pub bytes: Option<usize>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct ProbeAnswer {
    /// What the forwarder says; `None` if something else came, for example from an application that answers any name.
    pub reply: Option<ProbeReply>,
    /// The way to the forwarder, if all hops know path labels.
    pub path: Option<Arc<PathLabel>>,
    /// From request to answer.
    pub rtt: Duration,
}

impl ProbeRequest {
    /// A probe that waits a second.
    pub const fn new(kind: ProbeKind, target: NameBuf) -> Self {
        ProbeRequest { kind, target, hop_limit: None, lifetime_ms: 1000, path: None, bytes: None }
    }

    /// The Interest. Its name differs from that of any other probe.
    fn interest(&self) -> Vec<u8> {
        let name = self.kind.name_for(self.target.as_name(), fastrand::u64(..));
        let builder = InterestBuilder::new(name).must_be_fresh(true).nonce(crate::client::fresh_nonce());
        let builder = builder.lifetime_ms(self.lifetime_ms);
        let builder = match self.hop_limit {
            Some(hop_limit) => builder.hop_limit(hop_limit),
            None => builder,
        };
        let plain = builder.build();
        match self.bytes.and_then(|bytes| bytes.min(MAX_PACKET_BYTES).checked_sub(plain.len() + PARAMETERS_BYTES)) {
            Some(padding) => builder.application_parameters(vec![0; padding]).build(),
            None => plain,
        }
    }
}

/// What parameters add to an Interest, beside themselves: their digest in the name, their type and length, and longer
/// lengths around.
const PARAMETERS_BYTES: usize = 44;

impl Client {
    /// Sends a probe and waits for the answer. It is not sent again.
    ///
    /// # Errors
    /// On a Nack, if no answer comes in time, or if the connection is lost.
    pub async fn probe(&self, request: &ProbeRequest) -> Result<ProbeAnswer, ExpressError> {
        let wire = request.interest();
        let mut headers = Vec::new();
        if let Some(path) = &request.path {
            let mut label = Vec::new();
            path.write_tlv(&mut label);
            let led = LpHeaders { lead_bytes: label.len() as u16, ..LpHeaders::default() };
            lp::write_headers(
                &mut headers,
                &led,
                &LinkFields { lead: Some(&label), ..LinkFields::default() },
                wire.len(),
            );
        }
        let sent = Instant::now();
        let data = self.express_framed(&headers, &wire).await?;
        let rtt = sent.elapsed();
        let reply = ProbeReply::parse_content(data.content()).ok();
        Ok(ProbeAnswer { reply, path: data.path.clone(), rtt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{Interest, probe::Probe};

    #[test]
    fn a_request_is_as_large_as_it_is_said_to_be() {
        let target: NameBuf = "/a/film".parse().expect("a name");
        let plain = ProbeRequest::new(ProbeKind::Traceroute, target.clone());
        for (bytes, least, most) in
            [(None, 0, 60), (Some(10), 0, 60), (Some(1400), 1390, 1400), (Some(9000), 8780, 8800)]
        {
            let wire = ProbeRequest { bytes, hop_limit: Some(3), ..plain.clone() }.interest();
            assert!((least..=most).contains(&wire.len()), "{bytes:?}: {}", wire.len());
            let interest = Interest::parse(&wire).expect("an Interest");
            let probe = Probe::of(&interest).expect("a probe");
            assert_eq!((probe.kind, probe.target, interest.hop_limit()), (plain.kind, target.as_name(), Some(3)));
        }
    }
}
