//! A face's attributes in words and numbers: scope, persistency, link type, and the face's events.
//!
//! Every crate uses these types, so a face's attributes are never translated. Numbers and words are those of FaceStatus
//! (NFD management protocol, FaceMgmt; ndn-cxx `nfd-constants.hpp`).

/// Gives an enum of the protocol its numbers, its words and its field codec.
macro_rules! protocol_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code),+ }

        impl $name {
            /// Number on the wire.
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// The value with this number, if there is one.
            pub const fn from_code(code: u64) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)+
                    _ => None,
                }
            }

            /// The word for it, as `nfdc` and configuration files write it.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        /// As its word.
        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::nfd::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err(crate::nfd::UnknownWord),
                }
            }
        }

        impl crate::nfd::field::Field for $name {
            fn write(&self, out: &mut Vec<u8>, type_number: u32) {
                crate::nfd::field::Field::write(&self.code(), out, type_number);
            }
            fn read(type_number: u32, value: &[u8]) -> Result<Self, crate::nfd::NfdError> {
                let value = <u64 as crate::nfd::field::Field>::read(type_number, value)?;
                $name::from_code(value).ok_or(crate::nfd::NfdError::BadValue { field: type_number, value })
            }
        }
    };
}
pub(super) use protocol_enum;

protocol_enum! {
    /// Whether the peer is on this host. Only such a peer may use `/localhost`.
    FaceScope {
        /// The peer may be anywhere.
        NonLocal = 0 "non-local",
        /// The peer is an application on this host.
        Local = 1 "local"
    }
}
protocol_enum! {
    /// How long a face stays.
    FacePersistency {
        /// Created by command. It stays until it is destroyed, or its connection or link fails.
        Persistent = 0 "persistent",
        /// Created by the peer's first packet. It ends as a persistent one does, and a datagram face also when idle.
        OnDemand = 1 "on-demand",
        /// Created by command. It stays until it is destroyed: it goes down with its link and comes back.
        Permanent = 2 "permanent"
    }
}
protocol_enum! {
    /// How many peers hear what a face sends.
    LinkType {
        /// One.
        PointToPoint = 0 "point-to-point",
        /// Several, which hear each other.
        MultiAccess = 1 "multi-access",
        /// Several, which may not hear each other: an Interest may go back out the face it came from.
        AdHoc = 2 "adhoc"
    }
}
protocol_enum! {
    /// Whether a face can send at present; our addition to the protocol.
    FaceState {
        /// Its link works, as far as the forwarder knows.
        Up = 1 "up",
        /// Its link failed, or has not been there yet.
        Down = 2 "down"
    }
}
protocol_enum! {
    /// What happened to a face.
    FaceEventKind {
        /// It was created.
        Created = 1 "created",
        /// It was destroyed.
        Destroyed = 2 "destroyed",
        /// It works again.
        Up = 3 "up",
        /// It does not work at present.
        Down = 4 "down"
    }
}

impl FacePersistency {
    /// Those that a command or a configuration may ask for.
    pub const LASTING: [Self; 2] = [Self::Persistent, Self::Permanent];
}

/// A text that is none of the words of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the word is unknown")]
pub struct UnknownWord;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_number_is_read_back() {
        for code in 0..=2 {
            let persistency = FacePersistency::from_code(code).unwrap();
            assert_eq!((persistency.code(), persistency.word().parse()), (code, Ok(persistency)));
        }
        assert_eq!(FacePersistency::from_code(3), None);
        assert_eq!("Permanent".parse::<FacePersistency>(), Err(UnknownWord));
    }
}
