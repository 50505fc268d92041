//! Rows that wait until it is known whether they are among the last.

use std::collections::HashMap;

use crate::error::{FEW, Place};
use crate::fifo::Fifo;
use crate::row::{Party, Row};
use crate::table::Table;

/// A row needs hardly more room here than in a shard: labels and parties are kept once, and each row's number of them.
///
/// Of labels, those after the first few different ones leave without their text: whoever asks for the first few in the
/// order of the file has them by then. A party leaves with the place of its first row: whoever refuses a party does so
/// at that row.
#[derive(Default)]
pub(crate) struct Waiting {
    rows: Table,
    /// The first few different ones.
    labels: Vec<String>,
    label_of: Fifo<u8>,
    /// Of each row, how many values were clipped, and in which columns.
    clips: Fifo<u32>,
    clipped: Fifo<u32>,
    parties: Vec<(String, Place)>,
    number_of: HashMap<String, u32>,
    party_of: Fifo<u32>,
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, row: &Row) {
        self.rows.push(&row.entries, row.positive);
        let label = self.label_number(&row.label);
        self.label_of.push(label);
        // There are fewer numeric columns than 32 bits can number.
        self.clips.push(row.clipped.len() as u32);
        row.clipped
            .iter()
            .for_each(|column| self.clipped.push(*column));
        if let Some(party) = &row.party {
            let number = self.party_number(party);
            self.party_of.push(number);
        }
    }

    /// Replaces `row` by the first one; false if there is none.
    pub(crate) fn pop(&mut self, row: &mut Row) -> bool {
        let Some(positive) = self.rows.pop(&mut row.entries) else {
            return false;
        };
        row.positive = positive;
        row.label.clear();
        let label = self.label_of.pop();
        let label = label.and_then(|label| self.labels.get(usize::from(label)));
        row.label.push_str(label.map_or("", String::as_str));
        row.clipped.clear();
        for _ in 0..self.clips.pop().unwrap_or(0) {
            row.clipped.extend(self.clipped.pop());
        }
        row.party = self.party_of.pop().map(|number| {
            let (name, place) = self.parties[number as usize].clone();
            Party { name, place }
        });
        true
    }

    fn label_number(&mut self, label: &str) -> u8 {
        let known = self.labels.iter().position(|seen| seen == label);
        // Of a label beyond the first few, the number that none has.
        let number = known.unwrap_or(self.labels.len());
        if number == self.labels.len() && number < FEW {
            self.labels.push(label.to_owned());
        }
        number as u8
    }

    fn party_number(&mut self, party: &Party) -> u32 {
        let Party { name, place } = party;
        if let Some(number) = self.number_of.get(name) {
            return *number;
        }
        // Each has a row in memory, so that there are fewer than 32 bits can number.
        let number = self.parties.len() as u32;
        self.parties.push((name.clone(), *place));
        self.number_of.insert(name.clone(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u32) -> Row {
        Row {
            entries: vec![(n, 1.0), (n + 1, -0.5)],
            positive: n.is_multiple_of(3),
            label: format!("label {}", n % 7),
            clipped: (0..n % 4).collect(),
            party: Some(Party {
                name: format!("party {}", n % 5),
                // Of the party's first row.
                place: Place::Line(u64::from(n % 5) + 2),
            }),
        }
    }

    fn told(row: &Row) -> String {
        let party = row.party.as_ref().map(|party| (&party.name, party.place));
        let Row {
            entries,
            positive,
            label,
            clipped,
            ..
        } = row;
        format!("{entries:?} {positive} {label} {clipped:?} {party:?}")
    }

    #[test]
    fn rows_leave_as_they_came_with_all_that_is_told_of_them() {
        let mut waiting = Waiting::default();
        let mut first = Row::default();
        for n in 0..100 {
            waiting.push(&row(n));
            if n >= 10 {
                assert!(waiting.pop(&mut first));
                assert_eq!(told(&first), told(&row(n - 10)));
            }
        }
        assert_eq!(waiting.len(), 10);
    }

    #[test]
    fn without_a_party_a_row_leaves_without_one() {
        let mut waiting = Waiting::default();
        let mut first = row(1);
        waiting.push(&Row::default());
        assert!(waiting.pop(&mut first));
        assert_eq!(told(&first), told(&Row::default()));
        assert!(!waiting.pop(&mut first));
    }

    #[test]
    fn of_many_labels_the_first_few_are_kept() {
        let mut waiting = Waiting::default();
        let labelled = |n: usize| Row {
            label: n.to_string(),
            ..Row::default()
        };
        (0..1000).for_each(|n| waiting.push(&labelled(n)));
        assert_eq!(waiting.labels.len(), FEW);
        let mut first = Row::default();
        for n in 0..1000 {
            waiting.pop(&mut first);
            let expected = if n < FEW {
                n.to_string()
            } else {
                String::new()
            };
            assert_eq!(first.label, expected);
        }
    }
}
