//! Cases: the requests and the sizes of the store.
//!
//! Source: Takemasa19 §5.4.1 and Fig. 5.6: web, video and mixed requests, stores of 1 to 10 % of the objects. Ours:
//! stores of a thousandth, and traces. Requests of constant popularity are generated as long as needed; a trace runs
//! once, from an empty store.
//!
//! At quick scale there are 10⁶ objects, but the paper's point ([`web_point`]) has the paper's 10⁷.
//!
//! Length: the standard error of a hit ratio over n independent requests is at most 0.5 / √n, below 0.0004 for 2·10⁶
//! counted requests. [`Case::warm_up`] requests come before, so that the content of the store no longer depends on its
//! empty start. Policies that admit little are the slowest: at an insertion rate of 0.02 a request, the store has
//! turned over after 50 C requests. Requests for videos are not independent: 10⁶ of them are 1,000 views, and another
//! seed has hit ratios that differ by up to two points (in the same direction for all policies).

use serde::Deserialize;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::experiment::Context;
use crate::requests::{Mixed, Request, Trace, Video, Web, mixed, trace, web};

/// Requests of one kind.
#[derive(Clone, Debug)]
pub(super) enum Workload {
    Web(Web),
    Video(Video),
    Mixed(Mixed),
    Trace(Arc<Trace>),
}

impl Workload {
    pub(super) fn objects(&self) -> u32 {
        match self {
            Self::Web(web) => web.objects(),
            Self::Video(video) => video.objects(),
            Self::Mixed(mixed) => mixed.objects(),
            Self::Trace(trace) => trace.objects,
        }
    }

    /// Calls `each` with at most `count` requests in order.
    pub(super) fn for_each(&self, count: usize, seed: u64, mut each: impl FnMut(Request)) {
        match self {
            Self::Web(web) => web.requests(seed).take(count).for_each(each),
            Self::Video(video) => video.requests(seed).take(count).for_each(each),
            Self::Mixed(mixed) => mixed.requests(seed).take(count).for_each(each),
            Self::Trace(trace) => trace.requests.iter().take(count).for_each(|request| each(*request)),
        }
    }

    /// At most `count` requests in order.
    pub(super) fn requests(&self, count: usize, seed: u64) -> Cow<'_, [Request]> {
        if let Self::Trace(trace) = self {
            return Cow::Borrowed(&trace.requests[..count.min(trace.requests.len())]);
        }
        let mut requests = Vec::with_capacity(count);
        self.for_each(count, seed, |request| requests.push(request));
        Cow::Owned(requests)
    }
}

/// A workload and a store.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The workload's name.
    pub(super) title: String,
    pub(super) workload: Workload,
    /// Zipf's exponent, if requests are independent.
    pub(super) alpha: Option<f64>,
    /// Entries of the store.
    pub(super) capacity: u32,
    /// The same in thousandths of the objects.
    pub(super) thousandths: u32,
    /// Requests before the first that is counted.
    pub(super) warm_up: usize,
    /// Requests that are counted.
    pub(super) counted: usize,
}

impl Case {
    /// Requests in all.
    pub(super) fn requests(&self) -> usize {
        self.warm_up + self.counted
    }

    fn new(title: &str, workload: &Workload, alpha: Option<f64>, thousandths: u32, size: &Size) -> Self {
        let objects = workload.objects();
        let capacity = (u64::from(objects) * u64::from(thousandths) / 1000).max(1) as u32;
        let (warm_up, counted) = match workload {
            Workload::Trace(trace) => (0, trace.requests.len()),
            _ => {
                let warm_up = size.warm_up_per_entry * capacity as usize;
                (warm_up.clamp(size.warm_up_least, size.warm_up_most), size.counted)
            }
        };
        Self { title: title.to_owned(), workload: workload.clone(), alpha, capacity, thousandths, warm_up, counted }
    }

    /// The name in records.
    pub(super) fn name(&self) -> String {
        let percent = f64::from(self.thousandths) / 10.0;
        format!("{}, {percent} % = {} Data", self.title, self.capacity)
    }
}

/// Sizes of a run.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    web_objects: u32,
    video: (u32, u32),
    mixed_web_objects: u32,
    mixed_video: (u32, u32),
    web_thousandths: Vec<u32>,
    /// Objects of the paper's point.
    point_objects: u32,
    invented_requests: usize,
    warm_up_per_entry: usize,
    /// The same for the paper's point: TinyLFU has a window of 50 C there.
    point_warm_up_per_entry: usize,
    warm_up_least: usize,
    warm_up_most: usize,
    counted: usize,
}

/// The store sizes on which the choice of the default is based.
pub(super) const THOUSANDTHS: [u32; 3] = [1, 10, 100];

/// All cases of a run: the paper's workloads, then traces.
///
/// # Errors
/// If a trace cannot be read.
pub(super) fn cases(context: &Context, size: &Size) -> anyhow::Result<Vec<Case>> {
    let alpha = web::PAPER_ALPHA;
    let paper_web = Web::new(size.web_objects, alpha);
    let mixed_web = if size.mixed_web_objects == size.web_objects {
        paper_web.clone()
    } else {
        Web::new(size.mixed_web_objects, alpha)
    };
    let mixed_video = Video::new(size.mixed_video.0, size.mixed_video.1);
    let mixed = Mixed::new(mixed_web, mixed_video, mixed::PAPER_WEB_SHARE);
    let mut cases = Vec::new();
    let mut add = |title: &str, workload: Workload, alpha: Option<f64>, thousandths: &[u32]| {
        cases.extend(thousandths.iter().map(|&thousandths| Case::new(title, &workload, alpha, thousandths, size)));
    };
    add("web", Workload::Web(paper_web), Some(alpha), &size.web_thousandths);
    add("video", Workload::Video(Video::new(size.video.0, size.video.1)), None, &THOUSANDTHS);
    add("mixed", Workload::Mixed(mixed), None, &THOUSANDTHS);
    for trace in trace::traces(context.trace.as_deref().map(Path::new), size.invented_requests, context.seed)? {
        let title = trace.title.clone();
        add(&title, Workload::Trace(Arc::new(trace)), None, &THOUSANDTHS);
    }
    Ok(cases)
}

/// The paper's web point, 1 % of the objects, with another exponent.
pub(super) fn web_point(alpha: f64, size: &Size) -> Case {
    let workload = Workload::Web(Web::new(size.point_objects, alpha));
    let size = Size { warm_up_per_entry: size.point_warm_up_per_entry, ..size.clone() };
    Case::new(&format!("web, alpha {alpha}"), &workload, Some(alpha), 10, &size)
}
