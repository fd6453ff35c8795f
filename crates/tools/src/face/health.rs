//! How a face answers, and since when it is up or down: what this router tells beside NFD's list of faces.

use crate::quantity;
use namewire_client::Client;
use namewire_packet::{
    FaceId,
    nfd::{FaceHealth, FaceRecent},
};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// See the module.
#[derive(Serialize)]
pub(super) struct Health {
    since_unix_ms: u64,
    /// Data for Interests sent there; estimated from a sample under load.
    answered: u64,
    /// Interests that expired without an answer.
    unanswered: u64,
    last_us: Option<u64>,
    median_us: Option<u64>,
    p99_us: Option<u64>,
    /// `None`: the forwarder has nothing to compare with.
    recent: Option<Recent>,
}

/// The last ten seconds.
#[derive(Serialize)]
struct Recent {
    span_ms: u64,
    in_packets_per_s: f64,
    in_bits_per_s: f64,
    out_packets_per_s: f64,
    out_bits_per_s: f64,
    answered: u64,
    unanswered: u64,
    avoided: u64,
    is_degraded: bool,
}

impl Recent {
    fn of(recent: &FaceRecent) -> Self {
        let per_s = |count: u64| count as f64 * 1000.0 / recent.span_ms.max(1) as f64;
        Recent {
            span_ms: recent.span_ms,
            in_packets_per_s: per_s(recent.in_packets),
            in_bits_per_s: 8.0 * per_s(recent.in_bytes),
            out_packets_per_s: per_s(recent.out_packets),
            out_bits_per_s: 8.0 * per_s(recent.out_bytes),
            answered: recent.answered,
            unanswered: recent.unanswered,
            avoided: recent.avoided,
            is_degraded: recent.is_degraded(),
        }
    }
}

/// The health of all faces; empty if the forwarder does not tell.
pub(super) async fn fetch(client: &Client) -> Vec<FaceHealth> {
    client.status_list("faces", "health").await.unwrap_or_default()
}

impl Health {
    pub(super) fn find(all: &[FaceHealth], face: FaceId) -> Option<Self> {
        all.iter().find(|health| health.face == face).map(|health| Health {
            since_unix_ms: health.since_ms,
            answered: health.answered,
            unanswered: health.unanswered,
            last_us: health.last_us,
            median_us: health.median_us,
            p99_us: health.p99_us,
            recent: health.recent.as_ref().map(Recent::of),
        })
    }

    /// Its peer lately left many Interests unanswered.
    pub(super) fn is_degraded(&self) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.is_degraded)
    }

    /// What it received lately: `1.2 Mbit/s`.
    pub(super) fn in_rate_text(&self) -> Option<String> {
        self.recent.as_ref().map(|recent| quantity::scaled(recent.in_bits_per_s, "bit/s"))
    }

    /// What it sent lately.
    pub(super) fn out_rate_text(&self) -> Option<String> {
        self.recent.as_ref().map(|recent| quantity::scaled(recent.out_bits_per_s, "bit/s"))
    }

    /// Rates and answers of the last seconds.
    pub(super) fn recent_text(&self) -> Option<String> {
        let recent = self.recent.as_ref()?;
        let rate = |packets: f64, bits| format!("{packets:.0} packets/s, {}", quantity::scaled(bits, "bit/s"));
        let avoided = match recent.avoided {
            0 => String::new(),
            count => format!(", {count} sent elsewhere because it is silent"),
        };
        Some(format!(
            "in {}; out {}; {} Interests answered, {} not{avoided} (of {})",
            rate(recent.in_packets_per_s, recent.in_bits_per_s),
            rate(recent.out_packets_per_s, recent.out_bits_per_s),
            recent.answered,
            recent.unanswered,
            quantity::ms(recent.span_ms)
        ))
    }

    /// Half of its answers come within this time: `1.5 ms`.
    pub(super) fn median_text(&self) -> Option<String> {
        self.median_us.map(ms_text)
    }

    /// The share of Interests without an answer: `2 %`.
    pub(super) fn loss_text(&self) -> Option<String> {
        let all = self.answered + self.unanswered;
        (all > 0).then(|| format!("{:.0} %", 100.0 * self.unanswered as f64 / all as f64))
    }

    /// How long it has been as it is.
    pub(super) fn since_text(&self) -> String {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        format!("for {}", quantity::ms(now_ms.saturating_sub(self.since_unix_ms)))
    }

    pub(super) fn answers_text(&self) -> Option<String> {
        let (loss, last) = (self.loss_text()?, self.last_us.map(ms_text).unwrap_or_else(|| "-".to_owned()));
        let within = |part: &str, us: Option<u64>| us.map(|us| format!(", {part} within {}", ms_text(us)));
        let (half, most) = (within("half", self.median_us), within("99 %", self.p99_us));
        let (half, most) = (half.unwrap_or_default(), most.unwrap_or_default());
        Some(format!("{} Data{half}{most}, last {last}; {} Interests without ({loss})", self.answered, self.unanswered))
    }
}

fn ms_text(us: u64) -> String {
    format!("{} ms", us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_in_one_line() {
        let health = FaceHealth {
            face: FaceId(300),
            since_ms: 0,
            answered: 98,
            unanswered: 2,
            last_us: Some(1234),
            median_us: Some(1000),
            p99_us: Some(20_000),
            recent: None,
        };
        let shown = Health::find(&[health], FaceId(300)).expect("it is there");
        let expected = "98 Data, half within 1 ms, 99 % within 20 ms, last 1.234 ms; 2 Interests without (2 %)";
        assert_eq!(shown.answers_text().as_deref(), Some(expected));
        let silent = FaceHealth { answered: 0, last_us: None, median_us: None, p99_us: None, ..health };
        let shown = Health::find(&[silent], FaceId(300)).expect("it is there");
        assert_eq!(shown.answers_text().as_deref(), Some("0 Data, last -; 2 Interests without (100 %)"));
        let unused = FaceHealth { unanswered: 0, ..silent };
        assert_eq!(Health::find(&[unused], FaceId(300)).expect("it is there").answers_text(), None);
        assert!(Health::find(&[health], FaceId(301)).is_none());
    }

    #[test]
    fn the_last_seconds_are_told_as_rates() {
        let recent = FaceRecent {
            span_ms: 10_000,
            in_packets: 5000,
            in_bytes: 1_250_000,
            out_packets: 100,
            out_bytes: 1000,
            answered: 90,
            unanswered: 10,
            avoided: 0,
        };
        let health = FaceHealth {
            face: FaceId(300),
            since_ms: 0,
            answered: 90,
            unanswered: 10,
            last_us: None,
            median_us: None,
            p99_us: None,
            recent: Some(recent),
        };
        let shown = Health::find(&[health], FaceId(300)).expect("it is there");
        let expected =
            "in 500 packets/s, 1.0 Mbit/s; out 10 packets/s, 800 bit/s; 90 Interests answered, 10 not (of 10 s)";
        assert_eq!(shown.recent_text().as_deref(), Some(expected));
        let avoided = FaceHealth { recent: Some(FaceRecent { avoided: 7, ..recent }), ..health };
        let text = Health::find(&[avoided], FaceId(300)).and_then(|health| health.recent_text()).expect("it is there");
        assert!(text.ends_with("10 not, 7 sent elsewhere because it is silent (of 10 s)"), "{text}");
        assert!(shown.is_degraded());
        let better = FaceHealth { recent: Some(FaceRecent { unanswered: 9, ..recent }), ..health };
        assert!(!Health::find(&[better], FaceId(300)).expect("it is there").is_degraded());
    }
}
