//! Code that a page quotes: each block is a file, or a part of one, that tests compile and run.
//!
//! `<!-- FILE -->` before a block names a whole file, `<!-- FILE: PART -->` a part. A part begins after the line `//
//! PART` and ends before `// end`.

use crate::reference::{file, must_be};

/// The page with each quoted block as its file has it.
fn quoted(page: &str) -> String {
    let mut parts = page.split("<!-- ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, behind) = part.split_once(" -->\n```").expect("a quoted block");
        let (language, behind) = behind.split_once('\n').expect("a line with the language");
        let (_, behind) = behind.split_once("\n```\n").expect("the end of a block");
        let source = match name.split_once(": ") {
            Some((path, part)) => part_of(&file(path), part),
            None => file(name).trim_end().to_owned(),
        };
        text += &format!("<!-- {name} -->\n```{language}\n{source}\n```\n{behind}");
    }
    text
}

fn part_of(source: &str, part: &str) -> String {
    let (_, source) = source.split_once(&format!("\n// {part}\n")).expect("the beginning of the part");
    let (source, _) = source.split_once("\n// end\n").expect("the end of the part");
    source.to_owned()
}

#[test]
fn code_of_the_pages_is_that_of_the_examples() {
    for page in ["docs/extending.md", "docs/client.md"] {
        must_be(page, &quoted(&file(page)));
    }
}
