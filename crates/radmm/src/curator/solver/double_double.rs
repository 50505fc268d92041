//! Double-double arithmetic: a point with twice the digits of a double where one is not enough.
//!
//! If a query drives `f` far out, the spacing of doubles there moves margins, and with them slopes, by more than the
//! tolerance allows. Then `f = high + low` is kept as an unevaluated sum, and margins are summed without error (the
//! doubled-precision dot product of Ogita, Rump and Oishi 2005). There are no fused operations, so that every machine
//! gives the same bits.

/// The point `f`: plain (one double per coordinate) or doubled (an unevaluated sum of two).
#[derive(Clone)]
pub(in crate::curator) struct Point {
    high: Vec<f64>,
    /// The low parts; empty for a plain point.
    low: Vec<f64>,
}

impl Point {
    /// Creates a plain point.
    pub(in crate::curator) fn plain(values: &[f64]) -> Self {
        Self {
            high: values.to_vec(),
            low: Vec::new(),
        }
    }

    /// Creates the point with these parts; `None` unless there are no low parts, or as many as high ones.
    pub(in crate::curator) fn from_parts(high: Vec<f64>, low: Vec<f64>) -> Option<Self> {
        (low.is_empty() || low.len() == high.len()).then_some(Self { high, low })
    }

    /// Returns the same point as a doubled one, which can move in finer steps.
    pub(in crate::curator) fn doubled(&self) -> Self {
        if self.is_doubled() {
            return self.clone();
        }
        Self {
            high: self.high.clone(),
            low: vec![0.0; self.high.len()],
        }
    }

    /// Returns whether the point is doubled.
    pub(in crate::curator) fn is_doubled(&self) -> bool {
        !self.low.is_empty()
    }

    /// Returns whether the other point is the same, to the bit.
    pub(in crate::curator) fn has_bits_of(&self, other: &Self) -> bool {
        let bits = |point: &Self| {
            let parts = point.high.iter().chain(&point.low);
            parts.map(|part| part.to_bits()).collect::<Vec<_>>()
        };
        self.is_doubled() == other.is_doubled() && bits(self) == bits(other)
    }

    /// Returns whether `next` differs from this point by a few last digits at most.
    pub(in crate::curator) fn is_within_rounding_of(&self, next: &Self) -> bool {
        let relative = if self.is_doubled() {
            0.0
        } else {
            2.0 * f64::EPSILON
        };
        let step = self.step_to(next);
        let mut pairs = step.iter().zip(&self.high);
        pairs.all(|(step, f)| step.abs() <= relative * f.abs())
    }

    /// Returns `other − self`, as plain doubles.
    pub(in crate::curator) fn step_to(&self, other: &Self) -> Vec<f64> {
        let low = |point: &Self, k: usize| point.low.get(k).copied().unwrap_or_default();
        (0..self.high.len())
            .map(|k| (other.high[k] - self.high[k]) + (low(other, k) - low(self, k)))
            .collect()
    }

    /// Returns the nearest plain doubles.
    pub(in crate::curator) fn into_values(self) -> Vec<f64> {
        self.high
    }

    /// Returns `f + step·direction`.
    pub(in crate::curator) fn moved(&self, step: f64, direction: &[f64]) -> Self {
        let mut moved = self.clone();
        if !self.is_doubled() {
            for (f, p) in moved.high.iter_mut().zip(direction) {
                *f += step * p;
            }
            return moved;
        }
        for ((high, low), p) in moved.high.iter_mut().zip(&mut moved.low).zip(direction) {
            let (sum, error) = two_sum(*high, step * p);
            (*high, *low) = two_sum(sum, error + *low);
        }
        moved
    }

    /// Returns the high parts: the nearest plain doubles.
    pub(in crate::curator) fn high(&self) -> &[f64] {
        &self.high
    }

    /// Returns the low parts; empty for a plain point.
    pub(in crate::curator) fn low(&self) -> &[f64] {
        &self.low
    }

    /// Adds `m·f` to `gradient`.
    pub(in crate::curator) fn add_scaled_to(&self, gradient: &mut [f64], m: f64) {
        for (g, f) in gradient.iter_mut().zip(&self.high) {
            *g += m * f;
        }
        for (g, f) in gradient.iter_mut().zip(&self.low) {
            *g += m * f;
        }
    }
}

/// Returns `a + b` as a double and its rounding error (Knuth).
#[inline(always)]
pub(in crate::curator) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let virtual_b = sum - a;
    (sum, (a - (sum - virtual_b)) + (b - virtual_b))
}

/// Returns `a·b` as a double and its rounding error (Dekker).
#[inline(always)]
pub(in crate::curator) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a1, a2), (b1, b2)) = (split(a), split(b));
    (
        product,
        a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2),
    )
}

/// Splits a double into a sum of two with at most 26 digits each (Veltkamp).
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_product_and_two_sum_are_exact() {
        for k in 1..1000 {
            let (a, b) = (
                (f64::from(k) * 0.77).sin() * 1e9,
                (f64::from(k) * 1.3).cos(),
            );
            let (product, error) = two_product(a, b);
            // A fused operation rounds once, so it gives the error exactly.
            assert_eq!(a.mul_add(b, -product), error);
            let (sum, error) = two_sum(a, b);
            assert_eq!((sum, error), (a + b, (a - sum) + b), "|a| > |b|");
        }
    }

    #[test]
    fn a_doubled_point_moves_where_a_plain_one_cannot() {
        let far = Point::plain(&[1e9, -1e9]);
        let direction = [1e-9, 0.0];
        let plain = far.moved(1.0, &direction);
        assert_eq!(plain.high(), far.high());
        let doubled = far.doubled().moved(1.0, &direction);
        assert_eq!(
            (doubled.high(), doubled.low()),
            (far.high(), &direction[..])
        );
        assert_eq!(doubled.into_values(), plain.into_values());
    }
}
