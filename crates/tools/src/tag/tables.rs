//! `namewire tag routes` and `locator`: what the router knows.

use super::exchange::hex;
use crate::{ExitCode, Failure, Global, output::table};
use namewire_client::{Client, DatasetError, FetchError};
use namewire_packet::{
    InterestBuilder,
    nfd::{ControlResponse, DatasetEntry, TagRoute, TagTree},
};
use serde::Serialize;

/// A face beyond which a descriptor was advertised.
#[derive(Serialize)]
struct Route {
    descriptor_hex: String,
    tree: u64,
    face_id: u64,
    serves: &'static str,
    is_application: bool,
    /// What an application here advertised; routers tell each other only descriptors.
    tag_sets: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct Tree {
    tree: u64,
    epoch: u64,
    root: u64,
    router: u64,
    label_hex: String,
    parent_face_id: Option<u64>,
    child_face_ids: Vec<u64>,
    routers_below: u64,
    descriptors: u64,
}

pub(super) async fn routes(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let routes: Vec<Route> = fetch(&client, "list").await?.iter().flat_map(rows_of).collect();
    global.output().print(&routes, || routes_text(&routes))?;
    Ok(())
}

fn rows_of(route: &TagRoute) -> impl Iterator<Item = Route> {
    route.branches.iter().map(|branch| Route {
        descriptor_hex: hex(&route.descriptor),
        tree: branch.tree,
        face_id: branch.face_id.0,
        serves: branch.serves.word(),
        is_application: branch.is_application,
        tag_sets: branch.tag_sets.iter().map(|tags| tags.iter().map(str::to_owned).collect()).collect(),
    })
}

fn routes_text(routes: &[Route]) -> String {
    let mut rows = vec![["DESCRIPTOR", "TREE", "FACE", "SERVES", "TAGS"].map(str::to_owned).to_vec()];
    rows.extend(routes.iter().map(|route| {
        let sets: Vec<String> = route.tag_sets.iter().map(|tags| format!("{{{}}}", tags.join(", "))).collect();
        let tags = if route.is_application { sets.join(" ") } else { "-".to_owned() };
        let (tree, face) = (route.tree.to_string(), route.face_id.to_string());
        vec![route.descriptor_hex.clone(), tree, face, route.serves.to_owned(), tags]
    }));
    table(&rows, "no tags are advertised")
}

pub(super) async fn locator(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let trees: Vec<Tree> = fetch(&client, "trees").await?.iter().map(Tree::new).collect();
    global.output().print(&trees, || trees_text(&trees))?;
    Ok(())
}

impl Tree {
    fn new(tree: &TagTree) -> Self {
        Tree {
            tree: tree.tree,
            epoch: tree.epoch,
            root: tree.root,
            router: tree.router,
            label_hex: hex(&tree.label),
            parent_face_id: tree.parent.map(|face| face.0),
            child_face_ids: tree.children.iter().map(|face| face.0).collect(),
            routers_below: tree.routers_below,
            descriptors: tree.descriptors,
        }
    }
}

fn trees_text(trees: &[Tree]) -> String {
    let heading = ["TREE", "EPOCH", "LABEL", "ROUTER", "ROOT", "PARENT", "CHILDREN", "BELOW", "DESCRIPTORS"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    rows.extend(trees.iter().map(|tree| {
        let children: Vec<String> = tree.child_face_ids.iter().map(u64::to_string).collect();
        vec![
            tree.tree.to_string(),
            tree.epoch.to_string(),
            or_dash(tree.label_hex.clone()),
            tree.router.to_string(),
            tree.root.to_string(),
            or_dash(tree.parent_face_id.map(|face| face.to_string()).unwrap_or_default()),
            or_dash(children.join(",")),
            tree.routers_below.to_string(),
            tree.descriptors.to_string(),
        ]
    }));
    table(&rows, "no trees")
}

/// Fetches a dataset of `tags`. If the router refuses, its answer says why.
pub(super) async fn fetch<T: DatasetEntry>(client: &Client, list: &str) -> Result<Vec<T>, Failure> {
    match client.status_list("tags", list).await {
        Err(DatasetError::Fetch(FetchError::ApplicationNack(name))) => {
            let request = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true);
            let data = client.express(&request).await?;
            let why = ControlResponse::decode(data.data().content());
            let why = why.map_or_else(|error| error.to_string(), |answer| format!("{} ({})", answer.text, answer.code));
            Err(Failure::new(ExitCode::Failed, format!("the forwarder refused: {why}")))
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{
        FaceId,
        nfd::{TagBranch, TagServes},
        tag::TagList,
    };

    #[test]
    fn routes_show_the_tags_of_applications() {
        let branch = |face, is_application, sets: &[&[&str]]| TagBranch {
            tree: 1,
            face_id: FaceId(face),
            serves: TagServes::Both,
            is_application,
            tag_sets: sets.iter().map(|tags| TagList::new(tags.iter().copied()).unwrap()).collect(),
        };
        let mut descriptor = [0; 24];
        descriptor[0] = 0xA1;
        let sets: [&[&str]; 2] = [&["a", "b"], &["c"]];
        let route = TagRoute { descriptor, branches: vec![branch(300, true, &sets), branch(261, false, &[])] };
        let text = routes_text(&rows_of(&route).collect::<Vec<_>>());
        let hex = format!("a1{}", "0".repeat(46));
        let heading = format!("DESCRIPTOR{}  TREE  FACE  SERVES  TAGS\n", " ".repeat(38));
        assert_eq!(text, format!("{heading}{hex}  1     300   both    {{a, b}} {{c}}\n{hex}  1     261   both    -\n"));
        assert_eq!(routes_text(&[]), "no tags are advertised\n");
    }

    #[test]
    fn a_root_without_neighbours_has_dashes() {
        let root = TagTree { tree: 1, epoch: 9, root: 7, router: 7, routers_below: 1, ..TagTree::default() };
        let text = trees_text(&[Tree::new(&root)]);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["1", "9", "-", "7", "7", "-", "-", "1", "0"]);
        let inner = TagTree { label: Box::new([0x80, 3]), parent: Some(FaceId(261)), ..root };
        let inner = TagTree { children: vec![FaceId(262), FaceId(263)], ..inner };
        let text = trees_text(&[Tree::new(&inner)]);
        assert!(text.contains("  8003  ") && text.contains("  261     262,263  "), "{text}");
        assert_eq!(serde_json::to_value(Tree::new(&inner)).unwrap()["child_face_ids"], serde_json::json!([262, 263]));
    }
}
