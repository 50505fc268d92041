//! Numbers in words, the same on the terminal and in reports.

use radmm::private::Law;

pub use radmm_study::number_format::{
    at_least, brief, count, epsilon, number, percent, scale, thousands,
};

use crate::stats::SampleStats;

/// The noise of all parties: `rate 2`, `σ 10.2 to 12`, or `none`.
pub fn noise(laws: impl Iterator<Item = Law>) -> String {
    let (mut name, mut amounts) = ("none", Vec::new());
    for law in laws {
        let (of, amount) = match law {
            Law::Gamma { rate } => ("rate", rate),
            Law::Gaussian { sigma } => ("σ", sigma),
        };
        name = of;
        amounts.push(amount);
    }
    match amounts.is_empty() {
        true => name.to_owned(),
        false => {
            let SampleStats { low, high, .. } = SampleStats::of(amounts);
            scale(name, [low, high])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_told_once_or_by_its_ends() {
        let gamma = [2.0, 2.0].map(|rate| Law::Gamma { rate });
        assert_eq!(noise(gamma.into_iter()), "rate 2");
        let gaussian = [12.0, 10.25, 11.0].map(|sigma| Law::Gaussian { sigma });
        assert_eq!(noise(gaussian.into_iter()), "σ 10.25 to 12");
        assert_eq!(noise(std::iter::empty()), "none");
    }
}
