//! The announcing Data of routes, kept for the self-learning strategy to pass on.
//!
//! Limits: [`MAX_ANNOUNCEMENTS`], [`MAX_ANNOUNCEMENT_BYTES`].

use crate::{effect::Effect, name_key::NameKey, rib::Rib};
use namewire_packet::{FaceId, Name, nfd::origin};
use std::{collections::BTreeMap, sync::Arc};

/// Most announcements that are kept.
pub const MAX_ANNOUNCEMENTS: usize = 1024;

/// Largest announcement that is kept.
pub const MAX_ANNOUNCEMENT_BYTES: usize = 2048;

/// The announcing Data of routes.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    kept: BTreeMap<NameKey, BTreeMap<FaceId, Arc<[u8]>>>,
}

impl Announcements {
    pub(crate) fn concerns(&self, prefix: Name<'_>) -> bool {
        self.kept.contains_key(prefix.value())
    }

    /// Keeps an announcement. False if there is no room.
    pub(crate) fn keep(&mut self, prefix: Name<'_>, face: FaceId, announcement: &[u8]) -> bool {
        let is_known = self.kept.get(prefix.value()).is_some_and(|of_prefix| of_prefix.contains_key(&face));
        let has_room = is_known || self.kept.values().map(BTreeMap::len).sum::<usize>() < MAX_ANNOUNCEMENTS;
        let fits = has_room && announcement.len() <= MAX_ANNOUNCEMENT_BYTES;
        if fits {
            self.kept.entry(NameKey::new(prefix)).or_default().insert(face, announcement.into());
        }
        fits
    }

    /// Emits the announcements whose routes are still there.
    pub(crate) fn publish(&mut self, rib: &Rib, out: &mut Vec<Effect>) {
        let is_live = |key: &NameKey, face: FaceId| {
            rib.live_routes(key.name())
                .iter()
                .any(|route| (route.face, route.origin) == (face, origin::PREFIX_ANNOUNCEMENT))
        };
        self.kept.retain(|key, of_prefix| {
            of_prefix.retain(|face, _| is_live(key, *face));
            !of_prefix.is_empty()
        });
        // If several faces announced a prefix, any of their announcements will do.
        let one_each = |(key, of_prefix): (&NameKey, &BTreeMap<FaceId, Arc<[u8]>>)| {
            of_prefix.values().next().map(|bytes| (key.to_buf(), Arc::clone(bytes)))
        };
        out.push(Effect::Announcements(self.kept.iter().filter_map(one_each).collect()));
    }
}
