//! `namewire ndnsec`: ndn-cxx's tools for keys and certificates, for scripts written against them.
//!
//! It takes the command lines of `ndnsec` and `ndnsec-<command>` of ndn-cxx 0.9, prints the same results and errors,
//! and ends with the same exit codes. It works on the key chain that ndn-cxx, python-ndn and `namewire key` share.
//! `docs/ndnsec.md` lists the differences on purpose.
//!
//! * `grammar`: the table of commands and their options. `arguments` reads a line by this table, `help` prints it.
//! * `list`, `defaults`, `delete`, `generate`, `request`, `certificate`, `bag`: what the commands do.
//! * `chain`: look-ups in the key chain, with ndn-cxx's errors. `describe`: a certificate for people.
//! * `file`, `passphrase`: what the commands read and write beside the key chain.

mod arguments;
mod bag;
mod certificate;
mod chain;
mod defaults;
mod delete;
mod describe;
mod file;
mod generate;
mod grammar;
mod help;
mod list;
mod passphrase;
mod request;
mod stop;

use arguments::Arguments;
use grammar::Action;
use namewire_printing::output::write_out;
use std::io;
use stop::{FAILED, Stop, USAGE};

/// Name by which this is called through a link; a link `ndnsec-<command>` names a command too.
pub const LINK_NAME: &str = "ndnsec";

/// The names of all commands.
pub fn commands() -> impl Iterator<Item = &'static str> {
    grammar::COMMANDS.iter().map(|command| command.name)
}

/// What `version` prints, and what the router calls itself.
const VERSION: &str = concat!("namewire-", env!("CARGO_PKG_VERSION"), "\n");

/// Runs a command line (without the program's name) on the key chain of this process's user and gives the exit code.
pub fn execute(words: &[String]) -> u8 {
    match run(words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ERROR: {error}");
            FAILED
        }
    }
}

fn run(words: &[String]) -> io::Result<u8> {
    let Some((name, words)) = words.split_first() else {
        eprint!("{}", help::list());
        return Ok(USAGE);
    };
    let command = match (name.as_str(), grammar::find(name)) {
        ("help", _) => return write_out(help::list().as_bytes()).map(|()| 0),
        ("version", _) => return write_out(VERSION.as_bytes()).map(|()| 0),
        (_, Some(command)) => command,
        (_, None) => {
            eprint!("ERROR: Unknown command '{name}'\n\n{}", help::list());
            return Ok(USAGE);
        }
    };
    if command.action == Action::UnlockTpm {
        eprintln!("DEPRECATION NOTICE: ndnsec-unlock-tpm is deprecated.");
    }
    let arguments = match Arguments::parse(command, words) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("ERROR: {message}\n\n{}", help::usage(command));
            return Ok(USAGE);
        }
    };
    if arguments.is_set("help") {
        return write_out(format!("{}\n", help::usage(command)).as_bytes()).map(|()| 0);
    }
    match act(command.action, &arguments) {
        Ok(out) => write_out(out.as_bytes()).map(|()| 0),
        Err(stop) => Ok(stop.report()),
    }
}

/// Does what the command says, and gives what it prints.
fn act(action: Action, arguments: &Arguments) -> Result<String, Stop> {
    match action {
        Action::List => list::list(arguments),
        Action::GetDefault => defaults::get(arguments),
        Action::SetDefault => defaults::set(arguments),
        Action::Delete => delete::delete(arguments),
        Action::KeyGen => generate::key_gen(arguments),
        Action::SignReq => request::sign_req(arguments),
        Action::CertGen => request::cert_gen(arguments),
        Action::CertDump => certificate::dump(arguments),
        Action::CertInstall => certificate::install(arguments),
        Action::Export => bag::export(arguments),
        Action::Import => bag::import(arguments),
        Action::UnlockTpm => bag::unlock_tpm(),
    }
}
