//! What `ndncatchunks` tells of a fetch: a line for each event, two files of statistics, and a summary.

use crate::{Stop, text::number};
use namewire_client::{FetchEvent, FetchProgress};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Exit code: a file for statistics cannot be written.
const NO_LOG: u8 = 4;

/// The kind of window: events of the two have other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipeline {
    Fixed,
    Adaptive,
}

/// The files of `--log-cwnd` and `--log-rtt`.
#[derive(Debug, Default)]
pub(super) struct Logs {
    window: Option<BufWriter<File>>,
    round_trips: Option<BufWriter<File>>,
}

impl Logs {
    /// Opens them, unless nothing is logged.
    pub(super) fn open(window: Option<&str>, round_trips: Option<&str>, is_logged: bool) -> Result<Self, Stop> {
        let open = |path: Option<&str>, head: &[u8]| match path.filter(|path| is_logged && !path.is_empty()) {
            None => Ok(None),
            Some(path) => {
                let file = File::create(path).and_then(|file| {
                    let mut file = BufWriter::new(file);
                    file.write_all(head).map(|()| file)
                });
                file.map(Some).map_err(|_| Stop::error(NO_LOG, format!("failed to open '{path}'")))
            }
        };
        Ok(Logs {
            window: open(window, b"time\tcwndsize\n")?,
            round_trips: open(round_trips, b"segment\trtt\trttvar\tsrtt\trto\n")?,
        })
    }
}

/// Notes the events of a fetch.
pub(super) struct Account {
    is_verbose: bool,
    pipeline: Pipeline,
    counts: Mutex<Counts>,
}

struct Counts {
    logs: Logs,
    log_error: Option<io::Error>,
    began: Instant,
    sent: u64,
    repeated: u64,
    mark_decreases: u64,
    loss_decreases: u64,
    round_trips: u32,
    round_trip_sum: Duration,
    round_trip_min: Duration,
    round_trip_max: Duration,
}

impl Account {
    pub(super) fn new(logs: Logs, is_verbose: bool, pipeline: Pipeline) -> Arc<Self> {
        let counts = Counts {
            logs,
            log_error: None,
            began: Instant::now(),
            sent: 0,
            repeated: 0,
            mark_decreases: 0,
            loss_decreases: 0,
            round_trips: 0,
            round_trip_sum: Duration::ZERO,
            round_trip_min: Duration::MAX,
            round_trip_max: Duration::ZERO,
        };
        Arc::new(Account { is_verbose, pipeline, counts: Mutex::new(counts) })
    }

    /// The version is known: the time of the segments begins.
    pub(super) fn begin(&self) {
        self.lock().began = Instant::now();
    }

    pub(super) fn note(&self, event: &FetchEvent<'_>) {
        if self.is_verbose {
            eprint!("{}", self.lines(event));
        }
        let mut counts = self.lock();
        if let Err(error) = counts.note(event) {
            counts.log_error.get_or_insert(error);
        }
    }

    /// Finishes the files.
    pub(super) fn close(&self) -> io::Result<()> {
        let mut counts = self.lock();
        let Counts { logs, log_error, .. } = &mut *counts;
        log_error.take().map_or(Ok(()), Err)?;
        [&mut logs.window, &mut logs.round_trips].into_iter().flatten().try_for_each(Write::flush)
    }

    pub(super) fn summary(&self, progress: &FetchProgress) -> String {
        let counts = self.lock();
        let seconds = counts.began.elapsed().as_secs_f64();
        let text = format!(
            "\n\nAll segments have been received.\nTime elapsed: {} seconds\nSegments received: {}\nTransferred size: {} \
             kB\nGoodput: {}\n",
            number(seconds),
            progress.segments,
            number(progress.bytes as f64 / 1e3),
            rate(8.0 * progress.bytes as f64 / seconds)
        );
        match self.pipeline {
            Pipeline::Fixed => text,
            Pipeline::Adaptive => format!("{text}{}", counts.summary(progress)),
        }
    }

    /// What `-v` prints.
    fn lines(&self, event: &FetchEvent<'_>) -> String {
        let is_adaptive = self.pipeline == Pipeline::Adaptive;
        let ms = |time: Duration| number(time.as_secs_f64() * 1e3);
        match event {
            FetchEvent::Metadata(data) => format!("Data: {}\n", crate::text::data(data)),
            FetchEvent::Requested { segment, retries: 0 } => format!("Requesting segment #{segment}\n"),
            FetchEvent::Requested { segment, retries } if is_adaptive => {
                format!("Retransmitting segment #{segment}\n# of retries for segment #{segment} is {retries}\n")
            }
            FetchEvent::Received { segment, round_trip, estimate, .. } if is_adaptive => {
                format!("Received segment #{segment}, rtt={}ms, rto={}ms\n", ms(*round_trip), ms(estimate.rto()))
            }
            FetchEvent::Received { segment, .. } => format!("Received segment #{segment}\n"),
            FetchEvent::Congestion { mark: 0, window, threshold } if is_adaptive => {
                format!("Packet loss event, new cwnd = {}, ssthresh = {}\n", number(*window), number(*threshold))
            }
            FetchEvent::Congestion { mark, window, .. } if is_adaptive => {
                format!("Received congestion mark, value = {mark}, new cwnd = {}\n", number(*window))
            }
            _ => String::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn note(&mut self, event: &FetchEvent<'_>) -> io::Result<()> {
        match *event {
            FetchEvent::Requested { retries, .. } => {
                self.sent += 1;
                self.repeated += u64::from(retries > 0);
            }
            FetchEvent::Received { segment, round_trip, is_sample: true, estimate } => {
                self.round_trips += 1;
                self.round_trip_sum += round_trip;
                self.round_trip_min = self.round_trip_min.min(round_trip);
                self.round_trip_max = self.round_trip_max.max(round_trip);
                if let Some(log) = &mut self.logs.round_trips {
                    let smoothed = estimate.srtt().unwrap_or_default();
                    let times = [round_trip, estimate.variation(), smoothed, estimate.rto()];
                    let [rtt, variation, smoothed, rto] = times.map(|time| number(time.as_secs_f64() * 1e3));
                    writeln!(log, "{segment}\t{rtt}\t{variation}\t{smoothed}\t{rto}")?;
                }
            }
            FetchEvent::Window(window) => {
                if let Some(log) = &mut self.logs.window {
                    writeln!(log, "{}\t{}", number(self.began.elapsed().as_secs_f64()), number(window))?;
                }
            }
            FetchEvent::Congestion { mark: 0, .. } => self.loss_decreases += 1,
            FetchEvent::Congestion { .. } => self.mark_decreases += 1,
            FetchEvent::Received { .. } | FetchEvent::Metadata(_) => {}
        }
        Ok(())
    }

    fn summary(&self, progress: &FetchProgress) -> String {
        let share = if self.sent == 0 { 0.0 } else { self.repeated as f64 * 100.0 / self.sent as f64 };
        format!(
            "Congestion marks: {} (caused {} window decreases)\nTimeouts: {} (caused {} window decreases)\nRetransmitted \
             segments: {} ({}%), skipped: 0\nRTT {}\n",
            progress.congestion_marks,
            self.mark_decreases,
            progress.timeouts + progress.losses,
            self.loss_decreases,
            self.repeated,
            number(share),
            self.round_trips()
        )
    }

    fn round_trips(&self) -> String {
        if self.round_trips == 0 {
            return "stats unavailable".to_owned();
        }
        let mean = self.round_trip_sum / self.round_trips;
        let times = [self.round_trip_min, mean, self.round_trip_max];
        let [least, mean, most] = times.map(|time| format!("{:.3}", time.as_secs_f64() * 1e3));
        format!("min/avg/max = {least}/{mean}/{most} ms")
    }
}

/// `8.400000 Mbit/s`.
fn rate(bits_per_s: f64) -> String {
    const UNITS: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let (mut rate, mut unit) = (bits_per_s, 0);
    while rate >= 1000.0 && unit + 1 < UNITS.len() {
        rate /= 1000.0;
        unit += 1;
    }
    format!("{rate:.6} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_client::rtt_estimator::RttEstimator;

    #[test]
    fn rates_have_units() {
        assert_eq!(rate(999.0), "999.000000 bit/s");
        assert_eq!(rate(8_400_000.0), "8.400000 Mbit/s");
        assert_eq!(rate(2e16), "20000.000000 Tbit/s");
    }

    #[test]
    fn events_become_lines_counts_and_logs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let logs = Logs::open(Some(&at("window")), Some(&at("rtt")), true).unwrap();
        let account = Account::new(logs, false, Pipeline::Adaptive);
        let ms = Duration::from_millis;
        let mut estimate = RttEstimator::new(ms(200), ms(4000));
        estimate.add_sample(ms(80));
        let received =
            |is_sample| FetchEvent::Received { segment: 3, round_trip: ms(80), is_sample, estimate: &estimate };
        let events = [
            FetchEvent::Requested { segment: 3, retries: 0 },
            FetchEvent::Requested { segment: 4, retries: 2 },
            received(true),
            received(false),
            FetchEvent::Congestion { mark: 1, window: 2.5, threshold: 2.5 },
            FetchEvent::Congestion { mark: 0, window: 2.0, threshold: 2.5 },
            FetchEvent::Window(2.5),
        ];
        let lines: String = events.iter().map(|event| account.lines(event)).collect();
        assert_eq!(
            lines,
            "Requesting segment #3\nRetransmitting segment #4\n# of retries for segment #4 is 2\n\
             Received segment #3, rtt=80ms, rto=240ms\nReceived segment #3, rtt=80ms, rto=240ms\n\
             Received congestion mark, value = 1, new cwnd = 2.5\nPacket loss event, new cwnd = 2, ssthresh = 2.5\n"
        );
        events.iter().for_each(|event| account.note(event));
        account.close().unwrap();
        assert!(std::fs::read_to_string(at("window")).unwrap().ends_with("\t2.5\n"));
        let log = std::fs::read_to_string(at("rtt")).unwrap();
        assert_eq!(log, "segment\trtt\trttvar\tsrtt\trto\n3\t80\t40\t80\t240\n");
        let counts = account.lock();
        assert_eq!((counts.sent, counts.repeated, counts.mark_decreases, counts.loss_decreases), (2, 1, 1, 1));
        assert_eq!(counts.round_trips(), "min/avg/max = 80.000/80.000/80.000 ms");
        assert!(Logs::open(Some("/nonexistent/none"), None, true).is_err_and(|stop| stop.code == NO_LOG));
        assert!(Logs::open(Some("/nonexistent/none"), None, false).is_ok(), "a fixed window has no log");
    }
}
