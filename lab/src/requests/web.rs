//! Web requests: independent requests for objects of one Data each.
//!
//! Source: Takemasa19 §5.4.1. There are 10⁷ objects, Zipf with α = 0.8. Arrivals are a Poisson process, so successive
//! objects are independent, and the rate does not matter to a cache. Object 0 is the most popular.

use std::sync::Arc;

use super::popularity::Popularity;
use super::{DATA_BYTES, Request};

/// Objects of the paper.
pub const PAPER_OBJECTS: u32 = 10_000_000;
/// Exponent of the paper.
pub const PAPER_ALPHA: f64 = 0.8;

/// The workload.
#[derive(Clone, Debug)]
pub struct Web {
    popularity: Arc<Popularity>,
}

impl Web {
    /// `objects` objects with Zipf's `alpha`.
    pub fn new(objects: u32, alpha: f64) -> Self {
        Self { popularity: Arc::new(Popularity::zipf(objects, alpha)) }
    }

    /// How many objects.
    pub fn objects(&self) -> u32 {
        self.popularity.objects()
    }

    /// An endless stream of requests.
    pub fn requests(&self, seed: u64) -> WebRequests {
        WebRequests { popularity: Arc::clone(&self.popularity), random: fastrand::Rng::with_seed(seed) }
    }
}

#[derive(Clone, Debug)]
pub struct WebRequests {
    popularity: Arc<Popularity>,
    random: fastrand::Rng,
}

impl Iterator for WebRequests {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        Some(Request { object: self.popularity.draw(self.random.u64(..)), bytes: DATA_BYTES })
    }
}
