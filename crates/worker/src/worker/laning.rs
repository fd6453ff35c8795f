//! What control wants of this worker's lanes.

use super::Worker;
use crate::messages::{FromWorker, LaneChange, LanePeer, LaneReport};
use namewire_engine::FaceId;
use namewire_faces::{AddFaceError, FaceCounters};
use std::sync::Arc;

impl Worker {
    /// What control wants of this worker's lane of a face.
    pub(super) fn change_lane(&mut self, now_ns: u64, face: FaceId, change: LaneChange) {
        let (driver, lanes, worker) = (&mut self.io.driver, &mut self.io.lanes, self.io.index);
        match change {
            LaneChange::Open { local } => {
                driver.hear_lane_hellos(face, true);
                let result = driver.open_lane(face, local);
                self.io.control.tell(FromWorker::Lane(LaneReport::Opened { worker, face, result }));
            }
            LaneChange::Link(peer) => {
                lanes.forget(face);
                let result = self.link_lane(now_ns, face, &peer);
                self.io.control.tell(FromWorker::Lane(LaneReport::Linked { worker, face, result }));
            }
            LaneChange::Use(is_used) => lanes.set_use(face, is_used),
            LaneChange::Hello(frame) => driver.send_frame(now_ns, face, &frame),
            LaneChange::Greet => driver.greet_lanes(face),
            LaneChange::Close => {
                lanes.forget(face);
                driver.hear_lane_hellos(face, false);
                driver.close_lane(face);
            }
        }
    }

    fn link_lane(
        &mut self,
        now_ns: u64,
        face: FaceId,
        peer: &LanePeer,
    ) -> Result<Vec<Arc<FaceCounters>>, AddFaceError> {
        let LanePeer { info, policy, remotes, homes } = peer;
        let linked = self.io.driver.link_lane(now_ns, face, info, *policy, remotes)?;
        let links = linked.iter().map(|(link, _)| *link).collect();
        self.io.lanes.link_to(face, Arc::clone(homes), links);
        Ok(linked.into_iter().map(|(_, counters)| counters).collect())
    }
}
