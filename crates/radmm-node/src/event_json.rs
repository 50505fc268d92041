//! A charge as JSON: what was released, in numbers that everybody may know. An infinite one is `null`.

use radmm::account::{Event, Ideal};
use radmm::private::Law;
use serde::{Deserialize, Deserializer, Serialize};

/// An [`Event`], as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "release", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Written {
    Exact {
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
    Objective {
        #[serde(deserialize_with = "or_infinite")]
        sensitivity: f64,
        #[serde(deserialize_with = "or_infinite")]
        spread: f64,
        one_signed: bool,
        noise: Family,
        amount: f64,
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
    Additive {
        #[serde(deserialize_with = "or_infinite")]
        sensitivity: f64,
        noise: Family,
        amount: f64,
        #[serde(deserialize_with = "or_infinite")]
        slack: f64,
    },
}

/// Which law; its amount is a rate or a σ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Family {
    Gamma,
    Gaussian,
}

fn or_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

impl From<&Event> for Written {
    fn from(event: &Event) -> Self {
        let slack = event.slack;
        let parts = |law| match law {
            Law::Gamma { rate } => (Family::Gamma, rate),
            Law::Gaussian { sigma } => (Family::Gaussian, sigma),
        };
        match event.ideal {
            Ideal::Exact => Self::Exact { slack },
            Ideal::Objective {
                sensitivity,
                spread,
                one_signed,
                law,
            } => {
                let (noise, amount) = parts(law);
                Self::Objective {
                    sensitivity,
                    spread,
                    one_signed,
                    noise,
                    amount,
                    slack,
                }
            }
            Ideal::Additive { sensitivity, law } => {
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

impl From<Written> for Event {
    fn from(written: Written) -> Self {
        let law = |noise, amount| match noise {
            Family::Gamma => Law::Gamma { rate: amount },
            Family::Gaussian => Law::Gaussian { sigma: amount },
        };
        match written {
            Written::Exact { slack } => Self {
                ideal: Ideal::Exact,
                slack,
            },
            Written::Objective {
                sensitivity,
                spread,
                one_signed,
                noise,
                amount,
                slack,
            } => Self {
                ideal: Ideal::Objective {
                    sensitivity,
                    spread,
                    one_signed,
                    law: law(noise, amount),
                },
                slack,
            },
            Written::Additive {
                sensitivity,
                noise,
                amount,
                slack,
            } => Self {
                ideal: Ideal::Additive {
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
    fn every_kind_of_charge_comes_back_to_the_bit() {
        let mut ideals = vec![Ideal::Exact];
        for law in [Law::Gamma { rate: 0.1 + 0.2 }, Law::Gaussian { sigma: 7.0 }] {
            ideals.push(Ideal::Objective {
                sensitivity: 1.0 / 3.0,
                spread: 5e-324,
                one_signed: true,
                law,
            });
            ideals.push(Ideal::Additive {
                sensitivity: 0.7,
                law,
            });
        }
        for ideal in ideals {
            for slack in [0.0, 1e-17 / 3.0, f64::INFINITY] {
                let event = Event { ideal, slack };
                let text = serde_json::to_string(&Written::from(&event)).unwrap();
                let read: Written = serde_json::from_str(&text).unwrap();
                assert_eq!(Event::from(read), event, "{text}");
            }
        }
    }
}
