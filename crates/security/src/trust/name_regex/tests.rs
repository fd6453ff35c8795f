use super::*;

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

#[track_caller]
fn matches(regex: &str, yes: &[&str], no: &[&str]) {
    let compiled = NameRegex::parse(regex).unwrap_or_else(|error| panic!("{regex}: {error}"));
    yes.iter().for_each(|uri| assert!(compiled.is_match(name(uri).as_name()), "{regex} {uri}"));
    no.iter().for_each(|uri| assert!(!compiled.is_match(name(uri).as_name()), "{regex} {uri}"));
}

#[track_caller]
fn expands(regex: &str, template: &str, from: &str, to: &str) {
    let (regex, template) = (NameRegex::parse(regex).unwrap(), NameTemplate::parse(template).unwrap());
    template.check(&regex).unwrap();
    let from = name(from);
    let captures = regex.captures(from.as_name()).expect("matches");
    assert_eq!(template.expand(&captures), name(to));
}

#[test]
fn components_and_anchors() {
    matches("^<a><b>$", &["/a/b"], &["/a", "/a/b/c", "/x/a/b", "/a/B"]);
    matches("^<a><b>", &["/a/b", "/a/b/c"], &["/x/a/b"]);
    matches("<a><b>$", &["/a/b", "/x/a/b", "/a/b/a/b"], &["/a/b/c"]);
    matches("<a><b>", &["/a/b", "/x/a/b/y"], &["/a/x/b"]);
    matches("", &["/", "/a"], &[]);
    matches("^$", &["/"], &["/a"]);
    matches("^<>$", &["/a", "/v=3"], &["/", "/a/b"]);
}

#[test]
fn the_expression_inside_a_component() {
    matches("^<ndn.*>$", &["/ndn", "/ndnx"], &["/xndn", "/a"]);
    matches("^<[a-c]+>$", &["/abc"], &["/abd", "/8=abcd"]);
    matches("^<v=[0-9]+>$", &["/v=17"], &["/seg=17", "/17"]);
    // An alternative must not escape from the anchors around it.
    matches("^<a|b>$", &["/a", "/b"], &["/ax", "/xb"]);
    matches("^<KEY>$", &["/KEY"], &["/54=KEY"]);
}

#[test]
fn sets() {
    matches("^[<a><b>]$", &["/a", "/b"], &["/c", "/a/b"]);
    matches("^[^<a><b>]<x>$", &["/c/x"], &["/a/x", "/x"]);
}

#[test]
fn repeats() {
    matches("^<a>*<b>$", &["/b", "/a/b", "/a/a/a/b"], &["/a", "/c/b"]);
    matches("^<a>+$", &["/a", "/a/a"], &["/"]);
    matches("^<a>?<b>$", &["/b", "/a/b"], &["/a/a/b"]);
    matches("^<>{1,3}$", &["/a", "/a/b", "/a/b/c"], &["/", "/a/b/c/d"]);
    matches("^<>{2}$", &["/a/b"], &["/a", "/a/b/c"]);
    matches("^<>{2,}$", &["/a/b", "/a/b/c/d"], &["/a"]);
    matches("^<>{,2}$", &["/", "/a/b"], &["/a/b/c"]);
    matches("^(<a><b>){2}$", &["/a/b/a/b"], &["/a/b", "/a/a/b/b"]);
    matches("^(<>*)*<z>$", &["/z", "/a/z"], &["/a"]);
}

#[test]
fn nfd_s_own_rules() {
    let commands = "^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$";
    matches(
        commands,
        &["/localhop/nfd/rib/register/p", "/localhop/nfd/rib/unregister/p/t/n"],
        &["/localhop/nfd/rib/announce/p", "/localhost/nfd/rib/register/p", "/localhop/nfd/rib/register"],
    );
    matches("^<>*<KEY><>{1,3}$", &["/a/KEY/1", "/KEY/1/2/3"], &["/a/KEY", "/a/KEY/1/2/3/4"]);
}

#[test]
fn groups_take_as_much_as_they_can() {
    expands("^(<>*)<KEY><>{1,3}$", "\\1", "/a/b/KEY/1/self/v=1", "/a/b");
    expands("^(<>*)(<>*)$", "\\2<x>\\1", "/a/b", "/x/a/b");
    expands("^(<a>(<b>*))<c>", "\\2<->\\1", "/a/b/b/c/d", "/b/b/-/a/b/b");
    expands("^(<>)*$", "\\1", "/a/b/c", "/c");
    expands("^(<x>)?<a>$", "\\1<none>", "/a", "/none");
    expands("^<a>$", "\\0<z>", "/a", "/a/z");
    // Without ^, the expression is tried first at the start, then as late as possible.
    expands("(<a>)(<>)", "\\2", "/a/1/a/2", "/1");
    expands("(<a>)(<>)", "\\2", "/x/a/1/a/2", "/2");
}

#[test]
fn groups_inside_a_component_count_in_order() {
    expands("^(<a>)<user-(.*)-at-(.*)>(<>*)$", "\\3\\2\\1\\4", "/a/user-joe-at-site/t", "/site/joe/a/t");
    expands("^<a-(.*)-(.*)>(<>*)$", "\\2\\1\\3", "/a-b-c/t", "/c/b/t");
}

#[test]
fn expressions_that_are_refused() {
    let error = |text: &str| NameRegex::parse(text).expect_err(text);
    assert_eq!(error("^a$"), NameRegexError::Syntax { expected: "< or [ or (", at: 1 });
    assert_eq!(error("<a"), NameRegexError::Syntax { expected: ">", at: 2 });
    assert_eq!(error("^(<a>$"), NameRegexError::Syntax { expected: ")", at: 5 });
    assert_eq!(error("[<a>"), NameRegexError::Syntax { expected: "< or ]", at: 4 });
    assert_eq!(error("<a>{3,2}"), NameRegexError::Syntax { expected: "a larger number", at: 7 });
    assert_eq!(error("<a>{,}"), NameRegexError::Syntax { expected: "a number", at: 5 });
    assert!(matches!(error("<a[>"), NameRegexError::Component(_)));
    assert!(matches!(error("((<>{1000}){1000}){1000}"), NameRegexError::TooLarge { what: "steps", .. }));
    assert!(matches!(error("[<a><b><c>]{400}"), NameRegexError::TooLarge { what: "steps", .. }));
    assert!(matches!(error("<>{9999999999999999999999}"), NameRegexError::TooLarge { what: "repeats", .. }));
    assert!(matches!(error(&"(".repeat(17)), NameRegexError::TooLarge { .. }));
    assert!(matches!(error(&"(<>)".repeat(17)), NameRegexError::TooLarge { what: "groups", .. }));
    assert!(matches!(error(&"<a>".repeat(1366)), NameRegexError::TooLarge { what: "bytes", .. }));
    let template = NameTemplate::parse("\\2").unwrap();
    assert_eq!(template.check(&NameRegex::parse("^(<>)$").unwrap()), Err(NameRegexError::NoSuchGroup(2)));
    assert!(
        NameTemplate::parse("a").is_err() && NameTemplate::parse("\\").is_err() && NameTemplate::parse("<a").is_err()
    );
}

/// Expressions like `(<>*)*` cost backtracking matchers exponential time.
#[test]
fn nested_repeats_do_not_backtrack_on_a_long_name() {
    let regex = NameRegex::parse("^((<>*)*)*((<>*)*)*<z>$").unwrap();
    let long = name(&"/a".repeat(1000));
    assert!(!regex.is_match(long.as_name()));
}
