use super::*;

const START_MS: u64 = 1_800_000_000_000;
const FACE: Sender = Sender::Face(FaceId(300));

fn at(unix_ms: u64) -> Times {
    Times { unix_ms, mono_ns: (unix_ms - START_MS + 1_000_000) * 1_000_000 }
}

fn key(number: usize) -> Sender {
    Sender::Key(format!("/k/KEY/{number}").parse().unwrap())
}

fn check(guard: &mut ReplayGuard, now_ms: u64, sender: &Sender, time_ms: u64, nonce: u64) -> Result<(), Denial> {
    pass(guard, at(now_ms), sender, time_ms, nonce)
}

fn pass(guard: &mut ReplayGuard, now: Times, sender: &Sender, time_ms: u64, nonce: u64) -> Result<(), Denial> {
    guard.check(now, sender, Some(time_ms), Some(&nonce.to_be_bytes()), true)
}

#[test]
fn a_burst_within_one_millisecond_passes_once() {
    let mut guard = ReplayGuard::default();
    for nonce in 0..1000 {
        assert_eq!(check(&mut guard, START_MS, &FACE, START_MS, nonce), Ok(()));
    }
    for nonce in 0..1000 {
        assert!(matches!(check(&mut guard, START_MS, &FACE, START_MS, nonce), Err(Denial::Replayed(_))));
    }
    // Another signer is not affected.
    assert_eq!(check(&mut guard, START_MS, &key(1), START_MS, 5), Ok(()));
}

#[test]
fn timestamps_need_not_grow_but_must_be_near_the_clock() {
    let mut guard = ReplayGuard::default();
    assert_eq!(check(&mut guard, START_MS, &FACE, START_MS + GRACE_MS, 1), Ok(()));
    assert_eq!(check(&mut guard, START_MS, &FACE, START_MS - GRACE_MS, 1), Ok(()));
    let expired = check(&mut guard, START_MS, &FACE, START_MS - GRACE_MS - 1, 2);
    assert_eq!(expired, Err(Denial::Expired { age_ms: GRACE_MS + 1, age_ms_max: GRACE_MS }));
    let early = check(&mut guard, START_MS, &key(1), START_MS + GRACE_MS + 1, 2);
    assert_eq!(early, Err(Denial::FromTheFuture { ahead_ms: GRACE_MS + 1, ahead_ms_max: GRACE_MS }));
}

/// Clients of NFD give each command of a burst the next millisecond. So 200,000 commands in two seconds run 198 seconds
/// ahead of the clock.
#[test]
fn a_burst_may_step_ahead_of_the_clock() {
    let mut guard = ReplayGuard::default();
    for step in 0..200_000 {
        assert_eq!(check(&mut guard, START_MS + step / 100, &FACE, START_MS + step, step), Ok(()), "{step}");
    }
    let jump = check(&mut guard, START_MS + 2000, &FACE, START_MS + 200_000 + STEP_MS, 0);
    assert!(matches!(jump, Err(Denial::FromTheFuture { .. })), "{jump:?}");
}

#[test]
fn a_burst_runs_ahead_of_the_clock_for_an_hour_at_most() {
    let mut guard = ReplayGuard::default();
    let steps = (1..).map(|step| START_MS + step * STEP_MS);
    let refused = steps.take(4000).find(|&time_ms| check(&mut guard, START_MS, &key(1), time_ms, 1).is_err());
    assert_eq!(refused, Some(START_MS + MAX_AHEAD_MS + STEP_MS));
    // So a running clock lets every other key in again, whichever key was forgotten.
    let later_ms = START_MS + MAX_AHEAD_MS + 1;
    for number in 2..=MAX_RECORDS + 1 {
        assert_eq!(check(&mut guard, later_ms, &key(number), later_ms, 1), Ok(()), "{number}");
    }
}

#[test]
fn what_was_forgotten_does_not_pass_again() {
    let mut guard = ReplayGuard::default();
    for step in 0..MAX_NONCES as u64 + 100 {
        assert_eq!(check(&mut guard, START_MS, &key(1), START_MS + step / 2, step), Ok(()));
    }
    assert_eq!((guard.limits_met.nonces, guard.nonces), (100, MAX_NONCES));
    for step in 0..MAX_NONCES as u64 + 100 {
        assert!(matches!(check(&mut guard, START_MS, &key(1), START_MS + step / 2, step), Err(Denial::Replayed(_))));
    }
}

/// The story: commands that an application had signed two minutes ago were forgotten and left a watermark. When the
/// clock was set back, everything that the application signed from then on was before the watermark. It was refused
/// with 403 until the application connected again, or until the clock had caught up.
#[test]
fn a_clock_that_is_set_back_refuses_no_new_command_and_lets_no_old_one_pass() {
    for sender in [FACE, key(1)] {
        let mut guard = ReplayGuard::default();
        // Ten minutes, with one command each second.
        let seconds = 600;
        let mut now = at(START_MS);
        let later = |now: Times, unix_ms: u64| Times { mono_ns: now.mono_ns + 1_000_000_000, unix_ms };
        let mut sent = Vec::new();
        for nonce in 0..seconds {
            now = later(now, now.unix_ms + 1000);
            assert_eq!(pass(&mut guard, now, &sender, now.unix_ms, nonce), Ok(()));
            sent.push((now.unix_ms, nonce));
        }
        // Back by five minutes, forward by an hour, and back again. After each step the clock runs for a while.
        for (round, step_ms) in [-300_000_i64, 3_600_000, -3_600_000].into_iter().enumerate() {
            now = later(now, now.unix_ms.saturating_add_signed(step_ms));
            for second in 0..seconds / 2 {
                now = later(now, now.unix_ms + 1000);
                let nonce = (round as u64 + 1) * 10_000 + second;
                assert_eq!(pass(&mut guard, now, &sender, now.unix_ms, nonce), Ok(()), "{sender:?} {round} {second}");
                sent.push((now.unix_ms, nonce));
                let replayed =
                    sent.iter().filter(|(time_ms, nonce)| pass(&mut guard, now, &sender, *time_ms, *nonce).is_ok());
                assert_eq!(replayed.count(), 0, "{sender:?} {round} {second}");
            }
        }
        assert_eq!((guard.limits_met, guard.nonces), (ReplayLimitsMet::default(), sent.len()));
    }
}

/// A client whose clock was ahead, which had signed more commands than are remembered. Then its clock was set right.
#[test]
fn a_client_whose_clock_is_set_back_is_not_refused_on_its_own_face() {
    let mut guard = ReplayGuard::default();
    for nonce in 0..2 * MAX_NONCES as u64 {
        assert_eq!(check(&mut guard, START_MS, &FACE, START_MS + GRACE_MS, nonce), Ok(()));
    }
    assert_eq!(check(&mut guard, START_MS, &FACE, START_MS, 1), Ok(()));
    assert!(check(&mut guard, START_MS, &FACE, START_MS, 1).is_err(), "what is remembered does not pass twice");
}

/// A replayer who has seen a key's commands may send them. No forgotten command passes, even after the clock is set
/// back. The key's owner waits, but not longer than the watermark's life.
#[test]
fn a_busy_key_waits_for_an_hour_at_most_after_the_clock_is_set_back() {
    let mut guard = ReplayGuard::default();
    let day_ms = 24 * 3_600_000;
    for nonce in 0..MAX_NONCES as u64 + 1 {
        assert_eq!(check(&mut guard, START_MS + day_ms, &key(1), START_MS + day_ms, nonce), Ok(()));
    }
    let mut now = at(START_MS + day_ms);
    now.unix_ms = START_MS;
    assert!(matches!(pass(&mut guard, now, &key(1), now.unix_ms, 9_999), Err(Denial::Replayed(_))));
    now.mono_ns += WATERMARK_LIFETIME_NS;
    now.unix_ms += WATERMARK_LIFETIME_NS / 1_000_000;
    assert_eq!(pass(&mut guard, now, &key(1), now.unix_ms, 9_999), Ok(()));
}

#[test]
fn without_a_nonce_each_command_has_a_time_of_its_own() {
    let mut guard = ReplayGuard::default();
    let mut check = |time_ms, needs| guard.check(at(START_MS), &key(1), time_ms, None, needs);
    assert_eq!(check(Some(START_MS), true), Err(Denial::NoNonce));
    assert_eq!(check(None, false), Err(Denial::NoTimestamp));
    assert_eq!(check(Some(START_MS), false), Ok(()));
    assert!(matches!(check(Some(START_MS), false), Err(Denial::Replayed(_))));
    assert_eq!(check(Some(START_MS + 1), false), Ok(()));
    assert_eq!(check(Some(START_MS - 1), false), Ok(()), "the clock was set back");
    assert!(matches!(check(Some(START_MS + 1), false), Err(Denial::Replayed(_))));
}

#[test]
fn a_key_that_was_forgotten_cannot_be_replayed() {
    let mut guard = ReplayGuard::default();
    for number in 0..=MAX_RECORDS {
        assert_eq!(check(&mut guard, START_MS + number as u64, &key(number), START_MS + number as u64, 1), Ok(()));
    }
    assert_eq!((guard.records.len(), guard.limits_met.records), (MAX_RECORDS, 1));
    assert!(matches!(check(&mut guard, START_MS + 1001, &key(0), START_MS, 1), Err(Denial::Replayed(_))));
    // Faces have records of their own, and leave nothing behind.
    for number in 0..3 * MAX_RECORDS as u64 {
        assert_eq!(check(&mut guard, START_MS + number, &Sender::Face(FaceId(number)), START_MS, 1), Ok(()));
    }
    assert_eq!((guard.records.len(), guard.faces), (2 * MAX_RECORDS, MAX_RECORDS));
    guard.forget_face(FaceId(3 * MAX_RECORDS as u64 - 1));
    assert_eq!(
        (guard.records.len(), guard.faces, guard.nonces),
        (2 * MAX_RECORDS - 1, MAX_RECORDS - 1, 2 * MAX_RECORDS - 1)
    );
}

#[test]
fn records_end_an_hour_after_their_last_use() {
    let mut guard = ReplayGuard::default();
    for number in 0..MAX_RECORDS {
        assert_eq!(check(&mut guard, START_MS, &key(number), START_MS, 1), Ok(()));
    }
    let later_ms = START_MS + RECORD_LIFETIME_NS / 1_000_000 + 1;
    assert_eq!(check(&mut guard, later_ms, &key(MAX_RECORDS), later_ms, 1), Ok(()));
    assert_eq!((guard.records.len(), guard.nonces, guard.limits_met.records), (1, 1, 0));
}

#[test]
fn memory_is_bounded_over_all_signers() {
    let mut guard = ReplayGuard::default();
    let signers = (MAX_NONCES_TOTAL / MAX_NONCES + 3) as u64;
    for signer in 0..signers {
        for nonce in 0..MAX_NONCES as u64 {
            check(&mut guard, START_MS, &Sender::Face(FaceId(signer)), START_MS + nonce, nonce).unwrap();
        }
    }
    assert!(guard.nonces <= MAX_NONCES_TOTAL, "{}", guard.nonces);
    let counted: usize = guard.records.values().map(|record| record.seen.len()).sum();
    assert_eq!(guard.nonces, counted);
}

/// The story: whoever had seen a key's command sent it again when the router had started again, within two minutes.
#[test]
fn a_command_that_passed_before_a_restart_does_not_pass_after_it() {
    let mut before = ReplayGuard::default();
    before.keep_passed(true);
    // One signer's clock is ahead, the other's behind.
    let sent = [(key(1), START_MS + 60_000), (key(2), START_MS - 60_000), (key(2), START_MS - 59_000)];
    for (sender, time_ms) in &sent {
        assert_eq!(check(&mut before, START_MS, sender, *time_ms, 7), Ok(()));
    }
    assert_eq!(check(&mut before, START_MS, &FACE, START_MS, 7), Ok(()));
    let kept = before.take_passed();
    assert_eq!((kept.len(), before.take_passed(), before.all_passed().count()), (3, vec![], 3));

    let (restart_ms, mut after) = (START_MS + 1000, ReplayGuard::default());
    after.remember(at(restart_ms), &kept, true, restart_ms);
    for (sender, time_ms) in &sent {
        assert!(matches!(check(&mut after, restart_ms, sender, *time_ms, 7), Err(Denial::Replayed(_))));
        // A new command passes, whatever the signer's clock says.
        assert_eq!(check(&mut after, restart_ms, sender, *time_ms + 1000, 8), Ok(()));
    }
}

#[test]
fn without_what_passed_before_commands_signed_before_the_start_are_refused_for_a_while() {
    let (restart_ms, mut guard) = (START_MS + 1000, ReplayGuard::default());
    guard.remember(at(restart_ms), &[], false, restart_ms);
    let refused = check(&mut guard, restart_ms + 10, &key(1), restart_ms - 1, 7);
    assert!(matches!(&refused, Err(Denial::Replayed(why)) if why.contains("sign it again")), "{refused:?}");
    assert_eq!(check(&mut guard, restart_ms + 10, &FACE, restart_ms - 1, 7), Ok(()), "it can sign it again itself");
    assert_eq!(check(&mut guard, restart_ms + 10, &key(1), restart_ms, 7), Ok(()));
    // The clock was ahead when the router started, and is set right: nobody waits until it is there again.
    let later = Times { unix_ms: restart_ms - 3_600_000, mono_ns: at(restart_ms + GRACE_MS).mono_ns };
    assert_eq!(pass(&mut guard, later, &key(2), later.unix_ms, 7), Ok(()));
}

#[test]
fn nonces_of_any_length_differ() {
    let mut guard = ReplayGuard::default();
    let long = [vec![7; 100], vec![8; 100]];
    let nonces: [&[u8]; 6] = [&[0], &[0, 0], &[0; 16], &[0; 17], &long[0], &long[1]];
    for nonce in nonces {
        assert_eq!(guard.check(at(START_MS), &FACE, Some(START_MS), Some(nonce), true), Ok(()));
        assert!(guard.check(at(START_MS), &FACE, Some(START_MS), Some(nonce), true).is_err());
    }
}
