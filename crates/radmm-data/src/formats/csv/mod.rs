//! Tables in CSV files.
//!
//! The first line names the columns. Fields are separated by commas or another character, quoted as in RFC 4180, and
//! trimmed.

mod records;
mod sniff;

use std::io::Read;

use self::records::{CsvRecord, CsvRecords};
pub(crate) use self::sniff::sniff;
use crate::error::{DataError, FilePosition};
use crate::formats::named_columns::{Column, Header, NamedTable, Records};
use crate::formats::options::{CsvDialect, Separator};

/// An open CSV file, whose header has been read.
pub(crate) struct CsvTable<'f, R> {
    file: &'f str,
    position: FilePosition,
    names: Vec<String>,
    separator: Separator,
    records: CsvRecords<'f, R>,
}

impl<'f, R: Read> CsvTable<'f, R> {
    /// Reads the header.
    pub(crate) fn open(source: R, file: &'f str, dialect: CsvDialect) -> Result<Self, DataError> {
        let mut records = CsvRecords::new(source, file, dialect)?;
        let Some(first) = records.next()? else {
            let file = file.to_owned();
            return Err(DataError::Empty { file });
        };
        let line = first.line();
        let names = first.texts().map_err(|index| DataError::HeaderNotUtf8 {
            file: file.to_owned(),
            line,
            number: index + 1,
        })?;
        Ok(Self {
            file,
            position: FilePosition::Line(line),
            names: names.into_iter().map(str::to_owned).collect(),
            separator: dialect.separator,
            records,
        })
    }
}

impl<'f, R: Read> NamedTable<'f> for CsvTable<'f, R> {
    type Records = CsvRows<'f, R>;

    fn header(&self) -> Header<'f> {
        Header {
            file: self.file,
            position: self.position,
            names: self.names.clone(),
            separator: Some(self.separator),
        }
    }

    fn records(self, _: &[Column<'_>]) -> Result<CsvRows<'f, R>, DataError> {
        Ok(CsvRows {
            records: self.records,
            width: self.names.len(),
        })
    }
}

/// The records of a CSV file, checked to be as wide as the header.
pub(crate) struct CsvRows<'a, R> {
    records: CsvRecords<'a, R>,
    width: usize,
}

impl<R: Read> Records for CsvRows<'_, R> {
    type Record<'r>
        = CsvRecord<'r>
    where
        Self: 'r;

    fn next(&mut self) -> Result<Option<CsvRecord<'_>>, DataError> {
        let width = self.width;
        match self.records.next()? {
            Some(record) if record.width() != width => Err(record.wrong_width(width)),
            record => Ok(record),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::encode::Encoder;
    use crate::formats::named_columns::Record;
    use crate::schema::{Categorical, Numeric, Schema};

    /// A schema with age within [0, 100], smoker yes or no, and an intercept; the label is ill or not.
    pub(crate) fn schema() -> Schema {
        Schema {
            missing: vec!["?".into(), "".into()],
            intercept: true,
            numeric: vec![Numeric::within("age", 0.0, 100.0)],
            categorical: vec![Categorical::new("smoker", ["yes", "no"])],
            ..Schema::new("ill", "yes")
        }
    }

    /// Returns the complete rows of a table as a shard would get them.
    pub(crate) fn encoded(text: &str, schema: &Schema) -> Vec<(Vec<(u32, f64)>, bool)> {
        let table = CsvTable::open(text.as_bytes(), "rows.csv", CsvDialect::default()).unwrap();
        let header = table.header();
        let encoder = Encoder::new(schema, |name| header.find(name)).unwrap();
        let label = header.find(&schema.label).unwrap();
        let used: Vec<_> = encoder.columns().chain([label]).collect();
        let mut records = table.records(&used).unwrap();
        let mut rows = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let is_missing = |column: &Column<'_>| record.is_missing(*column, &schema.missing);
            if !used.iter().any(|column| is_missing(column).unwrap()) {
                let (mut entries, mut clipped) = (Vec::new(), Vec::new());
                encoder.encode(&record, &mut entries, &mut clipped).unwrap();
                let positive = record.field(label).unwrap() == schema.positive;
                rows.push((entries, positive));
            }
        }
        rows
    }

    #[test]
    fn a_row_is_scaled_numbers_then_one_hot_values_then_the_intercept() {
        assert_eq!(
            encoded(
                "age,smoker,ill\n25,no,yes\n120,yes,no\n-1,no,maybe\n",
                &schema()
            ),
            [
                (vec![(0, 0.25), (2, 1.0), (3, 1.0)], true),
                (vec![(0, 1.0), (1, 1.0), (3, 1.0)], false),
                (vec![(0, 0.0), (2, 1.0), (3, 1.0)], false),
            ]
        );
    }

    #[test]
    fn without_an_intercept_no_constant_column_is_added() {
        let schema = Schema {
            intercept: false,
            ..schema()
        };
        let rows = encoded("age,smoker,ill\n50,yes,yes\n", &schema);
        assert_eq!(rows, [(vec![(0, 0.5), (1, 1.0)], true)]);
    }

    #[test]
    fn one_hot_columns_of_vocabularies_follow_one_another() {
        let mut schema = schema();
        schema.categorical.push(Categorical::new("sex", ["f", "m"]));
        let rows = encoded("sex,age,ill,smoker\nm,50,yes,yes\nf,50,yes,no\n", &schema);
        let columns = |r: usize| rows[r].0.iter().map(|e| e.0).collect::<Vec<_>>();
        assert_eq!(columns(0), [0, 1, 4, 5]);
        assert_eq!(columns(1), [0, 2, 3, 5]);
    }

    #[test]
    fn column_order_and_white_space_do_not_matter() {
        let plain = encoded("age,smoker,ill\n25,no,yes\n", &schema());
        for text in [
            "ill,age,smoker\nyes,25,no\n",
            " age ,\tsmoker, ill\r\n 25, no ,yes \r\n",
            "name,age,smoker,ill\nAda,\" 25\",\"no\",\"yes\"",
        ] {
            assert_eq!(encoded(text, &schema()), plain, "{text:?}");
        }
    }

    #[test]
    fn a_row_with_a_missing_value_is_dropped_whatever_else_it_holds() {
        let text = "age,smoker,ill\n?,no,yes\n25,,no\n25,no,?\nx,?,no\n25,no,yes\n";
        assert_eq!(encoded(text, &schema()).len(), 1);
    }
}
