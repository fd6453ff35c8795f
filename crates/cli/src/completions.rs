//! `namewire completions`: a script that lets a shell complete commands and options.

use crate::command_line;
use clap_complete::Shell;
use namewire_printing::output::write_out;
use namewire_tools::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "Bash: namewire completions bash > ~/.local/share/bash-completion/completions/namewire\n\
    Zsh:  namewire completions zsh > a file _namewire in a folder of $fpath\n\
    Fish: namewire completions fish > ~/.config/fish/completions/namewire.fish")]
pub(crate) struct Args {
    /// Shell that reads the script
    shell: Shell,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "namewire", &mut script);
    write_out(&script)?;
    Ok(())
}
