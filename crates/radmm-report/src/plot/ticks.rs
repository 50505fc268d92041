//! Round numbers along an axis: where it ends, and which values are written beside it.

use super::figure::AxisScale;

/// What is written beside an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Values with words.
    pub labelled: Vec<(f64, String)>,
    /// Values between them, without.
    pub minor: Vec<f64>,
}

/// The ends of an axis that shows everything from `low` to `high`, rounded outward.
pub(super) fn around(scale: AxisScale, low: f64, high: f64, count: usize) -> (f64, f64) {
    match scale {
        AxisScale::Linear => {
            let (low, high) = apart(low, high);
            // Half a step leaves less empty room than a whole one.
            let half = step(low, high, count) / 2.0;
            let ends = ((low / half).floor() * half, (high / half).ceil() * half);
            finite(ends, (low, high))
        }
        AxisScale::Log => {
            let (low, high) = separate(low, high);
            let wide = high / low > 30.0;
            finite((round_down(low, wide), round_up(high, wide)), (low, high))
        }
    }
}

/// The ends of an axis that goes a little beyond the data, so that markers and bars at the ends have room.
pub(super) fn beyond(scale: AxisScale, low: f64, high: f64) -> (f64, f64) {
    const ROOM: f64 = 0.02;
    match scale {
        AxisScale::Linear => {
            let (low, high) = apart(low, high);
            let room = ROOM * high - ROOM * low;
            finite((low - room, high + room), (low, high))
        }
        AxisScale::Log => {
            let (low, high) = separate(low, high);
            let room = libm::pow(high / low, ROOM);
            finite((low / room, high * room), (low, high))
        }
    }
}

/// At most about `count` values with words; `whole` if no value between whole numbers has a meaning.
pub(super) fn within(scale: AxisScale, range: (f64, f64), count: usize, whole: bool) -> Ticks {
    match scale {
        AxisScale::Linear => linear(range, count, whole),
        AxisScale::Log => {
            let ticks = logarithmic(range, count);
            if ticks.labelled.len() < 2 {
                // So little of a decade that equal differences look like equal ratios.
                linear(range, count, whole)
            } else {
                ticks
            }
        }
    }
}

/// Two ends that are not the same.
fn apart(low: f64, high: f64) -> (f64, f64) {
    if low < high {
        (low, high)
    } else if low == 0.0 {
        (0.0, 1.0)
    } else {
        let room = low.abs() * 0.1;
        (low - room, low + room)
    }
}

/// The same in ratios.
fn separate(low: f64, high: f64) -> (f64, f64) {
    if low < high {
        (low, high)
    } else {
        (low / 2.0, low * 2.0)
    }
}

/// The rounded ends, unless they are beyond what a number can be or no longer apart.
fn finite(ends: (f64, f64), otherwise: (f64, f64)) -> (f64, f64) {
    let good = ends.0.is_finite() && ends.1.is_finite() && ends.0 < ends.1;
    let covers = ends.0 <= otherwise.0 && otherwise.1 <= ends.1;
    if good && covers { ends } else { otherwise }
}

/// 1, 2 or 5 times a power of ten, such that about `count` of them fit.
fn step(low: f64, high: f64, count: usize) -> f64 {
    // Halves first: the difference itself may be too large for a number.
    let rough = (high / 2.0 - low / 2.0) / (count.max(1) as f64 / 2.0);
    let unit = power(exponent(rough));
    let times = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|times| times * unit >= 0.8 * rough);
    times.unwrap_or(10.0) * unit
}

fn linear(range: (f64, f64), count: usize, whole: bool) -> Ticks {
    let (low, high) = range;
    let mut step = step(low, high, count);
    if whole {
        step = step.max(1.0);
    }
    // A little beyond the ends, which may themselves be multiples but for a rounding error.
    let room = step * 1e-9;
    let (first, last) = (((low - room) / step).ceil(), ((high + room) / step).floor());
    let mut labelled = Vec::new();
    // A step is a fair share of the range, so that there are few; numbers beyond 2^53 have no neighbours to step to.
    if first.abs() < 9e15 && last.abs() < 9e15 {
        let mut multiple = first;
        while multiple <= last && labelled.len() <= 4 * count.max(4) {
            let value = (multiple * step).clamp(low, high);
            labelled.push((
                value,
                label(multiple * step, step, low.abs().max(high.abs())),
            ));
            multiple += 1.0;
        }
    }
    Ticks {
        labelled,
        minor: Vec::new(),
    }
}

fn logarithmic((low, high): (f64, f64), count: usize) -> Ticks {
    let (first, last) = (exponent(low), exponent(high));
    let decades = usize::try_from(last - first).unwrap_or(0) + 1;
    let inside = |value: f64| low * (1.0 - 1e-9) <= value && value <= high * (1.0 + 1e-9);
    let stride = decades.div_ceil(count.max(2));
    // One way of writing along one axis.
    let plain = first >= -3 && last <= 4;
    let mut ticks = Ticks {
        labelled: Vec::new(),
        minor: Vec::new(),
    };
    for k in first..=last {
        let unit = power(k);
        for times in 1..=9u8 {
            let value = f64::from(times) * unit;
            if !inside(value) {
                continue;
            }
            // With few decades there is room for words between them.
            let words = match times {
                1 => ((k - first).unsigned_abs() as usize).is_multiple_of(stride),
                2 | 5 => decades <= 2,
                _ => false,
            };
            if words {
                let written = if plain {
                    let decimals = usize::try_from(-k).unwrap_or(0);
                    format!("{value:.decimals$}")
                } else {
                    scientific(f64::from(times), k)
                };
                ticks.labelled.push((value.clamp(low, high), written));
            } else if stride == 1 {
                ticks.minor.push(value.clamp(low, high));
            }
        }
    }
    ticks
}

/// The largest of 1, 2 and 5 times a power of ten, or power of ten alone, that is not above a value.
fn round_down(value: f64, decades: bool) -> f64 {
    let unit = power(exponent(value));
    let times: &[f64] = if decades { &[1.0] } else { &[5.0, 2.0, 1.0] };
    let found = times
        .iter()
        .map(|times| times * unit)
        .find(|&round| round <= value);
    found.unwrap_or(unit / 10.0)
}

fn round_up(value: f64, decades: bool) -> f64 {
    let unit = power(exponent(value));
    let times: &[f64] = if decades { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let found = times
        .iter()
        .map(|times| times * unit)
        .find(|&round| round >= value);
    found.unwrap_or(10.0 * unit)
}

/// The power of ten that is not above a positive value.
fn exponent(value: f64) -> i32 {
    // Within the range of numbers, -324 to 308. A logarithm may be off by a rounding error next to a power of ten.
    let near = libm::floor(libm::log10(value)) as i32;
    if power(near + 1) <= value {
        near + 1
    } else {
        near
    }
}

/// `10^k`, to the last bit: no arithmetic is as good as the parser's.
fn power(k: i32) -> f64 {
    format!("1e{k}").parse().unwrap_or(f64::INFINITY)
}

/// A multiple of a step, with as many decimals as the step has.
fn label(value: f64, step: f64, largest: f64) -> String {
    let k = exponent(step);
    if value == 0.0 {
        return "0".to_owned();
    }
    if largest >= 1e6 || step < 1e-4 {
        let k = exponent(value.abs());
        return scientific(value / power(k), k);
    }
    if k >= 0 && largest >= 1e4 {
        // Whole, and below a million.
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", thousands(value.abs() as usize));
    }
    let decimals = usize::try_from(-k).unwrap_or(0);
    minus(&format!("{value:.decimals$}"))
}

/// Digits in groups of three: `1,234,567`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `10⁻⁷`, `2.5×10⁶`.
fn scientific(mantissa: f64, k: i32) -> String {
    let digits = format!("{mantissa:.3}");
    let digits = minus(digits.trim_end_matches('0').trim_end_matches('.'));
    let raised: String = k
        .to_string()
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
        })
        .collect();
    match digits.as_str() {
        "1" => format!("10{raised}"),
        _ => format!("{digits}×10{raised}"),
    }
}

/// With a minus sign in place of a hyphen.
fn minus(digits: &str) -> String {
    digits.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(ticks: &Ticks) -> Vec<&str> {
        ticks
            .labelled
            .iter()
            .map(|(_, words)| words.as_str())
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        let linear = |range, whole| within(AxisScale::Linear, range, 5, whole);
        assert_eq!(
            words(&linear((0.0, 60.0), true)),
            ["0", "10", "20", "30", "40", "50", "60"]
        );
        assert_eq!(
            words(&linear((0.3, 0.7), false)),
            ["0.3", "0.4", "0.5", "0.6", "0.7"]
        );
        assert_eq!(
            words(&linear((-1.0, 1.0), false)),
            ["−1.0", "−0.5", "0", "0.5", "1.0"]
        );
        assert_eq!(words(&linear((0.0, 2.0), true)), ["0", "1", "2"]);
        assert_eq!(
            words(&linear((-5000.0, 10000.0), false)),
            ["−5,000", "0", "5,000", "10,000"]
        );
        assert_eq!(
            words(&linear((0.0, 4e7), false)),
            ["0", "10⁷", "2×10⁷", "3×10⁷", "4×10⁷"]
        );
    }

    #[test]
    fn logarithmic_ticks_are_decades_with_marks_between_them() {
        let ticks = within(AxisScale::Log, (0.01, 10.0), 6, false);
        assert_eq!(words(&ticks), ["0.01", "0.1", "1", "10"]);
        assert_eq!(ticks.minor.len(), 3 * 8);
        let few = within(AxisScale::Log, (0.2, 1.0), 6, false);
        assert_eq!(words(&few), ["0.2", "0.5", "1"]);
        let many = within(AxisScale::Log, (1e-12, 1.0), 6, false);
        assert_eq!(words(&many)[..2], ["10⁻¹²", "10⁻⁹"]);
        // No round number: equal differences will do.
        assert!(
            within(AxisScale::Log, (0.31, 0.34), 5, false)
                .labelled
                .len()
                >= 2
        );
    }

    proptest! {
        #[test]
        fn ends_cover_the_data_and_ticks_are_between_them(
            a in -1e9..1e9f64, b in -1e9..1e9f64, shrink in -12..1i32, count in 2..9usize, log: bool,
        ) {
            // Of every size, and sometimes very close to each other.
            let (scale, a, b) = if log {
                (AxisScale::Log, libm::exp(a / 2e7), libm::exp(b / 2e7))
            } else {
                (AxisScale::Linear, a, a + (b - a) * power(shrink))
            };
            let (low, high) = (a.min(b), a.max(b));
            for ends in [around(scale, low, high, count), beyond(scale, low, high)] {
                prop_assert!(ends.0 <= low && high <= ends.1 && ends.0 < ends.1);
                let ticks = within(scale, ends, count, false);
                let all = || ticks.labelled.iter().map(|(value, _)| *value);
                prop_assert!(all().chain(ticks.minor.iter().copied()).all(|v| ends.0 <= v && v <= ends.1));
                prop_assert!(all().zip(all().skip(1)).all(|(a, b)| a < b));
                prop_assert!((1..=4 * count + 4).contains(&ticks.labelled.len()), "{:?}", ticks);
            }
        }

        #[test]
        fn one_value_has_an_axis_around_it(value in -1e9..1e9f64, log: bool) {
            let (scale, value) = if log { (AxisScale::Log, libm::exp(value / 2e7)) } else { (AxisScale::Linear, value) };
            let (low, high) = around(scale, value, value, 5);
            prop_assert!(low < high && low <= value && value <= high);
        }
    }
}
