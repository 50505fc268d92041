//! Rows to measure on: the shape of a real table after encoding, a few numbers and many indicators.

/// The columns of the Adult table after encoding.
pub const COLUMNS: usize = 105;
/// Non-zeros of each of its rows.
pub const FILLED: usize = 13;

/// Sparse rows as (column, value), of norm one, with labels that have something to do with them.
pub struct Rows {
    /// Ascending columns.
    pub entries: Vec<[(u32, f64); FILLED]>,
    /// One a row.
    pub labels: Vec<bool>,
}

impl Rows {
    /// The same rows on every call.
    pub fn new(rows: usize) -> Self {
        let mut state = 1u64;
        // A linear congruential generator is random enough for timing.
        let mut next = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let (mut entries, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let mut row = [(0, 0.0); FILLED];
            let mut score = 0.0;
            for (k, entry) in row.iter_mut().enumerate() {
                // Six numbers, then seven groups of indicators over the remaining 99 columns.
                *entry = if k < 6 {
                    (k as u32, next())
                } else {
                    let group = (k - 6) * 14;
                    ((6 + group) as u32 + (next() * 14.0) as u32, 1.0)
                };
                score += entry.1 * ((entry.0 * 7 % 11) as f64 - 5.0);
            }
            let norm = row.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt();
            row.iter_mut().for_each(|e| e.1 /= norm);
            entries.push(row);
            labels.push(score + 8.0 * (next() - 0.5) > 0.0);
        }
        Self { entries, labels }
    }
}
