//! Journey: to which faces may an Interest go (forwarding §3)?

use crate::{FaceAttributes, FaceTable, LinkType, verdict::scope::NameScope};
use namewire_packet::FaceId;

/// Where an Interest came from and how far it may go.
#[derive(Clone, Copy)]
pub(crate) struct Journey<'v> {
    pub(crate) faces: &'v FaceTable,
    pub(crate) ingress: FaceId,
    pub(crate) scope: NameScope,
    /// The HopLimit that it is forwarded with.
    pub(crate) hop_limit: Option<u8>,
}

impl<'v> Journey<'v> {
    /// §3: the face is up, and scope and HopLimit allow it.
    #[inline]
    pub(crate) fn is_eligible(&self, face: FaceId) -> bool {
        self.eligible(face).is_some()
    }

    /// The attributes of `face`, if it is eligible.
    #[inline(always)]
    pub(crate) fn eligible(&self, face: FaceId) -> Option<&'v FaceAttributes> {
        let attributes = self.allowed_by_scope(face)?;
        (attributes.is_up && hop_limit_allows(self.hop_limit, attributes)).then_some(attributes)
    }

    /// §3 without HopLimit: `face` exists, scope allows it, and the Interest did not come from it (unless it is ad
    /// hoc).
    #[inline(always)]
    pub(crate) fn allowed_by_scope(&self, face: FaceId) -> Option<&'v FaceAttributes> {
        let attributes = self.faces.get(face)?;
        let goes_back = face == self.ingress && attributes.link_type != LinkType::AdHoc;
        let may_go_there = self.scope.may_leave_the_node(|| self.is_from_local()) || attributes.is_local();
        (!goes_back && may_go_there).then_some(attributes)
    }

    #[cold]
    fn is_from_local(&self) -> bool {
        self.faces.get(self.ingress).is_some_and(FaceAttributes::is_local)
    }
}

/// Whether an Interest with this HopLimit may be sent there.
#[inline(always)]
pub(crate) fn hop_limit_allows(hop_limit: Option<u8>, attributes: &FaceAttributes) -> bool {
    hop_limit != Some(0) || attributes.is_local()
}
