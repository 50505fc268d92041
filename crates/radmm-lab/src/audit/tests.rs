//! The audit finds nothing where nothing is, and finds every fault that is put in.
//!
//! Seeds are fixed, so these tests fail always or never. A right mechanism would have met a bad seed with a chance of at most
//! 5 % a claim, were its worst case attained; the rows are not quite opposite and events are averages, so that in effect it
//! is far below: see docs/audit.md.

use radmm::account::Guarantee;
use radmm::private::{Law, Loss, Mechanism, Scaling};

use super::attack::Attack;
use super::builtin::{accomplice, cases, scene};
use super::case::{Attacked, Case, Verdict};
use super::scene::Scene;

const RUNS: u32 = 10_000;
const SEED: u64 = 1;

const PURE: Mechanism = Mechanism::Objective {
    law: Law::Gamma { rate: 1.0 },
    scale: Scaling::Fixed,
};

fn case(scene: Scene) -> Case {
    Case {
        scene,
        attack: Attack::Likelihood,
        what: "a test".to_owned(),
    }
}

fn run(case: &Case) -> Attacked {
    case.run(RUNS, SEED, &|| ()).unwrap()
}

/// A case as it is, judged by what is claimed for another one.
fn judged(case: &Case, claimed: Guarantee) -> Attacked {
    let stage = case.scene.clone().stage();
    let (scores, _) = case.attack.on(&stage, RUNS, SEED, &|| ()).unwrap();
    case.judge(&scores, claimed, RUNS)
}

fn claimed(case: &Case) -> Guarantee {
    let stage = case.scene.clone().stage();
    case.attack.on(&stage, 2, SEED, &|| ()).unwrap().1
}

#[test]
fn no_mechanism_loses_more_than_it_claims() {
    for case in cases().unwrap() {
        let seen = run(&case);
        let (name, what) = (&seen.mechanism, &seen.attack);
        println!(
            "{name:32} {what:20} {:.4} {:.4} {:.2}",
            seen.claimed.epsilon,
            seen.at_least,
            seen.share()
        );
        assert_eq!(seen.verdict, Verdict::Holds, "{name}, {what}: {seen:?}");
    }
}

#[test]
fn pure_objective_perturbation_loses_at_least_sixty_percent_of_what_it_claims() {
    for (iterations, total) in [(1, 2.0), (5, 4.0)] {
        let scene = scene(PURE, Loss::Logistic, iterations);
        let seen = run(&case(scene.at_total(total).unwrap()));
        assert!(seen.share() >= 0.6, "{seen:?}");
    }
}

/// The same mechanism with half of its noise.
fn halved(mechanism: Mechanism) -> Mechanism {
    let half = |law: Law| match law {
        Law::Gamma { rate } => Law::Gamma { rate: 2.0 * rate },
        Law::Gaussian { sigma } => Law::Gaussian { sigma: sigma / 2.0 },
    };
    match mechanism {
        Mechanism::None => Mechanism::None,
        Mechanism::Objective { law, scale } => Mechanism::Objective {
            law: half(law),
            scale,
        },
        Mechanism::Output { law } => Mechanism::Output { law: half(law) },
        Mechanism::Gradient { law } => Mechanism::Gradient { law: half(law) },
    }
}

#[test]
fn halved_noise_is_found_in_every_mechanism() {
    for case in cases().unwrap() {
        if case.attack != Attack::Likelihood || case.scene.iterations > 1 {
            continue;
        }
        let claimed = claimed(&case);
        let faulty = Case {
            scene: Scene {
                mechanism: halved(case.scene.mechanism),
                ..case.scene
            },
            ..case
        };
        let seen = judged(&faulty, claimed);
        assert_eq!(seen.verdict, Verdict::Fails, "{seen:?}");
    }
}

#[test]
fn a_charge_that_is_skipped_is_found() {
    let whole = scene(PURE, Loss::Logistic, 5).at_total(4.0).unwrap();
    // The ledger of a party that was asked three times, and wrote down two of them.
    let shorter = Scene {
        iterations: 3,
        ..whole.clone()
    };
    let (whole, shorter) = (case(whole), case(shorter));
    assert_eq!(judged(&whole, claimed(&whole)).verdict, Verdict::Holds);
    let seen = judged(&whole, claimed(&shorter));
    assert_eq!(seen.verdict, Verdict::Fails, "{seen:?}");
}

#[test]
fn two_parties_with_one_key_are_found() {
    assert_eq!(run(&accomplice(2).unwrap()).verdict, Verdict::Holds);
    let seen = run(&accomplice(0).unwrap());
    assert_eq!(seen.verdict, Verdict::Fails, "{seen:?}");
    // Every victim is told apart.
    assert_eq!((seen.hits[0], seen.false_hits[0]), (seen.hits[1], 0));
}
