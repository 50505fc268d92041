//! Checks that the coordinates of random vectors are independent, for the tests of samplers.

/// Asserts that every two coordinates of random vectors have a fair property together as often as independent ones.
///
/// For independent coordinates each of which has the property with probability ½, two agree in n vectors `Bin(n, ½)`
/// times. By Hoeffding's inequality one of p pairs is off by more than `n·t` with probability `2p·e^(−2nt²)` at most,
/// which is 1e-6 here.
pub(super) fn assert_pairwise_independent(
    vectors: &[Vec<f64>],
    has_property: impl Fn(f64) -> bool,
) {
    let (n, d) = (vectors.len(), vectors[0].len());
    let column = |k: usize| vectors.iter().map(|v| has_property(v[k])).collect();
    let columns: Vec<Vec<bool>> = (0..d).map(column).collect();
    let pairs = (d * (d + 1) / 2) as f64;
    let limit = ((2.0 * pairs / 1e-6).ln() / (2.0 * n as f64)).sqrt();
    let always = vec![true; n];
    for (i, one) in columns.iter().enumerate() {
        for (j, other) in columns[..i].iter().chain([&always]).enumerate() {
            let agreed = one.iter().zip(other).filter(|(a, b)| a == b).count();
            let off = agreed as f64 / n as f64 - 0.5;
            assert!(off.abs() < limit, "coordinates {j} and {i} agree by {off}");
        }
    }
}

/// Asserts that no two coordinates have the same size.
pub(super) fn assert_sizes_are_distinct(vector: &[f64]) {
    let mut sizes: Vec<f64> = vector.iter().map(|x| x.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let same = sizes.windows(2).position(|pair| pair[0] == pair[1]);
    assert_eq!(same, None, "two of {} coordinates are equal", vector.len());
}

/// Detects a copy, a copy of opposite sign, and a shared size.
#[test]
fn dependent_coordinates_are_detected() {
    use rand::{Rng, SeedableRng};
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    let mut fair = || (rng.next_u64() as f64 + 0.5) * 2f64.powi(-63) - 1.0;
    let vectors: Vec<Vec<f64>> = (0..1000)
        .map(|_| (0..10).map(|_| fair()).collect())
        .collect();
    let checks: [fn(&[Vec<f64>]); 3] = [
        |all| assert_pairwise_independent(all, |x| x > 0.0),
        |all| assert_pairwise_independent(all, |x| x.abs() > 0.5),
        |all| all.iter().for_each(|one| assert_sizes_are_distinct(one)),
    ];
    let results = |last: fn(&[f64]) -> f64| {
        let mut changed = vectors.clone();
        for vector in &mut changed {
            vector[9] = last(vector);
        }
        checks.map(|check| std::panic::catch_unwind(|| check(&changed)).is_ok())
    };
    assert_eq!(results(|v| v[9]), [true, true, true]);
    assert_eq!(results(|v| v[0]), [false, false, false]);
    assert_eq!(results(|v| -v[0]), [false, false, false]);
    assert_eq!(
        results(|v| v[0].abs() * v[9].signum()),
        [true, false, false]
    );
}
