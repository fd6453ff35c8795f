//! The eight faces of a new test forwarder.

use namewire_engine::{FaceAttributes, FaceId, FaceScope, FaceTable, LinkType};

/// A router on another machine.
pub const A: FaceId = FaceId(301);
/// A router on another machine.
pub const B: FaceId = FaceId(302);
/// A router on another machine.
pub const C: FaceId = FaceId(303);
/// A router on another machine.
pub const D: FaceId = FaceId(304);
/// An application of this machine.
pub const L: FaceId = FaceId(310);
/// An application of this machine.
pub const M: FaceId = FaceId(311);
/// A multi-access link.
pub const X: FaceId = FaceId(320);
/// An ad hoc link.
pub const H: FaceId = FaceId(330);

const LETTERS: [(FaceId, &str); 8] = [(A, "A"), (B, "B"), (C, "C"), (D, "D"), (L, "L"), (M, "M"), (X, "X"), (H, "H")];

/// All eight; worker 0 owns them.
pub(crate) fn all() -> FaceTable {
    let mut faces = FaceTable::default();
    for (face, _) in LETTERS {
        let scope = if [L, M].contains(&face) { FaceScope::Local } else { FaceScope::NonLocal };
        let link_type = match face {
            X => LinkType::MultiAccess,
            H => LinkType::AdHoc,
            _ => LinkType::PointToPoint,
        };
        faces.insert(face, FaceAttributes { link_type, ..FaceAttributes::new(scope, 0, false) });
    }
    faces
}

/// The letter of a face, or its number.
pub(crate) fn letter(face: FaceId) -> String {
    LETTERS.iter().find(|(known, _)| *known == face).map_or(face.to_string(), |(_, letter)| (*letter).to_owned())
}
