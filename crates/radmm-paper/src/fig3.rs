//! Figure 3: R-ADMM with growing penalties, at the same total privacy.

use radmm::privacy::Bound;
use radmm_lab::CandidateResult;
use radmm_report::{Block, Claim, Figure, Panel, Style};
use radmm_study::number_format::epsilon;

use crate::FigurePart;
use crate::claims::{LossPair, axis, claim, frame, losses, meaning_of_p};
use crate::fig2::{EQUAL, apart, bound_name, colour, spent, table};
use crate::setting::{DVP, GROWING, PP, RECYCLED, SettingResult};

const SHOWN: [&str; 4] = [GROWING, RECYCLED, DVP, PP];

/// Returns the figure by one bound, with a column for each setting of α.
pub(super) fn part(settings: &[SettingResult], bound: Bound) -> FigurePart {
    let claims: Vec<Claim> = settings
        .iter()
        .flat_map(|setting| claims(setting, bound))
        .collect();
    let title = match claims.iter().all(|claim| claim.holds == Some(true)) {
        true => "Growing penalties improve R-ADMM further at the same total",
        false => "R-ADMM with growing penalties at the same total",
    };
    let (id, heading) = match bound {
        Bound::Paper => ("fig3", "Figure 3: growing penalties, by the paper’s bound"),
        Bound::Tight => ("fig3-tight", "Figure 3 again, by our bound"),
    };
    let figure = Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "η(t) = 1.01ᵗ and γ(t) = 0.2·1.01ᵗ in R-ADMM with growing η; η = 1 and γ = 0.2 in the other. Mean loss, with bars \
                  from the least to the greatest run. {}",
            meaning_of_p()
        ),
        columns: settings.len().max(1),
        panels: settings.iter().map(panel).collect(),
    };
    let tables = settings
        .iter()
        .map(|setting| Block::Table(table(setting, |name| SHOWN.contains(&name))));
    FigurePart::new(heading, figure, claims, tables.collect())
}

fn panel(setting: &SettingResult) -> Panel {
    let shown: Vec<&CandidateResult> = SHOWN.iter().filter_map(|name| setting.of(name)).collect();
    Panel {
        title: format!("α = {}, P = {}", setting.alpha, epsilon(setting.total)),
        x: axis("iteration t", None),
        y: axis("average loss L(t)", frame(shown.iter().copied())),
        series: shown
            .iter()
            .map(|measured| losses(measured, colour(&measured.name), Style::Marked))
            .collect(),
    }
}

fn claims(setting: &SettingResult, bound: Bound) -> Option<Claim> {
    let (growing, constant) = (setting.of(GROWING)?, setting.of(RECYCLED)?);
    let pairs = growing.by_iteration.iter().zip(&constant.by_iteration);
    let gap = pairs
        .map(|(one, other)| (one.spent.epsilon - other.spent.epsilon).abs() / setting.total)
        .fold(0.0, f64::max);
    let pair = LossPair::late(growing, constant);
    Some(claim(
        format!(
            "growing η improves R-ADMM further at equal P = {} by {}, over the second half of the run",
            epsilon(setting.total),
            bound_name(bound)
        ),
        format!(
            "{}; over the whole period P(t) differs by {:.2} % of P at most{}",
            pair.text(),
            100.0 * gap,
            spent(growing, constant)
        ),
        pair.less()
            .map(|less| less && apart(growing, constant) < EQUAL),
    ))
}
