//! Rows to measure on: the shape of a real table after encoding, a few numbers and many indicators.

/// The columns of the Adult table after encoding.
pub const COLUMNS: usize = 105;
/// Non-zeros of each row; those of Adult have 12 to 14.
pub const FILLED: usize = 13;

/// A sparse row as (column, value), of norm one, columns ascending, and its label, which has something to do with it.
pub type Row = ([(u32, f64); FILLED], bool);

/// Rows without end, the same for the same seed.
pub struct Source {
    state: u64,
}

impl Source {
    /// From the first row on.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A linear congruential generator is random enough for timing.
    fn uniform(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.state >> 33) as f64 / (1u64 << 31) as f64
    }
}

impl Iterator for Source {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut row = [(0, 0.0); FILLED];
        let mut score = 0.0;
        for (k, entry) in row.iter_mut().enumerate() {
            // Six numbers, then seven groups of indicators over the remaining 99 columns.
            *entry = if k < 6 {
                (k as u32, self.uniform())
            } else {
                let group = (k - 6) * 14;
                ((6 + group) as u32 + (self.uniform() * 14.0) as u32, 1.0)
            };
            score += entry.1 * ((entry.0 * 7 % 11) as f64 - 5.0);
        }
        let norm = row.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt();
        row.iter_mut().for_each(|e| e.1 /= norm);
        Some((row, score + 8.0 * (self.uniform() - 0.5) > 0.0))
    }
}
