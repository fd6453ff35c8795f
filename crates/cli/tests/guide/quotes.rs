//! Code that a page quotes: each block is a part of a file that tests compile and run.
//!
//! `<!-- FILE: PART -->` before a block names the part. It begins behind the line `// PART` and ends before `// end`.

use crate::reference::{file, must_be};

/// The part of a file between `// PART` and `// end`.
fn part(path: &str, part: &str) -> String {
    let source = file(path);
    let (_, behind) = source.split_once(&format!("\n// {part}\n")).expect("the beginning of the part");
    behind.split_once("\n// end\n").expect("the end of the part").0.to_owned()
}

/// The page with each quoted block as its file has it.
fn quoted(page: &str) -> String {
    let mut blocks = page.split("<!-- ");
    let mut text = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        let (name, behind) = block.split_once(" -->\n```rust\n").expect("a quoted block");
        let (_, behind) = behind.split_once("\n```\n").expect("the end of a block");
        let (path, name_of_part) = name.split_once(": ").expect("a file and its part");
        text += &format!("<!-- {name} -->\n```rust\n{}\n```\n{behind}", part(path, name_of_part));
    }
    text
}

#[test]
fn code_of_the_pages_is_that_of_the_examples() {
    must_be("docs/extending.md", &quoted(&file("docs/extending.md")));
}

/// That page has it in a larger example, which its own crate tests.
#[test]
fn the_strategy_that_is_documented_is_the_one_that_is_simulated() {
    assert!(file("docs/strategies.md").contains(&part("sim/examples/own_strategy.rs", "strategy")));
}
