//! The meaning of every key of a study.

use radmm::algorithm::schedule::Schedule;
use radmm::curator::NormPolicy;
use radmm::graph::Topology;
use radmm::privacy::{Bound, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::{Loss, RowCount, RowShape};
use radmm_data::{
    Builtin, Categorical, DecimalMark, FileOptions, Format, Holdout, Numeric, Schema, Separator,
    Split,
};
use radmm_study::{
    AlgorithmSection, DataSection, Method, NetworkSection, Noise, NoiseFamily, NoiseKind,
    PrivacySection, ProblemSection, RowSource, RunSection, Start, Study, TestRows, TotalBudget,
};

const EXAMPLE: &str = include_str!("example.toml");
const REFERENCE: &str = include_str!("../../../docs/study.md");

/// The least that makes a study.
const LEAST: &str = r#"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
[data.numeric]
age = [0, 90]
[data.split]
[network]
nodes = 6
topology = "ring"
[problem]
weight = 2
ridge = 1
[algorithm]
name = "local"
iterations = 10
[privacy]
[run]
"#;

fn read(text: &str) -> (Study, Vec<String>) {
    match Study::parse(text, "studies/least.toml") {
        Ok((study, notes)) => (study, notes.iter().map(ToString::to_string).collect()),
        Err(error) => panic!("{error} in\n{text}"),
    }
}

/// The least study with some text in place of another, and no notes.
fn with(changes: &[(&str, &str)]) -> Study {
    let text = changes.iter().fold(LEAST.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?}");
        text.replace(old, new)
    });
    let (study, notes) = read(&text);
    assert_eq!(notes, [""; 0], "in\n{text}");
    study
}

fn method(lines: &str) -> Method {
    with(&[("name = \"local\"", lines)]).algorithm.method
}

fn privacy(method: &str, lines: &str) -> PrivacySection {
    let lines = format!("[privacy]\n{lines}");
    with(&[
        ("name = \"local\"", method),
        ("[privacy]", &lines),
        ("[run]", "[run]\nseed = 1"),
    ])
    .privacy
}

fn topology(lines: &str) -> Topology {
    with(&[("topology = \"ring\"", lines)]).network.topology
}

fn split(lines: &str) -> Split {
    with(&[("[data.split]", &format!("[data.split]\n{lines}"))])
        .data
        .split
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

const HALF: Schedule = Schedule::Constant(0.5);
const GROWING: Schedule = Schedule::Growth {
    start: 1.0,
    growth: 1.01,
};

#[test]
fn the_example_has_its_meaning() {
    let (study, notes) = read(EXAMPLE);
    assert_eq!(notes, [""; 0]);
    let expected = Study {
        name: "visits".into(),
        data: DataSection {
            source: RowSource::File("rows.csv".into()),
            options: Format::Csv.into(),
            schema: Schema {
                label: "outcome".into(),
                positive: "yes".into(),
                missing: words(&["?", ""]),
                rows: NormPolicy::Unit,
                numbered: 0,
                nonzeros: None,
                intercept: false,
                numeric: vec![
                    Numeric::within("age", 0.0, 90.0),
                    Numeric::within("hours per week", 1.0, 99.0),
                ],
                categorical: vec![
                    Categorical::new("sex", ["Female", "Male"]),
                    Categorical::new("clinic", ["north", "south", "east", "west", "centre"]),
                ],
            },
            split: Split::Shuffled { seed: 7 },
            test: None,
        },
        network: NetworkSection {
            nodes: 5,
            topology: Topology::Random {
                probability: 0.6,
                seed: 3,
            },
        },
        parties: Vec::new(),
        problem: ProblemSection {
            loss: Loss::Logistic,
            count: RowCount::Rows,
            weight: 1750.0,
            ridge: 0.00316,
        },
        algorithm: AlgorithmSection {
            method: Method::RecycledAdmm {
                penalty: HALF,
                damping: GROWING,
                recycle: 1,
            },
            iterations: 100,
            start: Start::Zeros,
            tolerance: 1e-10,
        },
        privacy: PrivacySection {
            noise: Noise::Given(Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 2.0 },
                scale: NoiseScaling::Fixed,
            }),
            bound: Bound::Tight,
            delta: 0.0,
        },
        choices: Vec::new(),
        run: RunSection {
            repetitions: 10,
            seed: 1,
            tick: None,
        },
    };
    assert_eq!(study, expected);
}

#[test]
fn the_reference_shows_the_example() {
    assert!(REFERENCE.contains(EXAMPLE));
}

#[test]
fn missing_keys_have_defaults() {
    let study = with(&[]);
    assert_eq!(study.name, "least");
    assert_eq!(study.data.schema.missing, ["?", ""]);
    assert_eq!(study.data.schema.rows, NormPolicy::Unit);
    assert!(!study.data.schema.intercept);
    assert_eq!(study.data.split, Split::RoundRobin);
    assert_eq!(study.problem.loss, Loss::Logistic);
    assert_eq!(
        (study.algorithm.start, study.algorithm.tolerance),
        (Start::Zeros, 1e-10)
    );
    let none = PrivacySection {
        noise: Noise::Given(Mechanism::None),
        bound: Bound::Tight,
        delta: 0.0,
    };
    assert_eq!(study.privacy, none);
    assert_eq!(
        study.run,
        RunSection {
            repetitions: 1,
            seed: 0,
            tick: None,
        }
    );
    // Sections of which every key has a default may be left out.
    let without = with(&[("[privacy]\n[run]\n", ""), ("[data.split]\n", "")]);
    assert_eq!(without, study);
}

#[test]
fn every_key_of_data_has_its_meaning() {
    let schema = with(&[(
        "positive = \"yes\"",
        "positive = \"\"\nmissing = []\nrows = \"clip\"\nintercept = true",
    )])
    .data
    .schema;
    assert_eq!((schema.positive.as_str(), schema.missing.len()), ("", 0));
    assert_eq!((schema.rows, schema.intercept), (NormPolicy::Clip, true));
    let builtin = with(&[("path = \"rows.csv\"", "builtin = \"clinic\"")]);
    assert_eq!(builtin.data.source, RowSource::Builtin(Builtin::Clinic));
}

#[test]
fn columns_keep_the_order_of_the_file() {
    let study = with(&[(
        "age = [0, 90]",
        "b = [0, 1]\nc = [0, 1]\na = [-1.5, 0x10]\n[data.categorical]\nz = ['w']\ny = ['v', 'u']",
    )]);
    let schema = study.data.schema;
    let numeric: Vec<&str> = schema
        .numeric
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    let categorical: Vec<&str> = schema
        .categorical
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        (numeric, categorical),
        (vec!["b", "c", "a"], vec!["z", "y"])
    );
    assert_eq!(schema.numeric[2], Numeric::within("a", -1.5, 16.0));
    assert_eq!(schema.categorical[1].values, ["v", "u"]);
}

#[test]
fn bins_are_edges_or_a_number_of_equal_widths() {
    let age = |form: &str| {
        let study = with(&[("age = [0, 90]", form)]);
        study.data.schema.numeric[0].clone()
    };
    let edges = [25.0, 45.5, 65.0];
    let given = age("age = { bins = [25, 45.5, 65] }");
    assert_eq!(given, Numeric::binned("age", edges));
    let equal = age("age = { bounds = [-10, 80], bins = 9 }");
    let tens = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0];
    assert_eq!(equal, Numeric::binned("age", tens));
    let header = age("[data.numeric.age]\nbounds = [0, 1]\nbins = 2");
    assert_eq!(header, Numeric::binned("age", [0.5]));
}

#[test]
fn a_built_in_table_needs_no_schema() {
    for table in Builtin::ALL {
        let schema = "path = \"rows.csv\"\nlabel = \"outcome\"\npositive = \"yes\"\n[data.numeric]\nage = [0, 90]\n";
        let study = with(&[(schema, &format!("builtin = {:?}\n", table.name()))]);
        assert_eq!(study.data.source, RowSource::Builtin(table));
        assert_eq!(study.data.schema, table.schema());
    }
}

#[test]
fn a_section_of_the_study_replaces_that_of_a_built_in_table() {
    let own = Builtin::Clinic.schema();
    let with = |lines: &str| {
        let label = "path = \"rows.csv\"\nlabel = \"outcome\"\npositive = \"yes\"\n";
        let changes = [
            (label, "builtin = \"clinic\"\nrows = \"clip\"\n"),
            ("[data.numeric]\nage = [0, 90]\n", lines),
        ];
        with(&changes).data.schema
    };
    let clip = Schema {
        rows: NormPolicy::Clip,
        ..own
    };
    assert_eq!(with(""), clip);
    let numeric = with("[data.numeric]\nage = [0, 90]\n");
    assert_eq!(
        numeric,
        Schema {
            numeric: vec![Numeric::within("age", 0.0, 90.0)],
            ..clip.clone()
        }
    );
    assert_eq!(
        with("[data.categorical]\n"),
        Schema {
            categorical: vec![],
            ..clip.clone()
        }
    );
    assert_eq!(
        with("missing = [\"-\"]\n"),
        Schema {
            missing: words(&["-"]),
            ..clip.clone()
        }
    );
    // Another value of the same label, or another label with its own value.
    assert_eq!(with("positive = \"no\"\n").positive, "no");
    let other = with("label = \"hospital\"\npositive = \"Birch\"\n");
    assert_eq!(
        (other.label.as_str(), other.numeric),
        ("hospital", clip.numeric)
    );
}

#[test]
fn every_form_of_test_rows_is_understood() {
    let test = |lines: &str| {
        let lines = format!("[data.test]\n{lines}\n[data.split]");
        with(&[("[data.split]", &lines)]).data.test
    };
    assert_eq!(
        test("last = 15060"),
        Some(TestRows::Held(Holdout::Last { rows: 15060 }))
    );
    assert_eq!(
        test("share = 0.2\nseed = 0"),
        Some(TestRows::Held(Holdout::Share {
            share: 0.2,
            seed: 0
        }))
    );
    assert_eq!(
        test("path = \"test.csv\""),
        Some(TestRows::File {
            path: "test.csv".into(),
            options: Format::Csv.into()
        })
    );
    assert_eq!(with(&[]).data.test, None);
}

#[test]
fn every_split_is_understood() {
    assert_eq!(split("method = \"round-robin\""), Split::RoundRobin);
    assert_eq!(
        split("method = \"shuffled\"\nseed = 0"),
        Split::Shuffled { seed: 0 }
    );
    assert_eq!(
        split("method = \"dirichlet\"\nalpha = 1\nseed = 9223372036854775807"),
        Split::Dirichlet {
            alpha: 1.0,
            seed: (1 << 63) - 1
        }
    );
    assert_eq!(
        split("method = \"sizes\"\nsizes = [6, 5.5, 4, 3, 2, 1]\nseed = 3"),
        Split::Sizes {
            sizes: vec![6.0, 5.5, 4.0, 3.0, 2.0, 1.0],
            seed: 3
        }
    );
    let values = words(&["a", "b", "c", "d", "e", "f"]);
    let by_ward = Split::Column {
        column: "ward".into(),
        values,
    };
    let listed =
        "method = \"column\"\nname = \"ward\"\nvalues = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    assert_eq!(split(listed), by_ward);
    // The vocabulary of a feature need not be repeated.
    let known = "method = \"column\"\nname = \"ward\"\n[data.categorical]\nward = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    assert_eq!(split(known), by_ward);
    // Without either, the values are found in the rows.
    let open = Split::Column {
        column: "ward".into(),
        values: Vec::new(),
    };
    assert_eq!(split("method = \"column\"\nname = \"ward\""), open);
}

#[test]
fn every_topology_is_understood() {
    assert_eq!(topology("topology = \"ring\""), Topology::Ring);
    assert_eq!(topology("topology = \"path\""), Topology::Path);
    assert_eq!(topology("topology = \"star\""), Topology::Star);
    assert_eq!(topology("topology = \"complete\""), Topology::Complete);
    assert_eq!(
        topology("topology = \"grid\"\nwidth = 3"),
        Topology::Grid { width: 3 }
    );
    assert_eq!(
        topology("topology = \"random\"\nprobability = 1\nseed = 2"),
        Topology::Random {
            probability: 1.0,
            seed: 2
        }
    );
    assert_eq!(
        topology("topology = \"random-regular\"\ndegree = 3\nseed = 2"),
        Topology::Regular { degree: 3, seed: 2 }
    );
    assert_eq!(
        topology("topology = \"small-world\"\ndegree = 4\nrewire = 0\nseed = 2"),
        Topology::SmallWorld {
            degree: 4,
            rewire: 0.0,
            seed: 2
        }
    );
    assert_eq!(
        topology("edges = [[0, 1], [2, 1]]"),
        Topology::Edges {
            edges: vec![[0, 1], [2, 1]]
        }
    );
}

#[test]
fn every_loss_is_understood() {
    let loss = |line: &str| {
        with(&[("weight = 2", &format!("{line}\nweight = 2"))])
            .problem
            .loss
    };
    assert_eq!(loss("loss = \"logistic\""), Loss::Logistic);
    assert_eq!(
        loss("loss = \"smooth-hinge\""),
        Loss::SmoothHinge { width: 1.0 }
    );
    assert_eq!(loss("loss = \"cut-logistic\""), Loss::CutLogistic);
    assert_eq!(
        loss("loss = \"smooth-hinge\"\nwidth = 2"),
        Loss::SmoothHinge { width: 2.0 }
    );
}

#[test]
fn rows_count_alike_unless_parties_do() {
    let count = |line: &str| {
        with(&[("weight = 2", &format!("{line}weight = 2"))])
            .problem
            .count
    };
    assert_eq!(count(""), RowCount::Rows);
    assert_eq!(count("count = \"rows\"\n"), RowCount::Rows);
    assert_eq!(count("count = \"parties\"\n"), RowCount::Parties);
}

#[test]
fn every_algorithm_is_understood() {
    let half = vec![HALF; 6];
    assert_eq!(
        method("name = \"admm\"\npenalty = 0.5"),
        Method::Admm { penalty: HALF }
    );
    assert_eq!(
        method("name = \"r-admm\"\npenalty = 0.5\ndamping = 0\nrecycle = 3"),
        Method::RecycledAdmm {
            penalty: HALF,
            damping: Schedule::Constant(0.0),
            recycle: 3
        }
    );
    assert_eq!(
        method("name = \"m-admm\"\npenalty = 0.5\ndual_step = 0.25"),
        Method::MAdmm {
            penalty: half.clone(),
            dual_step: 0.25
        }
    );
    assert_eq!(
        method("name = \"mr-admm\"\npenalty = 0.5\ndamping = 0.5"),
        Method::MRecycledAdmm {
            penalty: half.clone(),
            damping: half,
            recycle: 1,
            dual_step: 0.5
        }
    );
    assert_eq!(
        method("name = \"dlm\"\npenalty = 0.5\ndamping = 0.5"),
        Method::Dlm {
            penalty: HALF,
            damping: HALF
        }
    );
    assert_eq!(
        method("name = \"r-dlm\"\npenalty = 0.5\ndamping = 0.5"),
        Method::RecycledDlm {
            penalty: HALF,
            damping: HALF,
            recycle: 1
        }
    );
    assert_eq!(
        method("name = \"dgd\"\nstep = 0.5"),
        Method::Dgd { step: HALF }
    );
    assert_eq!(
        method("name = \"local\""),
        Method::Local { extra_ridge: 0.0 }
    );
    assert_eq!(
        method("name = \"average\"\nextra_ridge = 17.5"),
        Method::Average { extra_ridge: 17.5 }
    );
}

#[test]
fn every_form_of_a_schedule_is_understood() {
    let growing = "{ start = 1.0, growth = 1.01 }";
    assert_eq!(
        method(&format!("name = \"admm\"\npenalty = {growing}")),
        Method::Admm { penalty: GROWING }
    );
    assert_eq!(
        method(&format!("name = \"dgd\"\nstep = {growing}")),
        Method::Dgd { step: GROWING }
    );
    assert_eq!(
        method("name = \"dgd\"\nstep = { start = 1, power = 0.5 }"),
        Method::Dgd {
            step: Schedule::Decay {
                start: 1.0,
                power: 0.5
            }
        }
    );
    // Only M-ADMM's penalties must not decrease.
    assert_eq!(
        method("name = \"admm\"\npenalty = { start = 1, growth = 0.5 }"),
        Method::Admm {
            penalty: Schedule::Growth {
                start: 1.0,
                growth: 0.5
            }
        }
    );
    let one = Schedule::Constant(1.0);
    assert_eq!(
        method(&format!(
            "name = \"m-admm\"\npenalty = [1, 1, {growing}, 1, 1, 0.5]"
        )),
        Method::MAdmm {
            penalty: vec![one, one, GROWING, one, one, HALF],
            dual_step: 0.5
        }
    );
}

#[test]
fn the_dual_step_is_the_smallest_first_penalty_unless_given() {
    let Method::MAdmm { dual_step, .. } =
        method("name = \"m-admm\"\npenalty = { start = 1, growth = 2 }")
    else {
        panic!("not m-admm");
    };
    assert_eq!(dual_step, 2.0);
}

#[test]
fn every_start_is_understood() {
    let drawn = with(&[
        ("[privacy]", "start = { normal = 0.1 }\n[privacy]"),
        ("[run]", "[run]\nseed = 4"),
    ]);
    assert_eq!(
        (drawn.algorithm.start, drawn.run.seed),
        (Start::Normal(0.1), 4)
    );
}

#[test]
fn every_mechanism_is_understood() {
    let gamma = NoiseDistribution::Gamma { rate: 2.0 };
    let admm = "name = \"admm\"\npenalty = 0.5";
    let mechanism = |method, lines| match privacy(method, lines).noise {
        Noise::Given(mechanism) => mechanism,
        Noise::Total(total) => panic!("{total:?}"),
    };
    assert_eq!(mechanism(admm, "mechanism = \"none\""), Mechanism::None);
    assert_eq!(
        mechanism(admm, "mechanism = \"objective\"\nrate = 2"),
        Mechanism::Objective {
            law: gamma,
            scale: NoiseScaling::Fixed
        }
    );
    assert_eq!(
        mechanism(
            admm,
            "mechanism = \"objective\"\nrate = 2\nscale = \"penalty\""
        ),
        Mechanism::Objective {
            law: gamma,
            scale: NoiseScaling::Penalty
        }
    );
    assert_eq!(
        mechanism(
            "name = \"average\"",
            "mechanism = \"output\"\nnoise = \"gamma\"\nrate = 2"
        ),
        Mechanism::Output { law: gamma }
    );
    for method in [
        "name = \"dgd\"\nstep = 1",
        "name = \"dlm\"\npenalty = 1\ndamping = 1",
    ] {
        assert_eq!(
            mechanism(method, "mechanism = \"gradient\"\nrate = 2"),
            Mechanism::Gradient { law: gamma }
        );
    }
    let laplace = NoiseDistribution::Laplace { rate: 2.0 };
    for (lines, expected) in [
        (
            "mechanism = \"objective\"\nnoise = \"laplace\"\nrate = 2",
            Mechanism::objective(laplace),
        ),
        (
            "mechanism = \"output\"\nnoise = \"laplace\"\nrate = 2",
            Mechanism::output(laplace),
        ),
    ] {
        assert_eq!(mechanism(admm, lines), expected);
    }
    assert_eq!(
        privacy(
            admm,
            "mechanism = \"objective\"\nnoise = \"gaussian\"\nsigma = 3\ndelta = 1e-5"
        ),
        PrivacySection {
            noise: Noise::Given(Mechanism::Objective {
                law: NoiseDistribution::Gaussian { sigma: 3.0 },
                scale: NoiseScaling::Fixed
            }),
            bound: Bound::Tight,
            delta: 1e-5,
        }
    );
    let paper = privacy(
        admm,
        "mechanism = \"objective\"\nrate = 2\nbound = \"paper\"",
    );
    assert_eq!((paper.bound, paper.delta), (Bound::Paper, 0.0));
}

#[test]
fn a_total_replaces_an_amount_of_noise() {
    let admm = "name = \"admm\"\npenalty = 0.5";
    let dlm = "name = \"dlm\"\npenalty = 1\ndamping = 1";
    let (gamma, gaussian) = (NoiseFamily::Gamma, NoiseFamily::Gaussian);
    let laplace = NoiseFamily::Laplace;
    let objective = |noise, scale| NoiseKind::Objective { noise, scale };
    let (fixed, penalty) = (NoiseScaling::Fixed, NoiseScaling::Penalty);
    for (method, lines, kind, delta) in [
        (admm, "", objective(gamma, fixed), 0.0),
        (admm, "delta = 1e-5", objective(gaussian, fixed), 1e-5),
        (admm, "scale = \"penalty\"", objective(gamma, penalty), 0.0),
        (admm, "bound = \"paper\"", objective(gamma, fixed), 0.0),
        (admm, "noise = \"laplace\"", objective(laplace, fixed), 0.0),
        (
            dlm,
            "noise = \"laplace\"",
            NoiseKind::Gradient { noise: laplace },
            0.0,
        ),
        (
            admm,
            "mechanism = \"output\"",
            NoiseKind::Output { noise: gamma },
            0.0,
        ),
        ("name = \"local\"", "", objective(gamma, fixed), 0.0),
        (dlm, "", NoiseKind::Gradient { noise: gamma }, 0.0),
        (
            dlm,
            "delta = 1e-5",
            NoiseKind::Gradient { noise: gaussian },
            1e-5,
        ),
        (
            "name = \"dgd\"\nstep = 1",
            "mechanism = \"gradient\"",
            NoiseKind::Gradient { noise: gamma },
            0.0,
        ),
    ] {
        let privacy = privacy(method, &format!("epsilon = 1.5\n{lines}"));
        let total = TotalBudget { kind, epsilon: 1.5 };
        assert_eq!(
            (privacy.noise, privacy.delta),
            (Noise::Total(total), delta),
            "{method} {lines}"
        );
        let paper = lines.contains("paper");
        assert_eq!(privacy.bound == Bound::Paper, paper);
    }
}

#[test]
fn the_format_is_given_or_follows_from_the_extension() {
    for (path, format) in [
        ("path = \"rows.csv\"", Some(Format::Csv)),
        ("path = \"rows.PARQUET\"", Some(Format::Parquet)),
        ("path = \"rows.txt\"", Some(Format::Csv)),
        (
            "path = \"rows.txt\"\nformat = \"parquet\"",
            Some(Format::Parquet),
        ),
        (
            "path = \"rows.parquet\"\nformat = \"csv\"",
            Some(Format::Csv),
        ),
        // It may be a folder, whose files tell.
        ("path = \"rows\"", None),
    ] {
        let (study, _) = read(&EXAMPLE.replace("path = \"rows.csv\"", path));
        let options = FileOptions {
            format,
            ..FileOptions::default()
        };
        assert_eq!(study.data.options, options, "{path}");
    }
}

/// Returns how the rows of the example and those to test on are written, with these lines in place of the path.
fn written(path: &str, test: &str) -> (FileOptions, FileOptions) {
    let text = EXAMPLE.replace("path = \"rows.csv\"", path).replace(
        "[data.split]",
        &format!("[data.test]\n{test}\n[data.split]"),
    );
    let (study, notes) = read(&text);
    assert_eq!(notes, [""; 0]);
    match study.data.test {
        Some(TestRows::File { options, .. }) => (study.data.options, options),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_separator_and_a_decimal_mark_are_kept_where_they_are_not_implied() {
    let options = |separator, decimal| FileOptions {
        format: Some(Format::Csv),
        separator,
        decimal,
    };
    let plain = options(None, None);
    let semicolons = options(Some(Separator::Semicolon), Some(DecimalMark::Comma));
    let tabs = options(Some(Separator::Tab), None);
    for (lines, expected) in [
        (
            "path = \"a.csv\"\nseparator = \",\"\ndecimal = \".\"",
            plain,
        ),
        ("path = \"a.tsv\"", plain),
        ("path = \"a.tsv\"\nseparator = \"\\t\"", plain),
        ("path = \"a.txt\"\nseparator = \"\\t\"", tabs),
        ("path = \"a.txt\"\nseparator = \"tab\"", tabs),
        (
            "path = \"a.csv\"\nseparator = \";\"\ndecimal = \",\"",
            semicolons,
        ),
        (
            "path = \"a.tsv\"\nseparator = \",\"",
            options(Some(Separator::Comma), None),
        ),
    ] {
        assert_eq!(
            written(lines, "path = \"t.parquet\"").0,
            expected,
            "{lines}"
        );
    }
    // A file to test on is written like the rows, unless it says otherwise.
    let rows = "path = \"a.csv\"\nseparator = \";\"\ndecimal = \",\"";
    for (test, expected) in [
        ("path = \"t.csv\"", semicolons),
        ("path = \"t\"", semicolons),
        ("path = \"t.tsv\"", options(None, Some(DecimalMark::Comma))),
        (
            "path = \"t.csv\"\nseparator = \",\"\ndecimal = \".\"",
            plain,
        ),
        ("path = \"t.parquet\"", Format::Parquet.into()),
    ] {
        assert_eq!(written(rows, test).1, expected, "{test}");
    }
}

#[test]
fn a_libsvm_file_has_as_many_numbered_columns_as_the_study_says() {
    for path in ["a9a.svm", "a9a.libsvm", "a9a.t", "a9a\"\nformat = \"libsvm"] {
        let end = EXAMPLE.split("[network]").nth(1).expect("a network");
        let data = "positive = \"+1\"\ncolumns = 123\nrows = \"clip\"\nintercept = true";
        let text = format!("[data]\npath = \"{path}\"\n{data}\n[network]{end}");
        let (study, notes) = read(&text);
        assert_eq!(notes, [""; 0]);
        let schema = &study.data.schema;
        assert_eq!(study.data.options, Format::Libsvm.into());
        assert_eq!((schema.numbered, schema.positive.as_str()), (123, "+1"));
        assert_eq!((schema.rows, schema.intercept), (NormPolicy::Clip, true));
        assert!(schema.numeric.is_empty() && schema.categorical.is_empty());
        assert_eq!(schema.shape(), RowShape::dense(124));
        let limited = text.replace("columns = 123", "columns = 123\nnonzeros = 14");
        assert_eq!(read(&limited).0.data.schema.shape(), RowShape::new(124, 15));
    }
}

#[test]
fn a_test_file_has_its_own_format_or_that_of_the_rows() {
    let test = |path: &str, test: &str| written(path, test).1.format.expect("a format");
    let csv = "path = \"rows.csv\"";
    assert_eq!(test(csv, "path = \"test.parquet\""), Format::Parquet);
    assert_eq!(test(csv, "path = \"adult.test\""), Format::Csv);
    assert_eq!(
        test(csv, "path = \"test\"\nformat = \"parquet\""),
        Format::Parquet
    );
    assert_eq!(
        test(csv, "path = \"rows.t\"\nformat = \"csv\""),
        Format::Csv
    );
    let parquet = "path = \"rows\"\nformat = \"parquet\"";
    assert_eq!(test(parquet, "path = \"test\""), Format::Parquet);
    assert_eq!(test(parquet, "path = \"test.csv\""), Format::Csv);
    assert_eq!(
        test("builtin = \"clinic\"", "path = \"test.parquet\""),
        Format::Parquet
    );
    assert_eq!(
        test("builtin = \"clinic\"", "path = \"test.txt\""),
        Format::Csv
    );
}

#[test]
fn a_libsvm_file_is_tested_on_its_own_rows_or_on_another_file() {
    let end = EXAMPLE.split("[network]").nth(1).expect("a network");
    let test = |lines: &str| {
        let data = "[data]\npath = \"a9a\"\nformat = \"libsvm\"\npositive = \"+1\"\ncolumns = 123";
        let (study, _) = read(&format!("{data}\n[data.test]\n{lines}\n[network]{end}"));
        study.data.test
    };
    assert_eq!(
        test("last = 9"),
        Some(TestRows::Held(Holdout::Last { rows: 9 }))
    );
    for path in ["a9a.t", "a9a-test"] {
        assert_eq!(
            test(&format!("path = {path:?}")),
            Some(TestRows::File {
                path: path.into(),
                options: Format::Libsvm.into()
            })
        );
    }
}

#[test]
fn precision_may_be_written_out() {
    let admm = "name = \"admm\"\npenalty = 0.5";
    let written = "mechanism = \"objective\"\nrate = 2\nprecision = \"grid\"";
    let without = "mechanism = \"objective\"\nrate = 2";
    assert_eq!(privacy(admm, written), privacy(admm, without));
}

/// Returns the names of the encoded columns of a study whose only columns are these.
fn columns(numeric: &str, categorical: &str) -> Vec<String> {
    let text = format!(
        "[data]\npath = \"rows.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n[data.numeric]\n{numeric}\n[data.categorical]\n{categorical}\n\
         [network]\nnodes = 2\n"
    );
    let (study, _) = read(&text);
    study.data.schema.columns()
}

#[test]
fn geometric_bins_have_equal_ratios_and_a_bin_for_zero() {
    let names = columns(
        "x = { bounds = [1, 10000], bins = 4, spacing = \"geometric\" }",
        "",
    );
    assert_eq!(names, ["x<1", "1≤x<10", "10≤x<100", "100≤x<1000", "x≥1000"]);
}

#[test]
fn a_table_with_bounds_alone_is_a_centred_column() {
    let text = "[data]\npath = \"rows.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n[data.numeric]\nyear = { bounds = [1980, 2030] }\n\
                [network]\nnodes = 2\n";
    let (study, _) = Study::parse(text, "study.toml").unwrap();
    let numeric = &study.data.schema.numeric;
    assert_eq!(numeric, &[Numeric::centred("year", 1980.0, 2030.0)]);
}

#[test]
fn missing_values_may_be_a_category_of_their_own() {
    let names = columns(
        "x = { bins = [40], missing = \"category\" }",
        "c = { values = [\"yes\", \"no\"], missing = \"category\" }",
    );
    let expected = ["x<40", "x≥40", "x=missing", "c=yes", "c=no", "c=missing"];
    assert_eq!(names, expected);
    let names = columns(
        "x = { bounds = [0, 1], missing = \"category\" }",
        "c = [\"yes\"]",
    );
    assert_eq!(names, ["x", "x=missing", "c=yes"]);
}

#[test]
fn bounds_and_edges_may_be_dates_with_quotes_or_without() {
    for bounds in [
        "[2020-01-01, 2020-01-21]",
        "[\"2020-01-01\", \"2020-01-21\"]",
        "[2020-01-01, \"2020-01-21\"]",
    ] {
        let names = columns(&format!("x = {{ bounds = {bounds}, bins = 3 }}"), "");
        let expected = ["x<2020-01-08", "2020-01-08≤x<2020-01-14", "x≥2020-01-14"];
        assert_eq!(names, expected);
        assert_eq!(columns(&format!("x = {{ bounds = {bounds} }}"), ""), ["x"]);
        let names = columns(&format!("x = {{ bins = {bounds} }}"), "");
        assert_eq!(names[1], "2020-01-01≤x<2020-01-21");
        let names = columns(&format!("x = {{ bounds = {bounds}, splines = 5 }}"), "");
        assert_eq!(names[2], "x≈2020-01-11");
    }
}

#[test]
fn a_vocabulary_may_be_the_two_truth_values() {
    assert_eq!(columns("", "c = [true, false]"), ["c=true", "c=false"]);
    let names = columns("", "c = { values = [false, true], missing = \"category\" }");
    assert_eq!(names, ["c=false", "c=true", "c=missing"]);
}

#[test]
fn other_values_may_count_as_missing_and_have_no_column_of_their_own() {
    let text = |other: &str| {
        format!(
            "[data]\npath = \"rows.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n[data.numeric]\nx = {{ bins = [40]{other} }}\n\
             y = {{ bounds = [0, 1]{other} }}\n[data.categorical]\nc = {{ values = [\"a\", \"b\"]{other} }}\n[network]\nnodes = 2\n"
        )
    };
    for (other, expected) in [
        ("", false),
        (", other = \"error\"", false),
        (", other = \"missing\"", true),
    ] {
        let (study, _) = Study::parse(&text(other), "study.toml").unwrap();
        let schema = &study.data.schema;
        let numeric = schema.numeric.iter().map(|column| column.other_is_missing);
        let all = numeric.chain([schema.categorical[0].other_is_missing]);
        assert_eq!(all.collect::<Vec<_>>(), [expected; 3], "{other}");
        assert_eq!(schema.columns(), ["x<40", "x≥40", "y", "c=a", "c=b"]);
    }
}
