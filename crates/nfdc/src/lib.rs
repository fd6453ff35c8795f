//! `namewire nfdc`: NFD's management tool, for scripts written against it.
//!
//! It reads the same command lines and gives the same text, XML and exit codes as NFD's. It may be called as `namewire
//! nfdc …` or by a link named `nfdc`. It uses only the NFD management protocol, so it works with NFD and ndnd as well
//! as with this router. `docs/nfdc.md` lists the differences on purpose.
//!
//! * `grammar`: the table of commands. `arguments`, `value`, `face_uri` read a line by this table.
//! * `status`, `face`, `route`, `cs`, `strategy`: what the commands do, a file per noun.
//! * `text`, `xml`: how datasets are printed.
//! * `context`, `find_face`: the forwarder, its errors, and the faces that a command means.

mod arguments;
mod batch;
mod context;
mod cs;
mod face;
mod face_uri;
mod find_face;
mod grammar;
mod help;
mod route;
#[cfg(test)]
mod samples;
mod status;
mod strategy;
mod text;
mod value;
mod xml;

pub use context::{not_connected, system_text};

use arguments::Parsed;
use context::{Context, FAILED, Stop, USAGE};
use grammar::Action;
use namewire_client::TransportUri;
use namewire_printing::output::write_out;
use namewire_security::Signer;
use status::Section;
use std::io;

/// Name by which this is called through a link.
pub const LINK_NAME: &str = "nfdc";

/// What `-V` prints, and what the router calls itself.
const VERSION: &str = concat!("namewire-", env!("CARGO_PKG_VERSION"));

/// Runs a command line (without the program's name) and gives the exit code.
pub async fn execute(words: Vec<String>, transport: Option<TransportUri>, signer: Signer) -> u8 {
    match run(&words, transport, signer).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            FAILED
        }
    }
}

async fn run(words: &[String], transport: Option<TransportUri>, signer: Signer) -> io::Result<u8> {
    match words.first().map(String::as_str) {
        None => write_out(help::list().as_bytes()).map(|()| 0),
        Some("-V" | "--version") => write_out(format!("{VERSION}\n").as_bytes()).map(|()| 0),
        Some(option @ ("-f" | "--batch")) => match &words[1..] {
            [path] => run_batch(path, transport, signer).await,
            _ => {
                eprintln!(
                    "ERROR: Invalid command line arguments: {option} should follow with batch-file. \
                     Use -h for more detail."
                );
                Ok(USAGE)
            }
        },
        Some(_) => match arguments::parse(words) {
            Ok(parsed) => {
                let mut context = Context::new(transport, signer);
                perform(&mut context, &parsed).await;
                context.flush()?;
                Ok(context.code)
            }
            Err(message) => refuse(words, &message),
        },
    }
}

/// The command line makes no sense: either it asks for help, or it is wrong.
fn refuse(words: &[String], message: &str) -> io::Result<u8> {
    match help::of(words) {
        Some(text) => write_out(text.as_bytes()).map(|()| 0),
        None => {
            eprintln!("{message}");
            Ok(USAGE)
        }
    }
}

/// Reads all lines before anything is done, then goes on until the first command that fails.
async fn run_batch(path: &str, transport: Option<TransportUri>, signer: Signer) -> io::Result<u8> {
    let text = match batch::read(path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("ERROR: Could not open `{path}` batch file ({})", system_text(&error));
            return Ok(USAGE);
        }
    };
    let source = if path == "-" { "standard input" } else { path };
    let mut commands = Vec::new();
    for line in batch::lines(&text) {
        let words = line.words.unwrap_or_default();
        match arguments::parse(&words) {
            Ok(parsed) => commands.push(parsed),
            Err(message) => {
                refuse(&words, &message)?;
                eprintln!("  >> Syntax error on line {} of the batch in {source}", line.number);
                return Ok(USAGE);
            }
        }
    }
    let mut context = Context::new(transport, signer);
    for (number, command) in (1..).zip(&commands) {
        perform(&mut context, command).await;
        context.flush()?;
        if context.code != 0 {
            if commands.len() > 1 {
                // Counts commands, not lines, as NFD's nfdc does.
                eprintln!("  >> Failed to execute command on line {number} of the batch file {path}");
                eprintln!(
                    "  Note that nfdc has executed all commands on previous lines and stopped processing at this line"
                );
            }
            return Ok(context.code);
        }
    }
    Ok(0)
}

async fn perform(context: &mut Context, parsed: &Parsed) {
    if let Err(stop) = act(context, parsed).await {
        context.stop(stop);
    }
}

async fn act(context: &mut Context, Parsed { command, arguments }: &Parsed) -> Result<(), Stop> {
    match command.action {
        Action::StatusReport => status::report(context, arguments).await,
        Action::StatusShow => status::show(context, Section::General).await,
        Action::ChannelList => status::show(context, Section::Channels).await,
        Action::FibList => status::show(context, Section::Fib).await,
        Action::CsInfo => status::show(context, Section::ContentStore).await,
        Action::FaceList => face::list(context, arguments).await?,
        Action::FaceShow => face::show(context, arguments).await?,
        Action::FaceCreate => face::create(context, arguments).await?,
        Action::FaceDestroy => face::destroy(context, arguments).await?,
        Action::RouteList => route::list(context, arguments).await?,
        Action::RouteShow => route::show(context, arguments).await?,
        Action::RouteAdd => route::add(context, arguments).await?,
        Action::RouteRemove => route::remove(context, arguments).await?,
        Action::CsConfig => cs::config(context, arguments).await?,
        Action::CsErase => cs::erase(context, arguments).await?,
        Action::StrategyList => strategy::list(context).await?,
        Action::StrategyShow => strategy::show(context, arguments).await?,
        Action::StrategySet => strategy::set(context, arguments).await?,
        Action::StrategyUnset => strategy::unset(context, arguments).await?,
    }
    Ok(())
}
