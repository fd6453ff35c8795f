//! `namewire`, the only command: a router, and tools to manage and try it.
//!
//! Exit codes: see [`ExitCode`].

mod completions;
mod config;
mod links;
mod manual;
mod names;
mod nfd;
mod outcome;
mod process;
mod run;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use namewire_diagnosis::{doctor, report};
use namewire_tools::{ExitCode, Failure, Global, Tool};
use std::{ffi::OsString, time::Duration};

/// Named Data Networking from the command line.
#[derive(Debug, Parser)]
#[command(name = "namewire", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// How long threads of the runtime may go on with work with files when a command is done.
const LAST_WORK_TIMEOUT: Duration = Duration::from_secs(1);

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 bad usage, 3 not found (face, route, strategy choice, key or named router), \
4 no connection to a forwarder, 5 time-out, 6 Nack, 7 application Nack (the producer has no such Data), \
8 doctor found warnings, 9 doctor found errors, 130 interrupted by Ctrl-C before the work was done. A command that runs until Ctrl-C ends with 0.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a router
    Run(Box<run::Args>),
    /// Run a router as a replacement of NFD, with its options, its configuration file and its exit codes
    Nfd(nfd::Args),
    /// Let the running router read its configuration again, and say what has changed
    Reload(process::ReloadArgs),
    /// Let another program take over from the running router, with all connections
    Upgrade(process::UpgradeArgs),
    /// Print, check and show configuration files
    #[command(subcommand)]
    Config(config::Command),
    #[command(flatten)]
    Overview(namewire_overview::Command),
    #[command(flatten)]
    Tool(Tool),
    #[command(flatten)]
    Certification(namewire_certification::Command),
    /// Check router and machine, and say what is wrong and what to type
    Doctor(doctor::Args),
    /// Write a bundle for a bug report: state, counters, drops, log and findings, with pseudonyms for names
    Report(report::Args),
    /// Print a script that lets a shell complete commands and options
    Completions(completions::Args),
    /// Print what a word of a command line may be, for the scripts of `completions`
    #[command(hide = true)]
    Complete(completions::CompleteArgs),
    /// Write the manual pages of all commands
    Manual(manual::Args),
    /// Make links under the names of the programs that this one replaces: nfd, nfdc, ndnsec and others
    Links(links::Args),
    /// Take the command lines of NFD's nfdc and print its output, for scripts written for it
    #[command(disable_help_flag = true)]
    Nfdc {
        /// As nfdc takes them; `namewire nfdc help` lists the commands
        #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Take the command lines of ndn-cxx's ndnsec and print its output, for scripts written for it
    #[command(disable_help_flag = true)]
    Ndnsec {
        /// As ndnsec takes them; `namewire ndnsec help` lists the commands
        #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

fn main() -> std::process::ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(ExitCode::Failed, format!("cannot start: {error}")).report(),
    };
    if let Some(program) = names::of_ndn_tools(&words) {
        let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
        let called = words.next().unwrap_or_default();
        let code = runtime.block_on(program.execute(called, words.collect()));
        runtime.shutdown_background();
        return code.into();
    }
    let cli = names::of_link(words).unwrap_or_else(|error| run::former::explain(error).exit());
    let command = match cli.command {
        Command::Nfdc { words } => {
            let (transport, signer) = match cli.global.into_connection() {
                Ok(connection) => connection,
                Err(failure) => return failure.report(),
            };
            let code = runtime.block_on(namewire_nfdc::execute(words, transport, signer));
            // A look-up of a host name may still hang in a thread; nobody waits for it.
            runtime.shutdown_background();
            return code.into();
        }
        Command::Ndnsec { words } => return names::ndnsec(&cli.global, &words),
        command => command,
    };
    let result = runtime.block_on(execute(&cli.global, command));
    // As above, but work with files that was begun may end.
    runtime.shutdown_timeout(LAST_WORK_TIMEOUT);
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The commands that do not take the options of tools.
const NO_TOOLS: [&str; 7] = ["run", "nfd", "config", "completions", "manual", "links", "ndnsec"];

/// The command line, with the options of tools hidden where they are refused. A subcommand that has an option of this
/// name itself does not get the general one.
fn command_line() -> clap::Command {
    let command = Cli::command();
    let general = command.get_arguments().filter(|argument| argument.is_global_set());
    let hidden: Vec<clap::Arg> = general.map(|argument| argument.clone().hide(true)).collect();
    NO_TOOLS
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |subcommand| subcommand.args(hidden.clone())))
}

/// Reads a command line as somebody typed it.
fn typed<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error> {
    parse(&command_line().try_get_matches_from(words)?)
}

fn parse(matches: &clap::ArgMatches) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(matches).map_err(|error| error.format(&mut command_line()))
}

async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => {
            global.refuse_options_of_tools()?;
            run::execute(*args).await
        }
        Command::Nfd(args) => {
            global.refuse_options_of_tools()?;
            nfd::execute(args).await
        }
        Command::Reload(args) => process::reload(global, &args).await,
        Command::Upgrade(args) => process::upgrade(global, &args).await,
        Command::Config(command) => config::execute(global, command).await,
        Command::Overview(command) => command.execute(global).await,
        Command::Tool(tool) => tool.execute(global).await,
        Command::Certification(command) => command.execute(global).await,
        Command::Doctor(args) => doctor::execute(global, args).await,
        Command::Report(args) => report::execute(global, args).await,
        Command::Completions(args) => {
            global.refuse_options_of_tools()?;
            completions::execute(&args)
        }
        Command::Complete(args) => {
            completions::candidates(args);
            Ok(())
        }
        Command::Manual(args) => {
            global.refuse_options_of_tools()?;
            manual::execute(&args)
        }
        Command::Links(args) => {
            global.refuse_options_of_tools()?;
            links::execute(&args)
        }
        Command::Nfdc { .. } | Command::Ndnsec { .. } => unreachable!("have exit codes of their own; see main"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    fn parses(line: &str) -> bool {
        typed(line.split_whitespace()).is_ok()
    }

    #[test]
    fn the_error_for_a_former_option_names_its_new_form() {
        for line in ["namewire run --pit-role core", "namewire config show --pit-role=core"] {
            let error = run::former::explain(typed(line.split_whitespace()).unwrap_err()).to_string();
            assert!(error.contains("--set pit.role=ROLE"), "{error}");
        }
    }

    #[test]
    fn options_of_tools_are_shown_where_they_work() {
        let help = |path: &[&str]| {
            let mut command = command_line();
            command.build();
            let found = path.iter().fold(&mut command, |command, name| command.find_subcommand_mut(name).unwrap());
            found.render_long_help().to_string()
        };
        for path in [&["status"][..], &["face", "list"], &["key", "make"]] {
            let help = help(path);
            let (_, heading) =
                help.split_once(namewire_tools::TOOL_OPTIONS).unwrap_or_else(|| panic!("{path:?}: {help}"));
            assert!(["--transport", "--identity", "--json"].iter().all(|option| heading.contains(option)), "{help}");
        }
        for path in [&["run"][..], &["nfd"], &["config"], &["config", "check"]] {
            let help = help(path);
            assert!(!help.contains(namewire_tools::TOOL_OPTIONS) && !help.contains("--identity"), "{path:?}: {help}");
        }
        let refused = |line: &str| {
            let cli = parse(&command_line().get_matches_from(line.split_whitespace())).unwrap();
            cli.global.refuse_options_of_tools().is_err()
        };
        assert!(refused("namewire run --json") && refused("namewire --json config default"));
        assert!(refused("namewire config check a.toml --transport udp://h") && !refused("namewire config default"));
    }

    const DOCUMENTED: &[&str] = &[
        "namewire run -c /etc/namewire/namewire.toml --state /var/lib/namewire/state.toml --ignore-state",
        "namewire run --nfd-conf /etc/ndn/nfd.conf",
        "namewire nfd -c /etc/ndn/nfd.conf",
        "namewire nfd -V",
        "namewire nfd -m",
        "namewire reload --json",
        "namewire upgrade",
        "namewire upgrade /usr/local/bin/namewire --force --timeout 60",
        "namewire config default",
        "namewire config check namewire.toml",
        "namewire config check --nfd-conf nfd.conf",
        "namewire config show -c namewire.toml --workers 2",
        "namewire config show --running --json",
        "namewire --transport unix:///tmp/a.sock config show --running",
        "namewire status --json",
        "namewire --router lab status",
        "namewire router add lab unix:///run/nfd/nfd.sock --identity /alice --observer http://127.0.0.1:9695",
        "namewire router list --json",
        "namewire router show lab",
        "namewire router remove lab",
        "namewire router default lab",
        "namewire router default --none",
        "namewire top --interval 500",
        "namewire top --all",
        "namewire explain /a --from 259",
        "namewire explain --all /a",
        "namewire --transport unix:///tmp/a.sock face list",
        "namewire face list --transport udp://host",
        "namewire face create udp://192.0.2.1 --persistency permanent --mtu 1400",
        "namewire face destroy 259",
        "namewire face destroy udp4://192.0.2.1:6363",
        "namewire face show 259",
        "namewire completions bash",
        "namewire face list --scheme udp4",
        "namewire route list",
        "namewire route list --under /a --face udp://host --origin static",
        "namewire route add /a 259 --cost 10 --origin nlsr --no-inherit --capture --expires 60000",
        "namewire route add / udp://host:7000",
        "namewire route remove /a 259 --origin static",
        "namewire face update 259 --reliability on --congestion-marking off --congestion-threshold 64KiB",
        "namewire face create udp://a --reliability on --congestion-interval 10 --local-fields off",
        "namewire face watch --count 3 --json",
        "namewire fib list",
        "namewire channel list",
        "namewire strategy show /a/b",
        "namewire strategy list",
        "namewire strategy set /a multicast",
        "namewire strategy set /a /localhost/nfd/strategy/best-route/v=5",
        "namewire strategy unset /a",
        "namewire tag advertise classical concert --answer programme.txt",
        "namewire tag advertise classical,concert --serves both --answer - --expires 60000 --count 3",
        "namewire tag advertise news",
        "namewire tag pull classical concert Beethoven -k 3 --timeout 1000 --payload programme -v",
        "namewire tag push news --file report.txt --json",
        "namewire tag routes",
        "namewire tag locator --json",
        "namewire repo run -c namewire.toml --name /example/repo --prefix /example --prefix /other --quiet",
        "namewire repo run --folder /srv/repo --capacity 10GiB --sync os --bulk-listen 127.0.0.1:7376",
        "namewire repo run --store redis-cluster --redis redis://a --redis redis://b --index none --readers 4",
        "namewire repo put film.mp4 /example/film --repo /example/repo --publisher /alice --version 1",
        "namewire repo get /example/film -o film.mp4",
        "namewire repo list /example --after /example/a --limit 10 --json",
        "namewire repo delete /example/film /example/other",
        "namewire repo delete /example --prefix",
        "namewire repo delete /example/one --packet",
        "namewire repo join /chat/32=svs/v=3 --register /chat --dedupe --reset",
        "namewire repo leave /chat/v=2 --unregister /chat",
        "namewire repo stats --repo /example/repo",
        "namewire repo check --folder /srv/repo",
        "namewire repo export --folder /srv/repo - --prefix /example",
        "namewire repo import -c namewire.toml archive.ndn",
        "namewire repo compact --folder /srv/repo /srv/smaller",
        "namewire run --repo /srv/repo",
        "namewire doctor",
        "namewire doctor --verbose --watch 10 --no-probe --json",
        "namewire doctor --config /etc/namewire/namewire.toml",
        "namewire doctor --nfd-conf /etc/ndn/nfd.conf",
        "namewire report",
        "namewire report bug.tar.gz --seconds 60 --yes --with-names --no-probe",
        "namewire drops",
        "namewire drops --prefix /a --face 259 --reason no-route --follow --json",
        "namewire cs info",
        "namewire cs config --capacity 64MiB --packets 1000 --admit on --serve off",
        "namewire cs erase /a",
        "namewire cs erase / --count 300",
        "namewire key list --json",
        "namewire key make /alice --type ed25519",
        "namewire key make /alice --from rsa.pem",
        "namewire key show /alice",
        "namewire key default /alice",
        "namewire key delete /alice/KEY/1",
        "namewire key export-cert /alice -o alice.cert",
        "namewire key export /alice --passphrase-file phrase",
        "namewire key import alice.bag --passphrase-file phrase",
        "namewire cert info /site",
        "namewire cert request /site/bob --ca /site --code 123456 --digest 0000000000000000000000000000000000000000000000000000000000000000",
        "namewire cert request --ca /site --email bob@example.org --anchor site.cert --days 7",
        "namewire cert request /site/bob --ca /site --challenge badge --parameter number=4711",
        "namewire cert request /site/bob --ca /site --with /ndn/bob",
        "namewire cert renew /site/bob --days 30 --anchor root.cert",
        "namewire cert ca /site --days 90 --max-suffix 2 --challenge pin,email --mail-command /usr/local/bin/mail-code",
        "namewire cert ca /site --command badge=/usr/local/bin/badge --accept ndn.cert --state ca.db",
        "namewire cert pin /site/bob --hours 1",
        "namewire cert issued /site --json",
        "namewire join",
        "namewire join udp://router.example /site/bob --code 2345-6789-ABCD --anchor site.cert",
        "namewire join --fch http://fch.example/ --as /site/bob --route /site --route /ndn",
        "namewire join --discover",
        "namewire leave udp://router.example",
        "namewire leave /site/bob",
        "namewire schema check a.tlv",
        "namewire schema check a.tlv --name /a --key /b --anchor root.cert --json",
        "namewire get /a --schema a.tlv --anchor root.cert",
        "namewire --identity /alice key issue bob.cert --days 30 --issuer-id alice",
        "namewire route add /a 259 --identity /alice",
        "namewire peek /a -p -f --lifetime 1000 --payload -v --timeout 5000",
        "namewire poke /a --freshness 1000",
        "namewire ping /a -c 3 -i 100",
        "namewire ping --forwarders /a -c 3",
        "namewire traceroute /a/b",
        "namewire traceroute /a --max-hops 5 --timeout 500ms --one-path --large 0 --json",
        "namewire pingserver /a",
        "namewire put file /a --version 3 --chunk-size 1200 --freshness 1000",
        "namewire get /a -o file --window 64",
        "namewire capture 259 udp://192.0.2.1 -w frames.pcapng",
        "namewire capture all --prefix /a --prefix /b --count 20 --json",
        "namewire capture eth0 --sample 100 --snaplen 200",
        "namewire trace /a --count 20 --sample 10 --json",
        "namewire run --log info,faces=debug --set log.format=json",
        "namewire events --follow --area faces,trust --json -n 20",
        "namewire log show",
        "namewire log set faces=debug,drops=off",
        "namewire nfdc",
        "namewire nfdc -V",
        "namewire nfdc -f batch",
        "namewire links bin",
        "namewire links /usr/local/bin --remove",
        "namewire ndnsec",
        "namewire ndnsec list -c",
        "namewire ndnsec cert-install -",
        "namewire --transport unix:///tmp/a.sock nfdc face create udp://h --help",
    ];

    #[test]
    fn every_documented_form_parses() {
        for line in DOCUMENTED {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn bad_usage_of_names_is_refused() {
        for line in [
            "namewire router add -a unix:///run/nfd/nfd.sock",
            "namewire router add lab nonsense",
            "namewire router add lab udp://h --observer https://h:9695",
            "namewire explain --all /a --from 259",
            "namewire router default",
            "namewire router default lab --none",
        ] {
            assert!(!parses(line), "{line}");
        }
    }

    #[test]
    fn bad_usage_is_refused() {
        for line in [
            "namewire",
            "namewire fly",
            "namewire --transport nonsense status",
            "namewire config check",
            "namewire config check a --nfd-conf b",
            "namewire nfd --config",
            "namewire top --interval 99",
            "namewire face create",
            "namewire face create nonsense",
            "namewire face create udp://a --mtu 63",
            "namewire face create udp://a --reliability maybe",
            "namewire face update 259",
            "namewire face update 259 --congestion-interval 0",
            "namewire face watch --count 0",
            "namewire face destroy minus-one",
            "namewire completions cmd",
            "namewire route list --origin unknown",
            "namewire route add a 259",
            "namewire route add /a//b 259",
            "namewire route add /a 259 --cost -1",
            "namewire route add /a 259 --origin nobody",
            "namewire strategy set /a best/route",
            "namewire strategy unset /",
            "namewire tag",
            "namewire tag advertise",
            "namewire tag advertise news --serves everyone",
            "namewire tag pull news -k 0",
            "namewire tag pull news -k 4097",
            "namewire tag push news --payload rain --file report.txt",
            "namewire repo",
            "namewire repo run --store rocks",
            "namewire repo put film.mp4 /",
            "namewire repo delete",
            "namewire repo delete /a --prefix --packet",
            "namewire repo export --folder /srv/repo",
            "namewire capture",
            "namewire capture all --sample 0",
            "namewire run --log loud",
            "namewire log set doors=debug",
            "namewire events --area doors",
            "namewire capture all --snaplen 8801",
            "namewire cs config",
            "namewire config show --running --workers 2",
            "namewire cs config --admit maybe",
            "namewire cs config --capacity 1000",
            "namewire cs erase",
            "namewire cs erase /a --count 0",
            "namewire key make /",
            "namewire key make /a --type dsa",
            "namewire key make /a --type rsa --from rsa.pem",
            "namewire key export /a",
            "namewire --identity alice status",
            "namewire peek /a --lifetime 0",
            "namewire put file /a --chunk-size 0",
            "namewire put file /a --chunk-size 8193",
            "namewire get /a --window 0",
        ] {
            assert!(!parses(line), "{line}");
        }
    }

    #[test]
    fn bad_usage_of_doctor_and_report_is_refused() {
        let lines = ["doctor --watch -1", "doctor --config a --nfd-conf b", "report --seconds many", "report a b"];
        assert!(lines.iter().all(|line| !parses(&format!("namewire {line}"))));
    }
}
