//! Parquet files: valid and invalid ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type, Int96,
    Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use radmm::curator::NormPolicy;
use radmm_data::{
    Categorical, DataError, Format, Holdout, Numeric, Partition, PartitionSpec, Schema, Split,
    TableFile, profile, read_partition, read_test_set, score_each,
};
use tempfile::TempDir;

/// The values of a column in one row group.
enum Values<'a> {
    Bools(&'a [bool]),
    Ints(&'a [i32]),
    Longs(&'a [i64]),
    Instants(&'a [Int96]),
    Floats(&'a [f32]),
    Doubles(&'a [f64]),
    Texts(&'a [&'a str]),
    /// The column is optional: `None` is NULL.
    SomeDoubles(&'a [Option<f64>]),
    SomeTexts(&'a [Option<&'a str>]),
}

fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| value.is_some().into()).collect()
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, File>, values: &Values<'_>) {
    let mut column = group.next_column().unwrap().unwrap();
    let bytes = |text: &&str| ByteArray::from(text.as_bytes().to_vec());
    match values {
        Values::Bools(v) => column.typed::<BoolType>().write_batch(v, None, None),
        Values::Ints(v) => column.typed::<Int32Type>().write_batch(v, None, None),
        Values::Longs(v) => column.typed::<Int64Type>().write_batch(v, None, None),
        Values::Instants(v) => column.typed::<Int96Type>().write_batch(v, None, None),
        Values::Floats(v) => column.typed::<FloatType>().write_batch(v, None, None),
        Values::Doubles(v) => column.typed::<DoubleType>().write_batch(v, None, None),
        Values::Texts(v) => {
            let v: Vec<ByteArray> = v.iter().map(bytes).collect();
            column.typed::<ByteArrayType>().write_batch(&v, None, None)
        }
        Values::SomeDoubles(v) => {
            let present: Vec<f64> = v.iter().copied().flatten().collect();
            let typed = column.typed::<DoubleType>();
            typed.write_batch(&present, Some(&levels(v)), None)
        }
        Values::SomeTexts(v) => {
            let present: Vec<ByteArray> = v.iter().flatten().map(bytes).collect();
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&present, Some(&levels(v)), None)
        }
    }
    .unwrap();
    column.close().unwrap();
}

/// Writes a file of row groups, each given by its columns.
fn write(path: &Path, message: &str, codec: Compression, groups: &[&[Values<'_>]]) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder().set_compression(codec).build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for values in *columns {
            write_column(&mut group, values);
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

const MESSAGE: &str = "message rows {
    required int64 id;
    optional double age;
    optional binary smoker (UTF8);
    required boolean ill;
}";

/// Writes five rows in two groups; two of them have a NULL.
fn five(folder: &TempDir, codec: Compression) -> PathBuf {
    let path = folder.path().join("rows.parquet");
    let first = [
        Values::Longs(&[1, 2, 3]),
        Values::SomeDoubles(&[Some(20.0), None, Some(30.5)]),
        Values::SomeTexts(&[Some("no"), Some("no"), Some(" yes ")]),
        Values::Bools(&[true, false, false]),
    ];
    let second = [
        Values::Longs(&[4, 5]),
        Values::SomeDoubles(&[Some(40.0), Some(50.0)]),
        Values::SomeTexts(&[None, Some("no")]),
        Values::Bools(&[false, true]),
    ];
    write(&path, MESSAGE, codec, &[&first, &second]);
    path
}

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        rows: NormPolicy::Clip,
        intercept: true,
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        categorical: vec![Categorical::new("smoker", ["yes", "no"])],
        ..Schema::new("ill", "true")
    }
}

fn open(path: &Path) -> TableFile {
    TableFile::open(path, Format::Parquet).unwrap()
}

/// Splits a file over two nodes without holding rows out.
fn split(path: &Path, schema: &Schema, split: &Split) -> Result<Partition, DataError> {
    read_partition(open(path), schema, PartitionSpec::new(split, 2))
}

fn table(path: &Path, schema: &Schema) -> Partition {
    split(path, schema, &Split::RoundRobin).unwrap()
}

/// Returns the error of the file, without its folder.
fn refusal(path: &Path, schema: &Schema) -> String {
    let error = split(path, schema, &Split::RoundRobin).err();
    let folder = format!("{}/", path.parent().unwrap().display());
    let said = error.expect("the file should be refused").to_string();
    said.replace(&folder, "")
}

#[test]
fn columns_are_found_by_name_over_all_row_groups_and_null_is_missing() {
    let folder = TempDir::new().unwrap();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let table = table(&five(&folder, codec), &schema());
        assert_eq!((table.read, table.dropped, table.positive), (5, 2, 2));
        assert_eq!(table.ignored, ["id"]);
        assert_eq!(table.labels, ["true", "false"]);
        assert_eq!(table.parts[0].shard.rows(), 2);
    }
}

#[test]
fn many_rows_come_in_batches() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = "message m { required int32 n; required binary ill; }";
    let numbers: Vec<i32> = (0..5000).collect();
    let classes: Vec<&str> = (0..5000).map(|n| ["no", "yes"][n % 2]).collect();
    let columns = [Values::Ints(&numbers), Values::Texts(&classes)];
    let rest = [Values::Ints(&[7]), Values::Texts(&["yes"])];
    write(&path, message, Compression::SNAPPY, &[&columns, &rest]);
    let mut schema = schema();
    schema.numeric = vec![Numeric::within("n", 0.0, 4998.0)];
    (schema.positive, schema.categorical) = ("yes".into(), vec![]);
    let table = table(&path, &schema);
    assert_eq!((table.read, table.positive), (5001, 2501));
    assert_eq!(table.clipped, [("n".to_owned(), 1)]);
}

#[test]
fn values_become_the_text_that_csv_would_hold() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = "message m {
        required boolean b; required int32 i; required int32 u (INTEGER(32, false)); required int64 l;
        required int64 w (INTEGER(64, false)); required float f; required double d; required binary t;
    }";
    let columns = [
        Values::Bools(&[true, false]),
        Values::Ints(&[-7, 7]),
        Values::Ints(&[-1, 1]),
        Values::Longs(&[-1 << 40, 0]),
        Values::Longs(&[-1, 0]),
        Values::Floats(&[0.1, f32::NAN]),
        Values::Doubles(&[1.0, 1e-7]),
        Values::Texts(&["é ", "e"]),
    ];
    write(&path, message, Compression::UNCOMPRESSED, &[&columns]);
    let table_profile = profile(open(&path)).unwrap();
    let first: Vec<String> = table_profile
        .columns
        .iter()
        .map(|column| {
            let values = column.values.clone().unwrap();
            let mut texts: Vec<String> = values.into_iter().map(|(text, _)| text).collect();
            texts.extend(column.markers.iter().map(|marker| marker.to_string()));
            texts.join(" ")
        })
        .collect();
    let expected = [
        "false true",
        "-7 7",
        "1 4294967295",
        "-1099511627776 0",
        "0 18446744073709551615",
        "0.1 NaN",
        "0.0000001 1",
        "e é",
    ];
    assert_eq!(first, expected);
}

#[test]
fn the_column_of_a_split_may_be_a_feature() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::SNAPPY);
    let by_smoker = Split::Column {
        column: "smoker".into(),
        values: vec!["yes".into(), "no".into()],
    };
    let table = split(&path, &schema(), &by_smoker).unwrap();
    assert_eq!(table.parts[0].name, "yes");
    assert_eq!(table.parts[0].shard.rows(), 1);
}

#[test]
fn an_invalid_value_is_reported_with_its_row() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::SNAPPY);
    let mut schema = schema();
    schema.categorical[0].values = vec!["no".into()];
    assert_eq!(
        refusal(&path, &schema),
        "rows.parquet: row 3: column \"smoker\": \"yes\" is not among the known values \"no\"; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\""
    );
    schema.categorical[0].name = "smokr".into();
    assert_eq!(
        refusal(&path, &schema),
        "rows.parquet: there is no column \"smokr\" (did you mean \"smoker\"?); the header has \"id\", \"age\", \"smoker\", \"ill\""
    );
}

#[test]
fn bytes_that_are_not_utf8_are_reported() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::UNCOMPRESSED);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|w| w == b" yes ").unwrap();
    bytes[at + 1] = 0xff;
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        refusal(&path, &schema()),
        "rows.parquet: row 3: column \"smoker\": the field is not UTF-8; save the file as UTF-8"
    );
}

#[test]
fn a_float_that_is_not_finite_is_an_error_unless_listed_as_missing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message =
        "message m { required double age; required binary smoker; required boolean ill; }";
    let columns = [
        Values::Doubles(&[1.0, f64::NAN, 2.0]),
        Values::Texts(&["no", "no", "no"]),
        Values::Bools(&[true, true, false]),
    ];
    write(&path, message, Compression::SNAPPY, &[&columns]);
    let mut schema = schema();
    assert_eq!(
        refusal(&path, &schema),
        "rows.parquet: row 2: column \"age\": invalid number \"NaN\": must be finite; correct it, or list it under missing to drop such rows"
    );
    schema.missing.push("NaN".into());
    assert_eq!(table(&path, &schema).dropped, 1);
}

#[test]
fn columns_of_other_types_are_refused_only_if_used() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    for (kind, values, type_name) in [
        (
            "required int32 age (DECIMAL(9, 2))",
            Values::Ints(&[1, 2]),
            "decimal",
        ),
        (
            "required int32 age (TIME_MILLIS)",
            Values::Ints(&[1, 2]),
            "time",
        ),
    ] {
        let message =
            format!("message m {{ {kind}; required binary smoker; required boolean ill; }}");
        let columns = [
            values,
            Values::Texts(&["no", "no"]),
            Values::Bools(&[true, false]),
        ];
        write(&path, &message, Compression::SNAPPY, &[&columns]);
        let mut schema = schema();
        assert_eq!(
            refusal(&path, &schema),
            format!(
                "rows.parquet: column \"age\" is of type {type_name}, which cannot be read; save it as a number or as text"
            )
        );
        schema.numeric.clear();
        assert_eq!(table(&path, &schema).ignored, ["age"]);
    }
}

/// Returns the centred encodings of a column of dates in three rows, from −1 on 1970-01-01 to 1 on 1970-01-11,
/// to nine digits: rows stay below norm one by some roundings.
fn encoded_dates(kind: &str, values: Values<'_>) -> Vec<f64> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = format!("message m {{ required {kind}; required boolean ill; }}");
    let columns = [values, Values::Bools(&[true, false, true])];
    write(&path, &message, Compression::SNAPPY, &[&columns]);
    let schema = Schema {
        rows: NormPolicy::Clip,
        numeric: vec![Numeric {
            is_date: true,
            ..Numeric::centred("seen", 0.0, 10.0)
        }],
        ..Schema::new("ill", "true")
    };
    let mut found = Vec::new();
    score_each(open(&path), &schema, |row| {
        found.push((row.unwrap().score(&[1.0]) * 1e9).round() / 1e9);
        Ok::<(), DataError>(())
    })
    .unwrap();
    found
}

#[test]
fn dates_and_timestamps_are_days_whatever_their_unit() {
    let expected = [-1.0, 0.0, 1.0];
    assert_eq!(
        encoded_dates("int32 seen (DATE)", Values::Ints(&[0, 5, 400])),
        expected
    );
    for (unit, per_second) in [
        ("MILLIS", 1_000),
        ("MICROS", 1_000_000),
        ("NANOS", 1_000_000_000),
    ] {
        for zone in ["true", "false"] {
            // The last second of the fifth day, and one before 1970.
            let seconds = [-1, 6 * 86_400 - 1, 10 * 86_400].map(|second| second * per_second);
            let kind = format!("int64 seen (TIMESTAMP({unit}, {zone}))");
            assert_eq!(encoded_dates(&kind, Values::Longs(&seconds)), expected);
        }
    }
    let converted = Values::Longs(&[0, 5 * 86_400_000, 864_000_000]);
    assert_eq!(
        encoded_dates("int64 seen (TIMESTAMP_MILLIS)", converted),
        expected
    );
    let mut instants = [Int96::new(); 3];
    for (day, instant) in [0, 5, 10].into_iter().zip(&mut instants) {
        // Nanoseconds of a Julian day.
        instant.set_data(7, 1, 2_440_588 + day);
    }
    assert_eq!(
        encoded_dates("int96 seen", Values::Instants(&instants)),
        expected
    );
}

#[test]
fn a_timestamp_stands_for_its_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message =
        "message m { required int64 seen (TIMESTAMP(MICROS, true)); required boolean ill; }";
    let columns = [
        Values::Longs(&[0, 1_609_403_399_999_999]),
        Values::Bools(&[true, false]),
    ];
    write(&path, message, Compression::SNAPPY, &[&columns]);
    let found = profile(open(&path)).unwrap();
    let values = found.columns[0].values.clone().unwrap();
    let values: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(values, ["1970-01-01 00:00:00", "2020-12-31 08:29:59"]);
    let numbers = Schema {
        numeric: vec![Numeric::centred("seen", 0.0, 1.0)],
        ..Schema::new("ill", "true")
    };
    assert_eq!(
        refusal(&path, &numbers),
        "rows.parquet: row 1: column \"seen\": invalid number \"1970-01-01 00:00:00\": if the column holds dates, give it bounds that are dates, such as bounds = [2000-01-01, 2030-01-01]"
    );
}

#[test]
fn nested_columns_are_refused_only_if_used() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = "message m {
        required group age { required double years; } required binary smoker; required boolean ill;
    }";
    let columns = [
        Values::Doubles(&[1.0, 2.0]),
        Values::Texts(&["no", "no"]),
        Values::Bools(&[true, false]),
    ];
    write(&path, message, Compression::SNAPPY, &[&columns]);
    let mut schema = schema();
    assert_eq!(
        refusal(&path, &schema),
        "rows.parquet: column \"age\" is nested: only columns of plain values can be read; save the file without it, or with its parts as columns"
    );
    schema.numeric.clear();
    assert_eq!(table(&path, &schema).ignored, ["age"]);
}

#[test]
fn unsupported_compressions_are_named() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::UNCOMPRESSED);
    // In the footer, the codec of a column is the field after its path: 0 for none, twice 4 for brotli.
    let mut bytes = fs::read(&path).unwrap();
    let places: Vec<usize> = (0..bytes.len() - 6)
        .filter(|at| bytes[*at..].starts_with(b"\x03age\x15\x00"))
        .collect();
    assert_eq!(places.len(), 2, "one a row group");
    for at in places {
        bytes[at + 5] = 8;
    }
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        refusal(&path, &schema()),
        "rows.parquet: column \"age\" is compressed with brotli, which is not supported; save the file with zstd, snappy, gzip or lz4, or uncompressed"
    );
}

#[test]
fn a_numeric_column_may_be_cut_into_bins() {
    let folder = TempDir::new().unwrap();
    let mut schema = schema();
    schema.numeric = vec![Numeric::binned("age", [25.0, 45.0])];
    let table = table(&five(&folder, Compression::SNAPPY), &schema);
    // Three bins, two values and the intercept.
    assert!(table.parts.iter().all(|part| part.shard.columns() == 6));
    assert!(table.clipped.is_empty());
}

#[test]
fn the_last_complete_rows_are_held_out_and_need_no_node() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::SNAPPY);
    // The last of the complete rows 1, 3 and 5 is held out.
    let by_id = Split::Column {
        column: "id".into(),
        values: vec!["1".into(), "3".into()],
    };
    let spec = PartitionSpec::new(&by_id, 2);
    let holdout = Holdout::Last { rows: 1 };
    let read = |spec| read_partition(open(&path), &schema(), spec);
    let table = read(spec.holding_out(&holdout)).unwrap();
    assert_eq!((table.read, table.dropped, table.held_out()), (4, 2, 1));
    let said = read(spec).err().unwrap().to_string();
    assert!(said.contains(": row 5: column \"id\": \"5\" belongs to no node"));
}

#[test]
fn a_share_of_rows_is_held_out_and_the_others_are_split_by_sizes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = "message m { required int32 age; required binary ill; }";
    let numbers: Vec<i32> = (0..1000).map(|n| n % 90).collect();
    let classes: Vec<&str> = (0..1000).map(|n| ["false", "true"][n % 2]).collect();
    let columns = [Values::Ints(&numbers), Values::Texts(&classes)];
    write(&path, message, Compression::SNAPPY, &[&columns]);
    let mut schema = schema();
    schema.categorical = vec![];
    let split = Split::Sizes {
        sizes: vec![3.0, 1.0],
        seed: 1,
    };
    let holdout = Holdout::Share {
        share: 0.2,
        seed: 3,
    };
    let spec = PartitionSpec::new(&split, 2).holding_out(&holdout);
    let table = read_partition(open(&path), &schema, spec).unwrap();
    assert_eq!(table.read + table.held_out(), 1000);
    // Binomial with mean 200 and deviation 13: six deviations, a false failure once in 10⁸ choices of a seed.
    assert!(table.held_out().abs_diff(200) < 78);
    let rows: Vec<usize> = table.parts.iter().map(|part| part.shard.rows()).collect();
    assert!(rows[0].abs_diff(3 * rows[1]) <= 4, "{rows:?}");
}

#[test]
fn a_test_file_needs_no_column_of_the_split() {
    let folder = TempDir::new().unwrap();
    let path = five(&folder, Compression::SNAPPY);
    let held = read_test_set(open(&path), &schema(), None).unwrap();
    assert_eq!((held.shard.rows(), held.shard.columns()), (3, 4));
    assert_eq!(held.labels, ["true", "false"]);
    write(&path, MESSAGE, Compression::SNAPPY, &[]);
    let said = read_test_set(open(&path), &schema(), None)
        .err()
        .unwrap()
        .to_string();
    assert!(
        said.ends_with("rows.parquet has a header and no rows; is it the right file?"),
        "{said}"
    );
}

#[test]
fn a_file_without_rows_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    write(&path, MESSAGE, Compression::SNAPPY, &[]);
    let said = "rows.parquet has a header and no rows; is it the right file?";
    assert_eq!(refusal(&path, &schema()), said);
}

#[test]
fn a_truncated_or_altered_file_is_refused_and_never_panics() {
    let folder = TempDir::new().unwrap();
    let whole = fs::read(five(&folder, Compression::SNAPPY)).unwrap();
    let path = folder.path().join("broken.parquet");
    for length in (5..whole.len()).step_by(5).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        let said = refusal(&path, &schema());
        assert!(
            said.starts_with("cannot read broken.parquet as Parquet: "),
            "{length}: {said}"
        );
    }
    let mut magic = whole.clone();
    *magic.last_mut().unwrap() = b'2';
    fs::write(&path, magic).unwrap();
    assert!(refusal(&path, &schema()).starts_with("cannot read broken.parquet as Parquet: "));
    // With one bit flipped it may still be a valid table, but another one. Some bits make the decoder panic.
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 0x10;
        fs::write(&path, altered).unwrap();
        let _ = split(&path, &schema(), &Split::RoundRobin);
        let _ = profile(open(&path));
    }
}
