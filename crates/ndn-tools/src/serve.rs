//! `ndnputchunks`, lately `ndnserve`: the bytes of standard input as an object, until Ctrl-C.

use crate::{
    Call, FAILED, Stop, USAGE,
    command_line::{self, Common},
    environment::{self, check_naming, connect, not_registered},
    print_version, text,
};
use namewire_client::{
    InterestStream, PublishOptions, Reply, ReplyBatch, RespondError, SegmentPublisher,
    object_protocol::{Asked, metadata_name},
};
use namewire_packet::{Data, Interest, MAX_PACKET_BYTES, NackReason, NameBuf};
use namewire_printing::output::write_out;
use std::io::{Read, stdin};

#[derive(Debug, clap::Args)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// FreshnessPeriod of the segments, in milliseconds
    #[arg(short, long, default_value_t = 10_000)]
    freshness: i64,
    /// most bytes of content in a segment
    #[arg(short, long, default_value_t = 8000)]
    size: i64,
    /// how versions and segments are named: only typed
    #[arg(short = 'N', long)]
    naming_convention: Option<String>,
    /// who signs: id:NAME, key:NAME or cert:NAME
    #[arg(short = 'S', long)]
    signing_info: Option<String>,
    /// print the version on standard output
    #[arg(short, long)]
    print_data_version: bool,
    /// print errors only
    #[arg(short, long)]
    quiet: bool,
    /// print each Interest and its answer
    #[arg(short, long)]
    verbose: bool,
    name: Option<String>,
}

fn usage(called: &str) -> String {
    format!(
        "Usage: {called} [options] ndn:/name\n\nPublishes the bytes of standard input under a name.\n\n{}",
        command_line::options::<Args>()
    )
}

/// How to publish. The version is that of the name, if it has one.
fn plan(args: &Args) -> Result<PublishOptions, Stop> {
    check_naming(args.naming_convention.as_deref())?;
    let freshness_ms = u64::try_from(args.freshness).map_err(|_| Stop::usage("--freshness cannot be negative"))?;
    let sizes = 1..=MAX_PACKET_BYTES;
    let segment_bytes = usize::try_from(args.size).ok().filter(|size| sizes.contains(size));
    let segment_bytes =
        segment_bytes.ok_or_else(|| Stop::usage(format!("--size must be between 1 and {MAX_PACKET_BYTES}")))?;
    let signer = environment::signer(args.signing_info.as_deref().unwrap_or_default())?;
    if args.quiet && args.verbose {
        return Err(Stop::usage("cannot be quiet and verbose at the same time"));
    }
    Ok(PublishOptions { segment_bytes, freshness_ms, signer, ..PublishOptions::default() })
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
    let options = plan(&args)?;
    let mut name: NameBuf = name.parse().map_err(|error| Stop::error(FAILED, error))?;
    let version = name.as_name().last().and_then(|last| last.version());
    if version.is_some() {
        name.pop();
    }
    if !args.quiet {
        eprintln!("Loading input ...");
    }
    let mut content = Vec::new();
    stdin().lock().read_to_end(&mut content)?;
    // A segment that is larger than all of the content needs no room for more.
    let segment_bytes = options.segment_bytes.min(content.len().max(1));
    let options = PublishOptions { version, segment_bytes, ..options };
    let publisher = SegmentPublisher::of_bytes(&content, &name, options);
    let mut publisher = publisher.map_err(|error| Stop::error(FAILED, error))?;
    say_published(&args, &publisher)?;
    let client = connect(FAILED).await?;
    let mut interests = match publisher.open(&client).await {
        Ok(interests) => interests,
        Err(namewire_client::ServeError::Closed(reason)) => {
            return Err(Stop::error(FAILED, environment::lost(&reason)));
        }
        Err(error) => {
            let reason = not_registered(&error);
            return Err(Stop::error(FAILED, format!("Failed to register prefix '{name}' ({reason})")));
        }
    };
    let served = serve(&mut interests, &mut publisher, &name, args.verbose).await;
    served.map_err(|error| Stop::error(FAILED, error))?;
    Ok(0)
}

fn say_published(args: &Args, publisher: &SegmentPublisher) -> Result<(), Stop> {
    let name = publisher.versioned_name();
    if args.print_data_version {
        let version = name.as_name().last().map(|version| version.to_string()).unwrap_or_default();
        write_out(format!("{version}\n").as_bytes())?;
    }
    if !args.quiet {
        let packets = publisher.segments();
        let s = if packets > 1 { "s" } else { "" };
        eprintln!("Published {packets} Data packet{s} with prefix {name}");
    }
    Ok(())
}

/// Answers until the stream ends.
async fn serve(
    interests: &mut InterestStream,
    publisher: &mut SegmentPublisher,
    name: &NameBuf,
    is_verbose: bool,
) -> Result<(), RespondError> {
    let mut replies = ReplyBatch::default();
    while let Some(incoming) = interests.next().await {
        let interest = incoming.interest();
        let answer = Answer::to(&interest, publisher, name);
        let reply = match answer {
            Answer::Metadata | Answer::Segment => publisher.answer(&interest),
            Answer::Nack => Reply::Nack(NackReason::None),
            Answer::Nothing => Reply::Nothing,
        };
        if is_verbose {
            eprint!("{}", lines(&interest, answer, &reply, name));
        }
        replies.push(&incoming, &reply);
        match interests.client().send_replies(&mut replies).await {
            // The stream comes back with other Interests, or ends.
            Ok(()) | Err(RespondError::Closed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The kind of answer that ndnputchunks gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Metadata,
    Segment,
    Nack,
    Nothing,
}

impl Answer {
    fn to(interest: &Interest<'_>, publisher: &SegmentPublisher, name: &NameBuf) -> Self {
        let (asked, versioned) = (interest.name(), publisher.versioned_name());
        let is_heard = asked == name.as_name()
            || versioned.as_name().is_prefix_of(&asked)
            || metadata_name(name).as_name().is_prefix_of(&asked);
        match Asked::of(interest, name, versioned) {
            _ if !is_heard => Answer::Nothing,
            Asked::Metadata => Answer::Metadata,
            Asked::AnySegment => Answer::Segment,
            Asked::Segment { segment, .. } if segment < publisher.segments() => Answer::Segment,
            _ => Answer::Nack,
        }
    }
}

/// What `-v` prints.
fn lines(interest: &Interest<'_>, answer: Answer, reply: &Reply, name: &NameBuf) -> String {
    if answer == Answer::Nothing {
        return String::new();
    }
    let data = match reply {
        Reply::Data(wire) => Data::parse(wire).map(|data| text::data(&data)).unwrap_or_default(),
        _ => String::new(),
    };
    let is_discovery = metadata_name(name).as_name().is_prefix_of(&interest.name());
    let asked = text::interest(interest);
    match (is_discovery, answer) {
        (true, Answer::Metadata) => format!("Discovery Interest: {asked}\nSending metadata: {data}\n"),
        (true, _) => format!("Discovery Interest: {asked}\nDiscovery Interest lacks CanBePrefix, sending Nack\n"),
        (false, Answer::Segment) => format!("Interest: {asked}\nData: {data}\n"),
        (false, _) => format!("Interest: {asked}\nInterest cannot be satisfied, sending Nack\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::InterestBuilder;

    #[test]
    fn answers_are_those_of_ndnputchunks() {
        let name: NameBuf = "/a".parse().unwrap();
        let options = PublishOptions { version: Some(5), segment_bytes: 2, ..PublishOptions::default() };
        let publisher = SegmentPublisher::of_bytes(b"hello", &name, options).unwrap();
        let answer = |asked: &str, can_be_prefix| {
            let asked: NameBuf = asked.parse().unwrap();
            let builder = InterestBuilder::new(asked).can_be_prefix(can_be_prefix);
            Answer::to(&Interest::parse(&builder.build()).unwrap(), &publisher, &name)
        };
        assert_eq!(answer("/a", true), Answer::Segment);
        assert_eq!(answer("/a", false), Answer::Nack);
        assert_eq!(answer("/a/v=5", true), Answer::Segment);
        assert_eq!(answer("/a/v=5/seg=2", false), Answer::Segment);
        assert_eq!(answer("/a/v=5/seg=3", false), Answer::Nack);
        assert_eq!(answer("/a/32=metadata", true), Answer::Metadata);
        assert_eq!(answer("/a/32=metadata", false), Answer::Nack);
        assert_eq!(answer("/a/v=6/seg=0", false), Answer::Nothing);
        assert_eq!(answer("/a/b", true), Answer::Nothing);
    }
}
