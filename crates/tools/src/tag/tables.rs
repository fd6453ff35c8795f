//! `namewire tag routes` and `locator`: the router's TagNet tables.

use super::exchange::hex;
use crate::{ExitCode, Failure, Global, output::table};
use namewire_client::{Client, DatasetError, FetchError};
use namewire_packet::{
    InterestBuilder,
    nfd::{ControlResponse, Dataset, TagBranch, TagRoute, TagTree},
    tag::TagList,
};
use serde::Serialize;

/// A face beyond which a descriptor was advertised.
#[derive(Serialize)]
struct Route<'a> {
    descriptor_hex: String,
    #[serde(flatten)]
    branch: &'a TagBranch,
}

pub(super) async fn routes(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let routes: Vec<TagRoute> = fetch(&client).await?;
    let routes: Vec<Route<'_>> = routes.iter().flat_map(rows_of).collect();
    global.output().print(&routes, || routes_text(&routes))?;
    Ok(())
}

fn rows_of(route: &TagRoute) -> impl Iterator<Item = Route<'_>> {
    route.branches.iter().map(|branch| Route { descriptor_hex: hex(&route.descriptor), branch })
}

fn routes_text(routes: &[Route<'_>]) -> String {
    let mut rows = vec![["DESCRIPTOR", "TREE", "FACE", "SERVES", "TAGS"].map(str::to_owned).to_vec()];
    rows.extend(routes.iter().map(|Route { descriptor_hex, branch }| {
        let set = |tags: &TagList| format!("{{{}}}", tags.iter().collect::<Vec<_>>().join(", "));
        let sets: Vec<String> = branch.tag_sets.iter().map(set).collect();
        let tags = if branch.is_application { sets.join(" ") } else { "-".to_owned() };
        let (tree, face) = (branch.tree.to_string(), branch.face_id.to_string());
        vec![descriptor_hex.clone(), tree, face, branch.serves.to_string(), tags]
    }));
    table(&rows, "no tags are advertised")
}

pub(super) async fn locator(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let trees: Vec<TagTree> = fetch(&client).await?;
    global.output().print(&trees, || trees_text(&trees))?;
    Ok(())
}

fn trees_text(trees: &[TagTree]) -> String {
    let heading = ["TREE", "EPOCH", "LABEL", "ROUTER", "ROOT", "PARENT", "CHILDREN", "BELOW", "DESCRIPTORS"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    rows.extend(trees.iter().map(|tree| {
        let children: Vec<String> = tree.children.iter().map(ToString::to_string).collect();
        vec![
            tree.tree.to_string(),
            tree.epoch.to_string(),
            or_dash(hex(&tree.label)),
            tree.router.to_string(),
            tree.root.to_string(),
            or_dash(tree.parent.map(|face| face.to_string()).unwrap_or_default()),
            or_dash(children.join(",")),
            tree.routers_below.to_string(),
            tree.descriptors.to_string(),
        ]
    }));
    table(&rows, "no trees")
}

/// Fetches a dataset of `tags`. If the router refuses, its answer says why.
pub(super) async fn fetch<T: Dataset>(client: &Client) -> Result<Vec<T>, Failure> {
    match client.list().await {
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
    use namewire_packet::{FaceId, nfd::TagServes};

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
        let text = trees_text(std::slice::from_ref(&root));
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["1", "9", "-", "7", "7", "-", "-", "1", "0"]);
        let inner = TagTree { label: Box::new([0x80, 3]), parent: Some(FaceId(261)), ..root };
        let inner = TagTree { children: vec![FaceId(262), FaceId(263)], ..inner };
        let text = trees_text(std::slice::from_ref(&inner));
        assert!(text.contains("  8003  ") && text.contains("  261     262,263  "), "{text}");
        assert_eq!(serde_json::to_value(&inner).unwrap()["child_face_ids"], serde_json::json!([262, 263]));
    }
}
