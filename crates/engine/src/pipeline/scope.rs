//! Name scope: how far may a name travel? (NFD's developer guide §4.2.1; ndn-cxx, scope control.)

use crate::FaceAttributes;

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
