//! `namewire-lab`: list, run and report the experiments.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use namewire_lab::attack::{self, AttackPlan};
use namewire_lab::experiment::{Context, Experiment, Input, Scale};
use namewire_lab::kept_records::{Age, KeptRecords};
use namewire_lab::knock::{self, KnockPlan};
use namewire_lab::load::{self, LoadPlan, relay};
use namewire_lab::machine::source_commit;
use namewire_lab::paper_results::{self, Records};
use namewire_lab::record::{Record, write_whole};
use namewire_lab::{baseline, experiments, interrupt, power, report, terminal};

/// Runs the experiments of the papers and our own
#[derive(Parser)]
#[command(name = "namewire-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List every experiment by paper: id, question, source, needs
    List,
    /// Run experiments and write DIR/ID.json for each
    Run(RunArguments),
    /// Make one HTML page of the records in a directory, report.html, and plots and rows in a folder beside it
    Report {
        /// Directory with records
        dir: PathBuf,
        /// Where to write the page; without it, into the directory of the records
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Show every table and figure of the papers with our result beside it
    Papers {
        /// Write the table between its marks in this document
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// Fail if a number of a paper does not stand in the line that we name. Without the papers' texts in DIR, by
        /// default `shared/papers` beside this folder, say so
        #[arg(long, value_name = "DIR", conflicts_with = "write")]
        #[expect(clippy::option_option, reason = "an option whose value may be left out")]
        check: Option<Option<PathBuf>>,
        /// Folder with records
        #[arg(long, value_name = "DIR", default_value = "lab/record")]
        records: PathBuf,
    },
    /// Show one table of a paper with our result beside it, for example yuan15-4.4
    Table {
        /// Its id, as `papers` shows it
        id: String,
        /// Folder with records
        #[arg(long, value_name = "DIR", default_value = "lab/record")]
        records: PathBuf,
    },
    /// Show one figure of a paper with our result beside it, for example takemasa19-5.4
    Figure {
        /// Its id, as `papers` shows it, with or without `fig-`
        id: String,
        /// Folder with records
        #[arg(long, value_name = "DIR", default_value = "lab/record")]
        records: PathBuf,
    },
    /// Show two records of one experiment beside each other: of two machines, or of two commits
    Compare {
        /// A record
        a: PathBuf,
        /// Another one
        b: PathBuf,
        /// Rows whose repetitions overlap, too
        #[arg(long)]
        all: bool,
    },
    /// List the kept records and which are older than the code that they measured
    Records(RecordsArguments),
    /// Model the power of a router: fit a computer's parameters, predict, measure
    #[command(subcommand)]
    Power(power::command::Power),
    /// Put a load on a router and print the measurements (used by the experiments)
    #[command(hide = true)]
    Load(LoadPlan),
    /// Copy packets between two sockets (used by the experiments)
    #[command(hide = true)]
    Relay(relay::RelayPlan),
    /// Ask a listener of a router for connections, one after the other (used by `hostile`)
    #[command(hide = true)]
    Knock(KnockPlan),
    /// Attack a router (used by `hostile`)
    #[command(hide = true)]
    Attack(AttackPlan),
}

#[derive(clap::Args)]
struct RecordsArguments {
    /// Folder with records
    #[arg(long, value_name = "DIR", default_value = "lab/record")]
    records: PathBuf,
    /// Run the stale ones again, by their own commands
    #[arg(long)]
    renew: bool,
    /// Folder with the files (names, traces, graphs) that their commands name
    #[arg(long, value_name = "DIR", requires = "renew")]
    inputs: Option<PathBuf>,
    /// Fail if one is stale, or if the table of this document is not what the records say
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

#[derive(clap::Args)]
struct RunArguments {
    /// Ids of experiments, as `list` shows them; or `all`, which leaves out those whose record is in DIR already, from
    /// this commit (a modified tree is not told from another) and with these options
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// smoke: seconds; quick: about a minute; full: the source's own scale
    #[arg(long, value_enum, default_value = "quick")]
    scale: Scale,
    /// Names to use instead of invented ones: a list of domains, URLs or paths, one per line, plain or .xz; or a
    /// folder of such lists
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Trace to use instead of an invented one: one request per line, `object`, `object TAB bytes` or `seconds TAB
    /// object TAB bytes`, plain or .xz; or a folder, whose trace*.txt and trace*.tsv files are used
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Network to use instead of an invented one: one link per line, two nodes between `|`, tabs or spaces, plain or
    /// .xz; further columns are ignored
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Tag sets to measure beside the generated ones: one set per line, its tags between blanks or tabs, plain or .xz
    #[arg(long, value_name = "FILE")]
    tags: Option<PathBuf>,
    /// A `namewire-lab` of another commit: its results of the same experiments are added to the records
    #[arg(long, value_name = "PROGRAM")]
    baseline: Option<PathBuf>,
    /// Where to write records
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Print the records to standard output too
    #[arg(long)]
    json: bool,
    /// Print every row, not only the headline
    #[arg(long)]
    all: bool,
    /// Numbers of workers of the routers under test
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = worker_count)]
    workers: Vec<usize>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Most workers that a router is started with.
const WORKERS_MAX: usize = 256;

fn worker_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=WORKERS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("a worker count is 1 to {WORKERS_MAX}")),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::List => list(),
        Command::Run(arguments) => run(&arguments),
        Command::Report { dir, out } => make_report(&dir, out.as_deref().unwrap_or(&dir)),
        Command::Papers { check: Some(texts), .. } => check_papers(texts),
        Command::Papers { write, records, .. } => papers(&records, write.as_deref()),
        Command::Table { id, records } => table(&id, &records),
        Command::Figure { id, records } => table(&figure_id(&id), &records),
        Command::Compare { a, b, all } => compare(&a, &b, all),
        Command::Records(arguments) => records(&arguments),
        Command::Power(command) => interrupt::listen().and_then(|()| power::command::run(&command)),
        Command::Load(plan) => make_load(&plan),
        Command::Relay(plan) => relay::run(&plan),
        Command::Knock(plan) => knock(&plan),
        Command::Attack(plan) => attack::run(&plan).map(|sent| println!("{sent}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Ctrl-C on a terminal reaches the children too: their end may be the first error seen.
        Err(error) if error.is::<interrupt::Interrupted>() || interrupt::check().is_err() => {
            eprintln!("namewire-lab: {}", interrupt::Interrupted);
            ExitCode::from(interrupt::EXIT_STATUS)
        }
        Err(error) => {
            eprintln!("namewire-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn make_load(plan: &LoadPlan) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(&load::run(plan)?)?);
    Ok(())
}

fn knock(plan: &KnockPlan) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(&knock::run(plan))?);
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let papers = ["Yuan15", "Takemasa17", "Takemasa19", "TagNet16", "NameTrie18"];
    for paper in papers {
        println!("{paper}");
        experiments::TABLE.iter().filter(|experiment| experiment.source.contains(paper)).for_each(list_one);
    }
    println!("ours");
    let is_ours = |experiment: &&Experiment| !papers.iter().any(|paper| experiment.source.contains(paper));
    experiments::TABLE.iter().filter(is_ours).for_each(list_one);
    Ok(())
}

fn list_one(experiment: &Experiment) {
    println!("  {:24} {}", experiment.id, experiment.question);
    println!("  {:24} source: {}; {}", "", experiment.source, experiment.needs);
}

fn compare(a: &Path, b: &Path, all: bool) -> anyhow::Result<()> {
    print_long(&terminal::comparison(&Record::read(a)?, &Record::read(b)?, all)?)
}

/// The experiments that the user named; with `all`, those without a record like the one that this run would make.
fn chosen(arguments: &RunArguments) -> anyhow::Result<Vec<&'static Experiment>> {
    if arguments.ids != ["all"] {
        return arguments.ids.iter().map(|id| find(id)).collect();
    }
    let is_missing = |experiment: &&Experiment| {
        let kept = Record::read(&arguments.out.join(format!("{}.json", experiment.id)));
        let is_like =
            |record: &Record| record.commit == source_commit() && record.command == command_line(experiment, arguments);
        !kept.is_ok_and(|record| is_like(&record))
    };
    let chosen: Vec<&Experiment> = experiments::TABLE.iter().filter(is_missing).collect();
    println!("{} of {} experiments are left", chosen.len(), experiments::TABLE.len());
    Ok(chosen)
}

fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let chosen = chosen(arguments)?;
    for (option, file, takes) in [
        ("--names", &arguments.names, chosen.iter().any(|experiment| experiment.takes == Some(Input::Names))),
        ("--trace", &arguments.trace, chosen.iter().any(|experiment| experiment.takes == Some(Input::Trace))),
        ("--graph", &arguments.graph, chosen.iter().any(|experiment| experiment.takes == Some(Input::Graph))),
        ("--tags", &arguments.tags, chosen.iter().any(|experiment| experiment.takes == Some(Input::Tags))),
    ] {
        let Some(file) = file else { continue };
        ensure!(takes || chosen.is_empty(), "none of these experiments uses {option}");
        ensure!(file.is_file() || file.is_dir(), "{option}: {} is neither a file nor a folder", file.display());
    }
    interrupt::listen()?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut context = Context::new(arguments.scale, arguments.seed, arguments.workers.clone(), program);
    context.names.clone_from(&arguments.names);
    context.trace.clone_from(&arguments.trace);
    context.graph.clone_from(&arguments.graph);
    context.tags.clone_from(&arguments.tags);
    let mut failed = Vec::new();
    let count = chosen.len();
    for (place, experiment) in chosen.into_iter().enumerate() {
        if count > 1 {
            eprintln!("{} ({} of {count}; {})", experiment.id, place + 1, experiment.needs);
        }
        let mut record = match experiment.record(&context, command_line(experiment, arguments)) {
            Err(error) if arguments.ids == ["all"] && !error.is::<interrupt::Interrupted>() => {
                failed.push(experiment.id);
                eprintln!("namewire-lab: {}: {error:#}", experiment.id);
                continue;
            }
            result => result?,
        };
        if let Some(program) = &arguments.baseline {
            baseline::add(&mut record, program, &context)?;
        }
        let path = record.write(&arguments.out)?;
        if arguments.json {
            println!("{}", serde_json::to_string_pretty(&record)?);
        } else {
            print!("{}", terminal::text(&record, arguments.all)?);
            println!("written to {}", path.display());
        }
    }
    ensure!(failed.is_empty(), "these experiments failed: {}", failed.join(", "));
    Ok(())
}

fn find(id: &str) -> anyhow::Result<&'static Experiment> {
    experiments::find(id).with_context(|| format!("no experiment is called '{id}'; `namewire-lab list` shows all"))
}

/// The command that repeats this record, without the output directory.
fn command_line(experiment: &Experiment, arguments: &RunArguments) -> String {
    let workers: Vec<String> = arguments.workers.iter().map(ToString::to_string).collect();
    let mut line = format!(
        "namewire-lab run {} --scale {} --workers {} --seed {}",
        experiment.id,
        arguments.scale.name(),
        workers.join(","),
        arguments.seed
    );
    let files = [
        ("--names", &arguments.names),
        ("--trace", &arguments.trace),
        ("--graph", &arguments.graph),
        ("--tags", &arguments.tags),
        ("--baseline", &arguments.baseline),
    ];
    for (option, file) in files {
        if let Some(name) = file.as_deref().and_then(Path::file_name) {
            line.push_str(&format!(" {option} {}", name.display()));
        }
    }
    line
}

/// Prints the table of all papers, or writes it into `document`.
fn papers(dir: &Path, document: Option<&Path>) -> anyhow::Result<()> {
    let records = Records::read(dir)?;
    let Some(document) = document else {
        let mut text = String::new();
        for paper in paper_results::all()? {
            for result in &paper.results {
                text.push_str(&paper_results::one(&paper, result, &records)?);
                text.push('\n');
            }
        }
        return print_long(&text);
    };
    let old = std::fs::read_to_string(document).with_context(|| format!("cannot read {}", document.display()))?;
    write_whole(document, with_table(&old, dir, &records)?.as_bytes())
}

/// Looks for the papers' numbers in their texts, which only a checkout of the project's own has beside it.
fn check_papers(texts: Option<PathBuf>) -> anyhow::Result<()> {
    let texts = texts.map_or_else(|| Ok(paper_results::texts_beside(&std::env::current_dir()?)), anyhow::Ok)?;
    let checked = paper_results::check(&paper_results::all()?, &texts)?;
    for absent in &checked.absent {
        println!("{absent}: its text is not in {}, so its numbers are not checked", texts.display());
    }
    println!("{} numbers stand in the line of the paper that we name", checked.right);
    ensure!(checked.wrong.is_empty(), "{} do not:\n{}", checked.wrong.len(), checked.wrong.join("\n"));
    Ok(())
}

/// Prints a text that a reader may leave early, as `head` does.
fn print_long(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// `document` with the table that the records make now, stale ones marked.
fn with_table(document: &str, dir: &Path, records: &Records) -> anyhow::Result<String> {
    let kept = KeptRecords::open(dir)?;
    let mut stale = BTreeSet::new();
    for record in records.kept.values() {
        if kept.age(record)? != Age::Fresh {
            stale.insert(record.experiment.as_str());
        }
    }
    let table = paper_results::markdown(&paper_results::all()?, records, &|id| stale.contains(id))?;
    paper_results::write_between_marks(document, &table)
}

/// `takemasa19-5.4` as the tables call it: `takemasa19-fig-5.4`.
fn figure_id(id: &str) -> String {
    match id.split_once('-') {
        Some((paper, number)) if !number.starts_with("fig-") => format!("{paper}-fig-{number}"),
        _ => id.to_owned(),
    }
}

fn table(id: &str, dir: &Path) -> anyhow::Result<()> {
    let papers = paper_results::all()?;
    let wanted = id.to_lowercase();
    let mut results = papers.iter().flat_map(|paper| paper.results.iter().map(move |result| (paper, result)));
    let found = results.clone().find(|(_, result)| result.id == wanted);
    let (paper, result) = found.with_context(|| {
        let alike: Vec<&str> =
            results.by_ref().map(|(_, result)| result.id.as_str()).filter(|other| other.contains(&wanted)).collect();
        let named = if alike.is_empty() { "`namewire-lab papers` shows all".to_owned() } else { alike.join(", ") };
        format!("no table or figure is called '{id}': {named}")
    })?;
    let records = Records::read(dir).context("run this in a checkout of Namewire, or say --records")?;
    print!("{}", paper_results::one(paper, result, &records)?);
    Ok(())
}

/// Lists the records; renews or checks them if asked.
fn records(arguments: &RecordsArguments) -> anyhow::Result<()> {
    let records = Records::read(&arguments.records)?;
    let kept = KeptRecords::open(&arguments.records)?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut stale = 0;
    for record in records.kept.values() {
        let memory = record.memory_peak_mib.map_or_else(|| "-".to_owned(), |mib| format!("{mib} MiB"));
        let age = kept.age(record)?;
        let age_text = match age {
            Age::Fresh => String::new(),
            Age::Stale(None) => "stale: made from a tree that is not in the history".to_owned(),
            Age::Stale(Some(commits)) => format!("stale: {commits} commits changed its sources"),
        };
        println!("{:24} {:6} {:>6.0} s {memory:>10}  {age_text}", record.experiment, record.scale, record.duration_s);
        if age == Age::Fresh {
            continue;
        }
        stale += 1;
        if arguments.renew
            && let Err(error) = kept.renew(record, &program, arguments.inputs.as_deref())
        {
            interrupt::check()?;
            eprintln!("namewire-lab: {} is not renewed: {error:#}", record.experiment);
        }
    }
    let Some(document) = &arguments.check else { return Ok(()) };
    let text = std::fs::read_to_string(document)?;
    ensure!(
        with_table(&text, &arguments.records, &records)? == text,
        "the table of {} is not what the records say: `make papers` writes it",
        document.display()
    );
    ensure!(stale == 0, "{stale} records are stale: `make records` renews them");
    Ok(())
}

fn make_report(dir: &Path, out: &Path) -> anyhow::Result<()> {
    let records = Records::read(dir)?;
    ensure!(!records.kept.is_empty(), "no records in {}: `namewire-lab run ID --out {0}` makes them", dir.display());
    println!("written to {}", report::write(&records, out)?.display());
    Ok(())
}
