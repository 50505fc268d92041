//! Numbers as text, the same on the terminal, in reports and in messages.

/// Returns four decimals, or a power of ten where these would say nothing or too much.
pub fn number(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}

/// Returns four digits, without zeros at the end.
pub fn brief(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => {
            let decimals = (3 - scientific(x.abs()).1).max(0) as usize;
            let digits = format!("{x:.decimals$}");
            match digits.contains('.') {
                true => digits
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned(),
                false => digits,
            }
        }
        _ => format!("{x:.1e}"),
    }
}

/// Returns four digits of a positive number, rounded up.
pub fn brief_up(x: f64) -> String {
    if x == 0.0 {
        return brief(x);
    }
    let digits = match x {
        1e-3..1e6 => 4,
        _ => 2,
    };
    let (mantissa, exponent) = rounded_up(x, digits);
    // The text is a number in scientific notation.
    let rounded = format!("{mantissa}e{exponent}").parse();
    brief(rounded.unwrap_or(x))
}

/// Returns a positive number as it was probably typed, or four digits rounded up if that is long.
pub fn as_typed(x: f64) -> String {
    [x.to_string(), format!("{x:e}")]
        .into_iter()
        .find(|exact| exact.len() <= 7)
        .unwrap_or_else(|| brief_up(x))
}

/// Returns a share in hundredths: `81.9 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns a privacy loss with four decimals, or two digits and a power of ten, rounded up like everything about privacy.
pub fn epsilon(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        "∞".to_owned()
    } else if epsilon > 0.0 && epsilon < 1e-3 {
        let (mantissa, exponent) = rounded_up(epsilon, 2);
        match mantissa.contains('.') {
            true => format!("{mantissa}e{exponent}"),
            false => format!("{mantissa}.0e{exponent}"),
        }
    } else if epsilon < 1e6 {
        format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
    } else {
        // Rounding to two digits loses less than a twentieth.
        format!("{:.1e}", epsilon * 1.05)
    }
}

/// Returns a lower bound of a privacy loss, rounded down: no more is claimed than was shown.
pub fn at_least(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).floor() / 1e4)
}

/// Returns a `δ` in scientific notation with at most four digits, rounded up: `1e-5`.
pub fn delta(delta: f64) -> String {
    match delta {
        0.0 => "0".to_owned(),
        _ => {
            let (mantissa, exponent) = rounded_up(delta, 4);
            format!("{mantissa}e{exponent}")
        }
    }
}

/// Returns `σ 12`, or `σ 10.2 to 12` where parties differ.
pub fn scale(name: &str, [low, high]: [f64; 2]) -> String {
    match brief(low) == brief(high) {
        true => format!("{name} {}", brief(low)),
        false => format!("{name} {} to {}", brief(low), brief(high)),
    }
}

/// Returns `1 row`, `2,000 rows`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", thousands(number)),
    }
}

/// Returns `1,234,567`.
pub fn thousands(number: usize) -> String {
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

/// The digits of a positive finite number, without their point, and its decimal exponent.
///
/// They are those of the shortest text that is read as the same number, not of a logarithm, whose last bit depends on
/// the platform.
fn scientific(x: f64) -> (String, i32) {
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    // The standard library writes the exponent as an integer.
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// The mantissa of a positive finite number, rounded up to so many digits, and its decimal exponent.
fn rounded_up(x: f64, digits: usize) -> (String, i32) {
    let (text, exponent) = scientific(x);
    if text.len() <= digits {
        return (with_point(&text), exponent);
    }
    let mut kept: Vec<u8> = text.bytes().take(digits).collect();
    // The digits that are dropped do not end in a zero, so that they are more than nothing.
    for digit in kept.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return (with_point(&String::from_utf8_lossy(&kept)), exponent);
        }
        *digit = b'0';
    }
    ("1".to_owned(), exponent + 1)
}

/// Digits with a point after the first, without zeros at the end.
fn with_point(digits: &str) -> String {
    let (first, rest) = digits.split_at(1);
    match rest.trim_end_matches('0') {
        "" => first.to_owned(),
        rest => format!("{first}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 45222, 1234567].map(thousands),
            ["0", "999", "1,000", "45,222", "1,234,567"]
        );
    }

    #[test]
    fn brief_numbers_have_four_digits() {
        let shown = [0.0, 1.0, 0.0123456, 437.5006, 1734.21875, 287.4486].map(brief);
        assert_eq!(shown, ["0", "1", "0.01235", "437.5", "1734", "287.4"]);
        assert_eq!(brief(4.1e-7), "4.1e-7");
        assert_eq!(
            [1000.0, 999.99, 1e5, -0.5].map(brief),
            ["1000", "1000", "100000", "-0.5"]
        );
    }

    #[test]
    fn a_number_rounded_up_is_never_shown_smaller_than_it_is() {
        let shown = [0.0, 1734.21875, 91.41797, 0.754834, 99.999, 1.21e-7].map(brief_up);
        assert_eq!(shown, ["0", "1735", "91.42", "0.7549", "100", "1.3e-7"]);
        let shown = [0.5, 1e-300, 1.0 / 3.0].map(as_typed);
        assert_eq!(shown, ["0.5", "1e-300", "0.3334"]);
    }

    #[test]
    fn an_epsilon_is_never_shown_smaller_than_it_is() {
        assert_eq!(epsilon(0.12341), "0.1235");
        assert_eq!(epsilon(0.0), "0.0000");
        assert_eq!(
            [1.9999999999999996, 1.75].map(epsilon),
            ["2.0000", "1.7500"]
        );
        for (small, said) in [(1.01e-9, "1.1e-9"), (9.91e-5, "1.0e-4"), (3.2e-4, "3.2e-4")] {
            assert_eq!(epsilon(small), said);
        }
        for k in 1..2000 {
            let small = 1e-3 * f64::from(k) / 2000.0;
            let said: f64 = epsilon(small).parse().unwrap();
            assert!(said >= small && said < small * 1.11, "{small} {said}");
        }
        assert_eq!(epsilon(f64::INFINITY), "∞");
    }

    #[test]
    fn a_delta_has_one_notation_and_is_rounded_up() {
        let shown = [0.0, 1e-5, 1.25e-6, 0.05, 1.0 / 45222.0, 9.99999e-6].map(delta);
        assert_eq!(shown, ["0", "1e-5", "1.25e-6", "5e-2", "2.212e-5", "1e-5"]);
    }
}
