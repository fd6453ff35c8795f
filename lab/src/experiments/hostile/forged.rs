//! Forged Data: how much of the Data that an attacker sends instead of a producer reaches a consumer?
//!
//! A producer answers each Interest after [`PRODUCING`], so that there is time to forge. A consumer asks for each name
//! that the attack forges, and then for each again, which the Content Store answers. Then it asks for the status, whose
//! dataset is forged too. All answers are compared with those of the true producers.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::Context as _;
use namewire_packet::{Data, DataBuilder, Interest, InterestBuilder, NameBuf, Nonce, lp::LpPacket};

use super::read_element;
use crate::attack::{FORGED_NAMES, FORGED_PREFIX};
use crate::router_control::RouterControl;
use crate::router_process::RouterProcess;

/// How long the producer takes.
const PRODUCING: Duration = Duration::from_millis(2);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the status is asked for.
const STATUS_ASKED: u64 = 50;
const TRUE_CONTENT: &[u8] = b"true";

/// The number of answers that are not their producer's.
pub(super) fn accepted(router: &RouterProcess) -> anyhow::Result<u64> {
    let mut control = RouterControl::connect(router.socket())?;
    control.register(FORGED_PREFIX.parse()?, None)?;
    let mut producer = control.into_stream()?;
    std::thread::spawn(move || {
        while let Ok(asked) = read_element(|bytes| producer.read(bytes)) {
            let asked = LpPacket::parse(&asked).ok().and_then(|packet| packet.fragment).unwrap_or(&asked);
            let Ok(interest) = Interest::parse(asked) else { continue };
            std::thread::sleep(PRODUCING);
            let answer = DataBuilder::new(interest.name()).freshness_ms(3_600_000).content(TRUE_CONTENT).sign_digest();
            if producer.write_all(&answer).is_err() {
                return;
            }
        }
    });
    let mut consumer = UnixStream::connect(router.socket())?;
    consumer.set_read_timeout(Some(PATIENCE))?;
    let mut accepted = 0;
    for number in (0..FORGED_NAMES).chain(0..FORGED_NAMES) {
        let name: NameBuf = format!("{FORGED_PREFIX}/{number}").parse()?;
        consumer.write_all(&InterestBuilder::new(name).nonce(Nonce::from_u32(number as u32)).build())?;
        let answer = read_element(|bytes| consumer.read(bytes)).context("an honest Interest got no answer")?;
        let data = Data::parse(&answer).map_err(|error| anyhow::anyhow!("no Data: {error:?}"))?;
        accepted += u64::from(data.content() != TRUE_CONTENT);
    }
    for _ in 0..STATUS_ASKED {
        accepted += u64::from(RouterControl::connect(router.socket())?.status().is_err());
    }
    Ok(accepted)
}
