//! The audit finds no fault in correct mechanisms, and finds every planted fault.
//!
//! Seeds are fixed, so these tests fail always or never. A correct mechanism would have met a bad seed with a probability of at
//! most 5 % a claim, if its worst case were attained. The rows are not quite opposite and events are averages, so that the
//! probability is far below: see docs/audit.md.

use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::Loss;

use super::attack::Attack;
use super::builtin_cases::{accomplice, cases, curvature, two_answers, victim};
use super::case::{AttackResult, AuditCase, AuditVerdict};
use super::honest_run;
use super::victim::{NeighbourBehaviour, VictimConfig};
use super::{Audit, AuditResult, builtin_cases};
use crate::experiment::Experiment;
use radmm_study::{Noise, Study};

const RUNS: u32 = 10_000;
const SEED: u64 = 1;

fn pure(rate: f64) -> Mechanism {
    Mechanism::Objective {
        law: NoiseDistribution::Gamma { rate },
        scale: NoiseScaling::Fixed,
    }
}

fn case(victim: VictimConfig) -> AuditCase {
    AuditCase {
        victim,
        attack: Attack::Likelihood,
        label: "a test".to_owned(),
    }
}

fn run(case: &AuditCase) -> AttackResult {
    case.run(RUNS, SEED, &|| ()).unwrap()
}

/// Runs a case and judges it by the claim of another one.
fn judged(case: &AuditCase, runs: u32, claimed: Guarantee) -> AttackResult {
    let victim = case.victim.clone().prepare();
    let (scores, _) = case.attack.on(&victim, runs, SEED, &|| ()).unwrap();
    case.judge(&scores, claimed, runs)
}

fn claimed(case: &AuditCase) -> Guarantee {
    let victim = case.victim.clone().prepare();
    case.attack.on(&victim, 2, SEED, &|| ()).unwrap().1
}

#[test]
fn no_mechanism_loses_more_than_it_claims() {
    for case in cases() {
        let seen = run(&case);
        let (name, what) = (&seen.mechanism, &seen.attack);
        assert_eq!(
            seen.verdict,
            AuditVerdict::Holds,
            "{name}, {what}: {seen:?}"
        );
    }
}

#[test]
fn pure_objective_perturbation_loses_at_least_sixty_percent_of_what_it_claims() {
    for (iterations, rate) in [(1, 1.0), (5, 0.65)] {
        let seen = run(&case(victim(pure(rate), Loss::Logistic, iterations)));
        assert!(seen.share() >= 0.6, "{seen:?}");
    }
}

/// Returns the same mechanism with half of its noise.
fn halved(mechanism: Mechanism) -> Mechanism {
    let half = |law: NoiseDistribution| match law {
        NoiseDistribution::Gamma { rate } => NoiseDistribution::Gamma { rate: 2.0 * rate },
        NoiseDistribution::Laplace { rate } => NoiseDistribution::Laplace { rate: 2.0 * rate },
        NoiseDistribution::Gaussian { sigma } => NoiseDistribution::Gaussian { sigma: sigma / 2.0 },
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
    for case in cases() {
        if case.attack != Attack::Likelihood
            || case.victim.iterations > 1
            || case.victim.neighbours == NeighbourBehaviour::AtOrigin
        {
            continue;
        }
        let claimed = claimed(&case);
        let faulty = AuditCase {
            victim: VictimConfig {
                mechanism: halved(case.victim.mechanism),
                ..case.victim
            },
            ..case
        };
        let seen = judged(&faulty, RUNS, claimed);
        assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    }
}

#[test]
fn a_skipped_charge_is_found() {
    let whole = victim(pure(0.65), Loss::Logistic, 5);
    // The ledger of a party that answered three queries and recorded two of them.
    let shorter = VictimConfig {
        iterations: 3,
        ..whole.clone()
    };
    let (whole, shorter) = (case(whole), case(shorter));
    assert_eq!(
        judged(&whole, 3 * RUNS, claimed(&whole)).verdict,
        AuditVerdict::Holds
    );
    let seen = judged(&whole, 3 * RUNS, claimed(&shorter));
    assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
}

#[test]
fn a_price_without_the_curvature_of_the_loss_is_refuted() {
    let case = curvature();
    let whole = claimed(&case);
    assert_eq!(judged(&case, 3 * RUNS, whole).verdict, AuditVerdict::Holds);
    // S·α is left of S·α + ln(1 + x), with x = 2.
    let part = Guarantee {
        epsilon: whole.epsilon - 3f64.ln(),
        ..whole
    };
    let seen = judged(&case, 3 * RUNS, part);
    assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
}

/// The √k of objective and gradient perturbation, and the √d of output perturbation: both are √2 in the plane.
#[test]
fn a_price_of_laplace_noise_by_the_euclidean_norm_is_refuted() {
    let law = |rate| NoiseDistribution::Laplace { rate };
    for mechanism in [
        Mechanism::objective(law(1.0)),
        // m = 2ηV, and a little.
        Mechanism::output(law(40.0)),
        Mechanism::gradient(law(1.0)),
    ] {
        let case = case(victim(mechanism, Loss::Logistic, 1));
        let whole = claimed(&case);
        assert_eq!(judged(&case, RUNS, whole).verdict, AuditVerdict::Holds);
        let part = Guarantee {
            epsilon: whole.epsilon / 2f64.sqrt(),
            ..whole
        };
        let seen = judged(&case, RUNS, part);
        assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    }
}

#[test]
fn two_parties_that_share_a_noise_key_are_found() {
    assert_eq!(run(&accomplice(2)).verdict, AuditVerdict::Holds);
    let seen = run(&accomplice(0));
    assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    // Every victim is classified correctly.
    assert_eq!((seen.hits[0], seen.false_hits[0]), (seen.hits[1], 0));
}

#[test]
fn fresh_noise_says_nothing_about_other_noise() {
    let seen = run(&two_answers());
    assert!(
        seen.verdict == AuditVerdict::Holds && seen.share() < 0.5,
        "{seen:?}"
    );
}

#[test]
fn every_recycled_message_is_a_function_of_earlier_ones() {
    for (name, experiment) in builtin_cases::networks() {
        let seen = honest_run::verify(&experiment, name, &|| ()).unwrap();
        assert_eq!((&seen.unverifiable, &seen.stopped), (&None, &None));
        assert_eq!(seen.data + seen.recycled, 5 * 12, "{seen:?}");
        assert!(seen.recycled >= seen.data && seen.data > 0, "{seen:?}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_audit() {
    let case = case(victim(pure(0.5), Loss::Logistic, 3));
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        pool.install(|| case.run(500, SEED, &|| ()).unwrap())
    };
    assert_eq!(on(1), on(3));
}

const CLINIC: &str = include_str!("../../studies/clinic.toml");

fn clinic(change: impl Fn(&mut Study)) -> Experiment {
    let (mut study, _) = Study::parse(CLINIC, "clinic.toml").unwrap();
    change(&mut study);
    Experiment::prepare(study, "".as_ref()).unwrap()
}

#[test]
fn a_study_is_audited_at_its_own_prices() {
    let experiment = clinic(|study| study.algorithm.iterations = 8);
    let audited = Audit::for_study(&experiment, 2000, SEED)
        .unwrap()
        .run(&|_| ())
        .unwrap();
    let course = experiment.cumulative_epsilon(
        &experiment.noise().unwrap(),
        experiment.study().privacy.bound,
    );
    let course = course.unwrap();
    let [first, all] = &audited.attacks[..] else {
        panic!("{:?}", audited.attacks)
    };
    // Its two rows weigh as much as its party's rows. What finite precision costs may depend on the number of columns, and
    // is far below a hundredth.
    assert!((first.claimed.epsilon / course[1] - 1.0).abs() < 1e-2);
    assert!((all.claimed.epsilon / course[8] - 1.0).abs() < 1e-2);
    assert_eq!(
        (first.attack.as_str(), all.attack.as_str()),
        ("1 of 4 steps", "4 steps")
    );
    assert!(audited.failures().is_empty());
    assert_eq!(
        (audited.honest_runs[0].data, audited.honest_runs[0].recycled),
        (20, 20)
    );
}

#[test]
fn a_study_with_laplace_noise_is_audited_at_its_own_prices() {
    let law = |rate| NoiseDistribution::Laplace { rate };
    // Rows fill 7 of 11 columns, and those of the victim 2 of 2.
    for mechanism in [Mechanism::objective(law(1.0)), Mechanism::output(law(10.0))] {
        let experiment = clinic(|study| {
            study.privacy.noise = Noise::Given(mechanism);
            study.privacy.delta = 0.0;
            study.algorithm.iterations = 2;
        });
        let audited = Audit::for_study(&experiment, 2000, SEED).unwrap();
        let audited = audited.run(&|_| ()).unwrap();
        let noise = experiment.noise().unwrap();
        let course = experiment.cumulative_epsilon(&noise, Bound::Tight).unwrap();
        let first = &audited.attacks[0];
        assert!((first.claimed.epsilon / course[1] - 1.0).abs() < 1e-2);
        assert_eq!(first.verdict, AuditVerdict::Holds, "{first:?}");
    }
}

#[test]
fn an_epsilon_that_cannot_be_resolved_is_reported_as_such() {
    let verdict = |rate: f64| {
        let experiment = clinic(|study| {
            let law = NoiseDistribution::Gamma { rate };
            study.privacy.noise = Noise::Given(Mechanism::Objective {
                law,
                scale: NoiseScaling::Fixed,
            });
            study.privacy.delta = 0.0;
            study.algorithm.iterations = 2;
        });
        let audited = Audit::for_study(&experiment, 1000, SEED)
            .unwrap()
            .run(&|_| ())
            .unwrap();
        audited.attacks[0].verdict
    };
    assert_eq!(
        [verdict(1e-3), verdict(2.0), verdict(50.0)],
        [
            AuditVerdict::TooSmall,
            AuditVerdict::Holds,
            AuditVerdict::TooLarge
        ]
    );
}

#[test]
fn a_study_without_noise_claims_nothing() {
    let experiment = clinic(|study| {
        study.privacy.noise = Noise::Given(Mechanism::None);
        study.algorithm.iterations = 2;
    });
    let audited = Audit::for_study(&experiment, 1000, SEED)
        .unwrap()
        .run(&|_| ())
        .unwrap();
    assert!(audited.attacks.is_empty() && audited.failures().is_empty());
    assert!(audited.page().to_html().contains("There is no noise"));
}

#[test]
fn a_failure_names_the_mechanism_the_bound_and_the_claim() {
    let experiment = clinic(|study| study.algorithm.iterations = 2);
    let audit = Audit::for_study(&experiment, 1000, SEED);
    let audited = audit.unwrap().run(&|_| ()).unwrap();
    let mut broken: AuditResult = audited.clone();
    broken.attacks[0].verdict = AuditVerdict::Fails;
    broken.attacks[0].lower_bound = 3.77777;
    broken.attacks[0].claimed.epsilon = 0.54321;
    broken.honest_runs[0].unverifiable = Some("node 2: why".to_owned());
    assert_eq!(
        broken.failures(),
        [
            "objective gaussian, 1 step: ε is at least 3.7777 with a confidence of 95 %, and 0.5433 is claimed at δ = 1e-4",
            "r-admm, node 2: why",
        ]
    );
    assert!(broken.page().to_html().contains("2 findings contradict"));
    assert!(audited.page().to_html().contains("No attack shows more"));
}
