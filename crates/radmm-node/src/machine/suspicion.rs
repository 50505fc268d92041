//! Suspicion: values of neighbours that are possible, and that hardly any honest party would send.
//!
//! At data steps, whose values contain noise, there are two rules. Both are functions of released values and public facts.
//!
//! *It does not move.* Noise is drawn anew at every data step, so that an honest party's value hits a small ball around its value of
//! the data step before with a probability of at most the largest density of the noise times the volume of the ball. A value that is
//! nearer than the radius at which this is 10⁻¹² in the whole study is suspicious.
//!
//! *It lies far outside.* The centre of this party's value and its neighbours', three at least, is the median of each coordinate, and
//! their spread is the median of their distances from it. A value is suspicious if its distance from the centre is more than ten times
//! the spread beyond what its own noise and that of the noisiest of them explain. Sums over rows are compared per row.
//!
//! The first rule suspects an honest party once in 10¹² studies. The second is a rule of thumb: rows that differ very much from all
//! others' raise it too, and so does a party that its own neighbours led astray.

use std::collections::BTreeMap;

use radmm::protocol::release::Release;

use super::party::{Party, PartyError};
use super::study_limits::ValueNoise;
use crate::runtime::{Notice, Suspicion};

/// The multiple of the spread beyond which a value lies far outside.
const FAR_OUTSIDE: f64 = 10.0;

/// The state of what is watched in a neighbour's values.
#[derive(Default)]
pub(super) struct Watch {
    /// The noise of its values at data steps, by iteration.
    noise: BTreeMap<u32, ValueNoise>,
    /// Its last value of a data step, and the iteration.
    last: Option<(u32, Release)>,
    /// Whether it was suspected of not moving, and of lying far outside. Each is reported once.
    reported: [bool; 2],
}

impl Watch {
    pub(super) fn new(noise: BTreeMap<u32, ValueNoise>) -> Self {
        Self {
            noise,
            ..Self::default()
        }
    }

    /// Returns what is suspicious in how far the value of a data step is from the one before it.
    fn stillness(&mut self, iteration: u32, value: &Release) -> Option<String> {
        let noise = self.noise.get(&iteration)?;
        let (before, last) = self.last.replace((iteration, value.clone()))?;
        // Only values of the same question are compared.
        let is_comparable = last.values().len() == value.values().len();
        let moved = distance(last.values(), value.values());
        (is_comparable && moved <= noise.least_move).then(|| {
            format!(
                "its values of the data steps at iterations {before} and {iteration} are {moved:.1e} apart, and noise keeps an honest party's more than {:.1e} apart, but for one study in 10¹²",
                noise.least_move
            )
        })
    }
}

impl Party {
    /// Watches the values of a full inbox; returns an error if one is suspicious and the party is to stop then.
    pub(super) fn watch_values(&mut self) -> Result<(), PartyError> {
        let iteration = self.node.iteration();
        if !self.own_noise.contains_key(&iteration) {
            return Ok(());
        }
        let far = self.far_outside(iteration);
        for (index, far) in far.into_iter().enumerate() {
            let id = self.edges[index].peer.id;
            let Some(value) = self
                .in_inbox(id)
                .map(|signed| signed.message.release.clone())
            else {
                continue;
            };
            let watch = &mut self.edges[index].watch;
            let reasons = [watch.stillness(iteration, &value), far];
            for (rule, why) in reasons.into_iter().enumerate() {
                let Some(why) = why else { continue };
                if !std::mem::replace(&mut self.edges[index].watch.reported[rule], true) {
                    self.raise_suspicion(
                        index,
                        Suspicion {
                            peer: self.edges[index].peer.name.clone(),
                            iteration,
                            why,
                        },
                    )?;
                }
            }
        }
        Ok(())
    }

    fn raise_suspicion(&mut self, index: usize, suspicion: Suspicion) -> Result<(), PartyError> {
        self.notices.push(Notice::Suspicious(suspicion.clone()));
        self.suspicions.push(suspicion.clone());
        if !self.stop_on_suspicion {
            return Ok(());
        }
        let value = self.in_inbox(self.edges[index].peer.id);
        let frame = value.map(|signed| signed.to_bytes()).unwrap_or_default();
        self.halt_with_evidence(index, &suspicion.why, &[&frame])?;
        Err(PartyError::Suspicious(suspicion))
    }

    /// Returns, for each neighbour, what is suspicious in its value's distance from this party's and the other neighbours'.
    fn far_outside(&self, iteration: u32) -> Vec<Option<String>> {
        let nothing = vec![None; self.edges.len()];
        // This party comes last.
        let noise: Option<Vec<ValueNoise>> = { self.edges.iter() }
            .map(|edge| edge.watch.noise.get(&iteration))
            .chain([self.own_noise.get(&iteration)])
            .map(|noise| noise.copied())
            .collect();
        let values: Option<Vec<&Release>> = { self.edges.iter() }
            .map(|edge| Some(&self.in_inbox(edge.peer.id)?.message.release))
            .chain([Some(&self.own)])
            .collect();
        let (Some(noise), Some(values)) = (noise, values) else {
            return nothing;
        };
        // Of two values, nobody can tell which lies outside.
        if values.len() < 3 {
            return nothing;
        }
        let per_row = |(value, noise): (&&Release, &ValueNoise)| -> Vec<f64> {
            value.values().iter().map(|x| x / noise.rows).collect()
        };
        let scaled: Vec<Vec<f64>> = values.iter().zip(&noise).map(per_row).collect();
        let at = |k: usize| median(scaled.iter().map(|value| value[k]).collect());
        let centre: Vec<f64> = (0..scaled[0].len()).map(at).collect();
        let apart: Vec<f64> = scaled
            .iter()
            .map(|value| distance(value, &centre))
            .collect();
        let spread = median(apart.clone());
        let reach = |noise: &ValueNoise| noise.reach / noise.rows;
        let largest = noise.iter().map(reach).fold(0.0, f64::max);
        let reason = |(apart, noise): (&f64, &ValueNoise)| {
            let explained = reach(noise) + largest;
            (*apart > FAR_OUTSIDE * spread + explained).then(|| {
                format!(
                    "its value lies {apart:.1e} from the median of this party's and its neighbours', half of which are within {spread:.1e} of it; noise explains {explained:.1e}. A dishonest neighbour of its own may have led it there"
                )
            })
        };
        let neighbours = apart.iter().zip(&noise).take(self.edges.len());
        neighbours.map(reason).collect()
    }
}

/// Returns the median of some numbers, the upper one if there are two.
fn median(mut numbers: Vec<f64>) -> f64 {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn distance(one: &[f64], other: &[f64]) -> f64 {
    let pairs = one.iter().zip(other);
    pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}
