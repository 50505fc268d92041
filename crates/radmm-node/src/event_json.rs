//! The JSON form of a privacy event. All of its numbers are public. An infinite number is `null`.

use radmm::privacy::{IdealRelease, NoiseDistribution, NoiseFamily, PrivacyEvent, SlopeCurve};
use serde::{Deserialize, Deserializer, Serialize};

/// The JSON form of an [`PrivacyEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "release", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum EventJson {
    Exact {
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
    Objective {
        #[serde(deserialize_with = "or_infinite")]
        sensitivity: f64,
        #[serde(deserialize_with = "or_infinite")]
        spread: f64,
        #[serde(alias = "one_signed", deserialize_with = "or_sign")]
        slope: SlopeCurve,
        noise: NoiseFamily,
        amount: f64,
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
    Additive {
        #[serde(deserialize_with = "or_infinite")]
        sensitivity: f64,
        noise: NoiseFamily,
        amount: f64,
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
}

/// Reads `null` as infinity.
fn or_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// Reads the curve of a loss, or only whether its slopes have one sign, as older files have it.
fn or_sign<'de, D: Deserializer<'de>>(from: D) -> Result<SlopeCurve, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Slope {
        OneSigned(bool),
        Curve(SlopeCurve),
    }
    Ok(match Slope::deserialize(from)? {
        Slope::OneSigned(true) => SlopeCurve::OneSigned,
        Slope::OneSigned(false) => SlopeCurve::TwoSigned,
        Slope::Curve(curve) => curve,
    })
}

impl From<&PrivacyEvent> for EventJson {
    fn from(event: &PrivacyEvent) -> Self {
        let slack = event.slack;
        let parts = |law: NoiseDistribution| (law.family(), law.amount());
        match event.ideal {
            IdealRelease::Exact => Self::Exact { slack },
            IdealRelease::Objective {
                sensitivity,
                spread,
                curve: slope,
                law,
            } => {
                let (noise, amount) = parts(law);
                Self::Objective {
                    sensitivity,
                    spread,
                    slope,
                    noise,
                    amount,
                    slack,
                }
            }
            IdealRelease::Additive { sensitivity, law } => {
                let (noise, amount) = parts(law);
                Self::Additive {
                    sensitivity,
                    noise,
                    amount,
                    slack,
                }
            }
        }
    }
}

impl From<EventJson> for PrivacyEvent {
    fn from(json: EventJson) -> Self {
        let law = |noise: NoiseFamily, amount| noise.with_amount(amount);
        match json {
            EventJson::Exact { slack } => Self {
                ideal: IdealRelease::Exact,
                slack,
            },
            EventJson::Objective {
                sensitivity,
                spread,
                slope: curve,
                noise,
                amount,
                slack,
            } => Self {
                ideal: IdealRelease::Objective {
                    sensitivity,
                    spread,
                    curve,
                    law: law(noise, amount),
                },
                slack,
            },
            EventJson::Additive {
                sensitivity,
                noise,
                amount,
                slack,
            } => Self {
                ideal: IdealRelease::Additive {
                    sensitivity,
                    law: law(noise, amount),
                },
                slack,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_is_read_back_to_the_bit() {
        let mut ideals = vec![IdealRelease::Exact];
        for law in [
            NoiseDistribution::Gamma { rate: 0.1 + 0.2 },
            NoiseDistribution::Gaussian { sigma: 7.0 },
            NoiseDistribution::Laplace { rate: 0.1 + 0.2 },
        ] {
            ideals.push(IdealRelease::Objective {
                sensitivity: 1.0 / 3.0,
                spread: 5e-324,
                curve: SlopeCurve::SmoothHinge,
                law,
            });
            ideals.push(IdealRelease::Additive {
                sensitivity: 0.7,
                law,
            });
        }
        for ideal in ideals {
            for slack in [0.0, 1e-17 / 3.0, f64::INFINITY] {
                let event = PrivacyEvent { ideal, slack };
                let text = serde_json::to_string(&EventJson::from(&event)).unwrap();
                let read: EventJson = serde_json::from_str(&text).unwrap();
                assert_eq!(PrivacyEvent::from(read), event, "{text}");
            }
        }
    }

    #[test]
    fn older_events_are_read_by_the_signs_of_slopes() {
        for (one_signed, expected) in [
            (true, SlopeCurve::OneSigned),
            (false, SlopeCurve::TwoSigned),
        ] {
            let text = format!(
                r#"{{"release":"objective","sensitivity":0.1,"spread":0.2,"one_signed":{one_signed},"noise":"gamma","amount":3.0,"slack":0.0}}"#
            );
            let read: EventJson = serde_json::from_str(&text).unwrap();
            let ideal = PrivacyEvent::from(read).ideal;
            assert!(matches!(ideal, IdealRelease::Objective { curve, .. } if curve == expected));
            let twice = text.replace("\"spread\"", "\"slope\":\"logistic\",\"spread\"");
            assert!(serde_json::from_str::<EventJson>(&twice).is_err());
        }
    }
}
