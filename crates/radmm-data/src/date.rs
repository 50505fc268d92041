//! Dates: days of the Gregorian calendar, counted from 1970-01-01.
//!
//! A date is written as in ISO 8601: `2020-12-31`. In a field a time may follow, which has no meaning. Before the first day of year
//! `y + 1` lie `365 y + ⌊y/4⌋ − ⌊y/100⌋ + ⌊y/400⌋` days since 0001-01-01.

use crate::error::excerpt;
use crate::error_kinds::FieldError;

/// The number of days from 0001-01-01 to 1970-01-01.
const EPOCH: i64 = 719_162;

/// The number of days in 400 years.
const DAYS_OF_CYCLE: i64 = 146_097;

/// The number of bytes of a date.
const LENGTH: usize = 10;

/// Returns the number of days from 1970-01-01 to a date such as `2020-12-31`; `None` if the text is not the date of a day.
pub fn days_of_date(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let separated = bytes.len() == LENGTH && bytes[4] == b'-' && bytes[7] == b'-';
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = bytes.get(range)?.iter();
        digits.into_iter().try_fold(0, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
            Some(10 * number + digit)
        })
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let lengths = month_lengths(year);
    let months = lengths.get(..usize::try_from(month - 1).ok()?)?;
    let length = lengths.get(months.len())?;
    let exists = separated && year > 0 && (1..=*length).contains(&day);
    let days = days_before(year) + months.iter().sum::<i64>() + day - 1;
    exists.then_some((days - EPOCH) as f64)
}

/// Returns the date of the day that is nearest to so many days after 1970-01-01.
pub fn date_of_days(days: f64) -> String {
    let mut day = days.round() as i64 + EPOCH;
    // The mean length of a year leads to the year, to the one before it or to the one after it.
    let mut year = 1 + (day * 400).div_euclid(DAYS_OF_CYCLE);
    if days_before(year) > day {
        year -= 1;
    } else if days_before(year + 1) <= day {
        year += 1;
    }
    day -= days_before(year);
    let mut month = 1;
    for length in month_lengths(year) {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day + 1)
}

/// Parses a field that holds a date, and maybe a time behind it. Returns the number of days since 1970-01-01.
pub(crate) fn parse(field: &str) -> Result<f64, FieldError> {
    let parts = field.split_at_checked(LENGTH);
    let days = parts.filter(|(_, time)| time.is_empty() || is_time(time));
    let days = days.and_then(|(date, _)| days_of_date(date));
    days.ok_or_else(|| FieldError::NotADate {
        value: excerpt(field),
    })
}

/// Returns whether this is `T08:30`, with seconds and a time zone or without, or the same with a space.
fn is_time(text: &str) -> bool {
    let [b'T' | b' ', time @ ..] = text.as_bytes() else {
        return false;
    };
    let begins =
        matches!(time, [a, b, b':', c, d, ..] if [a, b, c, d].iter().all(|c| c.is_ascii_digit()));
    let may_follow = |byte: &u8| byte.is_ascii_digit() || b":.+-Z".contains(byte);
    begins && time.iter().all(may_follow)
}

/// Returns the number of days from 0001-01-01 to the first day of a year.
fn days_before(year: i64) -> i64 {
    let years = year - 1;
    365 * years + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400)
}

fn month_lengths(year: i64) -> [i64; 12] {
    let february = days_before(year + 1) - days_before(year) - 337;
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_first_of_january_1970() {
        for (date, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2038-01-19", 24_855),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(days_of_date(date), Some(f64::from(days)), "{date}");
            assert_eq!(date_of_days(f64::from(days)), date);
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_has_a_date_of_its_own_and_follows_on_the_day_before() {
        let mut before = date_of_days(-719_162.0);
        for day in -719_161..=2_932_896 {
            let date = date_of_days(f64::from(day));
            assert!(date > before, "{before} {date}");
            assert_eq!(days_of_date(&date), Some(f64::from(day)));
            before = date;
        }
        assert_eq!(before, "9999-12-31");
    }

    #[test]
    fn days_that_are_not_in_the_calendar_are_no_dates() {
        for text in [
            "2021-02-29",
            "1900-02-29",
            "2020-04-31",
            "2020-13-01",
            "2020-00-10",
            "2020-01-00",
            "0000-01-01",
            "31.12.2020",
            "12/31/2020",
            "2020/12/31",
            "20201231",
            "2020-1-1",
            "2020-12-3",
            "+020-12-31",
            "2020-12-311",
            "",
            "2020",
            "２020-01-01",
        ] {
            assert_eq!(days_of_date(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_behind_a_date_has_no_meaning() {
        for time in [
            "",
            "T08:30",
            " 08:30:59",
            "T23:59:59.999999Z",
            " 08:00:00+00",
            "T08:00-05:30",
        ] {
            assert_eq!(parse(&format!("1970-01-02{time}")), Ok(1.0), "{time}");
        }
        for time in [
            " ",
            "T",
            "x",
            " 8:30",
            " noon",
            "T0830",
            " 08:30 pm",
            "T08:30;",
        ] {
            assert!(parse(&format!("1970-01-02{time}")).is_err(), "{time}");
        }
    }

    #[test]
    fn days_beyond_the_calendar_have_longer_years() {
        assert_eq!(date_of_days(2_932_897.0), "10000-01-01");
        assert_eq!(date_of_days(-719_163.0), "0000-12-31");
        assert!(parse("10000-01-01").is_err());
    }
}
