//! Bits per second as people write them: `1000000`, `10 Mbit/s`, `2.5Gbit/s`.

use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::str::FromStr;

/// Units, and how many bits per second one is.
const UNITS: [(&str, f64); 4] = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];

/// A rate of bits, at least one per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRate(pub u64);

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, scale) = UNITS
            .iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?.trim_end(), *scale)))
            .unwrap_or((text, 1.0));
        let wrong = || format!("{text:?} is no rate: write bits per second, or a number and kbit/s, Mbit/s or Gbit/s");
        let bits_per_s = number.parse::<f64>().map_err(|_| wrong())? * scale;
        if !(1.0..=1e15).contains(&bits_per_s) {
            return Err(format!("{text:?}: a bandwidth is at least a bit per second"));
        }
        Ok(BitRate(bits_per_s as u64))
    }
}

impl<'de> Deserialize<'de> for BitRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = BitRate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bits per second, for example 1000000 or \"10 Mbit/s\"")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<BitRate, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<BitRate, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<BitRate, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<BitRate, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_or_none() {
        let rates = ["1000", "10 Mbit/s", "2.5Gbit/s", "64 kbit/s", "7bit/s"].map(|text| text.parse::<BitRate>());
        assert_eq!(rates.map(|rate| rate.map(|rate| rate.0)), [1_000, 10_000_000, 2_500_000_000, 64_000, 7].map(Ok));
        for wrong in ["fast", "0", "-1 Mbit/s", "1 MB/s"] {
            assert!(wrong.parse::<BitRate>().is_err(), "{wrong}");
        }
    }
}
