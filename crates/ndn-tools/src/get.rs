//! `ndncatchunks`, lately `ndnget`: an object of many segments, on standard output.

mod account;

use crate::{
    Call, FAILED, Stop, USAGE,
    command_line::{self, Common},
    environment::{self, check_naming, connect},
    print_version,
    text::number,
};
use account::{Account, Logs, Pipeline};
use namewire_client::{
    Client, Discovery, ExpressError, FetchError, FetchOptions, FetchProgress, FetchWatch, SegmentFetch,
    congestion_window::{CongestionControl, WindowTuning},
    object_protocol::metadata_name,
};
use namewire_packet::NameBuf;
use namewire_printing::output::write_out;
use std::{io, os::fd::AsFd, sync::Arc, time::Duration};
use tokio::io::BufWriter;

/// Exit code: the producer has no such Data.
const APPLICATION_NACK: u8 = 3;
/// Exit code: a packet is not what it claims to be.
const INVALID_DATA: u8 = 5;
/// Most segments in flight while the window adapts.
const WINDOW_MAX: usize = 1024;
/// Stands for "without end": ten years.
const PATIENCE_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Bytes that are written together.
const OUTPUT_BYTES: usize = 256 * 1024;

const NO_END: &str = "Fetching terminated but no final segment number has been found";

const BASIC: &str = "Basic Options";
const FIXED: &str = "Fixed pipeline options";
const ADAPTIVE: &str = "Adaptive pipeline options (AIMD & CUBIC)";
const AIMD: &str = "AIMD pipeline options";
const CUBIC: &str = "CUBIC pipeline options";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = BASIC)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// take no stale Data from caches (MustBeFresh in all Interests)
    #[arg(short, long)]
    fresh: bool,
    /// InterestLifetime, in milliseconds
    #[arg(short, long, default_value_t = 4000)]
    lifetime: i64,
    /// how often a segment is asked for again (-1: without end)
    #[arg(short, long, default_value_t = 15)]
    retries: i32,
    /// how the window changes: fixed, aimd or cubic
    #[arg(short, long, default_value = "cubic")]
    pipeline_type: String,
    /// ask for the name as it is, without looking for a version
    #[arg(short = 'D', long)]
    no_version_discovery: bool,
    /// how versions and segments are named: only typed
    #[arg(short = 'N', long)]
    naming_convention: Option<String>,
    /// print errors only
    #[arg(short, long)]
    quiet: bool,
    /// print what happens, for each segment
    #[arg(short, long)]
    verbose: bool,
    /// segments in flight
    #[arg(short = 's', long, default_value_t = 1, help_heading = FIXED)]
    pipeline_size: i64,
    #[command(flatten)]
    adaptive: Adaptive,
    name: Option<String>,
}

/// Options of a window that adapts.
#[derive(Debug, clap::Args)]
struct Adaptive {
    /// CongestionMarks have no effect
    #[arg(long, help_heading = ADAPTIVE)]
    ignore_marks: bool,
    /// decrease the window at each sign of congestion, not once per round trip
    #[arg(long, help_heading = ADAPTIVE)]
    disable_cwa: bool,
    /// window at the start, in segments
    #[arg(long, default_value_t = 2.0, help_heading = ADAPTIVE)]
    init_cwnd: f64,
    /// slow start ends here, in segments (without it: at congestion)
    #[arg(long, help_heading = ADAPTIVE)]
    init_ssthresh: Option<f64>,
    /// no effect: 0.125
    #[arg(long, default_value_t = 0.125, help_heading = ADAPTIVE)]
    rto_alpha: f64,
    /// no effect: 0.25
    #[arg(long, default_value_t = 0.25, help_heading = ADAPTIVE)]
    rto_beta: f64,
    /// no effect: 4
    #[arg(long, default_value_t = 8, help_heading = ADAPTIVE)]
    rto_k: i32,
    /// least retransmission time-out, in milliseconds
    #[arg(long, default_value_t = 200, help_heading = ADAPTIVE)]
    min_rto: i64,
    /// greatest retransmission time-out, in milliseconds
    #[arg(long, default_value_t = 60_000, help_heading = ADAPTIVE)]
    max_rto: i64,
    /// file for the window over time
    #[arg(long, help_heading = ADAPTIVE)]
    log_cwnd: Option<String>,
    /// file for the round-trip times
    #[arg(long, help_heading = ADAPTIVE)]
    log_rtt: Option<String>,
    /// segments by which the window grows each round trip
    #[arg(long, default_value_t = 1.0, help_heading = AIMD)]
    aimd_step: f64,
    /// factor on the window at congestion
    #[arg(long, default_value_t = 0.5, help_heading = AIMD)]
    aimd_beta: f64,
    /// at congestion, go back to the window of the start
    #[arg(long, help_heading = AIMD)]
    reset_cwnd_to_init: bool,
    /// factor on the window at congestion (without it: 0.7)
    #[arg(long, help_heading = CUBIC)]
    cubic_beta: Option<f64>,
    /// make room for others when the window shrinks twice in a row
    #[arg(long, help_heading = CUBIC)]
    fast_conv: bool,
}

impl Adaptive {
    fn tuning(&self) -> WindowTuning {
        let usual = WindowTuning::default();
        WindowTuning {
            slow_start_threshold: self.init_ssthresh.unwrap_or(usual.slow_start_threshold),
            aimd_step: self.aimd_step,
            aimd_beta: self.aimd_beta,
            resets: self.reset_cwnd_to_init,
            cubic_beta: self.cubic_beta.unwrap_or(usual.cubic_beta),
            fast_convergence: self.fast_conv,
            ignores_marks: self.ignore_marks,
            heeds_each_sign: self.disable_cwa,
        }
    }
}

fn usage(called: &str) -> String {
    format!("Usage: {called} [options] ndn:/name\n\n{}", command_line::options::<Args>())
}

/// What is wrong with the numbers, if something is.
fn problem(args: &Args) -> Option<&'static str> {
    let adaptive = &args.adaptive;
    let problems = [
        (args.lifetime < 0, "--lifetime cannot be negative"),
        (!(-1..=1024).contains(&args.retries), "--retries must be between -1 and 1024"),
        (args.quiet && args.verbose, "cannot be quiet and verbose at the same time"),
        (!(1..=1024).contains(&args.pipeline_size), "--pipeline-size must be between 1 and 1024"),
        (adaptive.rto_k < 0, "--rto-k cannot be negative"),
        (adaptive.min_rto < 0, "--min-rto cannot be negative"),
        (adaptive.max_rto < adaptive.min_rto, "--max-rto cannot be smaller than --min-rto"),
    ];
    problems.into_iter().find(|(is_wrong, _)| *is_wrong).map(|(_, text)| text)
}

fn plan(args: &Args, control: CongestionControl) -> FetchOptions {
    let (window_initial, window_max) = match control {
        CongestionControl::Fixed => (args.pipeline_size as usize, args.pipeline_size as usize),
        _ => (args.adaptive.init_cwnd as usize, WINDOW_MAX),
    };
    let lifetime_ms = args.lifetime.unsigned_abs();
    let retries_max = u32::try_from(args.retries).unwrap_or(u32::MAX);
    // As long as all attempts of ndncatchunks take, one after the other.
    let patience = Duration::from_millis(lifetime_ms).saturating_mul(retries_max.saturating_add(1));
    FetchOptions {
        discovery: if args.no_version_discovery { Discovery::None } else { Discovery::Metadata },
        congestion_control: control,
        window_initial: window_initial.clamp(1, window_max),
        window_max,
        window_tuning: args.adaptive.tuning(),
        retries_max,
        rto_min: Duration::from_millis(args.adaptive.min_rto.unsigned_abs()),
        rto_max: Duration::from_millis(args.adaptive.max_rto.unsigned_abs()),
        lifetime_ms,
        must_be_fresh: args.fresh,
        // Only the last segment may say which is the last.
        must_end: true,
        size_bytes_max: u64::MAX - 1,
        patience: patience.min(PATIENCE_MAX),
        ..FetchOptions::default()
    }
}

pub(crate) async fn run(call: &Call) -> Result<u8, Stop> {
    let args: Args = command_line::parse(&call.words).map_err(Stop::usage)?;
    if args.common.help {
        write_out(usage(&call.called).as_bytes())?;
        return Ok(0);
    }
    if args.common.version {
        return print_version(call.program());
    }
    let Some(name) = args.name.as_deref().filter(|name| !name.is_empty()) else {
        return Err(Stop { code: USAGE, message: usage(&call.called) });
    };
    check_naming(args.naming_convention.as_deref())?;
    if let Some(problem) = problem(&args) {
        return Err(Stop::usage(problem));
    }
    let name: NameBuf = name.parse().map_err(|error| Stop::error(FAILED, error))?;
    let control = match args.pipeline_type.as_str() {
        "fixed" => CongestionControl::Fixed,
        "aimd" => CongestionControl::Aimd,
        "cubic" => CongestionControl::Cubic,
        other => return Err(Stop::usage(format!("'{other}' is not a valid pipeline type"))),
    };
    if args.verbose {
        eprint!("{}", parameters(&args, control));
    }
    let is_adaptive = control != CongestionControl::Fixed;
    let logs = Logs::open(args.adaptive.log_cwnd.as_deref(), args.adaptive.log_rtt.as_deref(), is_adaptive)?;
    let account = Account::new(logs, args.verbose, if is_adaptive { Pipeline::Adaptive } else { Pipeline::Fixed });
    let watch = Arc::clone(&account);
    let options = FetchOptions { watch: Some(FetchWatch::new(move |event| watch.note(event))), ..plan(&args, control) };
    let client = connect(FAILED).await?;
    let progress = fetch(&client, &args, &name, options, &account).await?;
    account.close()?;
    if !args.quiet {
        eprint!("{}", account.summary(&progress));
    }
    Ok(0)
}

async fn fetch(
    client: &Client,
    args: &Args,
    name: &NameBuf,
    options: FetchOptions,
    account: &Account,
) -> Result<FetchProgress, Stop> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, tokio::fs::File::from_std(stdout.into()));
    let is_discovered = options.discovery == Discovery::Metadata && !has_version(name);
    let fetch = SegmentFetch::new(client, name.clone(), options);
    let found = fetch.find().await.map_err(|error| not_found(error, name, args.retries))?;
    let versioned = found.versioned_name();
    if is_discovered && !has_version(versioned) {
        return Err(Stop::error(FAILED, format!("{versioned} is not a valid versioned name")));
    }
    if let Some(version) = versioned.as_name().last().filter(|_| is_discovered && args.verbose) {
        eprintln!("Discovered Data version: {version}");
    }
    let versioned = versioned.clone();
    account.begin();
    let mut has_end = false;
    let note = |progress: &FetchProgress, _: &mut _| {
        has_end = progress.segments_total.is_some();
        Ok(())
    };
    let fetched = fetch.run_from(found, 0, &mut out, note).await;
    fetched.map_err(|error| not_fetched(error, &versioned, args, has_end))
}

fn has_version(name: &NameBuf) -> bool {
    name.as_name().last().is_some_and(|last| last.version().is_some())
}

/// No version was found.
fn not_found(error: FetchError, name: &NameBuf, retries: i32) -> Stop {
    let asked = metadata_name(name);
    match error {
        FetchError::NotFound { cause: ExpressError::Nack(reason), .. } => {
            Stop::error(FAILED, format!("Could not retrieve data for {asked}, reason: {reason}"))
        }
        FetchError::NotFound { cause: ExpressError::Timeout(_), .. } => Stop::error(FAILED, late(retries, &asked)),
        FetchError::BadMetadata(_) => Stop::error(FAILED, format!("Invalid metadata packet: {error}")),
        error => ended(error),
    }
}

/// A segment did not come.
fn not_fetched(error: FetchError, versioned: &NameBuf, args: &Args, has_end: bool) -> Stop {
    let of_segment = |segment| {
        let mut name = versioned.clone();
        name.push_segment(segment);
        name
    };
    match error {
        FetchError::NotFound { cause: ExpressError::Timeout(_), .. } | FetchError::NoEnd => Stop::error(FAILED, NO_END),
        FetchError::SegmentTimeout { .. } | FetchError::SegmentNack { .. } if !has_end => Stop::error(FAILED, NO_END),
        FetchError::SegmentTimeout { segment, .. } if args.pipeline_type == "fixed" => {
            Stop::error(FAILED, late(args.retries, &of_segment(segment)))
        }
        FetchError::SegmentTimeout { segment, .. } => {
            let retries = args.retries;
            let text = format!("Reached the maximum number of retries ({retries}) while retrieving segment #{segment}");
            Stop::error(FAILED, text)
        }
        FetchError::SegmentNack { segment, reason } => {
            Stop::error(FAILED, format!("Could not retrieve data for {}, reason: {reason}", of_segment(segment)))
        }
        error => ended(error),
    }
}

fn late(retries: i32, asked: &NameBuf) -> String {
    format!("Reached the maximum number of timeout retries ({retries}) while retrieving data for {asked}")
}

/// What may happen at any time.
fn ended(error: FetchError) -> Stop {
    match error {
        FetchError::ApplicationNack(name) => {
            Stop::error(APPLICATION_NACK, format!("Application generated Nack: Name: {name}"))
        }
        // A reader that has seen enough, such as `head`, is told nothing.
        FetchError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Stop { code: FAILED, message: String::new() }
        }
        FetchError::BadDigest(_) | FetchError::NotInManifest(_) => Stop::error(INVALID_DATA, error),
        FetchError::Connection(ExpressError::Closed(reason))
        | FetchError::NotFound { cause: ExpressError::Closed(reason), .. } => {
            Stop::error(FAILED, environment::lost(&reason))
        }
        error => Stop::error(FAILED, error),
    }
}

/// What `-v` prints before anything happens.
fn parameters(args: &Args, control: CongestionControl) -> String {
    let adaptive = &args.adaptive;
    let yes = |is_so| if is_so { "yes" } else { "no" };
    let retries = if args.retries < 0 { "infinite".to_owned() } else { args.retries.to_string() };
    let pipeline = format!(
        "Pipeline parameters:\n\tRequest fresh content = {}\n\tInterest lifetime = {}\n\tMax retries on timeout or Nack = \
         {retries}\n",
        yes(args.fresh),
        milliseconds(args.lifetime),
    );
    if control == CongestionControl::Fixed {
        return format!("{pipeline}\tPipeline size = {}\n", args.pipeline_size);
    }
    let estimator = format!(
        "RTT estimator parameters:\n\tAlpha = {}\n\tBeta = {}\n\tK = {}\n\tInitial RTO = 1000 milliseconds\n\tMin RTO = \
         {}\n\tMax RTO = {}\n\tBackoff multiplier = 2\n",
        number(adaptive.rto_alpha),
        number(adaptive.rto_beta),
        adaptive.rto_k,
        milliseconds(adaptive.min_rto),
        milliseconds(adaptive.max_rto),
    );
    let window = format!(
        "\tInitial congestion window size = {}\n\tInitial slow start threshold = {}\n\tAdditive increase step = \
         {}\n\tMultiplicative decrease factor = {}\n\tRTO check interval = 10 milliseconds\n\tReact to congestion marks = \
         {}\n\tConservative window adaptation = {}\n\tResetting window to {} upon loss event\n",
        number(adaptive.init_cwnd),
        number(adaptive.init_ssthresh.unwrap_or(f64::MAX)),
        number(adaptive.aimd_step),
        number(adaptive.aimd_beta),
        yes(!adaptive.ignore_marks),
        yes(!adaptive.disable_cwa),
        if adaptive.reset_cwnd_to_init { "initial value" } else { "ssthresh" },
    );
    let cubic = match control {
        CongestionControl::Cubic => format!(
            "\tCubic beta = {}\n\tFast convergence = {}\n",
            number(adaptive.tuning().cubic_beta),
            yes(adaptive.fast_conv)
        ),
        _ => String::new(),
    };
    format!("{estimator}{pipeline}{window}{cubic}")
}

/// `1 millisecond`.
fn milliseconds(count: i64) -> String {
    format!("{count} millisecond{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::NackReason;

    fn args(line: &str) -> Args {
        command_line::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn failures_have_the_words_of_ndncatchunks() {
        let name: NameBuf = "/a/v=1".parse().unwrap();
        let segment = |has_end, pipeline: &str, error| {
            not_fetched(error, &name, &args(&format!("-r 3 -p {pipeline} /a")), has_end).message
        };
        let timeout = || FetchError::SegmentTimeout { segment: 4, attempts: 4 };
        let nack = || FetchError::SegmentNack { segment: 4, reason: NackReason::NoRoute };
        assert_eq!(
            segment(true, "cubic", timeout()),
            "ERROR: Reached the maximum number of retries (3) while retrieving segment #4\n"
        );
        assert_eq!(
            segment(true, "fixed", timeout()),
            "ERROR: Reached the maximum number of timeout retries (3) while retrieving data for /a/v=1/seg=4\n"
        );
        assert_eq!(segment(true, "aimd", nack()), "ERROR: Could not retrieve data for /a/v=1/seg=4, reason: NoRoute\n");
        for error in [timeout(), nack(), FetchError::NoEnd] {
            assert_eq!(segment(false, "cubic", error), format!("ERROR: {NO_END}\n"));
        }
        assert_eq!(ended(FetchError::ApplicationNack(name.clone())).code, APPLICATION_NACK);
        assert_eq!(ended(FetchError::BadDigest(name)).code, INVALID_DATA);
        assert_eq!(ended(FetchError::Output(io::ErrorKind::BrokenPipe.into())).message, "");
    }

    #[test]
    fn options_reach_the_fetch() {
        let line = "-fr -1 -l 100 --init-cwnd 3 --init-ssthresh 9 --aimd-beta 0.9 --disable-cwa --fast-conv /a";
        let options = plan(&args(line), CongestionControl::Aimd);
        assert_eq!((options.must_be_fresh, options.retries_max, options.window_initial), (true, u32::MAX, 3));
        let tuning = options.window_tuning;
        assert_eq!((tuning.slow_start_threshold, tuning.aimd_beta, tuning.cubic_beta), (9.0, 0.9, 0.7));
        assert!(tuning.heeds_each_sign && tuning.fast_convergence && !tuning.resets && !tuning.ignores_marks);
        assert!(options.patience <= PATIENCE_MAX);
        let fixed = plan(&args("-s 7 /a"), CongestionControl::Fixed);
        assert_eq!((fixed.window_initial, fixed.window_max), (7, 7));
    }
}
