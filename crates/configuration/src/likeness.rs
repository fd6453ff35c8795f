//! Did you mean …? Finds the known word that a user most likely meant.

/// The likeness, from 0 to 1, from which one key counts as a misspelling of another.
const LIKENESS_MIN: f64 = 0.7;

/// The known word that `unknown` most likely means.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |word: &str| strsim::jaro_winkler(&unknown.to_ascii_lowercase(), &word.to_ascii_lowercase());
    let best = known.map(|word| (likeness(word), word)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).map(|(_, word)| word)
}
