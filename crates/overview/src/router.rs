//! `namewire router`: the routers that have names.

use namewire_client::TransportUri;
use namewire_node_model::observer_address::{ObserverAddress, check_router_name};
use namewire_printing::output::{fields, table};
use namewire_routers::{NamedRouter, Routers, RoutersError, RoutersFile};
use namewire_tools::{Failure, Global};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Name a router, or change what a name stands for
    Add(AddArgs),
    /// List the names; a star marks the default
    List,
    /// Show what a name stands for
    Show {
        /// Name of the router
        name: String,
    },
    /// Forget a name
    Remove {
        /// Name of the router
        name: String,
    },
    /// Choose the router of commands that name none, before client.conf
    Default {
        /// Name of the router
        #[arg(required_unless_present = "none")]
        name: Option<String>,
        /// Choose none: such commands follow client.conf again
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --identity, commands to this router are signed by that identity, unless they name another."
)]
pub struct AddArgs {
    /// Name: letters, digits, '-', '_' and '.'
    #[arg(value_parser = parse_router_name)]
    name: String,
    /// Where commands connect, for example unix:///run/nfd/nfd.sock or tcp://host:6363
    #[arg(value_name = "TRANSPORT")]
    place: TransportUri,
    /// Where the router shows itself by HTTP (its --observe), for top --all and explain --all
    #[arg(long, value_name = "URL")]
    observer: Option<ObserverAddress>,
}

fn parse_router_name(text: &str) -> Result<String, String> {
    check_router_name(text).map(|()| text.to_owned())
}

/// A router as it is printed.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    is_default: bool,
    #[serde(flatten)]
    router: &'a NamedRouter,
}

pub(crate) fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    global.refuse_router()?;
    let file = RoutersFile::of_user()?;
    match command {
        Command::Add(args) => add(global, &file, args),
        Command::List => list(global, &file.read()?),
        Command::Show { name } => show(global, &file.read()?, &name),
        Command::Remove { name } => {
            file.change(|routers| {
                routers.find(&name)?;
                routers.routers.remove(&name);
                routers.default = routers.default.take().filter(|default| *default != name);
                Ok(())
            })?;
            say(global, format!("removed: {name}"))
        }
        Command::Default { name, .. } => {
            file.change(|routers| {
                name.iter().try_for_each(|name| routers.find(name).map(drop))?;
                routers.default.clone_from(&name);
                Ok(())
            })?;
            say(
                global,
                match name {
                    Some(name) => format!("default: {name}"),
                    None => "no default: commands follow client.conf".to_owned(),
                },
            )
        }
    }
}

fn add(global: &Global, file: &RoutersFile, args: AddArgs) -> Result<(), Failure> {
    let AddArgs { name, place, observer } = args;
    let router = NamedRouter { transport: place, identity: global.identity().cloned(), observer };
    let mut was_there = false;
    file.change(|routers| {
        was_there = routers.routers.insert(name.clone(), router).is_some();
        Ok::<_, RoutersError>(())
    })?;
    say(global, format!("{}: {name}", if was_there { "changed" } else { "added" }))
}

/// What was done, for people; programs have the exit code.
fn say(global: &Global, text: String) -> Result<(), Failure> {
    if !global.output().json {
        namewire_printing::output::write_out(format!("{text}\n").as_bytes())?;
    }
    Ok(())
}

fn shown<'a>(routers: &'a Routers, name: &'a str, router: &'a NamedRouter) -> Shown<'a> {
    Shown { name, is_default: routers.default.as_deref() == Some(name), router }
}

fn list(global: &Global, routers: &Routers) -> Result<(), Failure> {
    let all: Vec<Shown<'_>> = routers.routers.iter().map(|(name, router)| shown(routers, name, router)).collect();
    let row = |shown: &Shown<'_>| {
        let star = if shown.is_default { "*" } else { "" };
        let router = shown.router;
        vec![format!("{}{star}", shown.name), router.transport.to_string(), text(router.observer.as_ref()), {
            text(router.identity.as_ref())
        }]
    };
    let heading = ["NAME", "TRANSPORT", "OBSERVER", "SIGNS AS"].map(str::to_owned).to_vec();
    global.output().print(&all, || {
        let rows: Vec<Vec<String>> = [heading].into_iter().chain(all.iter().map(row)).collect();
        table(&rows, "No router has a name: namewire router add NAME TRANSPORT")
    })?;
    Ok(())
}

fn show(global: &Global, routers: &Routers, name: &str) -> Result<(), Failure> {
    let shown = shown(routers, name, routers.find(name)?);
    global.output().print(&shown, || {
        fields(&[
            ("name", shown.name.to_owned()),
            ("transport", shown.router.transport.to_string()),
            ("observer", text(shown.router.observer.as_ref())),
            ("signs as", text(shown.router.identity.as_ref())),
            ("default", if shown.is_default { "yes" } else { "no" }.to_owned()),
        ])
    })?;
    Ok(())
}

fn text(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}
