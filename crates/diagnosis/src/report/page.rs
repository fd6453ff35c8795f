//! The page that says what is in a bundle: printed before the bundle is written, and in it as README.txt.

use super::archive::Document;
use std::time::Duration;

/// What each document holds, in the order of the page.
const CONTENTS: &[(&str, &str)] = &[
    ("doctor.json", "what `namewire doctor` finds"),
    ("versions.json", "versions of program, router, kernel and distribution; the kind of container"),
    ("machine.json", "memory, huge pages, ports, and the limits and memory of the router's process"),
    ("settings.json", "the settings in force, and where each came from"),
    ("status.json", "the router in numbers"),
    ("faces.json, channels.json", "faces, how they answer, and listeners"),
    ("routes.json, fib.json, strategies.json", "routes, the FIB, strategy choices"),
    ("content-store.json, fib-usage.json", "what the Content Store and the FIB hold and use"),
    ("workers.json, holders.json, privileges.json", "worker threads, who holds how much, what the process may do"),
    ("counters-1.json, counters-2.json", "all counters, twice"),
    ("drops.json", "the last packets that were dropped: names and faces, no contents"),
    ("log.txt", "the last lines of the router's log"),
    ("index.json", "the size of each file, and how many entries were left out"),
];

/// The page.
pub(super) fn page(with_names: bool, between: Duration) -> String {
    let mut page =
        "This bundle describes a Namewire router, for people who are asked for help. It is written to a file \
        on this machine and sent nowhere.\n\nIt contains:\n\n"
            .to_owned();
    let width = CONTENTS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, what) in CONTENTS {
        page += &format!("  {name:<width$}  {what}\n");
    }
    page += &format!("\nThe counters are {} s apart. ", between.as_secs_f64());
    page += match with_names {
        true => {
            "Names, addresses, users and paths are in it AS THEY ARE (--with-names). It has no private keys and no \
             contents of packets.\n"
        }
        false => {
            "It has no private keys and no contents of packets.\n\n\
             In the place of each name component, IP and Ethernet address, host, user, key and path stands a pseudonym. \
             The same text has the same pseudonym everywhere in this bundle, and another one in the next. The secret \
             behind the pseudonyms is not kept, so nobody can compute a text from its pseudonym.\n\n\
             These stay: the form of names (how many components, versions, segments), names under /localhost and \
             /localhop that every forwarder has, the family and the kind of addresses (private, link-local, multicast), \
             loopback addresses, ports and the programs that have them, numbers of users and faces, sizes, times, and the \
             router's own words.\n"
        }
    };
    page.split('\n').map(wrapped).collect::<Vec<_>>().join("\n")
}

/// Characters in a line of the page.
const WIDTH: usize = 100;

/// A paragraph in lines of at most [`WIDTH`]; lines of the list stay.
fn wrapped(paragraph: &str) -> String {
    if paragraph.starts_with(' ') {
        return paragraph.to_owned();
    }
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.len();
    }
    text
}

/// What was left out, in one line; nothing if all is in.
pub(super) fn left_out(documents: &[Document]) -> Option<String> {
    let cut = documents.iter().filter(|document| document.left_out > 0);
    let parts: Vec<String> = cut
        .map(|document| format!("{} {} of {}", document.name, document.left_out, document.left_out + document.entries))
        .collect();
    (!parts.is_empty()).then(|| format!("left out for size: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_how_names_are_treated() {
        let page_of = |with_names| page(with_names, Duration::from_millis(1500));
        let words_of = |with_names| page_of(with_names).replace('\n', " ");
        assert!(words_of(false).contains("stands a pseudonym") && !words_of(false).contains("AS THEY ARE"));
        assert!(words_of(true).contains("AS THEY ARE") && !words_of(true).contains("pseudonym"));
        assert!(page_of(true).contains("1.5 s apart"));
        let lines = page_of(false);
        assert!(lines.lines().all(|line| line.starts_with(' ') || line.len() <= WIDTH), "{lines}");
        let document = Document { name: "a", text: String::new(), entries: 3, left_out: 2 };
        assert_eq!(left_out(&[document]).as_deref(), Some("left out for size: a 2 of 5"));
        assert_eq!(left_out(&[]), None);
    }
}
