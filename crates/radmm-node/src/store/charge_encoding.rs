//! One charge on rows, and its encoding.

use std::fmt;

use radmm::privacy::{IdealRelease, NoiseDistribution, PrivacyEvent, SlopeCurve};

use crate::machine::ByteReader;

/// The fingerprint of rows in one state folder: a salted hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowFingerprint(pub [u8; 32]);

impl fmt::Display for RowFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&radmm_study::hex::encode(&self.0))
    }
}

impl fmt::Debug for RowFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charge {
    /// The number of the study in the state folder.
    pub study: u32,
    /// The iteration of the data step.
    pub iteration: u32,
    /// The rows that were queried.
    pub rows: RowFingerprint,
    /// The privacy event that was charged.
    pub event: PrivacyEvent,
}

impl Charge {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = ByteReader(bytes);
        let charge = Self {
            study: rest.u32()?,
            iteration: rest.u32()?,
            rows: RowFingerprint(rest.array()?),
            event: read_event(&mut rest)?,
        };
        rest.0.is_empty().then_some(charge)
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.study.to_le_bytes());
        bytes.extend_from_slice(&self.iteration.to_le_bytes());
        bytes.extend_from_slice(&self.rows.0);
        write_event(&mut bytes, &self.event);
        bytes
    }
}

/// The kind of a minimiser with noise in its objective. Its curve and the family of its noise follow, a byte each.
///
/// Kinds 1 to 4 are such minimisers in older records, which name the family and the signs of slopes only.
const OBJECTIVE: u8 = 7;

/// The curves of losses, by their byte.
const CURVES: [SlopeCurve; 4] = [
    SlopeCurve::TwoSigned,
    SlopeCurve::OneSigned,
    SlopeCurve::Logistic,
    SlopeCurve::SmoothHinge,
];

fn curve_byte(curve: SlopeCurve) -> u8 {
    match curve {
        SlopeCurve::TwoSigned => 0,
        SlopeCurve::OneSigned => 1,
        SlopeCurve::Logistic => 2,
        SlopeCurve::SmoothHinge => 3,
    }
}

/// The kind of an answer with Laplace noise.
const ADDITIVE_LAPLACE: u8 = 8;

/// Appends an event with all bits of every number.
fn write_event(bytes: &mut Vec<u8>, event: &PrivacyEvent) {
    let mut write = |kind: &[u8], numbers: &[f64]| {
        bytes.extend_from_slice(kind);
        for number in numbers {
            bytes.extend_from_slice(&number.to_bits().to_le_bytes());
        }
    };
    match event.ideal {
        IdealRelease::Exact => write(&[0], &[event.slack]),
        IdealRelease::Objective {
            sensitivity,
            spread,
            curve,
            law,
        } => {
            let (family, amount) = law_parts(law);
            let numbers = [event.slack, sensitivity, spread, amount];
            write(&[OBJECTIVE, curve_byte(curve), family], &numbers);
        }
        IdealRelease::Additive { sensitivity, law } => {
            let (family, amount) = law_parts(law);
            let kind = match family {
                0..=1 => 5 + family,
                _ => ADDITIVE_LAPLACE,
            };
            write(&[kind], &[event.slack, sensitivity, amount]);
        }
    }
}

fn law_parts(law: NoiseDistribution) -> (u8, f64) {
    match law {
        NoiseDistribution::Gamma { rate } => (0, rate),
        NoiseDistribution::Gaussian { sigma } => (1, sigma),
        NoiseDistribution::Laplace { rate } => (2, rate),
    }
}

fn read_event(rest: &mut ByteReader<'_>) -> Option<PrivacyEvent> {
    let [kind] = rest.array()?;
    let [curve, family] = match kind {
        0 => [0, 0],
        1..=4 => [(kind - 1) / 2, (kind - 1) % 2],
        5..=6 => [0, kind - 5],
        OBJECTIVE => rest.array()?,
        ADDITIVE_LAPLACE => [0, 2],
        _ => return None,
    };
    let slack = rest.f64()?;
    let law = |amount: f64| match family {
        0 => Some(NoiseDistribution::Gamma { rate: amount }),
        1 => Some(NoiseDistribution::Gaussian { sigma: amount }),
        2 => Some(NoiseDistribution::Laplace { rate: amount }),
        _ => None,
    };
    let ideal = match kind {
        0 => IdealRelease::Exact,
        5..=6 | ADDITIVE_LAPLACE => IdealRelease::Additive {
            sensitivity: rest.f64()?,
            law: law(rest.f64()?)?,
        },
        _ => IdealRelease::Objective {
            sensitivity: rest.f64()?,
            spread: rest.f64()?,
            curve: *CURVES.get(usize::from(curve))?,
            law: law(rest.f64()?)?,
        },
    };
    Some(PrivacyEvent { ideal, slack })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of an objective with these bytes as its kind.
    fn record(kind: &[u8]) -> Option<Charge> {
        let mut bytes = [3u32.to_le_bytes(), 41u32.to_le_bytes()].concat();
        bytes.extend([9; 32]);
        bytes.extend(kind);
        for number in [1e-4f64, 0.1, 0.02, 7.5] {
            bytes.extend(number.to_bits().to_le_bytes());
        }
        Charge::from_bytes(&bytes)
    }

    #[test]
    fn older_records_are_read_as_charges_by_the_signs_of_slopes() {
        let laws = [
            NoiseDistribution::Gamma { rate: 7.5 },
            NoiseDistribution::Gaussian { sigma: 7.5 },
        ];
        let expected = |curve, law| {
            let (sensitivity, spread) = (0.1, 0.02);
            IdealRelease::Objective {
                sensitivity,
                spread,
                curve,
                law,
            }
        };
        let mut kind = 1;
        for curve in [SlopeCurve::TwoSigned, SlopeCurve::OneSigned] {
            for law in laws {
                let found = record(&[kind]).unwrap();
                assert_eq!(found.event.ideal, expected(curve, law));
                kind += 1;
            }
        }
        assert!(record(&[OBJECTIVE, 3, 1]).is_some());
        for unknown in [[OBJECTIVE, 4, 0], [OBJECTIVE, 0, 3]] {
            assert_eq!(record(&unknown), None);
        }
    }

    #[test]
    fn every_kind_of_charge_is_decoded_bit_by_bit() {
        let laws = [
            NoiseDistribution::Gamma { rate: 0.3 },
            NoiseDistribution::Gaussian { sigma: 7.5 },
            NoiseDistribution::Laplace { rate: 0.3 },
        ];
        let mut ideals = vec![IdealRelease::Exact];
        for law in laws {
            ideals.extend(CURVES.map(|curve| IdealRelease::Objective {
                sensitivity: 0.1,
                spread: 1e-300,
                curve,
                law,
            }));
            ideals.push(IdealRelease::Additive {
                sensitivity: 0.7,
                law,
            });
        }
        for ideal in ideals {
            for slack in [0.0, 1e-4, f64::INFINITY] {
                let charge = Charge {
                    study: 3,
                    iteration: 41,
                    rows: RowFingerprint([9; 32]),
                    event: PrivacyEvent { ideal, slack },
                };
                let bytes = charge.to_bytes();
                assert_eq!(Charge::from_bytes(&bytes), Some(charge));
                assert_eq!(Charge::from_bytes(&bytes[1..]), None);
            }
        }
    }
}
