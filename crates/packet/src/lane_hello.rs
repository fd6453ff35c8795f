//! LaneHello: the field by which the two ends of a UDP link agree on lanes (decision 0019).
//!
//! It is the only field of an LpPacket without Fragment. Its type is in the range that other forwarders ignore (§1.2 of
//! NDNLPv2), so they drop the packet as any idle one.
//!
//! ```text
//!  0        1         9      17      18     34
//!  version  instance  echo   hears   key    ports, each 2          all numbers big-endian
//! ```

use crate::tlv::{self, types};

/// Most lanes of one end.
pub const LANES_MAX: usize = 64;

/// The version that this program speaks. It covers the hash of names, too.
const VERSION: u8 = 1;

/// Bytes before the ports.
const FIXED_BYTES: usize = 34;

/// What one end says of its lanes.
#[derive(Clone, PartialEq, Eq)]
pub struct LaneHello {
    /// Random number of this end's face. Never 0.
    pub instance: u64,
    /// The instance that the other end told last; 0: none yet.
    pub echo: u64,
    /// Each lane of this end has heard each lane of the other end.
    pub hears: bool,
    /// The key by which names find their home at this end.
    pub key: [u8; 16],
    /// The UDP port of each lane. A name's home is the number of its lane.
    pub ports: Vec<u16>,
}

/// Why a LaneHello is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneHelloError {
    /// It is too short, or ends in half a port.
    #[error("wrong length")]
    Length,
    /// Another version.
    #[error("unknown version")]
    Version,
    /// The instance is 0, or `hears` is neither 0 nor 1.
    #[error("a number that cannot be")]
    Number,
    /// No lane, or more than [`LANES_MAX`].
    #[error("too few or too many lanes")]
    Lanes,
    /// A port is 0, or there twice.
    #[error("a port that cannot be")]
    Port,
}

impl LaneHello {
    /// Reads the value of the field.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(value: &[u8]) -> Result<Self, LaneHelloError> {
        let (fixed, ports) = value.split_first_chunk::<FIXED_BYTES>().ok_or(LaneHelloError::Length)?;
        if fixed[0] != VERSION {
            return Err(LaneHelloError::Version);
        }
        let number = |at: usize| fixed[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let (instance, echo, hears) = (number(1), number(9), fixed[17]);
        if instance == 0 || hears > 1 {
            return Err(LaneHelloError::Number);
        }
        let (ports, rest) = ports.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(LaneHelloError::Length);
        }
        if !(1..=LANES_MAX).contains(&ports.len()) {
            return Err(LaneHelloError::Lanes);
        }
        let ports: Vec<u16> = ports.iter().map(|port| u16::from_be_bytes(*port)).collect();
        let is_odd = |(place, port): (usize, &u16)| *port == 0 || ports[..place].contains(port);
        if ports.iter().enumerate().any(is_odd) {
            return Err(LaneHelloError::Port);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&fixed[18..]);
        Ok(LaneHello { instance, echo, hears: hears == 1, key, ports })
    }

    /// A whole frame that carries it.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut value = vec![VERSION];
        value.extend(self.instance.to_be_bytes());
        value.extend(self.echo.to_be_bytes());
        value.push(u8::from(self.hears));
        value.extend(self.key);
        self.ports.iter().for_each(|port| value.extend(port.to_be_bytes()));
        let mut frame = Vec::new();
        tlv::write_nested(&mut frame, types::LP_PACKET, |out| tlv::write_tlv(out, types::LP_LANE_HELLO, &value));
        frame
    }
}

/// Without the key, which should be in no log.
impl std::fmt::Debug for LaneHello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LaneHello { instance, echo, hears, ports, .. } = self;
        write!(f, "LaneHello({instance:x}, echo {echo:x}, hears {hears}, ports {ports:?})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lp::LpPacket;

    fn hello(ports: Vec<u16>) -> LaneHello {
        LaneHello { instance: 7, echo: 1 << 60, hears: true, key: [9; 16], ports }
    }

    fn value(hello: &LaneHello) -> Vec<u8> {
        LpPacket::parse(&hello.to_frame()).unwrap().lane_hello.unwrap().to_vec()
    }

    #[test]
    fn a_hello_comes_back_from_its_frame() {
        for count in [1, 2, LANES_MAX as u16] {
            let hello = hello((1..=count).collect());
            let frame = hello.to_frame();
            let packet = LpPacket::parse(&frame).unwrap();
            assert_eq!(packet.fragment, None);
            assert_eq!(LaneHello::parse(packet.lane_hello.unwrap()), Ok(hello));
        }
    }

    #[test]
    fn a_hello_that_cannot_be_is_refused_with_its_reason() {
        let sound = value(&hello(vec![5000, 5001]));
        for cut in 0..sound.len() {
            let error = if cut == FIXED_BYTES { LaneHelloError::Lanes } else { LaneHelloError::Length };
            let is_sound = cut == FIXED_BYTES + 2;
            assert_eq!(LaneHello::parse(&sound[..cut]).err(), (!is_sound).then_some(error), "{cut}");
        }
        let with = |at: usize, bytes: &[u8]| {
            let mut value = sound.clone();
            value[at..at + bytes.len()].copy_from_slice(bytes);
            LaneHello::parse(&value).unwrap_err()
        };
        assert_eq!(with(0, &[2]), LaneHelloError::Version);
        assert_eq!(with(1, &[0; 8]), LaneHelloError::Number);
        assert_eq!(with(17, &[2]), LaneHelloError::Number);
        assert_eq!(with(34, &[0, 0]), LaneHelloError::Port);
        assert_eq!(with(36, &5000_u16.to_be_bytes()), LaneHelloError::Port, "twice");
        let many = value(&hello((1..=LANES_MAX as u16 + 1).collect()));
        assert_eq!(LaneHello::parse(&many), Err(LaneHelloError::Lanes));
    }
}
