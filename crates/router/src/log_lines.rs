//! The lines that control adds to the router's log ([`namewire_logging`]). A value is turned into text only if the line
//! is written.

use crate::control::DropLine;
use namewire_configuration::trust_anchors::AnchorNews;
use namewire_management::{FaceCommandError, FaceProperties};
use namewire_packet::{FaceId, NameBuf, nfd::FaceRecent};
use std::fmt::Display;

/// A face is gone. Without properties, management never knew it.
pub(crate) fn face_closed(face: Option<&FaceProperties>, prefixes: usize, why: impl Display) {
    if let Some(face) = face {
        let prefixes = (prefixes > 0).then_some(prefixes);
        tracing::info!(
            target: "faces", face = face.face.0, remote = %face.remote, local = %face.local, why = %why, prefixes,
            "face closed"
        );
    }
}

/// The link of a permanent face carries nothing.
pub(crate) fn face_down(face: Option<&FaceProperties>, why: impl Display) {
    if let Some(face) = face {
        tracing::warn!(
            target: "faces", face = face.face.0, remote = %face.remote, local = %face.local, why = %why, "face down"
        );
    }
}

/// The peer of a face has begun to leave Interests unanswered, or answers again.
pub(crate) fn health(face: Option<&FaceProperties>, recent: &FaceRecent) {
    let Some(face) = face else { return };
    let FaceRecent { span_ms, answered, unanswered, avoided, .. } = recent;
    match recent.is_degraded() {
        true => tracing::warn!(
            target: "faces", face = face.face.0, remote = %face.remote, unanswered, answered, avoided, within_ms = span_ms,
            "face degraded"
        ),
        false => tracing::info!(
            target: "faces", face = face.face.0, remote = %face.remote, unanswered, answered, within_ms = span_ms,
            "face answers again"
        ),
    }
}

/// A connection was accepted, and no worker could make a face of it.
pub(crate) fn connection_refused(face: FaceId, error: &FaceCommandError) {
    tracing::warn!(target: "faces", face = face.0, why = error.text, "connection refused");
}

/// Network interfaces have changed, and links with them.
pub(crate) fn link_problem(problem: &str) {
    tracing::warn!(target: "faces", "{problem}");
}

/// At its refresh, a trust anchor has become unreadable, or readable again.
pub(crate) fn trust_anchor(news: &AnchorNews) {
    match news {
        AnchorNews::Unreadable(error) => tracing::warn!(target: "management", "{error}; its certificates do not count"),
        AnchorNews::Readable(path) => tracing::info!(target: "management", "trust anchor {} was read", path.display()),
        AnchorNews::NoRevocation(why) => tracing::warn!(target: "management", "{why}; records read before count"),
    }
}

/// Someone at the observer's page watches packets.
pub(crate) fn page_trace(prefix: &NameBuf) {
    tracing::info!(target: "management", %prefix, by = "the live page", "trace started");
}

/// Packets or connections were dropped, or a limit was met, since the line before about this reason.
pub(crate) fn dropped(line: &DropLine) {
    let DropLine { reason, count, total } = line;
    match reason.strip_prefix("limit.") {
        Some(limit) => tracing::info!(target: "drops", limit, count, total, "limit met"),
        None => tracing::info!(target: "drops", reason, count, total, "dropped or refused"),
    }
}

/// This node has another parent in a tree of TagNet, or the tree has another root. Without a parent, it is the root.
pub(crate) fn tree_changed(tree: u16, root: u64, parent: Option<FaceId>) {
    match parent {
        Some(parent) => tracing::info!(target: "tag", tree, root, parent = parent.0, "tree has a new parent or root"),
        None => tracing::info!(target: "tag", tree, root, "this router is the root of the tree"),
    }
}
