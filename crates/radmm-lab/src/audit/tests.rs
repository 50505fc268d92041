//! The audit finds no fault in correct mechanisms, and finds every planted fault.
//!
//! Seeds are fixed, so these tests fail always or never. A correct mechanism would have met a bad seed with a probability of at
//! most 5 % a claim, if its worst case were attained. The rows are not quite opposite and events are averages, so that the
//! probability is far below: see docs/audit.md.

use radmm::algorithm::{Algorithm, Step, View};
use radmm::graph::{NodeId, SpanningTree};
use radmm::node::{Node, NodeConfig};
use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution, NoiseFamily, NoiseScaling};
use radmm::problem::Loss;
use radmm::protocol::release::SPACING;

use super::attack::Attack;
use super::builtin_cases::{
    NOISE_FOR_ONE_STEP, WIDE_HINGE, accomplice, cases, curvature, sum_accomplice, sum_victim, sums,
    two_answers, victim,
};
use super::case::{AttackResult, AuditCase, AuditVerdict};
use super::honest_run::{self, HonestRun};
use super::victim::{LedgerClaim, NeighbourBehaviour, VictimConfig};
use super::{Audit, AuditResult, builtin_cases};
use crate::experiment::Experiment;
use crate::instantiate::{self, RunSettings};
use radmm_study::algorithm::MetricKind;
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

impl LedgerClaim {
    fn with_epsilon(self, epsilon: f64) -> Self {
        let total = Guarantee {
            epsilon,
            ..self.total
        };
        Self { total, ..self }
    }
}

fn run(case: &AuditCase) -> AttackResult {
    case.run(RUNS, SEED, &|| ()).unwrap()
}

/// Runs a case and judges it by another claim.
fn judged(case: &AuditCase, runs: u32, claimed: LedgerClaim) -> AttackResult {
    let victim = case.victim.clone().prepare();
    let (scores, _) = case.attack.on(&victim, runs, SEED, &|| ()).unwrap();
    case.judge(&scores, claimed, runs)
}

fn claimed(case: &AuditCase) -> LedgerClaim {
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
            || case.victim.queries().len() > 1
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
    let part = whole.with_epsilon(whole.total.epsilon - 3f64.ln());
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
        let part = whole.with_epsilon(whole.total.epsilon / 2f64.sqrt());
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
fn two_parties_of_a_sum_that_share_a_noise_key_are_found() {
    assert_eq!(run(&sum_accomplice(2)).verdict, AuditVerdict::Holds);
    let seen = run(&sum_accomplice(0));
    assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    assert_eq!((seen.hits[0], seen.false_hits[0]), (seen.hits[1], 0));
}

/// Returns the sum case with this label and noise of this family.
fn sum_case(label: &str, family: NoiseFamily) -> AuditCase {
    let is_it = |case: &AuditCase| {
        let law = case.victim.mechanism.noise().unwrap();
        case.label == label && law.family() == family
    };
    sums().into_iter().find(is_it).unwrap()
}

#[test]
fn sums_with_gaussian_noise_lose_nearly_all_that_they_claim() {
    // Of the 10,000 victims 5,000 are counted: μ is known to ±0.05, and is 0.9 to 1. The gradient at the origin has half of the
    // largest slope in “3 gradients”.
    for (label, share) in [
        ("gradient", 0.85),
        ("Gram matrix", 0.85),
        ("mean row", 0.85),
        ("in a metric", 0.85),
        ("3 gradients", 0.7),
        ("mean + 3", 0.85),
        ("Gram + 3", 0.85),
    ] {
        let seen = run(&sum_case(label, NoiseFamily::Gaussian));
        assert_eq!(seen.verdict, AuditVerdict::Holds, "{seen:?}");
        assert!(seen.share() >= share, "{label}: {}", seen.share());
    }
}

/// The claim of a price whose sensitivity is too small by this factor.
fn claimed_with_sensitivity_over(case: &AuditCase, factor: f64) -> LedgerClaim {
    let mechanism = case.victim.mechanism;
    let noise = mechanism.noise().unwrap().scaled(factor);
    claimed(&AuditCase {
        victim: VictimConfig {
            mechanism: mechanism.with_noise(noise),
            ..case.victim.clone()
        },
        label: String::new(),
        ..*case
    })
}

#[test]
fn a_gram_sensitivity_of_one_and_a_row_sum_without_its_factor_are_refuted() {
    let faults = [
        ("Gram matrix", NoiseFamily::Gamma, 2f64.sqrt()),
        ("Gram matrix", NoiseFamily::Gaussian, 2f64.sqrt()),
        ("mean row", NoiseFamily::Gamma, 2.0),
        ("mean row", NoiseFamily::Laplace, 2.0),
        ("mean row", NoiseFamily::Gaussian, 2.0),
    ];
    for (label, family, factor) in faults {
        let case = sum_case(label, family);
        let seen = judged(&case, RUNS, claimed_with_sensitivity_over(&case, factor));
        assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    }
}

/// Judges a case by the ledger of a party that stopped after fewer iterations.
fn judged_by_shorter(whole: &AuditCase, iterations: u32) -> AttackResult {
    let shorter = case(VictimConfig {
        iterations,
        ..whole.victim.clone()
    });
    assert!(shorter.victim.queries().len() < whole.victim.queries().len());
    judged(whole, RUNS, claimed(&shorter))
}

#[test]
fn two_questions_for_the_price_of_one_are_found() {
    for metric in [MetricKind::Mean, MetricKind::Gram] {
        let has_price = |law: &NoiseDistribution| {
            law.family() != NoiseFamily::Laplace || metric == MetricKind::Mean
        };
        for law in NOISE_FOR_ONE_STEP.into_iter().filter(has_price) {
            let whole = case(sum_victim(law, WIDE_HINGE, metric, 0.5, 1));
            let seen = run(&whole);
            assert_eq!(seen.verdict, AuditVerdict::Holds, "{seen:?}");
            let seen = judged_by_shorter(&whole, 1);
            assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
        }
    }
}

#[test]
fn four_questions_for_the_price_of_three_are_found_under_gaussian_noise() {
    for label in ["mean + 3", "Gram + 3"] {
        let whole = sum_case(label, NoiseFamily::Gaussian);
        let last = whole.victim.queries()[3].0;
        let seen = judged_by_shorter(&whole, last - 1);
        assert_eq!(seen.verdict, AuditVerdict::Fails, "{seen:?}");
    }
}

/// The hospitals, who sum their gradients, with the nodes that `node` makes of the parts of honest ones.
fn verified_sums(node: impl Fn(&Experiment, NodeConfig) -> NodeConfig) -> HonestRun {
    let (_, experiment) = builtin_cases::networks().pop().unwrap();
    let noise = experiment.noise().unwrap();
    let (instance, table) = (experiment.instance(), experiment.table());
    let settings = RunSettings::first(&noise);
    let nodes = experiment.graph().nodes().map(|id| {
        let ledger = instantiate::ledger(experiment.study(), &settings).unwrap();
        let algorithm = instance.algorithm(id, vec![0.0; table.columns.len()]);
        let curator = instantiate::curator(experiment.study(), table, &settings, id, ledger);
        let config = NodeConfig::new(experiment.graph(), id, algorithm, curator.unwrap())
            .with_iterations(experiment.study().algorithm.iterations);
        Node::new(node(&experiment, config)).unwrap()
    });
    let nodes = nodes.collect();
    honest_run::verify_nodes(&experiment, &noise, nodes, "sums".to_owned(), &|| ())
}

/// An inner party of the tree that adds something of its rows to the values that it passes on.
struct Leaking {
    honest: Box<dyn Algorithm>,
    exact: f64,
}

impl Algorithm for Leaking {
    fn observe(&mut self, view: &View<'_>) {
        self.honest.observe(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        match self.honest.next_step(view) {
            Step::Recycle(mut values) if values != view.own => {
                values[0] += self.exact;
                Step::Recycle(values)
            }
            step => step,
        }
    }

    fn width(&self, iteration: u32, columns: usize) -> usize {
        self.honest.width(iteration, columns)
    }

    fn model(&self) -> Option<&[f64]> {
        self.honest.model()
    }
}

#[test]
fn a_tree_sum_that_leaks_an_exact_value_is_found() {
    let honest = verified_sums(|_, config| config);
    assert_eq!((honest.unverifiable, honest.stopped), (None, None));
    // A ring of five has two inner parties beside its root, and two leaves.
    let tree = |experiment: &Experiment| SpanningTree::of(experiment.graph());
    // The least that the grid can hold, and an exact gradient.
    for exact in [SPACING, 123.4] {
        let mut found = 0;
        for leaking in 0..5 {
            let seen = verified_sums(|experiment, config| {
                let position = tree(experiment).position(experiment.graph(), config.id);
                let inner = !position.children.is_empty();
                if config.id.0 != leaking || !inner {
                    return config;
                }
                let honest = config.algorithm;
                let algorithm = Box::new(Leaking { honest, exact });
                NodeConfig {
                    algorithm,
                    ..config
                }
            });
            let Some(why) = &seen.unverifiable else {
                continue;
            };
            assert!(
                why.starts_with(&format!("node {leaking}: the recycled")),
                "{why}"
            );
            found += 1;
        }
        assert_eq!(found, 3);
    }
}

#[test]
fn a_sum_to_which_one_party_alone_adds_noise_is_found() {
    let seen = verified_sums(|experiment, config| {
        if config.id == NodeId(0) {
            return config;
        }
        // It answers, and is charged, without noise.
        let silent = vec![Mechanism::None; 5];
        let settings = RunSettings::first(&silent);
        let (study, table) = (experiment.study(), experiment.table());
        let ledger = instantiate::ledger(study, &settings).unwrap();
        let curator = instantiate::curator(study, table, &settings, config.id, ledger);
        let curator = curator.unwrap();
        NodeConfig { curator, ..config }
    });
    let why = seen.unverifiable.unwrap();
    assert!(
        why.ends_with("the charge at iteration 1 is not the price of its query"),
        "{why}"
    );
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
        let iterations = experiment.study().algorithm.iterations as usize;
        assert_eq!(seen.data + seen.recycled, 5 * iterations, "{seen:?}");
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

/// The same hospitals, who sum 25 gradients at a total of ε = 2.
const CLINIC_SUMS: &str = r#"
[data]
builtin = "clinic"
intercept = true
[network]
nodes = 5
topology = "ring"
[problem]
loss = "smooth-hinge"
width = 1.0
weight = 1.0
ridge = 0.001
[algorithm]
name = "consensus"
metric = "METRIC"
steps = 25
[privacy]
epsilon = 2
delta = 1e-5
[run]
seed = 1
"#;

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
fn a_study_that_sums_is_audited_at_its_own_prices() {
    for (metric, steps) in [("gram", 26), ("mean", 26), ("none", 25)] {
        let text = CLINIC_SUMS.replace("METRIC", metric);
        let (study, _) = Study::parse(&text, "clinic.toml").unwrap();
        let experiment = Experiment::prepare(study, "".as_ref()).unwrap();
        let audited = Audit::for_study(&experiment, 2000, SEED)
            .unwrap()
            .run(&|_| ())
            .unwrap();
        let [first, all] = &audited.attacks[..] else {
            panic!("{:?}", audited.attacks)
        };
        assert_eq!(first.data_steps, 1);
        assert_eq!(all.attack, format!("{steps} steps"));
        // The study's total, which the noise was calibrated to.
        assert!(all.claimed.epsilon <= 2.0 && all.claimed.epsilon > 1.99);
        assert!(audited.failures().is_empty(), "{:?}", audited.failures());
        assert!(all.share() > 0.6, "{metric}: {}", all.share());
        // The ring has depth two: four recycled iterations after each question.
        let run = &audited.honest_runs[0];
        assert_eq!((run.data, run.recycled), (5 * steps, 20 * steps));
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
