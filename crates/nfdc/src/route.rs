//! `nfdc route`: list, show, add and remove.

use crate::{
    arguments::Arguments,
    context::{Context, FACE_NOT_FOUND, ROUTE_NOT_FOUND, Stop, Unanswered, required},
    face::print_properties,
    find_face::{canonize, find, find_one},
    text::{self, Attributes},
    value::{FaceReference, OriginText},
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FacePersistency, RibEntry, Route, origin, route_flags},
};
use std::collections::BTreeSet;

pub(crate) async fn list(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let next_hops = match arguments.face("nexthop") {
        Some(reference) => Some(face_ids(context, reference).await?),
        None => None,
    };
    let origin = arguments.origin("origin").copied();
    print_routes(context, |_, route| {
        next_hops.as_ref().is_none_or(|ids| ids.contains(&route.face_id))
            && origin.is_none_or(|origin| origin == route.origin)
    })
    .await
}

pub(crate) async fn show(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let prefix = arguments.required_name("prefix");
    print_routes(context, |entry, _| entry.name == prefix).await
}

async fn print_routes(context: &mut Context, is_wanted: impl Fn(&RibEntry, &Route) -> bool) -> Result<(), Stop> {
    let entries: Vec<RibEntry> =
        context.list("rib", "list").await.map_err(|error| error.when("fetching RIB dataset"))?;
    let routes = entries.iter().flat_map(|entry| entry.routes.iter().map(move |route| (entry, route)));
    let mut has_route = false;
    for (entry, route) in routes.filter(|(entry, route)| is_wanted(entry, route)) {
        has_route = true;
        context.out += &text::route(Some(entry), route);
        context.out.push('\n');
    }
    if has_route { Ok(()) } else { Err(Stop::new(ROUTE_NOT_FOUND, "Route not found")) }
}

async fn face_ids(context: &Context, reference: &FaceReference) -> Result<BTreeSet<FaceId>, Stop> {
    Ok(find(context, reference).await?.iter().map(|face| face.face_id).collect())
}

pub(crate) async fn add(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let next_hop = arguments.required_face("nexthop");
    let face_id = match find_one(context, &next_hop).await {
        Ok(face) => face.face_id,
        Err(stop) if stop.code == FACE_NOT_FOUND => make_face(context, &next_hop, stop).await?,
        Err(stop) => return Err(stop),
    };
    let bit = |is_on: bool, bit: u64| if is_on { bit } else { 0 };
    let parameters = ControlParameters {
        name: Some(arguments.required_name("prefix")),
        face_id: Some(face_id),
        origin: Some(arguments.origin("origin").copied().unwrap_or(origin::STATIC)),
        cost: Some(arguments.unsigned("cost").copied().unwrap_or(0)),
        flags: Some(
            bit(!arguments.has("no-inherit"), route_flags::CHILD_INHERIT)
                | bit(arguments.has("capture"), route_flags::CAPTURE),
        ),
        expiration_period_ms: arguments.unsigned("expires").copied(),
        ..ControlParameters::default()
    };
    let doing = "adding route";
    let added = context.control("rib", "register", &parameters).await.map_err(|error| error.when(doing))?;
    let mut attributes = Attributes::in_one_line();
    add_key(&mut attributes, &added, doing)?
        .add("cost", required(added.cost, "Cost", doing)?)
        .add("flags", text::route_flag_words(required(added.flags, "Flags", doing)?))
        // Milliseconds here, seconds in listings.
        .add("expires", text::expires(added.expiration_period_ms.map(|ms| format!("{ms}ms"))));
    context.out += &format!("route-add-accepted {}\n", attributes.take());
    Ok(())
}

/// Prefix, next hop and origin: what a route is known by.
fn add_key<'a>(
    attributes: &'a mut Attributes,
    route: &ControlParameters,
    doing: &str,
) -> Result<&'a mut Attributes, Stop> {
    let name: &NameBuf = required(route.name.as_ref(), "Name", doing)?;
    Ok(attributes
        .add("prefix", name)
        .add("nexthop", required(route.face_id, "FaceId", doing)?)
        .add("origin", OriginText(required(route.origin, "Origin", doing)?)))
}

/// Makes the face that a route wants and that was `not_found`.
async fn make_face(context: &mut Context, next_hop: &FaceReference, not_found: Stop) -> Result<FaceId, Stop> {
    let FaceReference::Uri(uri) = next_hop else { return Err(not_found) };
    if uri.scheme() == "ether" {
        let message = "Unable to implicitly create Ethernet faces\n\
                       Please create the face with 'nfdc face create' before adding the route";
        return Err(Stop::new(FACE_NOT_FOUND, message));
    }
    let parameters = ControlParameters {
        uri: Some(canonize(uri, "").await?),
        face_persistency: Some(FacePersistency::Persistent.code()),
        ..ControlParameters::default()
    };
    let doing = "implicitly creating face";
    let created = context.control("faces", "create", &parameters).await.map_err(|error| error.when(doing))?;
    print_properties(context, "face-created", &created, doing)?;
    Ok(created.face_id.unwrap_or_default())
}

/// Removes the route from every face that matches; one refusal does not keep the others.
pub(crate) async fn remove(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let doing = "removing route";
    for face_id in face_ids(context, &arguments.required_face("nexthop")).await? {
        let parameters = ControlParameters {
            name: Some(arguments.required_name("prefix")),
            face_id: Some(face_id),
            origin: Some(arguments.origin("origin").copied().unwrap_or(origin::STATIC)),
            ..ControlParameters::default()
        };
        match context.control("rib", "unregister", &parameters).await {
            Ok(removed) => {
                let mut attributes = Attributes::in_one_line();
                add_key(&mut attributes, &removed, doing)?;
                context.out += &format!("route-removed {}\n", attributes.take());
            }
            Err(Unanswered::Lost(stop)) => return Err(stop),
            Err(error) => context.stop(error.when(doing)),
        }
    }
    Ok(())
}
