//! Tag builds: has TagNet's tables made anew on a separate thread, when another order of bits would be better, or when
//! packets are searched in a vector that lacks changes.
//!
//! Limits: one build at a time. Vectors are built in at most half of the time, so that other threads have a processor.

use namewire_tagnet::{
    advertisements::Known,
    forwarder::LiveTables,
    matching::{
        burst_trie::{self, BurstTrie},
        vector::{self, VectorTable},
    },
};
use std::{io, thread};

/// The owner looks for the end of a build after this time.
const LOOK_NS: u64 = 10_000_000;
/// After there was no memory, a build is tried again after this time.
const AGAIN_NS: u64 = 1_000_000_000;

/// A table that another thread builds.
type Building<T, E> = thread::JoinHandle<Result<T, E>>;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct TagBuilds {
    trie: Option<Building<BurstTrie, burst_trie::BuildError>>,
    vector: Option<Building<VectorTable, vector::BuildError>>,
    /// When the build of the vector began.
    began_ns: u64,
    /// When the next build may begin.
    next_ns: u64,
    failed: u64,
}

impl TagBuilds {
    /// Builds that failed. They are tried again.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// When [`TagBuilds::run`] has something to do.
    pub fn next_deadline_ns(&self, tables: &LiveTables<Known>, now_ns: u64) -> Option<u64> {
        if self.is_building() {
            return Some(now_ns + LOOK_NS);
        }
        wants_any(tables).then_some(self.next_ns)
    }

    /// Takes over what is built, and begins with what the tables want.
    pub fn run(&mut self, tables: &mut LiveTables<Known>, now_ns: u64) {
        if self.is_building() {
            self.end(tables, now_ns);
        } else if now_ns >= self.next_ns && wants_any(tables) {
            self.begin(tables, now_ns);
            if !self.is_building() {
                self.fail(now_ns);
            }
        }
    }

    fn is_building(&self) -> bool {
        self.trie.is_some() || self.vector.is_some()
    }

    fn begin(&mut self, tables: &mut LiveTables<Known>, now_ns: u64) {
        if tables.wants_build() {
            let build = tables.begin_build();
            match thread("tag-trie").spawn(|| build.run()) {
                Ok(build) => self.trie = Some(build),
                Err(why) => _ = tables.finish_build(Err(why.into())),
            }
        } else if let Some(build) = tables.begin_vector() {
            match thread("tag-vector").spawn(|| build.run()) {
                Ok(build) => (self.vector, self.began_ns) = (Some(build), now_ns),
                Err(_) => tables.finish_vector(None),
            }
        }
    }

    fn end(&mut self, tables: &mut LiveTables<Known>, now_ns: u64) {
        let mut is_made = true;
        if let Some(build) = self.trie.take_if(|build| build.is_finished()) {
            let built = build.join().unwrap_or_else(|_| Err(io::Error::other("the build panicked").into()));
            is_made = tables.finish_build(built).is_ok();
        }
        if let Some(build) = self.vector.take_if(|build| build.is_finished()) {
            let built = build.join().ok().and_then(Result::ok);
            is_made &= built.is_some();
            tables.finish_vector(built);
            self.next_ns = 2 * now_ns - self.began_ns;
        }
        if !is_made {
            self.fail(now_ns);
        }
    }

    fn fail(&mut self, now_ns: u64) {
        self.failed += 1;
        self.next_ns = now_ns + AGAIN_NS;
    }
}

fn wants_any(tables: &LiveTables<Known>) -> bool {
    tables.wants_build() || tables.wants_vector()
}

fn thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{FaceId, descriptor::TagSet};
    use namewire_tagnet::{
        advertisements::{AdvertisementLimits, Advertisements, TreeLink},
        forwarder::Serves,
        matching::{SubsetTable, vector::VectorOptions},
    };

    /// Runs until nothing is left to do.
    fn settle(builds: &mut TagBuilds, advertisements: &mut Advertisements) {
        let mut now_ns = 0;
        while let Some(due_ns) = builds.next_deadline_ns(advertisements.tables(), now_ns) {
            now_ns = now_ns.max(due_ns);
            builds.run(advertisements.tables_mut(), now_ns);
            advertisements.tables_mut().run();
            thread::yield_now();
        }
    }

    #[test]
    fn readers_get_what_threads_build() {
        let limits = AdvertisementLimits { descriptors: 3_000, reserved: 0, per_face: 3_000 };
        let mut advertisements = Advertisements::new(limits).unwrap();
        advertisements.tables_mut().search_by_vector(VectorOptions::PAPER);
        let mut reader = advertisements.tables().reader();
        let mut builds = TagBuilds::default();
        let link = TreeLink { tree: 1, face: FaceId(300) };
        for number in 0..2_000 {
            let descriptor = TagSet::new([format!("own{number}")]).unwrap().descriptor();
            advertisements.announced(link, &descriptor, Some(Serves::BOTH)).unwrap();
        }
        advertisements.tables_mut().run();
        assert_eq!(reader.pin().view().descriptors.len(), 0);
        settle(&mut builds, &mut advertisements);
        assert_eq!((reader.pin().view().descriptors.len(), builds.failed()), (2_000, 0));
        assert!(!advertisements.tables().wants_build() && !advertisements.tables().wants_vector());
    }
}
