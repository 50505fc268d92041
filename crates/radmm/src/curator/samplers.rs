//! Exact samplers: rounding never decides what is drawn, so samples follow their distribution exactly and not
//! approximately.
//!
//! Real numbers are drawn digit by digit, with as many digits as a comparison needs (von Neumann 1951 for the
//! exponential distribution, Karney 2016 for the normal distribution), and rounded once, at the end. Integers are drawn
//! by comparing integers (Canonne, Kamath and Steinke 2020 for the discrete Laplace distribution).

#[cfg(test)]
mod tests;

use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::solver::double_double::two_sum;
use crate::privacy::NoiseDistribution;

impl NoiseDistribution {
    /// Draws a vector of `columns` coordinates. It is within [`SAMPLING_ERROR`] times its length of a vector that
    /// follows the distribution exactly.
    pub(in crate::curator) fn sample(&self, columns: usize, rng: &mut ChaCha20Rng) -> Vec<f64> {
        let coordinate = match self {
            Self::Gaussian { .. } | Self::Gamma { .. } => normal,
            Self::Laplace { .. } => laplace,
        };
        let mut noise: Vec<f64> = (0..columns).map(|_| coordinate(rng)).collect();
        let factor = match *self {
            Self::Gaussian { sigma } => sigma,
            Self::Laplace { rate } => 1.0 / rate,
            Self::Gamma { rate } => {
                // Divided by the largest entry first, so that no square overflows, and none that matters underflows.
                let largest = noise.iter().fold(0.0, |m: f64, e| m.max(e.abs()));
                for e in &mut noise {
                    *e /= largest;
                }
                let length = compensated_sum(noise.iter().map(|e| e * e)).sqrt();
                // The norm is a sum of exponential variates, one per coordinate.
                compensated_sum((0..columns).map(|_| exponential(rng))) / rate / length
            }
        };
        for e in &mut noise {
            *e *= factor;
        }
        noise
    }
}

/// The distance of a drawn vector from one that follows its distribution exactly, relative to its length: fewer than 16
/// roundings of half an ulp, since each number is drawn exactly and rounded once, and sums are compensated. Where coordinates are
/// independent they are three: of the coordinate, of the factor, and of their product.
pub(super) const SAMPLING_ERROR: f64 = 8.0 * f64::EPSILON;

/// Returns a sum of positive numbers whose error does not grow with their count.
fn compensated_sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut correction) = (0.0, 0.0);
    for number in numbers {
        let (next, error) = two_sum(sum, number);
        sum = next;
        correction += error;
    }
    sum + correction
}

/// The relative distance of a drawn number from the double that represents it: one rounding to nearest, and the digits
/// that were not drawn.
#[cfg(test)]
const ROUNDING_ERROR: f64 = 0.501 * f64::EPSILON;

/// A real number between 0 and 1 whose binary digits are drawn when they are needed.
struct Uniform {
    first: u64,
    rest: Vec<u64>,
}

impl Uniform {
    fn draw(rng: &mut impl Rng) -> Self {
        Self {
            first: rng.next_u64(),
            rest: Vec::new(),
        }
    }

    /// Returns the `i`-th 64 binary digits.
    fn word(&mut self, i: usize, rng: &mut impl Rng) -> u64 {
        let Some(i) = i.checked_sub(1) else {
            return self.first;
        };
        while self.rest.len() <= i {
            self.rest.push(rng.next_u64());
        }
        self.rest[i]
    }

    fn is_below(&mut self, other: &mut Self, rng: &mut impl Rng) -> bool {
        let mut i = 0;
        loop {
            let (ours, theirs) = (self.word(i, rng), other.word(i, rng));
            if ours != theirs {
                return ours < theirs;
            }
            i += 1;
        }
    }

    fn is_below_one_half(&self) -> bool {
        self.first >> 63 == 0
    }

    /// Returns `whole` plus this number, as the nearest double.
    fn plus(&mut self, whole: u64, rng: &mut impl Rng) -> f64 {
        if whole > 0 {
            let digits = (u128::from(whole) << 64) | u128::from(self.first);
            return digits as f64 * TWO_TO_MINUS_64;
        }
        // Leading zeros do not count as digits: a small number has as many significant digits as a large one.
        let (mut i, mut unit) = (0, TWO_TO_MINUS_64);
        while self.word(i, rng) == 0 {
            i += 1;
            unit *= TWO_TO_MINUS_64;
        }
        let digits = (u128::from(self.word(i, rng)) << 64) | u128::from(self.word(i + 1, rng));
        digits as f64 * TWO_TO_MINUS_64 * unit
    }
}

const TWO_TO_MINUS_64: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// Returns how many of `bound > U₁ > U₂ > …` hold before one does not. For a bound of x, `n` or more hold with
/// probability `xⁿ/n!`, so that the count is even with probability `e^−x`.
fn descending_run(bound: &mut Uniform, rng: &mut impl Rng) -> u32 {
    let mut last = Uniform::draw(rng);
    if !last.is_below(bound, rng) {
        return 0;
    }
    let mut length = 1;
    loop {
        let mut next = Uniform::draw(rng);
        if !next.is_below(&mut last, rng) {
            return length;
        }
        (last, length) = (next, length + 1);
    }
}

/// Draws from the exponential distribution of mean one.
pub(super) fn exponential(rng: &mut impl Rng) -> f64 {
    let mut whole = 0;
    loop {
        let mut fraction = Uniform::draw(rng);
        // Accepted with probability e^−fraction. The overall rejection probability is 1/e, that of each further whole
        // step.
        if descending_run(&mut fraction, rng).is_multiple_of(2) {
            return fraction.plus(whole, rng);
        }
        whole += 1;
    }
}

/// Draws from the Laplace distribution of rate one: an exponential size, and a fair sign.
pub(super) fn laplace(rng: &mut impl Rng) -> f64 {
    let size = exponential(rng);
    if fair_coin(rng) { size } else { -size }
}

/// Draws from the standard normal distribution.
pub(super) fn normal(rng: &mut impl Rng) -> f64 {
    loop {
        // e^{−k/2} · e^{−k(k−1)/2} · e^{−x(2k+x)/2} = e^{−(k+x)²/2}.
        let mut k = 0u64;
        while bernoulli_exp_half(rng) {
            k += 1;
        }
        if !(1..k).all(|_| (0..k).all(|_| bernoulli_exp_half(rng))) {
            continue;
        }
        let mut x = Uniform::draw(rng);
        if !(0..=k).all(|_| accepts_fraction(k, &mut x, rng)) {
            continue;
        }
        let size = x.plus(k, rng);
        return if fair_coin(rng) { size } else { -size };
    }
}

/// Returns true with probability `e^{−1/2}`.
fn bernoulli_exp_half(rng: &mut impl Rng) -> bool {
    let mut first = Uniform::draw(rng);
    // The run below one half is empty, or one longer than the run below its first element.
    !first.is_below_one_half() || !descending_run(&mut first, rng).is_multiple_of(2)
}

/// Returns true with probability `e^{−x(2k+x)/(2k+2)}`: as in a descending run below `x`, but each step in addition
/// holds only with probability `(2k + x)/(2k + 2)`.
fn accepts_fraction(k: u64, x: &mut Uniform, rng: &mut impl Rng) -> bool {
    let sides = 2 * u128::from(k) + 2;
    let mut last: Option<Uniform> = None;
    let mut length = 0u32;
    loop {
        let mut next = Uniform::draw(rng);
        let falls = next.is_below(last.as_mut().unwrap_or(x), rng);
        let holds = falls
            && match uniform_below(sides, rng) {
                0 => false,
                1 => Uniform::draw(rng).is_below(x, rng),
                _ => true,
            };
        if !holds {
            return length.is_multiple_of(2);
        }
        (last, length) = (Some(next), length + 1);
    }
}

/// Draws an integer `k` with probability proportional to `e^{−|k|/scale}`, `scale > 0`.
pub(super) fn discrete_laplace(scale: u64, rng: &mut impl Rng) -> i128 {
    let scale = u128::from(scale);
    loop {
        let part = uniform_below(scale, rng);
        if !bernoulli_exp(part, scale, rng) {
            continue;
        }
        let mut wholes = 0u128;
        while bernoulli_exp(1, 1, rng) {
            wholes += 1;
        }
        // The sum fits: 2⁶⁴ wholes have a probability of e^(−2⁶⁴).
        let size = (part + scale * wholes) as i128;
        let negative = fair_coin(rng);
        // Zero is counted with one sign only.
        if negative && size == 0 {
            continue;
        }
        return if negative { -size } else { size };
    }
}

/// Returns true with probability `e^{−part/whole}`, `part ≤ whole < 2⁶⁴`.
fn bernoulli_exp(part: u128, whole: u128, rng: &mut impl Rng) -> bool {
    let mut k = 1;
    while uniform_below(whole * k, rng) < part {
        k += 1;
    }
    k % 2 == 1
}

/// Draws an integer below `n`, uniformly.
fn uniform_below(n: u128, rng: &mut impl Rng) -> u128 {
    let mask = match n {
        0 | 1 => return 0,
        _ => u128::MAX >> (n - 1).leading_zeros(),
    };
    loop {
        let mut word = u128::from(rng.next_u64());
        if mask > u128::from(u64::MAX) {
            word |= u128::from(rng.next_u64()) << 64;
        }
        if word & mask < n {
            return word & mask;
        }
    }
}

fn fair_coin(rng: &mut impl Rng) -> bool {
    rng.next_u64() >> 63 == 0
}
