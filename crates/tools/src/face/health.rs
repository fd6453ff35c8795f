//! How well the peer of a face answers, and since when the face is up or down, in words.

use crate::quantity;
use namewire_packet::nfd::{FaceHealth, FaceRates};
use std::time::{SystemTime, UNIX_EPOCH};

/// What it carried lately, one way: `1.2 Mbit/s`.
pub(super) fn rate_text(health: &FaceHealth, bits_per_s: fn(&FaceRates) -> f64) -> Option<String> {
    health.recent.map(|recent| quantity::scaled(bits_per_s(&recent.rates()), "bit/s"))
}

/// Rates and answers of the last seconds.
pub(super) fn recent_text(health: &FaceHealth) -> Option<String> {
    let (recent, rates) = (health.recent?, health.recent?.rates());
    let rate = |packets: f64, bits| format!("{packets:.0} packets/s, {}", quantity::scaled(bits, "bit/s"));
    let avoided = match recent.avoided {
        0 => String::new(),
        count => format!(", {count} sent elsewhere because it is silent"),
    };
    Some(format!(
        "in {}; out {}; {} Interests answered, {} not{avoided} (of {})",
        rate(rates.in_packets_per_s, rates.in_bits_per_s),
        rate(rates.out_packets_per_s, rates.out_bits_per_s),
        recent.answered,
        recent.unanswered,
        quantity::ms(recent.span_ms)
    ))
}

/// Half of its answers come within this time: `1.5 ms`.
pub(super) fn median_text(health: &FaceHealth) -> Option<String> {
    health.median_us.map(ms_text)
}

/// The share of Interests without an answer: `2 %`.
pub(super) fn loss_text(health: &FaceHealth) -> Option<String> {
    health.loss().map(|loss| format!("{:.0} %", 100.0 * loss))
}

/// How long it has been as it is.
pub(super) fn since_text(health: &FaceHealth) -> String {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    format!("for {}", quantity::ms(now_ms.saturating_sub(health.since_ms)))
}

pub(super) fn answers_text(health: &FaceHealth) -> Option<String> {
    let (loss, last) = (loss_text(health)?, health.last_us.map(ms_text).unwrap_or_else(|| "-".to_owned()));
    let within = |part: &str, us: Option<u64>| us.map(|us| format!(", {part} within {}", ms_text(us)));
    let (half, most) = (within("half", health.median_us), within("99 %", health.p99_us));
    let (half, most) = (half.unwrap_or_default(), most.unwrap_or_default());
    let FaceHealth { answered, unanswered, .. } = health;
    Some(format!("{answered} Data{half}{most}, last {last}; {unanswered} Interests without ({loss})"))
}

fn ms_text(us: u64) -> String {
    format!("{} ms", us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{
        FaceId,
        nfd::{FaceRecent, FaceState},
    };

    const HEALTH: FaceHealth = FaceHealth {
        face: FaceId(300),
        since_ms: 0,
        answered: 98,
        unanswered: 2,
        last_us: Some(1234),
        median_us: Some(1000),
        p99_us: Some(20_000),
        recent: None,
    };

    #[test]
    fn answers_are_told_in_one_line() {
        let expected = "98 Data, half within 1 ms, 99 % within 20 ms, last 1.234 ms; 2 Interests without (2 %)";
        assert_eq!(answers_text(&HEALTH).as_deref(), Some(expected));
        let silent = FaceHealth { answered: 0, last_us: None, median_us: None, p99_us: None, ..HEALTH };
        assert_eq!(answers_text(&silent).as_deref(), Some("0 Data, last -; 2 Interests without (100 %)"));
        assert_eq!(answers_text(&FaceHealth { unanswered: 0, ..silent }), None);
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
        let with = |recent| FaceHealth { recent: Some(recent), ..HEALTH };
        let expected =
            "in 500 packets/s, 1.0 Mbit/s; out 10 packets/s, 800 bit/s; 90 Interests answered, 10 not (of 10 s)";
        assert_eq!(recent_text(&with(recent)).as_deref(), Some(expected));
        let text = recent_text(&with(FaceRecent { avoided: 7, ..recent })).expect("it is known");
        assert!(text.ends_with("10 not, 7 sent elsewhere because it is silent (of 10 s)"), "{text}");
        let state = |recent, state| FaceHealth::state_word(Some(&with(recent)), state);
        assert_eq!((state(recent, FaceState::Up), state(recent, FaceState::Down)), ("degraded", "down"));
        assert_eq!(state(FaceRecent { unanswered: 9, ..recent }, FaceState::Up), "up");
    }
}
