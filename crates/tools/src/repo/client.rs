//! `namewire repo list`, `delete`, `join`, `leave` and `stats`: a client of a repository.

use crate::{
    Failure, Global, name_argument,
    output::{fields, write_out},
    quantity,
};
use indicatif::ProgressBar;
use namewire_client::Client;
use namewire_packet::NameBuf;
use namewire_repo::{
    RemoteRepo,
    command::{CommandResult, ObjectParam, SyncParam},
};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// Which repository, and how it reaches this client.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Repository {
    /// The repository's own name
    #[arg(long, value_name = "NAME", default_value = "/localhost/repo", value_parser = name_argument::parse_not_root)]
    repo: NameBuf,
    /// Prefix under which the repository fetches commands from this program; for a repository on another machine, a
    /// prefix with a route to this machine [default: a random one under /localhost]
    #[arg(long, value_name = "PREFIX", value_parser = name_argument::parse_not_root)]
    publisher: Option<NameBuf>,
}

impl Repository {
    pub(super) async fn connect(self, global: &Global) -> Result<RemoteRepo, Failure> {
        self.over(global.connect().await?, global)
    }

    /// The repository, by this connection.
    pub(super) fn over(self, client: Client, global: &Global) -> Result<RemoteRepo, Failure> {
        let remote = RemoteRepo::new(client, self.repo).sign_with(global.signer()?);
        Ok(match self.publisher {
            Some(publisher) => remote.publish_under(publisher),
            None => remote,
        })
    }
}

/// Ends the work with Ctrl-C. The repository may go on.
pub(super) async fn interruptible<T>(
    work: impl Future<Output = Result<T, namewire_repo::RemoteError>>,
    bar: &ProgressBar,
) -> Result<T, Failure> {
    let result = tokio::select! {
        result = work => result.map_err(Failure::from),
        _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
    };
    bar.finish_and_clear();
    result
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    repository: Repository,
    /// Names below this prefix
    #[arg(default_value = "/", value_parser = name_argument::parse)]
    prefix: NameBuf,
    /// Begin after this name
    #[arg(long, value_name = "NAME", value_parser = name_argument::parse)]
    after: Option<NameBuf>,
    /// Most names [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

pub(super) async fn list(global: &Global, args: ListArgs) -> Result<(), Failure> {
    let remote = args.repository.connect(global).await?;
    let (mut last, mut left) = (args.after, args.limit.unwrap_or(u64::MAX));
    while left > 0 {
        let mut names = remote.list(args.prefix.as_name(), last.as_ref().map(NameBuf::as_name)).await?;
        names.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let Some(name) = names.last() else { return Ok(()) };
        (last, left) = (Some(name.clone()), left - names.len() as u64);
        let line = |name: &NameBuf| match global.json {
            true => serde_json::to_string(&name.to_string()).map(|text| text + "\n"),
            false => Ok(format!("{name}\n")),
        };
        let lines: String = names.iter().map(line).collect::<Result<_, _>>().map_err(io::Error::from)?;
        write_out(lines.as_bytes())?;
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    repository: Repository,
    /// Names of objects: all their segments are deleted
    #[arg(required = true, value_parser = name_argument::parse)]
    names: Vec<NameBuf>,
    /// The names are those of single packets
    #[arg(long, conflicts_with = "prefix")]
    packet: bool,
    /// The names are prefixes: all Data below them is deleted
    #[arg(long)]
    prefix: bool,
}

#[derive(Serialize)]
struct Deleted {
    name: String,
    packets: u64,
}

pub(super) async fn delete(global: &Global, args: DeleteArgs) -> Result<(), Failure> {
    let remote = args.repository.connect(global).await?;
    let bar = global.output().progress_bar(false, 0, "packets");
    let mut deleted = Vec::new();
    for name in args.names {
        let packets = if args.prefix {
            let delete = remote.delete_prefix(name.clone(), |gone| bar.set_position(gone));
            interruptible(delete, &bar).await?
        } else {
            let object = ObjectParam {
                name: name.clone(),
                start: (!args.packet).then_some(0),
                register_prefix: (!args.packet).then(|| name.clone()),
                ..ObjectParam::default()
            };
            packets_deleted(&interruptible(remote.delete(vec![object]), &bar).await?)
        };
        deleted.push(Deleted { name: name.to_string(), packets });
    }
    let missing: Vec<&str> = deleted.iter().filter(|one| one.packets == 0).map(|one| one.name.as_str()).collect();
    global.output().print(&deleted, || {
        let stored = deleted.iter().filter(|one| one.packets > 0);
        stored.map(|one| format!("deleted {}: {} packets\n", one.name, one.packets)).collect()
    })?;
    if missing.is_empty() { Ok(()) } else { Err(Failure::not_found(format!("not stored: {}", missing.join(", ")))) }
}

fn packets_deleted(result: &CommandResult) -> u64 {
    result.objects.first().and_then(|object| object.deleted).unwrap_or(0)
}

#[derive(Debug, clap::Args)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    repository: Repository,
    /// Sync prefix of the group; /v=2 or /v=3 at its end chooses the version of State Vector Sync, 2 by default
    #[arg(value_parser = name_argument::parse_not_root)]
    group: NameBuf,
    /// Let the repository register this prefix and answer for it
    #[arg(long, value_name = "PREFIX", value_parser = name_argument::parse_not_root)]
    register: Option<NameBuf>,
    /// Omit repeated components in the names of publications (SyncDataNameDedupe of ndn-python-repo)
    #[arg(long)]
    dedupe: bool,
    /// Forget the repository's progress, and fetch everything again
    #[arg(long)]
    reset: bool,
}

pub(super) async fn join(global: &Global, args: JoinArgs) -> Result<(), Failure> {
    let param = SyncParam {
        sync_prefix: args.group,
        register_prefix: args.register,
        data_name_dedupe: args.dedupe,
        reset: args.reset,
    };
    args.repository.connect(global).await?.join(param).await?;
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(crate) struct LeaveArgs {
    #[command(flatten)]
    repository: Repository,
    /// Sync prefix of the group, as given to `join`
    #[arg(value_parser = name_argument::parse_not_root)]
    group: NameBuf,
    /// Let the repository unregister this prefix
    #[arg(long, value_name = "PREFIX", value_parser = name_argument::parse_not_root)]
    unregister: Option<NameBuf>,
}

pub(super) async fn leave(global: &Global, args: LeaveArgs) -> Result<(), Failure> {
    let param = SyncParam { sync_prefix: args.group, register_prefix: args.unregister, ..SyncParam::default() };
    args.repository.connect(global).await?.leave(param).await?;
    Ok(())
}

pub(super) async fn stats(global: &Global, repository: Repository) -> Result<(), Failure> {
    let statistics = repository.connect(global).await?.statistics().await?;
    Ok(global.output().print(&statistics, || for_people(&statistics))?)
}

/// The statistics in lines.
fn for_people(statistics: &Value) -> String {
    let number = |key: &str| statistics[key].as_u64().unwrap_or(0);
    let (reads, hits) = (number("reads"), number("hits"));
    let share = if reads == 0 { 0.0 } else { 100.0 * hits as f64 / reads as f64 };
    let store = &statistics["store"];
    let known = |value: &Value, text: &dyn Fn(u64) -> String| value.as_u64().map_or("unknown".to_owned(), text);
    let latency = |key: &str| {
        let of = |quantile: &str| known(&statistics[key][quantile], &|us| format!("{us} us"));
        if statistics[key].is_null() {
            "-".to_owned()
        } else {
            format!("median below {}, 99 % below {}", of("p50_below"), of("p99_below"))
        }
    };
    let mut rows = vec![
        ("store", store["kind"].as_str().unwrap_or("unknown").to_owned()),
        ("Data", known(&store["records"], &|records| records.to_string())),
        ("size", known(&store["bytes"], &quantity::bytes)),
        ("reads", format!("{reads}, {hits} answered ({share:.1} %), {}", quantity::bytes(number("read_bytes")))),
        ("read latency", latency("read_latency_us")),
        (
            "writes",
            format!(
                "{}, {}, in {} commits; {} deleted",
                number("writes"),
                quantity::bytes(number("written_bytes")),
                number("commits"),
                number("deletes")
            ),
        ),
        ("write latency", latency("write_latency_us")),
        ("commands", number("commands").to_string()),
        ("sync", format!("{} publications", number("publications"))),
        ("bulk", format!("{} connections, {} packets", number("bulk_connections"), number("bulk_packets"))),
    ];
    if let Some(failure) = store["failure"].as_str() {
        rows.insert(1, ("failure", failure.to_owned()));
    }
    let refusals = statistics["refusals"].as_object().into_iter().flatten();
    let refusals: Vec<String> = refusals.map(|(name, count)| format!("{name} {count}")).collect();
    if !refusals.is_empty() {
        rows.push(("refused", refusals.join(", ")));
    }
    fields(&rows)
}
