//! `namewire-sim`: runs a simulated NDN network that a file describes.

use std::process::ExitCode;

fn main() -> ExitCode {
    namewire_scenario::command_line::main(namewire_scenario::OwnStrategies::default())
}
