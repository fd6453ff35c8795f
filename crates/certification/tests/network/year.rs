//! A year of renewals.

use crate::{Clock, DAY_MS, Site, add_key, name, open, request_by_pin, requested, wire::Network};
use namewire_certificates::{CertificateEvent, CertificateKeeper};
use namewire_certification::authority::{Change, Offer};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;

/// Bob's certificates hold 30 days. The authority is away for a week when one is due, and starts again from its disk.
#[tokio::test(start_paused = true)]
async fn certificates_renew_for_a_year_without_a_gap() {
    let (network, clock) = (Network::default(), Clock::start());
    let site = Site::new(clock);
    let (authority, wire) = network.client();
    let mut serving = site.serve(authority.clone(), vec![Offer::Pin, Offer::Possession(vec![])]);

    let home = tempfile::tempdir().unwrap();
    let chain = open(home.path());
    let own = add_key(&chain, "/site/bob", clock);
    let (bob, _) = network.client();
    let first = request_by_pin(&site, &bob, requested(&chain, &own), clock).await;
    chain.adopt_certificate(&first, clock.now_ms()).unwrap();
    site.told.lock().unwrap().clear();

    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let keeper = CertificateKeeper::new(open(home.path()), own.key_name().to_buf()).over(bob);
    let keeper = keeper.with_clock(move || clock.now_ms());
    tokio::spawn(keeper.run(move |event| told.lock().unwrap().push(event)));

    let mut certificates = std::collections::BTreeSet::new();
    for half_day in 0..2 * 365 {
        // A certificate is due 20 days after the one before: on day 100, among others.
        match half_day {
            198 => {
                serving.abort();
                network.cut(wire, true);
            }
            212 => {
                network.cut(wire, false);
                serving = site.serve(authority.clone(), vec![Offer::Pin, Offer::Possession(vec![])]);
            }
            _ => {}
        }
        sleep(Duration::from_millis(DAY_MS / 2)).await;
        let present = chain.parsed_certificate_of(name("/site/bob").as_name()).unwrap();
        assert!(present.is_valid_at(clock.now_ms()), "day {}: {}", half_day / 2, present.name());
        assert!(present.verify(&site.certificate.public_key().unwrap()).is_ok());
        certificates.insert(present.name().to_string());
    }
    assert!((17..=25).contains(&certificates.len()), "{certificates:?}");
    let is_code = |change: &Change| matches!(change, Change::Code { .. });
    assert!(!site.told.lock().unwrap().iter().any(is_code), "nobody was asked for anything");
    let events = events.lock().unwrap();
    let warnings: Vec<String> =
        events.iter().filter(|event| !matches!(event, CertificateEvent::Renewed(_))).map(ToString::to_string).collect();
    assert!(warnings.iter().all(|warning| warning.contains("expires in")), "{warnings:?}");
    assert!(!warnings.is_empty() && warnings.len() <= 8, "while the authority was away: {warnings:?}");
}

/// A request that has begun goes on with an authority that was started again.
#[tokio::test(start_paused = true)]
async fn a_request_outlives_the_authority_s_process() {
    let (network, clock) = (Network::default(), Clock::start());
    let site = Site::new(clock);
    let (authority, _) = network.client();
    let serving = site.serve(authority.clone(), vec![Offer::Pin]);
    let home = tempfile::tempdir().unwrap();
    let chain = open(home.path());
    let own = add_key(&chain, "/site/bob", clock);
    let (bob, _) = network.client();
    let profile = site.profile(&bob).await;
    let serving = Mutex::new(Some(serving));
    let code = async |_, _| {
        let before = serving.lock().unwrap().take().unwrap();
        before.abort();
        let _ = before.await;
        *serving.lock().unwrap() = Some(site.serve(authority.clone(), vec![Offer::Pin]));
        Ok(Some(site.code()))
    };
    use namewire_certificates::request::{Challenge, Terms, request_certificate};
    let terms = Terms { now_ms: clock.now_ms(), period_ms: Some(DAY_MS) };
    let issued = request_certificate(&bob, profile, requested(&chain, &own), &Challenge::Pin, terms, code).await;
    let issued = issued.unwrap();
    assert_eq!(issued.key_name(), own.key_name());
    assert_eq!(issued.validity().not_after_ms / 1000, (terms.now_ms + DAY_MS) / 1000);
}
