//! Why a router refused what a neighbour told it.

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
        /// A descriptor, because the table is full.
        TableFull = "table-full",
        /// A descriptor, because the face has its share.
        FaceShareUsed = "face-share-used",
    }
}
