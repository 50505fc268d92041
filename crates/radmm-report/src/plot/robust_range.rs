//! Ranges of axes that one outlier does not squash.

use super::figure::{AxisScale, Panel, Series, Style};
use super::ticks;

/// A span may widen the range by this factor; one that would widen it more is an outlier.
const WIDEN: f64 = 2.5;
/// An axis that shows everything may be wider than the robust range by this factor.
const TOLERATED: f64 = 1.6;
/// The share of a series' values at either end that does not count.
const TAIL: f64 = 0.05;

/// Returns a range that covers most of the spans, or `None` if all of them have room on one axis.
///
/// The half of `lines` whose middles are nearest to their median always counts. The other lines and the `references` are added
/// from the nearest on, unless they would widen the range too much.
pub(super) fn robust_range(lines: &[(f64, f64)], references: &[(f64, f64)]) -> Option<(f64, f64)> {
    let finite = |span: &(f64, f64)| span.0.is_finite() && span.1.is_finite();
    let middle = |(low, high): &(f64, f64)| low / 2.0 + high / 2.0;
    let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    let width = |(low, high): (f64, f64)| high - low;
    let mut core: Vec<(f64, f64)> = lines.iter().copied().filter(finite).collect();
    core.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    let median = middle(core.get(core.len() / 2)?);
    let nearer = |a: &(f64, f64), b: &(f64, f64)| {
        let distance = |span| (middle(span) - median).abs();
        distance(a).total_cmp(&distance(b))
    };
    core.sort_by(nearer);
    let mut others = core.split_off(core.len().div_ceil(2).max(2).min(core.len()));
    others.extend(references.iter().copied().filter(finite));
    others.sort_by(nearer);
    let mut range = core.into_iter().reduce(join)?;
    let all = others.iter().copied().fold(range, join);
    for span in others {
        let wider = join(range, span);
        if width(wider) <= WIDEN * width(range) {
            range = wider;
        }
    }
    (width(range) > 0.0 && width(all) > TOLERATED * width(range)).then_some(range)
}

impl Panel {
    /// Returns the panel with a vertical axis that shows most series at full height. Points beyond it are marked by an arrow
    /// with their value.
    pub fn with_robust_y_axis(mut self) -> Self {
        let spans = |tail: f64| -> Vec<(f64, f64)> {
            let spans = self.series.iter();
            spans.map(|series| self.span(series, tail)).collect()
        };
        let most = spans(TAIL);
        let of = |horizontal: bool| -> Vec<(f64, f64)> {
            let kind =
                |(series, _): &(&Series, _)| (series.style == Style::Horizontal) == horizontal;
            let spans = self.series.iter().zip(&most).filter(kind);
            spans.map(|(_, span)| *span).collect()
        };
        let range = robust_range(&of(false), &of(true));
        let Some((low, high)) = range.filter(|_| self.y.scale == AxisScale::Linear) else {
            return self;
        };
        // The tails too of the series that are shown, unless these would squash the rest.
        let inside = |(_, span): &(_, &(f64, f64))| low <= span.0 && span.1 <= high;
        let whole = spans(0.0).into_iter().zip(&most).filter(inside);
        let (from, to) = whole.fold((low, high), |range, (span, _)| {
            (range.0.min(span.0), range.1.max(span.1))
        });
        let (low, high) = match to - from <= WIDEN * (high - low) {
            true => (from, to),
            false => (low, high),
        };
        self.y.limits = Some(ticks::rounded(AxisScale::Linear, low, high, 6));
        self
    }

    /// Returns the range of a series, without a share `tail` of its values at either end; of an empty series it is not finite.
    fn span(&self, series: &Series, tail: f64) -> (f64, f64) {
        let mut values: Vec<f64> = self
            .visible(series)
            .flat_map(|point| point.range.map_or([point.y; 2], |(low, high)| [low, high]))
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else {
            return (f64::NAN, f64::NAN);
        };
        let tail = ((tail * last as f64).ceil() as usize).min(last / 2);
        (values[tail], values[last - tail])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_count() {
        let spans = [(0.72, 0.74), (0.73, 0.75), (0.70, 0.73), (0.1, 0.2)];
        assert_eq!(robust_range(&spans, &[]), Some((0.70, 0.75)));
    }

    #[test]
    fn lines_are_shown_though_most_references_are_far_from_them() {
        let references = [(84.93, 84.93), (84.94, 84.94), (3000.0, 3000.0)];
        let range = robust_range(&[(75.0, 84.1)], &references);
        assert_eq!(range, Some((75.0, 84.94)));
    }

    #[test]
    fn spans_that_have_room_on_one_axis_need_no_robust_range() {
        let spans = [(0.7, 0.8), (0.75, 0.9), (0.6, 0.7)];
        assert_eq!(robust_range(&spans, &[]), None);
        assert_eq!(robust_range(&[(0.5, 0.5)], &[]), None);
        assert_eq!(robust_range(&[], &[(0.5, 0.5)]), None);
        assert_eq!(robust_range(&[(f64::NAN, 1.0)], &[]), None);
    }
}
