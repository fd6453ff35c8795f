//! NodeState: what a node says of itself, in parts. Each part is a dataset, and has its name.
//!
//! Management answers requests for a part with it, the observer makes its page and metrics of it, and tools fetch it. A
//! state holds the parts that were asked for; the others are empty.
//!
//! The lists of routes and FIB entries are no parts: they are long, and are written entry by entry.

use super::{
    ChannelStatus, CsInfo, CsUsage, Dataset, DatasetEntry, DropCounter, DroppedPacket, FaceHealth, FaceStatus,
    FibUsage, ForwarderStatus, NfdError, PoolHolding, ProcessPrivileges, SettingInForce, StrategyChoice, WorkerLoad,
};

/// Declares the parts: variant, field, and what the dataset holds.
macro_rules! node_state {
    ($($(#[$doc:meta])* $part:ident $field:ident: $many:ident<$entry:ty>,)+) => {
        /// A part of a [`NodeState`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Part {
            $($(#[$doc])* $part,)+
        }

        /// See the module documentation.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct NodeState {
            $($(#[$doc])* pub $field: $many<$entry>,)+
        }

        impl Part {
            /// All of them.
            pub const ALL: &'static [Part] = &[$(Part::$part,)+];

            /// Module and name of its dataset: `status/drops`.
            pub const fn name(self) -> &'static str {
                match self { $(Part::$part => <$entry as Dataset>::NAME,)+ }
            }
        }

        impl NodeState {
            /// The content of the dataset.
            pub fn encode(&self, part: Part) -> Vec<u8> {
                let mut content = Vec::new();
                match part { $(Part::$part => self.$field.iter().for_each(|entry| entry.encode(&mut content)),)+ }
                content
            }

            /// Reads the content of the dataset.
            ///
            /// # Errors
            /// If it is malformed.
            pub fn decode(&mut self, part: Part, content: &[u8]) -> Result<(), NfdError> {
                match part { $(Part::$part => self.$field = Many::of(<$entry>::decode_all(content)?),)+ }
                Ok(())
            }
        }
    };
}

node_state! {
    /// The node in numbers.
    General general: Option<ForwarderStatus>,
    /// Faces, and what they counted.
    Faces faces: Vec<FaceStatus>,
    /// How faces answer, and since when they are up or down.
    Health health: Vec<FaceHealth>,
    /// Local addresses that make or accept faces.
    Channels channels: Vec<ChannelStatus>,
    /// Which strategy serves which prefix.
    Strategies strategies: Vec<StrategyChoice>,
    /// The FIB's design and memory.
    FibUsage fib_usage: Option<FibUsage>,
    /// The Content Store in packets.
    Cs cs: Option<CsInfo>,
    /// The Content Store in bytes, by policy and by prefix.
    CsUsage cs_usage: Option<CsUsage>,
    /// The worker threads.
    Workers workers: Vec<WorkerLoad>,
    /// Packets dropped, by reason, and limits that were reached.
    Drops drops: Vec<DropCounter>,
    /// The last packets dropped, and the frames that each link dropped.
    Dropped dropped: Vec<DroppedPacket>,
    /// Who holds how much of each pool. A pool begins with the entry for all holders.
    Holders holders: Vec<PoolHolding>,
    /// What the process may do.
    Privileges privileges: Option<ProcessPrivileges>,
    /// The settings in force, their values, and where these came from.
    Settings settings: Vec<SettingInForce>,
}

impl Part {
    /// False if NFD has the dataset, too. Other forwarders leave requests for ours without an answer.
    pub const fn is_ours(self) -> bool {
        !matches!(self, Part::General | Part::Faces | Part::Channels | Part::Strategies | Part::Cs)
    }
}

impl NodeState {
    /// It is one of our routers that says so.
    pub fn is_of_namewire(&self) -> bool {
        self.general.as_ref().is_some_and(|general| general.nfd_version.starts_with("namewire"))
    }

    /// What `faces/health` says of a face.
    pub fn health_of(&self, face: crate::FaceId) -> Option<&FaceHealth> {
        self.health.iter().find(|health| health.face == face)
    }
}

/// Any number of entries, or at most one.
trait Many<T> {
    fn of(entries: Vec<T>) -> Self;
}

impl<T> Many<T> for Vec<T> {
    fn of(entries: Vec<T>) -> Self {
        entries
    }
}

impl<T> Many<T> for Option<T> {
    fn of(entries: Vec<T>) -> Self {
        entries.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_a_dataset_of_its_own_and_is_read_back() {
        let state = NodeState {
            general: Some(ForwarderStatus { n_pit_entries: 7, ..Default::default() }),
            workers: vec![WorkerLoad { number: 1, cs_misses: 4, ..Default::default() }; 2],
            drops: vec![DropCounter { reason: "engine.no-route".to_owned(), count: 3 }],
            cs: Some(CsInfo { capacity: 5, ..Default::default() }),
            ..NodeState::default()
        };
        for (at, part) in Part::ALL.iter().enumerate() {
            assert_eq!(Part::ALL.iter().position(|other| other.name() == part.name()), Some(at), "{part:?}");
        }
        let mut read = NodeState::default();
        Part::ALL.iter().for_each(|&part| read.decode(part, &state.encode(part)).unwrap());
        assert_eq!(read, state);
        assert!(read.decode(Part::Drops, &[128, 1]).is_err());
    }
}
