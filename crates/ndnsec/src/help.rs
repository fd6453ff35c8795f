//! `ndnsec help` and `--help`: made from the table of commands, so the two cannot differ.

use crate::grammar::{COMMANDS, Choice, Command, Kind};

/// All commands.
pub(crate) fn list() -> String {
    let row = |name: &str, summary: &str| format!("  {name:<14} {summary}\n");
    let commands: String = COMMANDS.iter().map(|command| row(command.name, command.summary)).collect();
    format!(
        "Usage: ndnsec COMMAND [OPTION]...\n\nCommands:\n{}{commands}{}\n`ndnsec COMMAND --help` lists the options of \
         a command.\n",
        row("help", "print this text"),
        row("version", "print the version"),
    )
}

/// One command with its options.
pub(crate) fn usage(command: &Command) -> String {
    let operand = command.operand.map_or(String::new(), |(_, placeholder)| format!(" {placeholder}"));
    let shown = command.options.iter().filter(|choice| !choice.about.is_empty());
    let options: String = shown.map(|choice| format!("  {:<26} {}\n", forms(choice), choice.about)).collect();
    format!(
        "Usage: ndnsec {} [OPTION]...{operand}\n\nThis command can {}.\n\nOptions:\n{options}",
        command.name, command.summary
    )
}

fn forms(choice: &Choice) -> String {
    let short = choice.short.map_or("   ".to_owned(), |short| format!("-{short},"));
    let value = match choice.kind {
        Kind::Switch | Kind::Count => "",
        Kind::Text | Kind::Texts => " TEXT",
        Kind::Letter => " LETTER",
        Kind::Name => " NAME",
    };
    format!("{short} --{}{value}", choice.long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::find;

    #[test]
    fn help_lists_commands_and_options() {
        assert!(COMMANDS.iter().all(|command| list().contains(&format!("\n  {:<14} ", command.name))));
        let usage = usage(find("export").unwrap());
        assert!(usage.starts_with("Usage: ndnsec export [OPTION]... NAME\n"), "{usage}");
        assert!(usage.contains("\n  -P, --password TEXT        pass phrase") && !usage.contains("--name"), "{usage}");
    }
}
