//! The noise of all parties in words.

use radmm::privacy::NoiseDistribution;
use radmm_study::number_format::scale;

use crate::stats::SampleStats;

/// Returns the noise of all parties in words: `rate 2`, `σ 10.2 to 12`, or `none`.
pub fn noise_text(laws: impl Iterator<Item = NoiseDistribution>) -> String {
    let (names, amounts): (Vec<&str>, Vec<f64>) = laws
        .map(|law| (law.family().symbol(), law.amount()))
        .unzip();
    match names.last() {
        None => "none".to_owned(),
        Some(name) => scale(name, SampleStats::of(amounts).ends()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_one_scale_or_the_least_and_the_greatest() {
        let gamma = [2.0, 2.0].map(|rate| NoiseDistribution::Gamma { rate });
        assert_eq!(noise_text(gamma.into_iter()), "rate 2");
        let gaussian = [12.0, 10.25, 11.0].map(|sigma| NoiseDistribution::Gaussian { sigma });
        assert_eq!(noise_text(gaussian.into_iter()), "σ 10.25 to 12");
        assert_eq!(noise_text(std::iter::empty()), "none");
    }
}
