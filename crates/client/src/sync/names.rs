//! The names of a sync group and of its publications.
//!
//! | version | names of publication *n* | used by |
//! | --- | --- | --- |
//! | 2 | `/<producer>/<group>/seq=<n>` | ndn-python-repo |
//! | | `/<producer>/<group>/<n>`, n in a generic component | NDNts |
//! | 3 | `/<group without 32=svs>/<producer>/t=<bootstrap>/seq=<n>` | ndnd |
//! | | `/<producer>/<group>/t=<bootstrap>/seq=<n>` | ndnd before 1.5.2 |

use super::{Version, vector::Producer};
use namewire_packet::{Component, Name, NameBuf, tlv::types};

/// ndnd's last component of a sync prefix.
const SVS_KEYWORD: Component<'static> = Component { type_number: types::KEYWORD_COMPONENT, value: b"svs" };

/// What a group is called on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncNames {
    /// Chosen by the end of the sync prefix: `/chat/v=3`; without a version, 2.
    pub version: Version,
    /// The sync prefix without a version.
    pub group: NameBuf,
    /// The name of sync Interests, without the digest of their parameters.
    pub sync: NameBuf,
}

impl SyncNames {
    /// The names of the group with this sync prefix.
    pub fn of(sync_prefix: &NameBuf) -> Self {
        let mut group = sync_prefix.clone();
        let number = group.as_name().last().and_then(|last| last.version());
        let version = if number == Some(3) { Version::V3 } else { Version::V2 };
        if number == Some(version.number()) {
            group.pop();
        }
        let mut sync = group.clone();
        sync.push_version(version.number());
        SyncNames { version, group, sync }
    }

    /// The prefixes of this producer's publications, by the conventions of the version.
    pub fn prefixes(&self, producer: &Producer) -> [NameBuf; 2] {
        let mut below_producer = producer.name.clone();
        below_producer.append(self.group.as_name());
        let mut below_group = self.group.clone();
        if below_group.as_name().last() == Some(SVS_KEYWORD) {
            below_group.pop();
        }
        below_group.append(producer.name.as_name());
        match self.version {
            Version::V2 => [below_producer.clone(), below_producer],
            Version::V3 => [below_group, below_producer],
        }
    }

    /// Where a publication may be, the usual place first.
    pub fn of_publication(&self, producer: &Producer, number: u64) -> [NameBuf; 2] {
        let [first, second] = self.prefixes(producer);
        let numbered = |mut name: NameBuf, type_number| {
            if self.version == Version::V3 {
                name.push_typed_nni(types::TIMESTAMP_COMPONENT, producer.bootstrap_s);
            }
            name.push_typed_nni(type_number, number);
            name
        };
        let other = if self.version == Version::V2 { types::GENERIC_COMPONENT } else { types::SEQUENCE_NUM_COMPONENT };
        [numbered(first, types::SEQUENCE_NUM_COMPONENT), numbered(second, other)]
    }

    /// The number of a publication of this producer, from a name by any of the conventions.
    pub fn number_in(&self, name: Name<'_>, producer: &Producer) -> Option<u64> {
        let prefix = self.prefixes(producer).into_iter().find(|prefix| prefix.as_name().is_prefix_of(&name))?;
        let number = name.get(prefix.len() + usize::from(self.version == Version::V3))?.as_nni()?;
        self.of_publication(producer, number).iter().any(|one| one.as_name().is_prefix_of(&name)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    #[test]
    fn the_names_of_each_convention() {
        let producer = Producer { name: name("/alice"), bootstrap_s: 7 };
        let expected = [
            ("/chat", "/chat/v=2", ["/alice/chat/seq=300", "/alice/chat/%01%2C"]),
            ("/chat/v=2", "/chat/v=2", ["/alice/chat/seq=300", "/alice/chat/%01%2C"]),
            ("/chat/32=svs/v=3", "/chat/32=svs/v=3", ["/chat/alice/t=7/seq=300", "/alice/chat/32=svs/t=7/seq=300"]),
        ];
        for (prefix, sync, publications) in expected {
            let names = SyncNames::of(&name(prefix));
            assert_eq!(names.sync.to_string(), sync);
            let of_publication = names.of_publication(&producer, 300);
            assert_eq!(of_publication.each_ref().map(ToString::to_string), publications);
            for one in &of_publication {
                assert_eq!(names.number_in(one.as_name(), &producer), Some(300));
                assert_eq!(names.number_in(one.as_name(), &Producer { name: name("/bob"), bootstrap_s: 7 }), None);
            }
        }
    }
}
