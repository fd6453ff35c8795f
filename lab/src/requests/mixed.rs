//! Mixed requests: web and video at once.
//!
//! Source: Takemasa19 §5.4.1. Web requests are a Poisson process, independent of the videos; its rate gives web
//! requests their share of the traffic. The paper sets "the ratio of web to video traffic" to 0.7; here seven tenths of
//! all requests are web requests ([`PAPER_WEB_SHARE`]). If the paper means the quotient of the two, the share is 0.41;
//! [`Mixed::new`] takes any share. Both kinds have Data of the same size.
//!
//! Objects: first those of the web, then those of the videos.

use super::video::{VideoRequests, exponential_ns};
use super::web::WebRequests;
use super::{Request, Video, Web};

/// Share of web requests.
pub const PAPER_WEB_SHARE: f64 = 0.7;

/// The workload.
#[derive(Clone, Debug)]
pub struct Mixed {
    web: Web,
    video: Video,
    web_per_s: f64,
}

impl Mixed {
    /// A mixture in which `web_share` of all requests are web requests.
    ///
    /// # Panics
    /// If the share is not between 0 and 1, or there are more than 2³² objects.
    pub fn new(web: Web, video: Video, web_share: f64) -> Self {
        assert!(web_share > 0.0 && web_share < 1.0, "a share of {web_share}");
        assert!(web.objects().checked_add(video.objects()).is_some(), "too many objects");
        Self { web, video, web_per_s: web_share / (1.0 - web_share) * Video::interests_per_s() }
    }

    pub fn objects(&self) -> u32 {
        self.web.objects() + self.video.objects()
    }

    /// An endless stream of requests.
    pub fn requests(&self, seed: u64) -> MixedRequests {
        let mut random = fastrand::Rng::with_seed(seed);
        let (web, video) = (self.web.requests(random.u64(..)), self.video.requests(random.u64(..)));
        let web_due_ns = exponential_ns(&mut random, self.web_per_s);
        MixedRequests { web, web_objects: self.web.objects(), video, web_per_s: self.web_per_s, web_due_ns, random }
    }
}

#[derive(Clone, Debug)]
pub struct MixedRequests {
    web: WebRequests,
    web_objects: u32,
    video: VideoRequests,
    web_per_s: f64,
    web_due_ns: u64,
    random: fastrand::Rng,
}

impl Iterator for MixedRequests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.web_due_ns <= self.video.due_ns() {
            self.web_due_ns += exponential_ns(&mut self.random, self.web_per_s);
            return self.web.next();
        }
        let request = self.video.next()?;
        Some(Request { object: self.web_objects + request.object, ..request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_kept_and_objects_stay_apart() {
        let mixed = Mixed::new(Web::new(1_000, 0.8), Video::new(20, 100), PAPER_WEB_SHARE);
        let requests: Vec<Request> = mixed.requests(1).take(200_000).collect();
        let web = requests.iter().filter(|request| request.object < 1_000).count() as f64 / requests.len() as f64;
        assert!((web - 0.7).abs() < 0.02, "{web}");
        assert!(requests.iter().all(|request| request.object < mixed.objects()) && mixed.objects() == 3_000);
        assert!(requests.iter().any(|request| request.object == 2_999), "the last Data of a video");
        assert_eq!(mixed.requests(1).take(1_000).collect::<Vec<_>>(), requests[..1_000], "the same seed");
        assert_ne!(mixed.requests(2).take(1_000).collect::<Vec<_>>(), requests[..1_000], "another seed");
    }
}
