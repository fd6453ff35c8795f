//! Constellation: satellites on circular orbits (Walker delta), laser links between them, ground stations below.
//!
//! Source: Walker 1984, for the places of satellites; the links are those of +Grid, as in Hypatia (Kassing et al.
//! 2020): each satellite has four, to the next and the previous one of its plane and to its neighbours in the planes
//! beside it. A ground station uses the nearest satellites that are high enough over its horizon and near enough,
//! looked up again at each step.
//!
//! ```text
//!   satellite (p, s) of P planes with S each, at time t:
//!     Ω = 2π p / P                               ascending node
//!     u = 2π (s / S + F p / (P S)) + n t         angle from it;  n = √(μ / r³), r = equator + altitude
//!     x = r (cos Ω cos u − sin Ω sin u cos i)
//!     y = r (sin Ω cos u + cos Ω sin u cos i)    z = r sin u sin i
//! ```
//!
//! With `stagger`, the shift is half a place in every second plane and none in the others, as Hypatia has it: the links
//! between planes then lead forward and back in turn, not always forward.
//!
//! The Earth is the ellipsoid of WGS 84 and turns under the orbits. N.B. With a sphere, stations changed their
//! satellites seconds too early, and round trips differed from Hypatia's by up to 16 ms meanwhile. Left out: drag,
//! eccentricity, the pull of the Earth's bulge on orbits, and the time that a laser needs to find its partner. Sines
//! and roots are those of `libm`, and delays are rounded to the microsecond, so the files are the same on all machines.

use super::{LinkRow, delay_text};
use anyhow::{Context as _, ensure};
use libm::{asin, cos, sin, sqrt};
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// WGS 84: the Earth's radius at the equator, and its flattening.
const EQUATOR_RADIUS_M: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Gravitational parameter of the Earth, m³/s².
const MU: f64 = 3.986_004_418e14;
const EARTH_TURNS_RAD_PER_S: f64 = 7.292_115_9e-5;
const LIGHT_M_PER_S: f64 = 299_792_458.0;
const SATELLITES_MAX: usize = 20_000;

/// What is built.
#[derive(Clone, Debug)]
pub struct Constellation {
    pub planes: usize,
    pub per_plane: usize,
    /// Over the equator.
    pub altitude_km: f64,
    pub inclination_deg: f64,
    /// Walker's F: how far neighbouring planes are shifted.
    pub phasing: usize,
    /// Instead of that, every second plane is shifted by half a place.
    pub stagger: bool,
    /// How high over the horizon a satellite must be.
    pub elevation_min_deg: f64,
    /// How far from a ground station a satellite may be.
    pub range_max_km: Option<f64>,
    /// How far the Earth has turned at the beginning: Greenwich's angle from the node of plane 0.
    pub earth_angle_deg: f64,
    /// Satellites that a ground station uses at a time.
    pub uplinks: usize,
    pub step_s: f64,
    pub duration_s: f64,
    /// A delay is written again when it has changed by this much.
    pub delay_step_ms: f64,
    pub stations: Vec<Station>,
}

/// A place on the ground.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    pub name: String,
    pub latitude_deg: f64,
    pub longitude_deg: f64,
}

/// A station at a time, in metres from the centre of the Earth, and the direction that is up there.
struct Ground {
    place: Vector,
    up: Vector,
}

/// A line of the file of changes.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ChangeRow {
    pub time: f64,
    pub a: String,
    pub b: String,
    pub up: &'static str,
    pub delay: String,
}

/// The files of a constellation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    pub links: Vec<LinkRow>,
    pub changes: Vec<ChangeRow>,
}

type Vector = [f64; 3];

/// A link that is up, with the delay that was last written.
type Up = BTreeMap<(String, String), f64>;

impl Constellation {
    /// # Errors
    /// If a number is impossible.
    pub fn files(&self) -> anyhow::Result<Files> {
        let satellites = self.planes.saturating_mul(self.per_plane);
        ensure!(self.planes >= 1 && self.per_plane >= 3, "at least one plane of three satellites");
        ensure!(satellites <= SATELLITES_MAX, "{satellites} satellites, {SATELLITES_MAX} are allowed");
        ensure!(self.altitude_km > 100.0 && self.altitude_km < 50_000.0, "an altitude is 100 to 50000 km");
        ensure!(self.step_s > 0.0 && self.duration_s >= 0.0, "a step is above 0");
        let mut files = Files::default();
        // Links that may come later are in the file of links, too.
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut up = Up::new();
        let steps = (self.duration_s / self.step_s).ceil() as u64;
        for step in 0..=steps {
            let time = step as f64 * self.step_s;
            let now = self.links_at(time);
            if step == 0 {
                for (ends, delay_s) in now {
                    known.insert(ends.clone(), files.links.len());
                    files.links.push(link_row(&ends, delay_s, "up"));
                    up.insert(ends, delay_s);
                }
                continue;
            }
            for (ends, _) in up.extract_if(.., |ends, _| !now.contains_key(ends)) {
                let (a, b) = ends;
                files.changes.push(ChangeRow { time, a, b, up: "down", delay: String::new() });
            }
            for (ends, delay_s) in now {
                let is_up = up.get(&ends).copied();
                let is_near = |written_s: f64| (written_s - delay_s).abs() * 1e3 < self.delay_step_ms;
                if is_up.is_some_and(is_near) {
                    continue;
                }
                if !known.contains_key(&ends) {
                    known.insert(ends.clone(), files.links.len());
                    files.links.push(link_row(&ends, delay_s, "down"));
                }
                let (a, b) = ends.clone();
                let state = if is_up.is_some() { "" } else { "up" };
                files.changes.push(ChangeRow { time, a, b, up: state, delay: delay_text(delay_s) });
                up.insert(ends, delay_s);
            }
        }
        Ok(files)
    }

    /// The links that are up, with their delays in seconds.
    fn links_at(&self, time_s: f64) -> Up {
        let mut links = Up::new();
        let places: Vec<Vector> =
            (0..self.planes * self.per_plane).map(|number| self.satellite(number, time_s)).collect();
        let mut link = |a: usize, b: usize| {
            let (a, b) = (a.min(b), a.max(b));
            if a != b {
                links.insert((satellite_name(a), satellite_name(b)), distance(places[a], places[b]) / LIGHT_M_PER_S);
            }
        };
        for plane in 0..self.planes {
            for place in 0..self.per_plane {
                let own = plane * self.per_plane + place;
                link(own, plane * self.per_plane + (place + 1) % self.per_plane);
                if self.planes > 1 {
                    link(own, self.neighbour(plane, place));
                }
            }
        }
        let turned_rad = self.earth_angle_deg.to_radians() + EARTH_TURNS_RAD_PER_S * time_s;
        for station in &self.stations {
            let ground = station.ground(turned_rad);
            let mut seen: Vec<(f64, usize)> = places
                .iter()
                .enumerate()
                .map(|(number, place)| (distance(ground.place, *place), number))
                .filter(|(far, _)| self.range_max_km.is_none_or(|range_km| *far <= range_km * 1e3))
                .filter(|(_, number)| ground.elevation_deg(places[*number]) >= self.elevation_min_deg)
                .collect();
            seen.sort_by(|one, other| one.0.total_cmp(&other.0));
            for (far, number) in seen.into_iter().take(self.uplinks) {
                links.insert((station.name.clone(), satellite_name(number)), far / LIGHT_M_PER_S);
            }
        }
        links
    }

    /// The satellite beside one in the next plane. Between the last plane and the first, the shift of a whole turn is
    /// made good.
    fn neighbour(&self, plane: usize, place: usize) -> usize {
        let wraps = plane + 1 == self.planes && !self.stagger;
        let shift = if wraps { self.phasing % self.per_plane } else { 0 };
        (plane + 1) % self.planes * self.per_plane + (place + shift) % self.per_plane
    }

    fn satellite(&self, number: usize, time_s: f64) -> Vector {
        let (plane, place) = (number / self.per_plane, number % self.per_plane);
        let radius_m = EQUATOR_RADIUS_M + self.altitude_km * 1e3;
        let node = TAU * plane as f64 / self.planes as f64;
        let shift = match self.stagger {
            true => (plane % 2) as f64 / (2 * self.per_plane) as f64,
            false => self.phasing as f64 * plane as f64 / (self.planes * self.per_plane) as f64,
        };
        let turns_rad_per_s = sqrt(MU / (radius_m * radius_m * radius_m));
        let angle = TAU * (place as f64 / self.per_plane as f64 + shift) + turns_rad_per_s * time_s;
        let tilt = self.inclination_deg.to_radians();
        let (sin_angle, cos_angle) = (sin(angle), cos(angle));
        [
            radius_m * (cos(node) * cos_angle - sin(node) * sin_angle * cos(tilt)),
            radius_m * (sin(node) * cos_angle + cos(node) * sin_angle * cos(tilt)),
            radius_m * sin_angle * sin(tilt),
        ]
    }
}

impl Station {
    /// `NAME,LATITUDE,LONGITUDE`, in degrees.
    ///
    /// # Errors
    /// If it is something else.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut parts = text.split(',').map(str::trim);
        let what = || format!("{text:?}: a station is NAME,LATITUDE,LONGITUDE");
        let name = parts.next().filter(|name| !name.is_empty()).with_context(what)?.to_owned();
        let mut degrees = || parts.next().and_then(|part| part.parse::<f64>().ok());
        let (latitude_deg, longitude_deg) = degrees().zip(degrees()).with_context(what)?;
        ensure!((-90.0..=90.0).contains(&latitude_deg) && (-180.0..=180.0).contains(&longitude_deg), what());
        Ok(Station { name, latitude_deg, longitude_deg })
    }

    /// `turned_rad`: how far the Earth has turned.
    fn ground(&self, turned_rad: f64) -> Ground {
        let (latitude, longitude) = (self.latitude_deg.to_radians(), self.longitude_deg.to_radians() + turned_rad);
        let up = [cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)];
        // The square of the eccentricity, and the radius of curvature across the meridian.
        let squashed = FLATTENING * (2.0 - FLATTENING);
        let across_m = EQUATOR_RADIUS_M / sqrt(1.0 - squashed * up[2] * up[2]);
        Ground { place: [across_m * up[0], across_m * up[1], across_m * (1.0 - squashed) * up[2]], up }
    }
}

impl Ground {
    /// How high a satellite is over the horizon.
    fn elevation_deg(&self, satellite: Vector) -> f64 {
        let height_m: f64 = (0..3).map(|axis| (satellite[axis] - self.place[axis]) * self.up[axis]).sum();
        asin((height_m / distance(self.place, satellite)).clamp(-1.0, 1.0)).to_degrees()
    }
}

fn satellite_name(number: usize) -> String {
    format!("sat{number}")
}

fn link_row((a, b): &(String, String), delay_s: f64, up: &'static str) -> LinkRow {
    LinkRow { a: a.clone(), b: b.clone(), delay: delay_text(delay_s), up }
}

fn distance(a: Vector, b: Vector) -> f64 {
    sqrt((0..3).map(|axis| (a[axis] - b[axis]) * (a[axis] - b[axis])).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first shell of Starlink: 72 planes of 22.
    fn shell() -> Constellation {
        Constellation {
            planes: 72,
            per_plane: 22,
            altitude_km: 550.0,
            inclination_deg: 53.0,
            phasing: 39,
            stagger: false,
            elevation_min_deg: 25.0,
            range_max_km: None,
            earth_angle_deg: 0.0,
            uplinks: 1,
            step_s: 15.0,
            duration_s: 600.0,
            delay_step_ms: 0.5,
            stations: ["paris,48.9,2.3", "tokyo,35.7,139.7"]
                .map(|text| Station::parse(text).expect("a station"))
                .to_vec(),
        }
    }

    #[test]
    fn orbits_have_their_height_tilt_and_period() {
        let shell = shell();
        let place = shell.satellite(5, 0.0);
        assert!((distance(place, [0.0; 3]) - 6_928_137.0).abs() < 1.0);
        let radius_m: f64 = 6_928_137.0;
        let period_s = TAU * (radius_m.powi(3) / MU).sqrt();
        assert!((period_s / 60.0 - 95.5).abs() < 0.5, "{period_s} s");
        assert!(distance(shell.satellite(5, period_s), place) < 1.0);
        let highest = (0..1584).map(|number| shell.satellite(number, 0.0)[2]).fold(0.0, f64::max);
        let latitude_deg = (highest / 6_928_137.0).asin().to_degrees();
        assert!((52.0..=53.0).contains(&latitude_deg), "{latitude_deg}");
    }

    #[test]
    fn each_satellite_has_four_links_and_each_station_one() {
        let shell = shell();
        let links = shell.links_at(0.0);
        let degree = |name: &str| links.keys().filter(|(a, b)| a == name || b == name).count();
        for number in [0, 21, 22, 1_583] {
            let name = satellite_name(number);
            let of_stations = links.keys().filter(|(a, b)| *b == name && !a.starts_with("sat")).count();
            assert_eq!(degree(&name) - of_stations, 4, "{name}");
        }
        assert_eq!([degree("paris"), degree("tokyo")], [1, 1]);
        let between_satellites = links.iter().filter(|link| link.0.0.starts_with("sat")).map(|link| *link.1);
        let longest_s = between_satellites.fold(0.0, f64::max);
        // 22 on a circle: 1,970 km, 6.6 ms; neighbours in the plane beside are nearer.
        assert!((0.006..0.0075).contains(&longest_s), "{longest_s}");
    }

    #[test]
    fn stations_change_their_satellites_and_the_files_say_so() -> anyhow::Result<()> {
        let files = shell().files()?;
        let of_paris: Vec<&ChangeRow> = files.changes.iter().filter(|change| change.a == "paris").collect();
        let [ups, downs] = ["up", "down"].map(|state| of_paris.iter().filter(|change| change.up == state).count());
        assert_eq!(ups, downs, "one satellite at a time");
        assert!((2..40).contains(&ups), "{ups} changes in ten minutes");
        for change in &of_paris {
            assert!(files.links.iter().any(|link| link.a == change.a && link.b == change.b), "{change:?}");
        }
        assert!(files.changes.is_sorted_by_key(|change| change.time));
        assert_eq!(files, shell().files()?);
        Ok(())
    }

    #[test]
    fn staggered_planes_are_shifted_in_turn_and_linked_without_a_step() {
        let shell = Constellation { planes: 4, per_plane: 6, stagger: true, ..shell() };
        let angle_deg = |number: usize| {
            let [x, y, z] = shell.satellite(number, 0.0);
            let tilt = shell.inclination_deg.to_radians();
            let node = TAU * (number / 6) as f64 / 4.0;
            let (along, up) = (x * node.cos() + y * node.sin(), z / tilt.sin());
            up.atan2(along).to_degrees().rem_euclid(360.0).round()
        };
        assert_eq!([0, 6, 12, 18, 1].map(angle_deg), [0.0, 30.0, 0.0, 30.0, 60.0]);
        assert_eq!([0, 1, 2, 3].map(|plane| shell.neighbour(plane, 2)), [8, 14, 20, 2]);
    }

    #[test]
    fn a_station_is_on_the_ellipsoid_and_turns_with_the_earth() {
        let ground =
            |text: &str, turned_deg: f64| Station::parse(text).expect("a station").ground(f64::to_radians(turned_deg));
        assert!(distance(ground("pole,90,0", 0.0).place, [0.0, 0.0, 6_356_752.3]) < 0.1);
        assert!(distance(ground("x,0,-60", 60.0).place, [6_378_137.0, 0.0, 0.0]) < 0.1);
        let here = ground("x,45,0", 0.0);
        let over = |height_m: f64| [0, 1, 2].map(|axis| here.place[axis] + height_m * here.up[axis]);
        assert!((here.elevation_deg(over(5e5)) - 90.0).abs() < 1e-3);
        // Geodesy's textbook case: the direction to the centre is 0.19 degrees off the vertical at 45 degrees.
        assert!((here.elevation_deg([0.0; 3]) + 90.0 - 0.192).abs() < 0.001);
    }

    #[test]
    fn a_range_leaves_fewer_satellites_than_the_horizon_does() {
        let seen = |range_max_km: Option<f64>| {
            let shell = Constellation { uplinks: usize::MAX, range_max_km, ..shell() };
            let links = shell.links_at(0.0);
            links.into_iter().filter(|link| link.0.0 == "paris").map(|link| link.1).collect::<Vec<f64>>()
        };
        let (all, near) = (seen(None), seen(Some(800.0)));
        assert!(near.len() < all.len() && !near.is_empty(), "{near:?} of {all:?}");
        assert!(near.iter().all(|delay_s| delay_s * LIGHT_M_PER_S <= 800e3), "{near:?}");
    }

    #[test]
    fn a_station_is_a_name_and_a_place() {
        assert!(Station::parse("x,91,0").is_err() && Station::parse("x,1").is_err() && Station::parse(",1,1").is_err());
    }
}
