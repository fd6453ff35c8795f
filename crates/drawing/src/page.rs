//! A page: one HTML file that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The CSS of a page with charts and tables, light and dark.
const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}
