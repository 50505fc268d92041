//! The generator of the table `clinic`. The people in it are invented: every value is drawn from the model below, and
//! the model is not fitted to anyone either.
//!
//! A hospital has a case mix: how old its patients are, how many smoke, how much they exercise. A patient is readmitted
//! with `P(yes) = 1 / (1 + e^(−s))`, where `s` is linear in the patient's columns.
//!
//! To regenerate the file after a change to the model, run the tests with `RADMM_WRITE_TABLES` set.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::formats::csv::tests::encoded;
use crate::{Builtin, PartitionSpec, Schema, Split, partition_csv};

const PATIENTS: usize = 2000;

struct Hospital {
    name: &'static str,
    /// The percentage of all patients.
    patients: u32,
    /// The mean age in years.
    age: f64,
    /// The percentage of its patients who smoke.
    smokers: u32,
    /// The percentages of its patients who exercise not at all, and some; the others exercise regularly.
    exercise: [u32; 2],
}

const HOSPITALS: [Hospital; 5] = [
    Hospital {
        name: "Alder",
        patients: 28,
        age: 52.0,
        smokers: 22,
        exercise: [25, 45],
    },
    Hospital {
        name: "Birch",
        patients: 24,
        age: 68.0,
        smokers: 15,
        exercise: [45, 40],
    },
    Hospital {
        name: "Cedar",
        patients: 20,
        age: 44.0,
        smokers: 35,
        exercise: [30, 40],
    },
    Hospital {
        name: "Maple",
        patients: 16,
        age: 60.0,
        smokers: 45,
        exercise: [55, 30],
    },
    Hospital {
        name: "Rowan",
        patients: 12,
        age: 36.0,
        smokers: 10,
        exercise: [15, 35],
    },
];

fn generate() -> String {
    let mut rng = ChaCha20Rng::from_seed(*b"radmm clinic v1: invented people");
    let mut text =
        "hospital,age,bmi,systolic,cholesterol,smoker,sex,exercise,readmitted\n".to_owned();
    for n in 0..PATIENTS {
        let mut fields = patient(&mut rng);
        if n % 100 == 57 {
            // Any column but the hospital and the outcome.
            fields[rng.random_range(1..8)] = "?".to_owned();
        }
        writeln!(text, "{}", fields.join(",")).unwrap();
    }
    text
}

fn patient(rng: &mut ChaCha20Rng) -> [String; 9] {
    let hospital = &HOSPITALS[choose(rng, HOSPITALS.iter().map(|h| h.patients))];
    let [none, some] = hospital.exercise;
    let smoker = choose(rng, [100 - hospital.smokers, hospital.smokers]);
    let exercise = choose(rng, [none, some, 100 - none - some]);
    let sex = choose(rng, [52, 48]);
    let age = rounded(hospital.age + 14.0 * nearly_normal(rng), 1.0, 18.0, 95.0);
    let activity = exercise as f64 - 1.0;
    let bmi = rounded(
        26.5 - 1.5 * activity + 4.0 * nearly_normal(rng),
        10.0,
        15.0,
        50.0,
    );
    let pressure = 128.0 + 0.5 * (age - 55.0) + 0.8 * (bmi - 26.5) + 14.0 * nearly_normal(rng);
    let systolic = rounded(pressure, 1.0, 90.0, 200.0);
    let cholesterol = rounded(
        5.2 + 0.08 * (bmi - 26.5) + 0.9 * nearly_normal(rng),
        10.0,
        2.5,
        9.0,
    );

    let score = -1.72
        + 0.050 * (age - 55.0)
        + 0.020 * (systolic - 130.0)
        + 0.15 * (cholesterol - 5.2)
        + 0.03 * (bmi - 26.5)
        + 1.8 * smoker as f64
        - 0.8 * activity
        + 0.2 * sex as f64;
    let readmitted = rng.random::<f64>() < 1.0 / (1.0 + libm::exp(-score));

    [
        hospital.name.to_owned(),
        age.to_string(),
        bmi.to_string(),
        systolic.to_string(),
        cholesterol.to_string(),
        ["no", "yes"][smoker].to_owned(),
        ["f", "m"][sex].to_owned(),
        ["none", "some", "regular"][exercise].to_owned(),
        ["no", "yes"][usize::from(readmitted)].to_owned(),
    ]
}

/// Draws an index with the probability of its percentage.
fn choose(rng: &mut ChaCha20Rng, percents: impl IntoIterator<Item = u32>) -> usize {
    let mut left = rng.random_range(0..100);
    for (k, percent) in percents.into_iter().enumerate() {
        if left < percent {
            return k;
        }
        left -= percent;
    }
    unreachable!("the percentages add up to a hundred")
}

/// Draws a nearly normal number with deviation one by addition alone, so that no bit depends on a mathematical library.
fn nearly_normal(rng: &mut ChaCha20Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Rounds to a multiple of 1/`parts`, within bounds.
fn rounded(value: f64, parts: f64, low: f64, high: f64) -> f64 {
    (value.clamp(low, high) * parts).round() / parts
}

fn schema() -> Schema {
    Schema {
        intercept: true,
        ..Builtin::Clinic.schema()
    }
}

/// Returns the accuracy on unit-norm rows of logistic regression with penalty `lambda/2·‖f‖²`, by gradient descent.
fn accuracy(lambda: f64) -> f64 {
    let rows = encoded(Builtin::Clinic.csv(), &schema());
    let rows: Vec<(Vec<(u32, f64)>, f64)> = rows
        .into_iter()
        .map(|(mut x, positive)| {
            let norm = x.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt();
            x.iter_mut().for_each(|e| e.1 /= norm);
            (x, if positive { 1.0 } else { -1.0 })
        })
        .collect();
    let mut f = vec![0.0; schema().columns().len()];
    let margin = |f: &[f64], x: &[(u32, f64)]| x.iter().map(|e| f[e.0 as usize] * e.1).sum::<f64>();
    // The mean loss of unit rows has a curvature of at most 1/4.
    let step = 1.0 / (0.25 + lambda);
    for _ in 0..4000 {
        let mut gradient: Vec<f64> = f.iter().map(|c| lambda * c).collect();
        for (x, y) in &rows {
            let slope = -y / (1.0 + libm::exp(y * margin(&f, x))) / rows.len() as f64;
            x.iter().for_each(|e| gradient[e.0 as usize] += slope * e.1);
        }
        f.iter_mut()
            .zip(&gradient)
            .for_each(|(c, g)| *c -= step * g);
    }
    let right = rows.iter().filter(|(x, y)| y * margin(&f, x) > 0.0);
    right.count() as f64 / rows.len() as f64
}

#[test]
fn the_table_is_what_its_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tables/clinic.csv");
    if std::env::var_os("RADMM_WRITE_TABLES").is_some() {
        std::fs::write(path, generate()).unwrap();
        return;
    }
    assert!(generate() == Builtin::Clinic.csv(), "{path} is out of date");
    assert!(Builtin::Clinic.csv().len() < 100_000);
}

#[test]
fn three_in_ten_are_readmitted_and_one_row_in_a_hundred_has_a_missing_value() {
    let text = Builtin::Clinic.csv().as_bytes();
    let spec = PartitionSpec::new(&Split::RoundRobin, 5);
    let table = partition_csv(text, "clinic", &schema(), spec).unwrap();
    assert_eq!(table.read, PATIENTS);
    assert_eq!(table.dropped, PATIENTS / 100);
    let share = table.positive as f64 / (table.read - table.dropped) as f64;
    assert!((0.28..0.32).contains(&share), "{share}");
    assert_eq!(table.ignored, ["hospital"]);
}

#[test]
fn hospitals_differ_in_size_and_outcome() {
    let shares = HOSPITALS.map(|hospital| {
        let of_hospital = |line: &&str| line.starts_with(hospital.name);
        let lines: Vec<_> = Builtin::Clinic.csv().lines().filter(of_hospital).collect();
        let yes = lines.iter().filter(|line| line.ends_with("yes")).count();
        let expected = PATIENTS * hospital.patients as usize / 100;
        assert!(lines.len().abs_diff(expected) < 80);
        yes as f64 / lines.len() as f64
    });
    let least = shares.into_iter().fold(1.0, f64::min);
    let most = shares.into_iter().fold(0.0, f64::max);
    assert!(least < 0.1 && most > 0.4, "{shares:?}");
}

#[test]
fn a_linear_classifier_beats_the_majority() {
    let fine = accuracy(1e-5);
    assert!((0.75..0.82).contains(&fine), "{fine}");
    let regularised = accuracy(1e-3);
    assert!(regularised > 0.74, "{regularised}");
}
