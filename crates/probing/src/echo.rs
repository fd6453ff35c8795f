//! Pings that forwarders answer (RFC 9508): is a name reachable, and who answers for it?

use namewire_client::{Client, ExpressError, NameBuf, ProbeKind, ProbeReply, ProbeRequest, ReplyCode};
use serde::Serialize;
use std::time::Duration;

/// What became of one ping.
#[derive(Clone, Debug, Serialize)]
pub struct Echo {
    /// Counts from 0.
    pub sequence: u64,
    /// From request to answer.
    pub rtt_ms: Option<f64>,
    /// The forwarder that answered.
    pub router: Option<String>,
    /// Why it answered.
    pub code: Option<ReplyCode>,
    /// Its program and version.
    pub software: Option<String>,
    /// The reason of a Nack that came.
    pub nack: Option<String>,
}

impl Echo {
    /// Pings once.
    ///
    /// # Errors
    /// If the connection to the forwarder is lost.
    pub async fn once(
        client: &Client,
        target: &NameBuf,
        sequence: u64,
        timeout: Duration,
    ) -> Result<Self, ExpressError> {
        let lifetime_ms = timeout.as_millis() as u64;
        let request = ProbeRequest { lifetime_ms, ..ProbeRequest::new(ProbeKind::Ping, target.clone()) };
        let echo = Echo { sequence, rtt_ms: None, router: None, code: None, software: None, nack: None };
        match client.probe(&request).await {
            Ok(answer) => {
                let rtt_ms = Some(answer.rtt.as_secs_f64() * 1000.0);
                let Some(ProbeReply { sender, code, software, .. }) = answer.reply else {
                    return Ok(Echo { rtt_ms, ..echo });
                };
                Ok(Echo { rtt_ms, router: Some(sender.to_string()), code: Some(code), software, ..echo })
            }
            Err(ExpressError::Nack(reason)) => Ok(Echo { nack: Some(reason.to_string()), ..echo }),
            Err(ExpressError::Timeout(_)) => Ok(echo),
            Err(error) => Err(error),
        }
    }

    /// In words.
    pub fn text(&self, target: &NameBuf) -> String {
        let Echo { sequence, rtt_ms, router, code, nack, .. } = self;
        let who = router.as_deref().unwrap_or("an application");
        let what = match code {
            Some(ReplyCode::Forwarder) => "it is the target".to_owned(),
            Some(ReplyCode::Application) => "an application there serves the name".to_owned(),
            Some(ReplyCode::Object) => "the Data is in its Content Store".to_owned(),
            Some(ReplyCode::HopLimit) => "the HopLimit ended there".to_owned(),
            None => "it answers any name".to_owned(),
        };
        match (rtt_ms, nack) {
            (Some(rtt_ms), _) => format!("answer from {who}: seq={sequence} time={rtt_ms:.3} ms ({what})"),
            (None, Some(reason)) => format!("nack for {target}: seq={sequence} reason={reason}"),
            (None, None) => format!("timeout for {target}: seq={sequence}"),
        }
    }
}
