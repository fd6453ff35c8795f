//! Quantities as people read them: `64.0 MiB`, `1 min 2 s`, `98.7 Mbit/s`.
//!
//! Sizes are in binary units everywhere, because the limits for them are. Rates are in decimal units.

use std::time::Duration;

/// Bytes: `19.5 MiB`.
pub fn bytes(count: u64) -> String {
    divided(count as f64, 1024.0, ["Ki", "Mi", "Gi", "Ti"], "B")
}

/// Bits per second, decimal units, of `bytes` in `elapsed`.
pub fn bit_rate(bytes: u64, elapsed: Duration) -> String {
    scaled(bits_per_second(bytes, elapsed), "bit/s")
}

/// The same as a number; 0 if no time passed.
pub fn bits_per_second(bytes: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { bytes as f64 * 8.0 / elapsed.as_secs_f64() }
}

/// A number with a prefix for thousands, millions and so on, and its unit, if it has one.
pub fn scaled(number: f64, unit: &str) -> String {
    divided(number, 1000.0, ["k", "M", "G", "T"], unit)
}

fn divided(mut number: f64, step: f64, prefixes: [&str; 4], unit: &str) -> String {
    let mut prefix = "";
    for next in prefixes {
        if number < step {
            break;
        }
        number /= step;
        prefix = next;
    }
    let text = if prefix.is_empty() { format!("{number:.0} {unit}") } else { format!("{number:.1} {prefix}{unit}") };
    text.trim_end().to_owned()
}

/// Time of day (UTC) with this number of digits after the second: `01:02:03.004`.
pub fn time_of_day(time_ns: u64, digits: usize) -> String {
    let (seconds, nanos) = (time_ns / 1_000_000_000 % 86_400, format!("{:09}", time_ns % 1_000_000_000));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{}", &nanos[..digits])
}

/// A time span of milliseconds in its two largest units: `1 d 3 h`, `21 s`, `350 ms`.
pub fn ms(span_ms: u64) -> String {
    let seconds = span_ms / 1000;
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{span_ms} ms"),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(20_480_000), "19.5 MiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(bit_rate(1_250_000, Duration::from_secs(1)), "10.0 Mbit/s");
    }

    #[test]
    fn spans() {
        for (ms, text) in [
            (350, "350 ms"),
            (21_000, "21 s"),
            (62_000, "1 min 2 s"),
            (3_720_000, "1 h 2 min"),
            (97_200_000, "1 d 3 h"),
        ] {
            assert_eq!(super::ms(ms), text);
        }
    }
}
