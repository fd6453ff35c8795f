//! Control messages, as bytes and as values. No socket.
//!
//! Source: `drivers/net/memif/memif.h` of DPDK. Each message has 128 bytes. Numbers have the byte order of the host and
//! no padding:
//!
//! ```text
//!   0  type: u16       1 ack, 2 hello, 3 init, 4 add_region, 5 add_ring, 6 connect, 7 connected, 8 disconnect
//!   2  hello           name [32], min_version u16, max_version u16, max_region u16, max_m2s_ring u16,
//!                      max_s2m_ring u16, max_log2_ring_size u8
//!      init            version u16, id u32, mode u8, secret [24], name [32]
//!      add_region      index u16, size u64
//!      add_ring        flags u16 (1: S2M), index u16, region u16, offset u32, log2_ring_size u8, private_hdr_size u16
//!      connect(ed)     if_name [32]
//!      disconnect      code u32, string [96]
//! ```
//!
//! The "max" values of hello are the highest index, so 0 means one. Texts end at a zero byte or with their field. A
//! decoded text has printable ASCII only: other bytes become `?`. So it is safe in a log.

/// Bytes of each message.
pub(crate) const MESSAGE_BYTES: usize = 128;

/// Version 2.0.
pub(crate) const VERSION: u16 = 2 << 8;

/// Frames are Ethernet frames.
pub(crate) const MODE_ETHERNET: u8 = 0;

const NAME_BYTES: usize = 32;
pub(crate) const SECRET_BYTES: usize = 24;
const REASON_BYTES: usize = 96;
const FLAG_S2M: u16 = 1;

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) name: String,
    pub(crate) version_min: u16,
    pub(crate) version_max: u16,
    /// Highest index of a region.
    pub(crate) region_max: u16,
    /// Highest index of a ring to the client.
    pub(crate) m2s_ring_max: u16,
    /// Highest index of a ring to the server.
    pub(crate) s2m_ring_max: u16,
    pub(crate) ring_log2_max: u8,
}

/// Which interface a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Init {
    pub(crate) version: u16,
    pub(crate) id: u32,
    pub(crate) mode: u8,
    pub(crate) secret: [u8; SECRET_BYTES],
    pub(crate) name: String,
}

/// Where a ring is. Its doorbell comes with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddRing {
    /// True for the ring from client to server.
    pub(crate) is_s2m: bool,
    pub(crate) index: u16,
    pub(crate) region: u16,
    pub(crate) offset: u32,
    pub(crate) ring_log2: u8,
    pub(crate) private_header_bytes: u16,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Ack,
    Hello(Hello),
    Init(Init),
    AddRegion { index: u16, bytes: u64 },
    AddRing(AddRing),
    Connect { name: String },
    Connected { name: String },
    Disconnect { code: u32, reason: String },
}

impl Message {
    /// The message in these bytes. `None` if they are not 128, or the type is unknown.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
        if bytes.len() != MESSAGE_BYTES {
            return None;
        }
        let mut reader = Reader { rest: bytes };
        Some(match u16::from_ne_bytes(reader.take()?) {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: reader.text::<NAME_BYTES>()?,
                version_min: u16::from_ne_bytes(reader.take()?),
                version_max: u16::from_ne_bytes(reader.take()?),
                region_max: u16::from_ne_bytes(reader.take()?),
                m2s_ring_max: u16::from_ne_bytes(reader.take()?),
                s2m_ring_max: u16::from_ne_bytes(reader.take()?),
                ring_log2_max: u8::from_ne_bytes(reader.take()?),
            }),
            3 => Message::Init(Init {
                version: u16::from_ne_bytes(reader.take()?),
                id: u32::from_ne_bytes(reader.take()?),
                mode: u8::from_ne_bytes(reader.take()?),
                secret: reader.take()?,
                name: reader.text::<NAME_BYTES>()?,
            }),
            4 => Message::AddRegion {
                index: u16::from_ne_bytes(reader.take()?),
                bytes: u64::from_ne_bytes(reader.take()?),
            },
            5 => Message::AddRing(AddRing {
                is_s2m: u16::from_ne_bytes(reader.take()?) & FLAG_S2M != 0,
                index: u16::from_ne_bytes(reader.take()?),
                region: u16::from_ne_bytes(reader.take()?),
                offset: u32::from_ne_bytes(reader.take()?),
                ring_log2: u8::from_ne_bytes(reader.take()?),
                private_header_bytes: u16::from_ne_bytes(reader.take()?),
            }),
            6 => Message::Connect { name: reader.text::<NAME_BYTES>()? },
            7 => Message::Connected { name: reader.text::<NAME_BYTES>()? },
            8 => {
                Message::Disconnect { code: u32::from_ne_bytes(reader.take()?), reason: reader.text::<REASON_BYTES>()? }
            }
            _ => return None,
        })
    }

    /// The bytes of the message. A text that is too long for its field is cut.
    pub(crate) fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut writer = Writer { bytes: [0; MESSAGE_BYTES], at: 0 };
        match self {
            Message::Ack => writer.put(&1u16.to_ne_bytes()),
            Message::Hello(hello) => {
                writer.put(&2u16.to_ne_bytes());
                writer.text(&hello.name, NAME_BYTES);
                let numbers = [hello.version_min, hello.version_max, hello.region_max];
                for number in numbers.into_iter().chain([hello.m2s_ring_max, hello.s2m_ring_max]) {
                    writer.put(&number.to_ne_bytes());
                }
                writer.put(&[hello.ring_log2_max]);
            }
            Message::Init(init) => {
                writer.put(&3u16.to_ne_bytes());
                writer.put(&init.version.to_ne_bytes());
                writer.put(&init.id.to_ne_bytes());
                writer.put(&[init.mode]);
                writer.put(&init.secret);
                writer.text(&init.name, NAME_BYTES);
            }
            Message::AddRegion { index, bytes } => {
                writer.put(&4u16.to_ne_bytes());
                writer.put(&index.to_ne_bytes());
                writer.put(&bytes.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                writer.put(&5u16.to_ne_bytes());
                writer.put(&(if ring.is_s2m { FLAG_S2M } else { 0 }).to_ne_bytes());
                writer.put(&ring.index.to_ne_bytes());
                writer.put(&ring.region.to_ne_bytes());
                writer.put(&ring.offset.to_ne_bytes());
                writer.put(&[ring.ring_log2]);
                writer.put(&ring.private_header_bytes.to_ne_bytes());
            }
            Message::Connect { name } => {
                writer.put(&6u16.to_ne_bytes());
                writer.text(name, NAME_BYTES);
            }
            Message::Connected { name } => {
                writer.put(&7u16.to_ne_bytes());
                writer.text(name, NAME_BYTES);
            }
            Message::Disconnect { code, reason } => {
                writer.put(&8u16.to_ne_bytes());
                writer.put(&code.to_ne_bytes());
                writer.text(reason, REASON_BYTES);
            }
        }
        writer.bytes
    }
}

/// The bytes not yet decoded.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    /// A text in a field of `N` bytes.
    fn text<const N: usize>(&mut self) -> Option<String> {
        let field = self.take::<N>()?;
        let text = field.iter().take_while(|byte| **byte != 0);
        Some(text.map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' }).collect())
    }
}

/// The bytes encoded so far.
struct Writer {
    bytes: [u8; MESSAGE_BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }

    fn text(&mut self, text: &str, field_bytes: usize) {
        let end = self.at + field_bytes;
        let text = text.as_bytes();
        self.put(text.get(..field_bytes).unwrap_or(text));
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        "[ -~]{0,32}"
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let hello = (name(), any::<[u16; 5]>(), any::<u8>()).prop_map(|(name, n, ring_log2_max)| {
            let [version_min, version_max, region_max, m2s_ring_max, s2m_ring_max] = n;
            Message::Hello(Hello {
                name,
                version_min,
                version_max,
                region_max,
                m2s_ring_max,
                s2m_ring_max,
                ring_log2_max,
            })
        });
        let init = (any::<(u16, u32, u8)>(), any::<[u8; SECRET_BYTES]>(), name())
            .prop_map(|((version, id, mode), s, n)| Message::Init(Init { version, id, mode, secret: s, name: n }));
        let ring = any::<(bool, u16, u16, u32, u8, u16)>().prop_map(|(is_s2m, index, region, offset, log2, header)| {
            Message::AddRing(AddRing { is_s2m, index, region, offset, ring_log2: log2, private_header_bytes: header })
        });
        prop_oneof![
            Just(Message::Ack),
            hello,
            init,
            any::<(u16, u64)>().prop_map(|(index, bytes)| Message::AddRegion { index, bytes }),
            ring,
            name().prop_map(|name| Message::Connect { name }),
            name().prop_map(|name| Message::Connected { name }),
            (any::<u32>(), "[ -~]{0,96}").prop_map(|(code, reason)| Message::Disconnect { code, reason }),
        ]
    }

    proptest! {
        #[test]
        fn a_message_survives_its_bytes(message in any_message()) {
            prop_assert_eq!(Message::decode(&message.encode()), Some(message));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10) {
            crate::fuzzing::message(&bytes);
            let mut whole = [0; MESSAGE_BYTES];
            whole.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
            whole[..2].copy_from_slice(&u16::from(kind).to_ne_bytes());
            crate::fuzzing::message(&whole);
            prop_assert_eq!(Message::decode(&whole).is_some(), (1..=8).contains(&kind));
        }
    }

    /// The offsets of DPDK's packed structs, counted by hand.
    #[test]
    fn fields_are_where_dpdk_has_them() {
        let ring = AddRing { is_s2m: true, index: 2, region: 3, offset: 4, ring_log2: 5, private_header_bytes: 6 };
        let bytes = Message::AddRing(ring).encode();
        assert_eq!((bytes[2], bytes[4], bytes[6], bytes[8], bytes[12], bytes[13]), (1, 2, 3, 4, 5, 6));
        let secret = [7; SECRET_BYTES];
        let bytes = Message::Init(Init { version: VERSION, id: 8, mode: 9, secret, name: "n".into() }).encode();
        assert_eq!((&bytes[2..4], bytes[4], bytes[8]), (&VERSION.to_ne_bytes()[..], 8, 9));
        assert_eq!((bytes[9], bytes[32], bytes[33]), (7, 7, b'n'));
        let bytes = Message::Disconnect { code: 1, reason: "x".repeat(200) }.encode();
        assert_eq!((bytes[2], bytes[6], bytes[101], bytes[102]), (1, b'x', b'x', 0));
    }

    #[test]
    fn texts_are_printable() {
        let mut bytes = Message::Connect { name: String::new() }.encode();
        bytes[2..7].copy_from_slice(b"a\x1b\xffb\n");
        assert_eq!(Message::decode(&bytes), Some(Message::Connect { name: "a??b?".into() }));
    }
}
