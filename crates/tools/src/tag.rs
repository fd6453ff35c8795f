//! `namewire tag`: TagNet by hand. Advertise sets of tags, pull and push by tags, see what the router knows.

mod exchange;
mod tables;

use crate::{ExitCode, Failure, Global, quantity};
use namewire_client::tag::{REPLY_BYTES_MAX, TagClient, TagError, TagPlace, TagServes, TagSet};
use std::{
    fmt,
    fs::File,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Advertise tags, then answer the pulls and print the pushes that match them
    Advertise(Advertise),
    /// Ask the applications whose tags are a subset of these, or the application at one place, and print the answers
    Pull(Pull),
    /// Send content to every application whose tags are a subset of these, or to the application at one place
    Push(Push),
    /// List the sets of tags that the router knows, and the faces that lead to them
    Routes,
    /// Show the router's place in each tree
    Locator,
}

/// Where a packet goes: by tags in a tree, or by locator to one application.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Tags, separated by blanks or commas
    #[arg(value_name = "TAG", required_unless_present = "to", conflicts_with = "to")]
    tags: Vec<String>,
    /// Tree in which the packet travels [default: the router's first one]
    #[arg(long, value_name = "NUMBER", conflicts_with = "to", value_parser = clap::value_parser!(u16).range(1..))]
    tree: Option<u16>,
    /// Place of one application, as -v prints it: TREE.EPOCH/LABEL#ENDPOINT
    #[arg(long, value_name = "PLACE")]
    to: Option<TagPlace>,
}

/// Tags, separated by blanks or commas: up to 16, of 64 bytes each.
#[derive(Debug, clap::Args)]
pub(crate) struct Tags {
    /// Tags, separated by blanks or commas
    #[arg(value_name = "TAG", required = true)]
    tags: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Advertise {
    #[command(flatten)]
    tags: Tags,
    /// Packets wanted: pull, push or both [default: both with --answer, push without]
    #[arg(long)]
    serves: Option<TagServes>,
    /// File with the answer to every pull, - for standard input; at most 8,716 bytes, which fit into one packet
    #[arg(long, value_name = "FILE")]
    answer: Option<PathBuf>,
    /// Let the router forget the advertisement after this time, for example 5min; a number alone is in milliseconds
    /// [default: when this command ends]
    #[arg(long, value_name = "TIME", value_parser = quantity::ms_in(1..=u64::MAX))]
    expires: Option<u64>,
    /// Stop after this number of packets [default: at Ctrl-C]
    #[arg(short, long)]
    count: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pull {
    #[command(flatten)]
    target: Target,
    /// Answers wanted, from as many applications
    #[arg(
        short = 'k',
        value_name = "ANSWERS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=4096),
        conflicts_with = "to"
    )]
    answers: u32,
    /// Time until the last answer; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = quantity::ms_in(1..=3_600_000))]
    timeout: u64,
    /// Text for the applications that are asked
    #[arg(long, value_name = "TEXT", default_value = "")]
    payload: String,
    /// Then send this text, too, to each application that answered, by its locator; repeatable
    #[arg(long, value_name = "TEXT")]
    follow_up: Vec<String>,
    /// Print the place of each answer on standard error
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Push {
    #[command(flatten)]
    target: Target,
    /// The content
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    payload: Option<String>,
    /// File with the content, - for standard input [default: -]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::Advertise(args) => exchange::advertise(global, args).await,
        Command::Pull(args) => exchange::pull(global, args).await,
        Command::Push(args) => exchange::push(global, args).await,
        Command::Routes => tables::routes(global).await,
        Command::Locator => tables::locator(global).await,
    }
}

/// Where a packet goes, checked.
enum Destination {
    Tags(TagSet),
    Place(TagPlace),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Tags(set) => set.fmt(f),
            Destination::Place(place) => place.fmt(f),
        }
    }
}

impl Target {
    fn destination(&self) -> Result<Destination, Failure> {
        match &self.to {
            Some(place) => Ok(Destination::Place(place.clone())),
            None => Ok(Destination::Tags(tag_set(&self.tags)?)),
        }
    }

    /// The connection, for packets in the tree that was chosen.
    async fn connect(&self, global: &Global) -> Result<TagClient, Failure> {
        Ok(TagClient::new(&global.connect().await?).in_tree(self.tree.unwrap_or_default()))
    }
}

impl Tags {
    fn set(&self) -> Result<TagSet, Failure> {
        tag_set(&self.tags)
    }
}

fn tag_set(words: &[String]) -> Result<TagSet, Failure> {
    let tags = words.iter().flat_map(|text| text.split(|c: char| c == ',' || c.is_whitespace()));
    let set = TagSet::new(tags.filter(|tag| !tag.is_empty())).map_err(|error| Failure::usage(error.to_string()))?;
    if set.tags().is_empty() { Err(Failure::usage("no tag is given")) } else { Ok(set) }
}

impl Advertise {
    /// The packets that are wanted.
    fn serves(&self) -> Result<TagServes, Failure> {
        match (self.serves, &self.answer) {
            (Some(TagServes::Pull | TagServes::Both), None) => {
                Err(Failure::usage("a pull needs an answer: give a file with --answer, or --serves push"))
            }
            (Some(TagServes::Push), Some(_)) => Err(Failure::usage("--answer is for pulls, and --serves says push")),
            (Some(serves), _) => Ok(serves),
            (None, Some(_)) => Ok(TagServes::Both),
            (None, None) => Ok(TagServes::Push),
        }
    }
}

/// Reads content for one packet. `-` is standard input.
fn read_content(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let most = REPLY_BYTES_MAX as u64 + 1;
    let read = if path == Path::new("-") {
        stdin().lock().take(most).read_to_end(&mut content)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut content))
    };
    read.map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display())))?;
    if content.len() > REPLY_BYTES_MAX {
        let message = format!("{}: more than the {REPLY_BYTES_MAX} bytes that fit into one packet", path.display());
        return Err(Failure::new(ExitCode::Failed, message));
    }
    Ok(content)
}

impl From<TagError> for Failure {
    fn from(error: TagError) -> Self {
        let code = match error {
            TagError::Closed(_) => ExitCode::NoForwarder,
            TagError::Timeout(_) => ExitCode::Timeout,
            TagError::TooLarge(_) | TagError::NoReplyWanted => ExitCode::Failed,
        };
        Failure::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(words: &[&str]) -> Result<TagSet, String> {
        Tags { tags: words.iter().map(|word| (*word).to_owned()).collect() }.set().map_err(|why| why.to_string())
    }

    #[test]
    fn tags_are_separated_by_blanks_and_commas() {
        let concert = TagSet::new(["classical", "concert"]).unwrap();
        for words in [&["concert", "classical"][..], &["classical,concert"], &["concert, classical,", ",concert"]] {
            assert_eq!(tags(words), Ok(concert.clone()), "{words:?}");
        }
        assert_eq!(tags(&[",", " "]), Err("no tag is given".to_owned()));
        let long = "x".repeat(65);
        assert_eq!(tags(&[&long]), Err("a tag of more than 64 bytes".to_owned()));
        let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
        assert_eq!(tags(&[&many.join(",")]), Err("more than 16 tags".to_owned()));
    }

    #[test]
    fn pulls_are_served_only_with_an_answer() {
        let serves = |serves, answer: Option<&str>| {
            let tags = Tags { tags: vec!["a".to_owned()] };
            let answer = answer.map(PathBuf::from);
            Advertise { tags, serves, answer, expires: None, count: None }.serves().map_err(|why| why.to_string())
        };
        assert_eq!(serves(None, None), Ok(TagServes::Push));
        assert_eq!(serves(None, Some("-")), Ok(TagServes::Both));
        assert_eq!(serves(Some(TagServes::Pull), Some("-")), Ok(TagServes::Pull));
        assert!(serves(Some(TagServes::Both), None).unwrap_err().contains("--answer"));
        assert!(serves(Some(TagServes::Push), Some("-")).is_err());
    }

    #[test]
    fn content_fits_into_one_packet() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("answer");
        std::fs::write(&file, vec![7; REPLY_BYTES_MAX]).unwrap();
        assert_eq!(read_content(&file).unwrap().len(), REPLY_BYTES_MAX);
        std::fs::write(&file, vec![7; REPLY_BYTES_MAX + 1]).unwrap();
        assert!(read_content(&file).unwrap_err().to_string().contains("8716"));
        assert!(read_content(&directory.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
