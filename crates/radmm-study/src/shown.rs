//! Numbers in words, the same on the terminal and in reports.

/// Four decimals, or powers of ten where these would say nothing or too much.
pub fn number(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}

/// Four digits.
pub fn brief(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => {
            let decimals = (3.0 - x.abs().log10().floor()).max(0.0) as usize;
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

/// A share in hundredths.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A privacy loss, rounded up like everything about privacy.
pub fn epsilon(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        "∞".to_owned()
    } else if epsilon > 0.0 && epsilon < 1e-3 {
        let mut power = epsilon.log10().floor();
        let mut tenths = (epsilon / 10f64.powf(power - 1.0)).ceil();
        if tenths >= 100.0 {
            (tenths, power) = (10.0, power + 1.0);
        }
        format!("{:.1}e{power}", tenths / 10.0)
    } else if epsilon < 1e6 {
        format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
    } else {
        // A tenth more than two digits can lose.
        format!("{:.1e}", epsilon * 1.05)
    }
}

/// `σ 12`, or `σ 10.2 to 12` where parties differ.
pub fn scale(name: &str, [low, high]: [f64; 2]) -> String {
    match brief(low) == brief(high) {
        true => format!("{name} {}", brief(low)),
        false => format!("{name} {} to {}", brief(low), brief(high)),
    }
}

/// What a privacy loss is at least, rounded down: no more is said than was shown.
pub fn at_least(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).floor() / 1e4)
}

/// `1 row`, `2,000 rows`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", thousands(number)),
    }
}

/// `1,234,567`.
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
    fn an_epsilon_is_never_shown_smaller_than_it_is() {
        assert_eq!(epsilon(0.12341), "0.1235");
        assert_eq!(epsilon(0.0), "0.0000");
        for (small, said) in [(1.01e-9, "1.1e-9"), (9.91e-5, "1.0e-4"), (3.2e-4, "3.2e-4")] {
            assert_eq!(epsilon(small), said);
        }
        for k in 1..2000 {
            let small = 1e-3 * f64::from(k) / 2000.0;
            let said: f64 = epsilon(small).parse().unwrap();
            // To the last bits of the power of ten.
            assert!(
                said >= small * (1.0 - 1e-12) && said < small * 1.11,
                "{small} {said}"
            );
        }
        assert_eq!(epsilon(f64::INFINITY), "∞");
    }
}
