//! `ndndump`: the NDN packets in captured frames, a line each.

mod layers;

use crate::{
    Call, FAILED, Stop, USAGE, VERSION,
    command_line::{self, Common},
};
use layers::Layers;
use namewire_capture::{
    link_type,
    live::{LiveCapture, usual_interface},
    pcap_file::{Captured, PcapFile},
    pcap_filter::PcapFilter,
};
use namewire_printing::output::write_out;
use regex_lite::Regex;
use std::{
    fs::File,
    io::{self, stdin},
};

/// The filter without another one.
const FILTER: &str = "(ether proto 0x8624) or (tcp port 6363) or (udp port 6363) or (udp port 56363)";

#[derive(Debug, clap::Args)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// capture on this interface, or on "any" (without it: the first that is up and no loopback)
    #[arg(short, long)]
    interface: Option<String>,
    /// read this pcap or pcapng file; "-" is standard input
    #[arg(short, long)]
    read: Option<String>,
    /// print only packets whose whole name matches this regular expression
    #[arg(short, long)]
    filter: Option<String>,
    /// no effect: the interface is never in promiscuous mode
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,
    /// print no times
    #[arg(short = 't', long)]
    no_timestamp: bool,
    /// print the filter of frames
    #[arg(short, long)]
    verbose: bool,
    pcap_filter: Vec<String>,
}

fn usage(called: &str) -> String {
    format!(
        "Usage: {called} [options] [pcap-filter]\n\nDefault pcap-filter:\n  '{FILTER}'\n\n{}",
        command_line::options::<Args>()
    )
}

pub(crate) fn run(call: &Call) -> Result<u8, Stop> {
    let misused = |error: &str| Stop { code: USAGE, message: format!("ERROR: {error}\n\n{}", usage(&call.called)) };
    let args: Args = command_line::parse(&call.words).map_err(|error| misused(&error))?;
    if args.common.help {
        write_out(usage(&call.called).as_bytes())?;
        return Ok(0);
    }
    if args.common.version {
        write_out(format!("ndndump {VERSION}\n").as_bytes())?;
        return Ok(0);
    }
    if args.interface.is_some() && args.read.is_some() {
        return Err(misused("conflicting '--interface' and '--read' options specified"));
    }
    let names = match &args.filter {
        // All of the name, as std::regex_match has it.
        Some(filter) => Regex::new(&format!("^(?:{filter})$"))
            .map(Some)
            .map_err(|error| Stop::usage(format!("invalid filter regex: {error}")))?,
        None => None,
    };
    let mut input = Input::open(&args)?;
    let link = input.link();
    if ![link_type::ETHERNET, link_type::LINUX_SLL, link_type::PPP].contains(&link) {
        let error = format!("Unsupported link-layer header type {}", link_type::name(link));
        return Err(Stop::error(FAILED, error));
    }
    let expression = if args.pcap_filter.is_empty() { FILTER.to_owned() } else { args.pcap_filter.join(" ") };
    if args.verbose && !expression.is_empty() {
        eprintln!("ndndump: using pcap filter: {expression}");
    }
    let frames: PcapFilter = expression
        .parse()
        .map_err(|error| Stop::error(FAILED, format!("Cannot compile pcap filter '{expression}': {error}")))?;
    let printer = Printer { link, frames, names, has_times: !args.no_timestamp };
    while let Some(frame) = input.next_frame()? {
        if let Some(line) = printer.line(&frame) {
            write_out(line.as_bytes())?;
        }
    }
    Ok(0)
}

/// Where the frames come from.
enum Input {
    File(PcapFile),
    Live(LiveCapture),
}

impl Input {
    fn open(args: &Args) -> Result<Input, Stop> {
        let (input, action) = match &args.read {
            Some(path) => {
                let failed =
                    |error: String| Stop::error(FAILED, format!("Cannot open file '{path}' for reading: {error}"));
                let opened = if path == "-" {
                    PcapFile::open(stdin())
                } else {
                    let file = File::open(path).map_err(|error| failed(format!("{path}: {}", words(&error))))?;
                    PcapFile::open(file)
                };
                let file = opened.map_err(|error| failed(error.to_string()))?;
                (Input::File(file), format!("reading from file {path}"))
            }
            None => {
                let interface = args.interface.clone().unwrap_or_else(usual_interface);
                let opened = LiveCapture::open(&interface);
                let opened = opened
                    .map_err(|error| Stop::error(FAILED, format!("Cannot open interface {interface}: {error}")))?;
                (Input::Live(opened), format!("listening on {interface}"))
            }
        };
        eprintln!("ndndump: {action}, link-type {}", link_type::name(input.link()));
        Ok(input)
    }

    fn link(&self) -> u16 {
        match self {
            Input::File(file) => file.link(),
            Input::Live(live) => live.link(),
        }
    }

    fn next_frame(&mut self) -> Result<Option<Captured<'_>>, Stop> {
        let frame = match self {
            Input::File(file) => file.next_frame().map_err(|error| error.to_string()),
            Input::Live(live) => live.next_frame().map(Some).map_err(|error| error.desc().to_owned()),
        };
        frame.map_err(|error| Stop::error(FAILED, format!("pcap_loop: {error}")))
    }
}

/// `No such file or directory`, without the number behind it.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

struct Printer {
    link: u16,
    frames: PcapFilter,
    names: Option<Regex>,
    has_times: bool,
}

impl Printer {
    /// The line of a frame that is wanted.
    fn line(&self, frame: &Captured<'_>) -> Option<String> {
        if !self.frames.takes(self.link, frame.bytes) {
            return None;
        }
        let (kept, sent) = (frame.bytes.len(), frame.wire_bytes);
        if kept == 0 || sent == 0 {
            return Some(format!("[Invalid header: {}=0]\n", if kept == 0 { "caplen" } else { "len" }));
        }
        if sent < kept {
            return Some(format!("[Invalid header: len({sent}) < caplen({kept})]\n"));
        }
        let layers = Layers::of(self.link, frame.bytes);
        let is_wanted = match (&self.names, &layers.name) {
            (Some(names), Some(name)) => names.is_match(&name.to_string()),
            _ => true,
        };
        if !is_wanted || layers.is_empty {
            return None;
        }
        let time = match self.has_times {
            true => format!("{}.{:06} ", frame.seconds, frame.microseconds),
            false => String::new(),
        };
        Some(format!("{time}{}\n", layers.text))
    }
}
