//! The guarantee that a total gives.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// A total `(ε, δ)` over a whole run: the bound on what an adversary who sees every message learns about one row.
///
/// Its text and its serialised form always name the neighbouring relation, which is part of a guarantee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// `ε`; infinite if something was released without noise.
    pub epsilon: f64,
    /// `δ`; zero for pure differential privacy.
    pub delta: f64,
}

impl Guarantee {
    /// The neighbouring relation of every guarantee in this program.
    pub const RELATION: &'static str = "one row of one party replaced";

    /// Returns the guarantee of a network from those of its parties: the largest `ε` and the largest `δ`.
    // Privacy: a row belongs to one party, so two data sets that are neighbours differ at one party, and what that one
    // promises holds for them, everybody else's messages being functions of the same rows and of what was said. A larger
    // ε and a larger δ promise less.
    pub fn network(parties: impl IntoIterator<Item = Self>) -> Self {
        let nothing = Self {
            epsilon: 0.0,
            delta: 0.0,
        };
        parties.into_iter().fold(nothing, |a, b| Self {
            epsilon: larger(a.epsilon, b.epsilon),
            delta: larger(a.delta, b.delta),
        })
    }
}

/// A NaN is larger than anything: it must not get lost.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epsilon.is_infinite() {
            f.write_str("ε = ∞")?;
        } else {
            write!(f, "ε = {}", four_decimals_up(self.epsilon))?;
        }
        if self.delta == 0.0 {
            f.write_str(" at δ = 0")?;
        } else {
            write!(f, " at δ = {:e}", self.delta)?;
        }
        write!(f, ", total over all messages, for {}", Self::RELATION)
    }
}

/// Rounds up to four decimals, so that the text never says less than was spent. Smaller numbers keep all digits.
fn four_decimals_up(epsilon: f64) -> f64 {
    let shown = (1e4 * epsilon).ceil() / 1e4;
    let above = if shown < epsilon { shown + 1e-4 } else { shown };
    match (1e-3..1e9).contains(&epsilon) {
        true => above,
        false => epsilon,
    }
}

impl Serialize for Guarantee {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Guarantee", 3)?;
        fields.serialize_field("epsilon", &self.epsilon)?;
        fields.serialize_field("delta", &self.delta)?;
        fields.serialize_field("relation", Self::RELATION)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarantee(epsilon: f64, delta: f64) -> Guarantee {
        Guarantee { epsilon, delta }
    }

    #[test]
    fn no_guarantee_is_written_without_its_relation() {
        assert_eq!(
            guarantee(1.2, 1e-5).to_string(),
            "ε = 1.2 at δ = 1e-5, total over all messages, for one row of one party replaced"
        );
        for (epsilon, shown) in [
            (1.9999999999999996, "ε = 2 at"),
            (1.92780001, "ε = 1.9279 at"),
            (0.3, "ε = 0.3 at"),
            (0.00012345678, "ε = 0.00012345678 at"),
        ] {
            let text = guarantee(epsilon, 0.0).to_string();
            assert!(text.starts_with(shown), "{text}");
        }
        assert_eq!(
            guarantee(f64::INFINITY, 0.0).to_string(),
            "ε = ∞ at δ = 0, total over all messages, for one row of one party replaced"
        );
        assert_eq!(
            serde_json::to_string(&guarantee(0.5, 1e-6)).unwrap(),
            r#"{"epsilon":0.5,"delta":1e-6,"relation":"one row of one party replaced"}"#
        );
    }

    #[test]
    fn a_network_promises_what_its_weakest_parties_do() {
        let network = |parties: &[Guarantee]| Guarantee::network(parties.iter().copied());
        assert_eq!(network(&[]), guarantee(0.0, 0.0));
        let parties = [
            guarantee(0.5, 1e-5),
            guarantee(0.7, 0.0),
            guarantee(0.1, 1e-6),
        ];
        assert_eq!(network(&parties), guarantee(0.7, 1e-5));
        let broken = [
            guarantee(0.5, 0.0),
            guarantee(f64::NAN, 0.0),
            guarantee(0.7, 0.0),
        ];
        assert!(network(&broken).epsilon.is_nan());
        assert!(network(&broken[..2]).epsilon.is_nan());
    }
}
