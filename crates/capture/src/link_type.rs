//! Types of links, by the numbers of the registry at tcpdump.org, and what a frame of each carries.

/// Ethernet.
pub const ETHERNET: u16 = 1;
/// PPP.
pub const PPP: u16 = 9;
/// IP packets without a link header.
pub const RAW: u16 = 101;
/// "Cooked" frames of Linux: a header of the same form for every kind of link.
pub const LINUX_SLL: u16 = 113;

/// EtherTypes.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86DD;
    /// NDN.
    pub const NDN: u16 = 0x8624;
    /// NDN as ndnSIM has it.
    pub const NDNSIM: u16 = 0x7777;
}

/// Names and explanations, as libpcap has them.
const NAMES: [(u16, &str, &str); 9] = [
    (0, "NULL", "BSD loopback"),
    (ETHERNET, "EN10MB", "Ethernet"),
    (PPP, "PPP", "PPP"),
    (RAW, "RAW", "Raw IP"),
    (105, "IEEE802_11", "802.11"),
    (LINUX_SLL, "LINUX_SLL", "Linux cooked v1"),
    (127, "IEEE802_11_RADIO", "802.11 plus radiotap header"),
    (228, "IPV4", "Raw IPv4"),
    (276, "LINUX_SLL2", "Linux cooked v2"),
];

/// `EN10MB (Ethernet)`; the number, if it has no name here.
pub fn name(link: u16) -> String {
    let named = NAMES.iter().find(|(number, ..)| *number == link);
    named.map_or_else(|| link.to_string(), |(_, name, words)| format!("{name} ({words})"))
}

/// Why nothing can be said of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It ends within the header of its link.
    Truncated,
    /// The link is of a type that is not known here.
    UnknownLink,
}

/// The EtherType of what a frame carries, and its bytes. The protocol numbers of PPP stand for themselves, except those
/// of IP.
///
/// # Errors
/// If the frame is too short, or of a link that is not known here.
pub fn network(link: u16, frame: &[u8]) -> Result<(u16, &[u8]), Unreadable> {
    let behind = |type_at: usize| match frame.split_at_checked(type_at + 2) {
        Some((header, rest)) => Ok((u16::from_be_bytes([header[type_at], header[type_at + 1]]), rest)),
        None => Err(Unreadable::Truncated),
    };
    match link {
        ETHERNET => behind(12),
        LINUX_SLL => behind(14),
        // As libpcap, which takes the framing of HDLC for granted.
        PPP => behind(2).map(|(protocol, rest)| match protocol {
            0x0021 => (ethertype::IPV4, rest),
            0x0057 => (ethertype::IPV6, rest),
            other => (other, rest),
        }),
        _ => Err(Unreadable::UnknownLink),
    }
}

/// The protocol of a PPP frame, with or without the framing of HDLC (RFC 1661, RFC 1662), and its bytes.
///
/// # Errors
/// If the frame is too short.
pub fn ppp(frame: &[u8]) -> Result<(u16, &[u8]), Unreadable> {
    let frame = frame.strip_prefix(&[0xFF, 0x03]).unwrap_or(frame);
    match frame {
        // An odd number is the whole number.
        [low, _, ..] if low & 1 == 1 => Ok((u16::from(*low), &frame[1..])),
        [high, low, rest @ ..] => Ok((u16::from_be_bytes([*high, *low]), rest)),
        _ => Err(Unreadable::Truncated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_apart() {
        let ethernet = [&[0; 12][..], &[0x86, 0x24, 5, 0]].concat();
        assert_eq!(network(ETHERNET, &ethernet), Ok((ethertype::NDN, &[5, 0][..])));
        assert_eq!(network(ETHERNET, &ethernet[..13]), Err(Unreadable::Truncated));
        assert_eq!(network(LINUX_SLL, &[&[0; 14][..], &[8, 0, 1]].concat()), Ok((ethertype::IPV4, &[1][..])));
        assert_eq!(network(PPP, &[0xFF, 3, 0, 0x21, 0x45]), Ok((ethertype::IPV4, &[0x45][..])));
        assert_eq!(network(PPP, &[0xFF, 3]), Err(Unreadable::Truncated));
        assert_eq!(ppp(&[0x57, 0x60]), Ok((0x57, &[0x60][..])), "a compressed number");
        assert_eq!(ppp(&[0xFF, 3, 0, 0x57, 1]), Ok((0x57, &[1][..])));
        assert_eq!(ppp(&[0xFF, 3]), Err(Unreadable::Truncated));
        assert_eq!(network(RAW, &ethernet), Err(Unreadable::UnknownLink));
        assert_eq!(name(ETHERNET), "EN10MB (Ethernet)");
        assert_eq!(name(147), "147");
    }
}
