//! Video requests: each view requests all Data of a video in order.
//!
//! Source: Takemasa19 §5.4.1. There are 10⁴ videos of 10⁴ Data with 1024 bytes. Views begin as a Poisson process at
//! 0.5 a second. A view requests its Data at constant intervals, 625 a second (5 Mbit/s): it takes 16 s, and 8 views
//! are active on average. The paper does not give the popularity of each video; we choose Zipf with the α = 0.8 of its
//! web objects.
//!
//! Object = video × Data of a video + place in the video. All views have the same interval, so a queue holds the active
//! views in the order in which they are due; no heap is needed.
//!
//! No view is active at the beginning: the request rate reaches its mean after the time of one view.

use std::collections::VecDeque;
use std::sync::Arc;

use super::popularity::Popularity;
use super::{DATA_BYTES, Request};

/// Interests per second of a view.
const VIEW_INTERESTS_PER_S: u64 = 625;
/// Active views on average: 0.5 a second, 10⁴ Data each at 625 a second.
const VIEWS_AT_A_TIME: f64 = 8.0;
/// Exponent of the popularity of videos (our choice).
const ALPHA: f64 = 0.8;
const NS_PER_S: u64 = 1_000_000_000;

/// The workload.
#[derive(Clone, Debug)]
pub struct Video {
    popularity: Arc<Popularity>,
    data_of_a_video: u32,
}

impl Video {
    /// `videos` videos of `data_of_a_video` Data; views begin often enough that 8 are active on average.
    ///
    /// # Panics
    /// If there are more than 2³² objects, or none.
    pub fn new(videos: u32, data_of_a_video: u32) -> Self {
        assert!(videos.checked_mul(data_of_a_video).is_some_and(|objects| objects > 0), "too many objects, or none");
        Self { popularity: Arc::new(Popularity::zipf(videos, ALPHA)), data_of_a_video }
    }

    /// How many objects.
    pub fn objects(&self) -> u32 {
        self.popularity.objects() * self.data_of_a_video
    }

    /// Interests a second on average.
    pub fn interests_per_s() -> f64 {
        VIEWS_AT_A_TIME * VIEW_INTERESTS_PER_S as f64
    }

    /// An endless stream of requests.
    pub fn requests(&self, seed: u64) -> VideoRequests {
        let view_s = f64::from(self.data_of_a_video) / VIEW_INTERESTS_PER_S as f64;
        let mut requests = VideoRequests {
            video: self.clone(),
            random: fastrand::Rng::with_seed(seed),
            views_per_s: VIEWS_AT_A_TIME / view_s,
            next_view_ns: 0,
            going_on: VecDeque::new(),
        };
        requests.next_view_ns = exponential_ns(&mut requests.random, requests.views_per_s);
        requests
    }
}

/// The time to the next event of a Poisson process.
pub(super) fn exponential_ns(random: &mut fastrand::Rng, per_s: f64) -> u64 {
    (-(1.0 - random.f64()).ln() / per_s * NS_PER_S as f64) as u64
}

/// A view: its next Data, the end of its Data (exclusive), and when the next is due.
#[derive(Clone, Copy, Debug)]
struct View {
    object: u32,
    end: u32,
    due_ns: u64,
}

#[derive(Clone, Debug)]
pub struct VideoRequests {
    video: Video,
    random: fastrand::Rng,
    views_per_s: f64,
    next_view_ns: u64,
    /// Active views, in the order in which they are due.
    going_on: VecDeque<View>,
}

impl VideoRequests {
    /// When the next request is due.
    pub fn due_ns(&self) -> u64 {
        self.going_on.front().map_or(self.next_view_ns, |view| view.due_ns.min(self.next_view_ns))
    }

    fn begin_view(&mut self) -> View {
        let object = self.video.popularity.draw(self.random.u64(..)) * self.video.data_of_a_video;
        let view = View { object, end: object + self.video.data_of_a_video, due_ns: self.next_view_ns };
        self.next_view_ns += exponential_ns(&mut self.random, self.views_per_s);
        view
    }
}

impl Iterator for VideoRequests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let next_view_ns = self.next_view_ns;
        let view = self.going_on.pop_front_if(|view| view.due_ns <= next_view_ns);
        let view = view.unwrap_or_else(|| self.begin_view());
        if view.object + 1 < view.end {
            let due_ns = view.due_ns + NS_PER_S / VIEW_INTERESTS_PER_S;
            self.going_on.push_back(View { object: view.object + 1, due_ns, ..view });
        }
        Some(Request { object: view.object, bytes: DATA_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn views_ask_for_all_data_in_order_at_the_papers_rates() {
        const DATA: u32 = 500;
        let mut requests = Video::new(50, DATA).requests(3);
        let (mut last_ns, mut views, mut begun) = (0, HashMap::<(u32, u64), u32>::new(), 0_u32);
        let mut finished = 0;
        for _ in 0..200_000 {
            let due_ns = requests.due_ns();
            assert!(due_ns >= last_ns, "time runs backwards");
            last_ns = due_ns;
            let Some(Request { object, bytes: 1024 }) = requests.next() else { unreachable!("without end") };
            let (video, place) = (object / DATA, object % DATA);
            // A view is known by its video and the instant of its first Data.
            let began_ns = due_ns - u64::from(place) * 1_600_000;
            let next = views.entry((video, began_ns)).or_insert_with(|| {
                begun += 1;
                0
            });
            assert_eq!(place, *next, "a Data was left out");
            *next += 1;
            finished += u32::from(*next == DATA);
        }
        let seconds = last_ns as f64 / 1e9;
        let per_s = f64::from(begun) / seconds;
        assert!((per_s - 10.0).abs() < 10.0 * 0.2, "{per_s} views a second, not 8 every 0.8 s");
        assert!((200_000.0 / seconds / Video::interests_per_s() - 1.0).abs() < 0.2);
        assert!(begun - finished < 40 && requests.video.objects() == 25_000);
    }
}
