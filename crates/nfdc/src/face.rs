//! `nfdc face`: list, show, create (or change) and destroy.

use crate::{
    arguments::Arguments,
    context::{Context, Refusal, Stop, USAGE, Unanswered, required},
    find_face::{canonize, canonize_if_possible, find_one, query},
    text::{Attributes, face, face_in_lines},
    value::{FaceReference, parse_unsigned},
};
use namewire_packet::nfd::{ControlParameters, FacePersistency, FaceQueryFilter, face_flags};
use namewire_printing::output::on_off;

/// Takes an override of the MTU away.
const MTU_AUTO: u64 = u64::MAX;

const NS_PER_MS: u64 = 1_000_000;

pub(crate) async fn list(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let mut filter = FaceQueryFilter { uri_scheme: arguments.text("scheme").cloned(), ..FaceQueryFilter::default() };
    if let Some(remote) = arguments.face_uri("remote") {
        filter.uri = Some(canonize_if_possible(remote).await?);
    }
    if let Some(local) = arguments.face_uri("local") {
        filter.local_uri = Some(canonize_if_possible(local).await?);
    }
    for found in query(context, &filter).await? {
        context.out += &face(&found);
        context.out.push('\n');
    }
    Ok(())
}

pub(crate) async fn show(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let id = arguments.unsigned("id").copied().unwrap_or_default();
    let found = find_one(context, &FaceReference::Id(id)).await?;
    context.out += &face_in_lines(&found);
    Ok(())
}

/// What `face create` asks for, apart from the two ends.
#[derive(Debug)]
struct Wanted {
    persistency: FacePersistency,
    reliability: Option<bool>,
    congestion_marking: Option<bool>,
    marking_interval_ns: Option<u64>,
    congestion_threshold_bytes: Option<u64>,
    mtu: Option<u64>,
}

impl Wanted {
    fn of(arguments: &Arguments) -> Result<Self, Stop> {
        let mtu = match arguments.text("mtu").map(String::as_str) {
            None => None,
            Some("auto") => Some(MTU_AUTO),
            Some(digits) => Some(
                parse_unsigned(digits)
                    .map_err(|_| Stop::new(USAGE, "MTU must either be a non-negative integer or 'auto'"))?,
            ),
        };
        let interval_ms = arguments.unsigned("congestion-marking-interval");
        Ok(Wanted {
            persistency: arguments.persistency("persistency").copied().unwrap_or(FacePersistency::Persistent),
            reliability: arguments.boolean("reliability").copied(),
            congestion_marking: arguments.boolean("congestion-marking").copied(),
            marking_interval_ns: interval_ms.map(|ms| ms.saturating_mul(NS_PER_MS)),
            congestion_threshold_bytes: arguments.unsigned("default-congestion-threshold").copied(),
            mtu,
        })
    }

    fn for_new_face(&self, remote: String, local: Option<String>) -> ControlParameters {
        let mut parameters = ControlParameters {
            uri: Some(remote),
            local_uri: local,
            face_persistency: Some(self.persistency.code()),
            base_congestion_marking_interval_ns: self.marking_interval_ns,
            default_congestion_threshold_bytes: self.congestion_threshold_bytes,
            mtu: self.mtu,
            ..ControlParameters::default()
        };
        set_bit(&mut parameters, face_flags::LP_RELIABILITY, self.reliability);
        set_bit(&mut parameters, face_flags::CONGESTION_MARKING, self.congestion_marking);
        parameters
    }

    /// What must change at a face that exists; `None`: nothing. Persistency only ever
    /// becomes stronger; interval and threshold count as a change whatever they are now.
    fn changes_to(&self, existing: &ControlParameters) -> Option<ControlParameters> {
        let mut changes = ControlParameters::default();
        let flags = existing.flags.unwrap_or_default();
        let differs = |wanted: Option<bool>, bit: u64| wanted.filter(|on| *on != (flags & bit != 0));
        set_bit(&mut changes, face_flags::LP_RELIABILITY, differs(self.reliability, face_flags::LP_RELIABILITY));
        set_bit(
            &mut changes,
            face_flags::CONGESTION_MARKING,
            differs(self.congestion_marking, face_flags::CONGESTION_MARKING),
        );
        changes.mtu = self.mtu.filter(|mtu| existing.mtu != Some(*mtu));
        let present = existing.face_persistency.and_then(FacePersistency::from_code);
        if strength(present) < strength(Some(self.persistency)) {
            changes.face_persistency = Some(self.persistency.code());
        }
        changes.base_congestion_marking_interval_ns = self.marking_interval_ns;
        changes.default_congestion_threshold_bytes = self.congestion_threshold_bytes;
        (changes != ControlParameters::default()).then_some(ControlParameters { face_id: existing.face_id, ..changes })
    }
}

fn set_bit(parameters: &mut ControlParameters, bit: u64, value: Option<bool>) {
    if let Some(is_on) = value {
        *parameters.mask.get_or_insert(0) |= bit;
        *parameters.flags.get_or_insert(0) |= if is_on { bit } else { 0 };
    }
}

fn strength(persistency: Option<FacePersistency>) -> u8 {
    match persistency {
        None => 0,
        Some(FacePersistency::OnDemand) => 1,
        Some(FacePersistency::Persistent) => 2,
        Some(FacePersistency::Permanent) => 3,
    }
}

pub(crate) async fn create(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let wanted = Wanted::of(arguments)?;
    let remote = arguments.face_uri("remote").expect("the table requires it");
    let remote = canonize(remote, "remote FaceUri ").await?;
    let local = match arguments.face_uri("local") {
        Some(local) => Some(canonize(local, "local FaceUri ").await?),
        None => None,
    };
    let parameters = wanted.for_new_face(remote.clone(), local);
    match context.control("faces", "create", &parameters).await {
        Ok(created) => print_properties(context, "face-created", &created, "creating face"),
        Err(Unanswered::Refused(Refusal { code: 409, body: Some(existing), .. }))
            if existing.uri.as_ref() == Some(&remote) =>
        {
            change(context, &wanted, *existing).await
        }
        Err(error) => Err(error.when("creating face")),
    }
}

/// The face is there already: changes what is not as wanted.
async fn change(context: &mut Context, wanted: &Wanted, existing: ControlParameters) -> Result<(), Stop> {
    let Some(changes) = wanted.changes_to(&existing) else {
        return print_properties(context, "face-exists", &existing, "creating face");
    };
    let updated = context.control("faces", "update", &changes).await.map_err(|error| error.when("updating face"))?;
    // The answer to an update does not say what the face leads to.
    let updated = ControlParameters { uri: existing.uri, local_uri: existing.local_uri, ..updated };
    print_properties(context, "face-updated", &updated, "updating face")
}

/// Prints what a command made of a face.
pub(crate) fn print_properties(
    context: &mut Context,
    event: &str,
    face: &ControlParameters,
    doing: &str,
) -> Result<(), Stop> {
    let mut attributes = Attributes::in_one_line();
    attributes
        .add("id", required(face.face_id, "FaceId", doing)?)
        .add("local", required(face.local_uri.as_ref(), "LocalUri", doing)?)
        .add("remote", required(face.uri.as_ref(), "Uri", doing)?)
        .add("persistency", persistency_word(required(face.face_persistency, "FacePersistency", doing)?));
    required(face.flags, "Flags", doing)?;
    add_link_properties(&mut attributes, face);
    context.out += &format!("{event} {}\n", attributes.take());
    Ok(())
}

fn persistency_word(code: u64) -> String {
    FacePersistency::from_code(code).map_or_else(|| code.to_string(), |persistency| persistency.to_string())
}

fn add_link_properties(attributes: &mut Attributes, face: &ControlParameters) {
    let flags = face.flags.unwrap_or_default();
    attributes
        .add("reliability", on_off(flags & face_flags::LP_RELIABILITY != 0))
        .add("congestion-marking", on_off(flags & face_flags::CONGESTION_MARKING != 0));
    if let Some(ns) = face.base_congestion_marking_interval_ns {
        attributes.add("congestion-marking-interval", format_args!("{}ms", ns / NS_PER_MS));
    }
    if let Some(bytes) = face.default_congestion_threshold_bytes {
        attributes.add("default-congestion-threshold", format_args!("{bytes}B"));
    }
    if let Some(mtu) = face.mtu {
        attributes.add("mtu", mtu);
    }
}

pub(crate) async fn destroy(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let face = find_one(context, &arguments.required_face("face")).await?;
    let parameters = ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
    let done = context.control("faces", "destroy", &parameters).await;
    let done = done.map_err(|error| error.when("destroying face"))?;
    let mut attributes = Attributes::in_one_line();
    attributes
        .add("id", face.face_id)
        .add("local", &face.local_uri)
        .add("remote", &face.uri)
        .add("persistency", face.face_persistency);
    // The answer holds the number only, so these read "off", as NFD's nfdc prints them.
    add_link_properties(&mut attributes, &done);
    context.out += &format!("face-destroyed {}\n", attributes.take());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;
    use namewire_packet::FaceId;
    use namewire_security::Signer;

    fn wanted(line: &str) -> Result<Wanted, Stop> {
        let line = format!("face create udp://h {line}");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Wanted::of(&arguments::parse(&words).unwrap().arguments)
    }

    fn existing() -> ControlParameters {
        ControlParameters {
            face_id: Some(FaceId(259)),
            flags: Some(face_flags::CONGESTION_MARKING),
            face_persistency: Some(FacePersistency::Persistent.code()),
            mtu: Some(1400),
            ..ControlParameters::default()
        }
    }

    fn changes(line: &str) -> Option<ControlParameters> {
        wanted(line).unwrap().changes_to(&existing())
    }

    #[test]
    fn only_differences_are_changes() {
        for line in ["", "persistent", "congestion-marking on reliability off", "mtu 1400"] {
            assert_eq!(changes(line), None, "{line}");
        }
        let face = || ControlParameters { face_id: Some(FaceId(259)), ..ControlParameters::default() };
        assert_eq!(
            changes("permanent").unwrap(),
            ControlParameters { face_persistency: Some(FacePersistency::Permanent.code()), ..face() }
        );
        assert_eq!(
            changes("congestion-marking off reliability on").unwrap(),
            ControlParameters { flags: Some(2), mask: Some(6), ..face() }
        );
        assert_eq!(changes("mtu auto").unwrap(), ControlParameters { mtu: Some(u64::MAX), ..face() });
        assert_eq!(
            changes("congestion-marking-interval 7").unwrap(),
            ControlParameters { base_congestion_marking_interval_ns: Some(7_000_000), ..face() }
        );
    }

    #[test]
    fn a_permanent_face_is_not_weakened() {
        let permanent = ControlParameters { face_persistency: Some(FacePersistency::Permanent.code()), ..existing() };
        assert_eq!(wanted("persistent").unwrap().changes_to(&permanent), None);
    }

    #[test]
    fn an_mtu_is_a_number_or_auto() {
        for bad in ["-1", "x", "1.5"] {
            assert_eq!(wanted(&format!("mtu {bad}")).unwrap_err().code, USAGE, "{bad}");
        }
        assert_eq!(wanted("mtu 0").unwrap().mtu, Some(0));
    }

    #[test]
    fn an_answer_without_its_fields_is_an_error() {
        let mut context = Context::new(None, Signer::digest());
        let stop = print_properties(&mut context, "face-created", &existing(), "creating face").unwrap_err();
        assert_eq!(stop.message, "Error 500 when creating face: Invalid response: LocalUri is required but missing");
        assert_eq!(context.out, "");
    }
}
