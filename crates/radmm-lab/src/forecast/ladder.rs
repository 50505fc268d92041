//! Numbers of rows, each twice the one before, and the shares that they give.

use super::{ForecastPoint, MOST_ROWS, RowsNeeded, RowsRelation, SHARES};

/// Shares by number of rows, in ascending order.
pub(super) struct Ladder {
    pub(super) points: Vec<ForecastPoint>,
}

impl Ladder {
    /// Measures the share at `own` rows, above until the largest share that is looked for is reached, and below until the least
    /// one is not.
    pub(super) fn climb<E>(
        own: usize,
        least: usize,
        mut share_at: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let (lowest, highest) = (SHARES[0], SHARES[SHARES.len() - 1]);
        let mut ladder = Self::up(own.max(least), highest, &mut share_at)?;
        let mut last = ladder.points[0];
        while last.share >= lowest && last.rows > least {
            last = ForecastPoint::measure((last.rows / 2).max(least), &mut share_at)?;
            ladder.points.insert(0, last);
        }
        Ok(ladder)
    }

    /// Measures the share at `own` rows, and above until a half is reached.
    pub(super) fn up_to_half<E>(
        own: usize,
        mut share_at: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        Self::up(own, SHARES[0], &mut share_at)
    }

    fn up<E>(
        from: usize,
        highest: f64,
        share_at: &mut impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let mut last = ForecastPoint::measure(from, share_at)?;
        let mut points = vec![last];
        while last.share < highest && last.rows < MOST_ROWS {
            last = ForecastPoint::measure((2 * last.rows).min(MOST_ROWS), share_at)?;
            points.push(last);
        }
        Ok(Self { points })
    }

    /// Returns the rows from which on a share is reached, interpolated on the logarithm of their number.
    pub(super) fn rows_for(&self, share: f64) -> RowsNeeded {
        // Chance may make a share fall: what more rows reach counts from the last number on at which it was not reached.
        let above = self.points.iter().rposition(|point| point.share < share);
        let (rows, relation) = match above.map(|last| (last, self.points.get(last + 1))) {
            None => (self.points[0].rows as f64, RowsRelation::AtMost),
            Some((last, None)) => (self.points[last].rows as f64, RowsRelation::MoreThan),
            Some((last, Some(next))) => {
                let low = self.points[last];
                let part = (share - low.share) / (next.share - low.share);
                let ratio = next.rows as f64 / low.rows as f64;
                (
                    low.rows as f64 * libm::pow(ratio, part),
                    RowsRelation::About,
                )
            }
        };
        RowsNeeded {
            share,
            rows: two_digits(rows),
            relation,
        }
    }
}

impl ForecastPoint {
    fn measure<E>(
        rows: usize,
        share_at: &mut impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let share = share_at(rows)?;
        Ok(Self { rows, share })
    }
}

/// Rounds to two digits: no more are known.
fn two_digits(rows: f64) -> usize {
    let mut unit = 1.0;
    while rows / unit >= 100.0 {
        unit *= 10.0;
    }
    ((rows / unit).round() * unit) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb(own: usize, half: f64) -> (Ladder, usize) {
        let mut calls = 0;
        let ladder = Ladder::climb(own, 100, |rows| {
            calls += 1;
            let rows = rows as f64;
            Ok::<f64, ()>(rows / (rows + half))
        });
        (ladder.unwrap(), calls)
    }

    #[test]
    fn the_rows_of_a_share_are_found_above_and_below_the_own_number() {
        for own in [200, 5000, 1_000_000] {
            let (ladder, calls) = climb(own, 10_000.0);
            assert!(ladder.points.is_sorted_by(|a, b| a.rows < b.rows));
            assert_eq!(calls, ladder.points.len());
            for (share, exact) in [(0.5, 10_000.0), (0.9, 90_000.0), (0.95, 190_000.0)] {
                let found = ladder.rows_for(share);
                assert_eq!(found.relation, RowsRelation::About);
                let ratio = found.rows as f64 / exact;
                assert!((0.9..1.1).contains(&ratio), "{own}: {share}: {found:?}");
            }
        }
    }

    #[test]
    fn rows_beyond_the_ladder_are_bounds() {
        let (ladder, _) = climb(5000, 1e9);
        let beyond = ladder.rows_for(0.5);
        assert_eq!(beyond.relation, RowsRelation::MoreThan);
        assert_eq!(beyond.rows, MOST_ROWS);
        let (ladder, _) = climb(5000, 1.0);
        let below = ladder.rows_for(0.5);
        assert_eq!((below.relation, below.rows), (RowsRelation::AtMost, 100));
    }

    #[test]
    fn a_share_that_falls_by_chance_does_not_count_as_reached() {
        let shares = [0.2, 0.6, 0.4, 0.7, 0.99];
        let points = (0..).zip(shares).map(|(k, share)| ForecastPoint {
            rows: 1000 << k,
            share,
        });
        let ladder = Ladder {
            points: points.collect(),
        };
        // A third of the way from 4,000 to 8,000 on the logarithm.
        assert_eq!(ladder.rows_for(0.5).rows, 5000);
    }

    #[test]
    fn numbers_of_rows_have_two_digits() {
        let cases = [(99.6, 100), (1234.0, 1200), (98_700.0, 99_000), (7.0, 7)];
        for (rows, rounded) in cases {
            assert_eq!(two_digits(rows), rounded);
        }
    }
}
