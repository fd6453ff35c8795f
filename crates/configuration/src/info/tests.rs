use super::*;
use proptest::prelude::*;

fn none(_: &str) -> Result<String, String> {
    Err("there is none".to_owned())
}

fn parsed(text: &str) -> Vec<Entry> {
    parse(text, &mut none).unwrap_or_else(|error| panic!("line {}: {error}: {text}", error.line))
}

fn flat(entries: &[Entry]) -> String {
    let one = |entry: &Entry| {
        let children = if entry.children.is_empty() { String::new() } else { format!("{{{}}}", flat(&entry.children)) };
        format!("{}={}{children}", entry.key, entry.value)
    };
    entries.iter().map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn keys_values_braces_and_comments() {
    for (text, expected) in [
        ("", ""),
        ("; only a comment", ""),
        ("a", "a="),
        ("a b", "a=b"),
        ("a b; comment", "a=b"),
        ("interval 25; seconds", "interval=25"),
        ("a b c d", "a=b,c=d"),
        ("a\n{\n b c\n}\nd", "a={b=c},d="),
        ("a { b c }", "a={b=c}"),
        ("a v {\n b\n c } d e", "a=v{b=,c=},d=e"),
        ("a{\nb", "a{=,b="),
        ("a b}", "a=b}"),
        ("\"k k\" \"v ; \\\"v\\\"\"", "k k=v ; \"v\""),
        ("a \"b\"\\\n \"c\" ; d", "a=bc"),
        ("a \"b\"\\ ; more\n\"c\" \\\n\"d\"\ne", "a=bcd,e="),
        ("a \"\"", "a="),
        ("/ /localhost/x ; root", "/=/localhost/x"),
        ("\ta\tb\r\nc d", "a=b,c=d"),
        ("a x\\ty", "a=x\ty"),
    ] {
        assert_eq!(flat(&parsed(text)), expected, "{text}");
    }
    assert_eq!(parsed("\n\n a\n{ b c }")[0].line, 3);
    assert_eq!(parsed("a { b c }")[0].child("b").map(|entry| entry.value.as_str()), Some("c"));
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, line, word) in [
        ("{", 1, "no key"),
        ("a b\n}", 2, "not opened"),
        ("a {\n", 1, "not closed"),
        ("a { } {", 1, "no key"),
        ("a \"b", 1, "quotation mark"),
        ("a \"b\" \\\nc", 2, "in quotes"),
        ("a \"b\" \\ c", 1, "backslash"),
        ("a \"b\" \\", 1, "ends"),
        ("a \\q", 1, "unknown escape"),
        ("\n#if x", 2, "directive"),
        ("#include x", 1, "quotes"),
        ("#include \"x\"", 1, "there is none"),
        ("#include \"x\" y", 1, "comment"),
    ] {
        let error = parse(text, &mut none).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(word), "{text}: {error}");
    }
}

#[test]
fn included_entries_stand_where_the_directive_stood() {
    let mut files = |name: &str| match name {
        "b.conf" => Ok("b 1\n#include \"c.conf\"".to_owned()),
        "c.conf" => Ok("c 2".to_owned()),
        "bad.conf" => Ok("\nx {".to_owned()),
        _ => Ok(format!("#include \"{name}\"")),
    };
    let entries = parse("a {\n#include \"b.conf\" ; comment\n}\nd", &mut files).unwrap();
    assert_eq!(flat(&entries), "a={b=1,c=2},d=");
    let error = parse("#include \"self.conf\"", &mut files).unwrap_err();
    assert!(error.message.contains("too many files"), "{error}");
    assert!(parse("#include \"bad.conf\"", &mut files).is_err());
}

#[test]
fn nesting_and_number_have_limits() {
    let nested = |depth: usize| "a {\n".repeat(depth) + &"}\n".repeat(depth);
    assert!(parse(&nested(MAX_DEPTH), &mut none).is_ok());
    assert!(parse(&nested(MAX_DEPTH + 1), &mut none).is_err());
    assert!(parse(&"a\n".repeat(MAX_ENTRIES), &mut none).is_ok());
    assert!(parse(&"a\n".repeat(MAX_ENTRIES + 1), &mut none).is_err());
}

/// Every tree reads back as it was, when written with everything in quotes.
fn write(entries: &[Entry], out: &mut String) {
    let quoted = |text: &str| {
        let escape = |c: char| match c {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '"' | '\\' => format!("\\{c}"),
            c => c.to_string(),
        };
        format!("\"{}\"", text.chars().map(escape).collect::<String>())
    };
    for entry in entries {
        out.push_str(&format!("{} {} {{\n", quoted(&entry.key), quoted(&entry.value)));
        write(&entry.children, out);
        out.push_str("}\n");
    }
}

fn trees() -> impl Strategy<Value = Vec<Entry>> {
    let leaf = (".{0,8}", "[a-z \"\\\\;{}\n]{0,8}").prop_map(|(key, value)| Entry { key, value, ..Entry::default() });
    let tree = leaf.prop_recursive(4, 32, 4, |inner| {
        (".{0,8}", prop::collection::vec(inner, 0..4)).prop_map(|(key, children)| Entry {
            key,
            children,
            ..Entry::default()
        })
    });
    prop::collection::vec(tree, 0..5)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(tree in trees()) {
        let mut text = String::new();
        write(&tree, &mut text);
        let without_lines = |entries: &[Entry]| {
            let mut text = String::new();
            write(entries, &mut text);
            text
        };
        prop_assert_eq!(without_lines(&parsed(&text)), text);
    }

    #[test]
    fn no_text_is_too_strange(text in "([a-z]{1,3}| |\n|\\{|\\}|\"|;|\\\\|#include \"a\"\n|.){0,60}") {
        let _ = parse(&text, &mut |_| Ok("x y".to_owned()));
    }
}
