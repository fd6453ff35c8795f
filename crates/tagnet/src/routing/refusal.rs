//! Why a router refused a packet from a neighbour.

namewire_packet::reasons! {
    /// Every way that a packet between routers, or an entry in it, is refused. Each is one counter, shown as
    /// `tag-routing.` and [`RoutingRefusal::name`].
    pub enum RoutingRefusal {
        /// The packet is malformed. Fault of the peer.
        Malformed = "malformed",
        /// The face is not one whose neighbour may take part.
        NotNeighbour = "not-neighbour",
        /// The router is in no tree of that number.
        UnknownTree = "unknown-tree",
        /// Announcements of a neighbour that is neither parent nor child. It will send them again.
        NotOnTree = "not-on-tree",
        /// The packet has no code of the tree's key, or a wrong one; or the router has no key for that tree. Forged, or
        /// the routers are configured differently.
        NotAuthentic = "not-authentic",
        /// The packet answers no challenge of this router: it was recorded, or a neighbour has just started.
        NotFresh = "not-fresh",
        /// A hello whose sequence number of the root is too far from the last one: forged, or the root has started
        /// again.
        SequenceJump = "sequence-jump",
        /// A descriptor, because the table is full.
        TableFull = "table-full",
        /// A descriptor, because the face has its share.
        FaceShareUsed = "face-share-used",
    }
}
