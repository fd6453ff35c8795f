//! Name scope: how far may a name travel? (NFD's developer guide §4.2.1; ndn-cxx, scope control.)

use crate::{DropReason, FaceAttributes};
use namewire_packet::FaceId;

/// How far a name may travel (§3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameScope {
    /// `/localhost`: never across a non-local face.
    Localhost,
    /// `/localhop`: across one non-local face.
    Localhop,
    Global,
}

impl NameScope {
    #[inline(always)]
    pub(crate) fn of(name_value: &[u8]) -> Self {
        // Both names begin so, but for the length of the component.
        let Some(&[8, _, b'l', b'o', b'c', b'a', b'l', b'h']) = name_value.first_chunk() else { return Self::Global };
        Self::of_local(name_value)
    }

    #[cold]
    fn of_local(name_value: &[u8]) -> Self {
        if name_value.starts_with(b"\x08\x09localhost") {
            Self::Localhost
        } else if name_value.starts_with(b"\x08\x08localhop") {
            Self::Localhop
        } else {
            Self::Global
        }
    }

    /// Why Data of this name must not come from `face`. Management alone produces what is under `/localhost/nfd`.
    #[inline(always)]
    pub(crate) fn forbids_data(name_value: &[u8], face: FaceId, ingress: &FaceAttributes) -> Option<DropReason> {
        match Self::of(name_value) {
            Self::Global | Self::Localhop => None,
            Self::Localhost => Self::forbids_localhost(name_value, face, ingress),
        }
    }

    #[cold]
    fn forbids_localhost(name_value: &[u8], face: FaceId, ingress: &FaceAttributes) -> Option<DropReason> {
        if Self::Localhost.forbids(ingress) {
            return Some(DropReason::ScopeViolation);
        }
        let is_forged = face != FaceId::INTERNAL && name_value.starts_with(b"\x08\x09localhost\x08\x03nfd");
        is_forged.then_some(DropReason::ForgedManagement)
    }

    /// Whether a packet of this scope must not come from `ingress`.
    #[inline(always)]
    pub(crate) fn forbids(self, ingress: &FaceAttributes) -> bool {
        self == Self::Localhost && !ingress.is_local()
    }

    /// Whether an Interest of this scope may go to other nodes (§3): `is_local` says whether it came from this one.
    #[inline(always)]
    pub(crate) fn may_leave_the_node(self, is_local: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Global => true,
            Self::Localhop => is_local(),
            Self::Localhost => false,
        }
    }
}
