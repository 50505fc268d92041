//! Whether two programs solved the same problem: its objective and gradient, written once more and plainly.

/// `(C/B) Σ_n L(y fᵀx) + (m/2)‖f‖²` with the logistic loss.
pub struct Objective<'a> {
    /// Rows and labels.
    pub rows: &'a mut dyn Iterator<Item = (&'a [(u32, f64)], bool)>,
    /// `B`.
    pub count: usize,
    /// `C`.
    pub weight: f64,
    /// `m`.
    pub ridge: f64,
}

impl Objective<'_> {
    /// Its value at a model, and the norm of its gradient there.
    pub fn at(self, f: &[f64]) -> (f64, f64) {
        let mut gradient: Vec<f64> = f.iter().map(|f| self.ridge * f).collect();
        let mut value = self.ridge / 2.0 * f.iter().map(|f| f * f).sum::<f64>();
        let scale = self.weight / self.count as f64;
        for (entries, positive) in self.rows {
            let y = if positive { 1.0 } else { -1.0 };
            let margin: f64 = y * entries.iter().map(|e| e.1 * f[e.0 as usize]).sum::<f64>();
            value += scale * ((-margin.abs()).exp().ln_1p() + (-margin).max(0.0));
            let slope = -1.0 / (1.0 + margin.exp());
            for e in entries {
                gradient[e.0 as usize] += scale * slope * y * e.1;
            }
        }
        (value, gradient.iter().map(|g| g * g).sum::<f64>().sqrt())
    }
}
