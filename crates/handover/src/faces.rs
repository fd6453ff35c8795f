//! Faces as the line between two programs says them, and back.

use crate::messages::{Channel, Credentials, Face};
use namewire_faces::{
    FaceInfo, HandedChannel, HandedFace, LinkCounters, LinkPolicy, PeerCredentials, StreamRest, StreamSocket,
};
use namewire_packet::{
    FaceId, MAX_PACKET_BYTES,
    nfd::{FacePersistency, FaceScope, LinkType},
};
use std::{
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
};

/// A face on the line.
#[derive(Debug)]
pub struct OnLine {
    /// What it is.
    pub face: Face,
    /// Unread input, then unsent output.
    pub bytes: Vec<u8>,
    /// Its socket, if it has one of its own.
    pub descriptor: Option<OwnedFd>,
}

/// What control knows of a face beside what its worker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceFacts {
    /// Its worker.
    pub worker: u8,
    /// PIT tokens may leave through it.
    pub has_tokens: bool,
    /// Since when it is up or down, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// It has no connection.
    pub is_down: bool,
}

/// The message about a face; `None` for one that cannot be handed over.
pub fn to_line(handed: HandedFace, facts: FaceFacts) -> Option<OnLine> {
    let HandedFace { face, info, policy, local_fields, counters, next_sequence, silent_ns, speaks_lp, channel } =
        handed;
    let is_group = info.link_type != LinkType::PointToPoint;
    let (channel, bytes, descriptor) = match channel {
        HandedChannel::Stream(socket, rest) => {
            let (is_tcp, descriptor): (bool, OwnedFd) = match socket {
                StreamSocket::Unix(socket) => (false, socket.into()),
                StreamSocket::Tcp(socket) => (true, socket.into()),
            };
            let StreamRest { is_new, mut input, has_backlog, output } = rest;
            let channel = Channel::Stream { is_tcp, is_new, has_backlog, input: input.len() as u64 };
            input.extend(output);
            (channel, input, Some(descriptor))
        }
        HandedChannel::Down => (Channel::Down, Vec::new(), None),
        HandedChannel::Udp { socket, local, remote } => {
            let channel = Channel::Udp { local: local.to_string(), remote: remote.to_string() };
            (channel, Vec::new(), Some(socket.into()))
        }
        HandedChannel::UdpOfListener { listener, remote, from } => {
            let from = from.map(|address| address.to_string());
            let channel = Channel::UdpOfListener { listener: listener.to_string(), remote: remote.to_string(), from };
            (channel, Vec::new(), None)
        }
        HandedChannel::OpenedAnew => (if is_group { Channel::Group } else { Channel::Station }, Vec::new(), None),
        HandedChannel::Memory => return None,
    };
    let face = Face {
        face: face.0,
        worker: facts.worker,
        remote: info.remote.to_string(),
        local: info.local.to_string(),
        is_local: info.scope == FaceScope::Local,
        persistency: info.persistency.code(),
        link_type: info.link_type.code(),
        mtu: info.mtu as u64,
        credentials: info.credentials.map(|PeerCredentials { uid, gid, groups, pid }| Credentials {
            uid,
            gid,
            groups,
            pid,
        }),
        local_fields,
        reliability: policy.reliability,
        congestion_marking: policy.congestion_marking,
        marking_interval_ns: policy.marking_interval_ns,
        marking_threshold_bytes: policy.marking_threshold_bytes,
        has_tokens: facts.has_tokens,
        speaks_lp,
        next_sequence,
        counters: counters.all_named().map(|(name, count)| (name.to_owned(), count)).collect(),
        silent_ms: silent_ns / 1_000_000,
        since_unix_ms: facts.since_unix_ms,
        is_down: facts.is_down,
        channel,
    };
    Some(OnLine { face, bytes, descriptor })
}

/// The face that a message describes; `None` if it describes none.
pub fn of_line(OnLine { face: message, mut bytes, descriptor }: OnLine) -> Option<(HandedFace, FaceFacts)> {
    let info = FaceInfo {
        remote: message.remote.parse().ok()?,
        local: message.local.parse().ok()?,
        scope: if message.is_local { FaceScope::Local } else { FaceScope::NonLocal },
        persistency: FacePersistency::from_code(message.persistency)?,
        link_type: LinkType::from_code(message.link_type)?,
        mtu: (message.mtu as usize).min(MAX_PACKET_BYTES),
        credentials: message.credentials.map(|Credentials { uid, gid, groups, pid }| PeerCredentials {
            uid,
            gid,
            groups,
            pid,
        }),
    };
    let channel = match (message.channel, descriptor) {
        (Channel::Stream { is_tcp, is_new, has_backlog, input }, Some(descriptor)) => {
            let output = bytes.split_off(usize::try_from(input).ok().filter(|input| *input <= bytes.len())?);
            let socket = match is_tcp {
                true => StreamSocket::Tcp(descriptor.into()),
                false => StreamSocket::Unix(descriptor.into()),
            };
            HandedChannel::Stream(socket, StreamRest { is_new, input: bytes, has_backlog, output })
        }
        (Channel::Udp { local, remote }, Some(descriptor)) => HandedChannel::Udp {
            socket: descriptor.into(),
            local: local.parse().ok()?,
            remote: remote.parse::<SocketAddr>().ok()?,
        },
        (Channel::UdpOfListener { listener, remote, from }, None) => HandedChannel::UdpOfListener {
            listener: listener.parse().ok()?,
            remote: remote.parse().ok()?,
            from: from.map(|address| address.parse::<IpAddr>()).transpose().ok()?,
        },
        (Channel::Down, None) => HandedChannel::Down,
        (Channel::Group | Channel::Station, None) => HandedChannel::OpenedAnew,
        _ => return None,
    };
    let handed = HandedFace {
        face: Some(FaceId(message.face)).filter(|face| *face >= FaceId::FIRST_DYNAMIC)?,
        info,
        policy: LinkPolicy {
            reliability: message.reliability,
            congestion_marking: message.congestion_marking,
            marking_interval_ns: message.marking_interval_ns,
            marking_threshold_bytes: message.marking_threshold_bytes,
        },
        local_fields: message.local_fields,
        counters: LinkCounters::of_named(|name| message.counters.get(name).copied()),
        next_sequence: message.next_sequence,
        silent_ns: message.silent_ms.saturating_mul(1_000_000),
        speaks_lp: message.speaks_lp,
        channel,
    };
    let facts = FaceFacts {
        worker: message.worker,
        has_tokens: message.has_tokens,
        since_unix_ms: message.since_unix_ms,
        is_down: message.is_down,
    };
    Some((handed, facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn handed(channel: HandedChannel) -> HandedFace {
        HandedFace {
            face: FaceId(300),
            info: FaceInfo {
                remote: "fd://7".parse().unwrap(),
                local: "unix:///run/nfd/nfd.sock".parse().unwrap(),
                scope: FaceScope::Local,
                persistency: FacePersistency::OnDemand,
                link_type: LinkType::PointToPoint,
                mtu: 8800,
                credentials: Some(PeerCredentials { uid: 1, gid: 2, groups: vec![3], pid: 4 }),
            },
            policy: LinkPolicy { congestion_marking: true, ..LinkPolicy::default() },
            local_fields: true,
            counters: LinkCounters { in_data: 5, ..LinkCounters::default() },
            next_sequence: 6,
            silent_ns: 7_000_000,
            speaks_lp: true,
            channel,
        }
    }

    const FACTS: FaceFacts = FaceFacts { worker: 1, has_tokens: true, since_unix_ms: 8, is_down: false };

    #[test]
    fn a_face_passes_whole() {
        let rest = StreamRest { is_new: false, input: vec![1, 2], has_backlog: true, output: vec![3] };
        let channels = [
            HandedChannel::Stream(StreamSocket::Unix(UnixStream::pair().unwrap().0), rest.clone()),
            HandedChannel::Down,
            HandedChannel::UdpOfListener {
                listener: "[::]:6363".parse().unwrap(),
                remote: "[fe80::1%2]:6363".parse().unwrap(),
                from: Some("2001:db8::1".parse().unwrap()),
            },
            HandedChannel::OpenedAnew,
        ];
        for channel in channels {
            let expected = format!("{:?}", handed(HandedChannel::Down));
            let channel_text = format!("{channel:?}");
            let OnLine { face, bytes, descriptor } = to_line(handed(channel), FACTS).unwrap();
            let face = through_text(&face);
            let (mut again, facts) = of_line(OnLine { face, bytes, descriptor }).unwrap();
            assert_eq!(facts, FACTS);
            let channel = std::mem::replace(&mut again.channel, HandedChannel::Down);
            assert_eq!(format!("{again:?}"), expected);
            assert_eq!(format!("{channel:?}"), channel_text);
        }
        assert!(to_line(handed(HandedChannel::Memory), FACTS).is_none());
    }

    /// As it is on the line.
    fn through_text(message: &Face) -> Face {
        serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
    }

    #[test]
    fn what_describes_no_face_is_left_out() {
        let message = to_line(handed(HandedChannel::Down), FACTS).unwrap().face;
        let wrong = [
            Face { face: 1, ..message.clone() },
            Face { remote: "nonsense".to_owned(), ..message.clone() },
            Face { persistency: 99, ..message.clone() },
            Face {
                channel: Channel::Stream { is_tcp: false, is_new: false, has_backlog: false, input: 9 },
                ..message.clone()
            },
        ];
        let alone = |face: &Face| OnLine { face: face.clone(), bytes: Vec::new(), descriptor: None };
        assert!(of_line(alone(&message)).is_some());
        for message in wrong {
            assert!(of_line(alone(&message)).is_none(), "{message:?}");
        }
    }
}
