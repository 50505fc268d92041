//! The choice of vector instructions at run time.

/// The vector instructions that a computation runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simd {
    /// The baseline that every processor of the target has.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// Returns the widest that this processor has.
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if pulp::x86::V4::try_new().is_some() {
                return Self::Avx512;
            }
            if pulp::x86::V3::try_new().is_some() {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// Returns all that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        let wide = [Self::Avx2, Self::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let wide = [];
        let best = Self::best() as u8;
        std::iter::once(Self::Plain)
            .chain(wide)
            .filter(|simd| *simd as u8 <= best)
            .collect()
    }

    /// Runs `work` with these instructions. `work` must be inlined down to its last loop.
    #[inline(always)]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512 => {
                if let Some(units) = pulp::x86::V4::try_new() {
                    return units.vectorize(work);
                }
            }
            Self::Avx2 => {
                if let Some(units) = pulp::x86::V3::try_new() {
                    return units.vectorize(work);
                }
            }
            Self::Plain => {}
        }
        work()
    }
}
