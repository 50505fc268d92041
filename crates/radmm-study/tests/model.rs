//! model.json: what is written is read back, and what is not a model is refused with the field and what to do.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use radmm::curator::NormPolicy;
use radmm::privacy::Guarantee;
use radmm_data::NumericScale;
use radmm_study::{BadWeights, ModelError, ModelFile, ModelGuarantee, Study, Trained};
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("example.toml");

fn study(text: &str) -> Study {
    match Study::parse(text, "study.toml") {
        Ok((study, _)) => study,
        Err(error) => panic!("{error} in\n{text}"),
    }
}

fn guarantee(epsilon: f64) -> ModelGuarantee {
    ModelGuarantee {
        total: Guarantee {
            epsilon,
            delta: 1e-6,
        },
        protects: true,
        caveat: "only while the key of the noise stays secret".into(),
    }
}

fn trained(weights: Vec<f64>) -> Trained {
    Trained {
        party: "north".into(),
        iterations: 100,
        guarantee: Some(guarantee(0.1 + 0.2)),
        weights,
    }
}

/// A model of a study, its weights without short decimals.
fn model(text: &str) -> ModelFile {
    let study = study(text);
    let weight = |k: usize| (k as f64 + 1.0).sqrt() - 2.0;
    let weights = (0..study.data.schema.width()).map(weight).collect();
    ModelFile::new(&study, trained(weights)).unwrap()
}

fn read(text: &str) -> Result<ModelFile, ModelError> {
    ModelFile::parse(text, "model.json")
}

/// The example's model with a change, as text.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::from_str(&model(EXAMPLE).to_json()).unwrap();
    change(&mut value);
    value.to_string()
}

fn refusal(change: impl FnOnce(&mut Value)) -> String {
    read(&changed(change)).unwrap_err().to_string()
}

#[test]
fn a_model_states_its_study_its_guarantee_and_its_columns() {
    let text = EXAMPLE.replace(
        "\"hours per week\" = [1, 99]",
        "hours = { bins = [20, 40] }",
    );
    let study = study(&text);
    let model = model(&text);
    let mut value: Value = serde_json::from_str(&model.to_json()).unwrap();
    value["weights"] = json!(value["weights"].as_array().unwrap().len());
    let expected = json!({
        "program": { "name": "radmm", "version": env!("CARGO_PKG_VERSION") },
        "study": "visits",
        "study_sha256": study.sha256(),
        "party": "north",
        "iterations": 100,
        "guarantee": {
            "epsilon": 0.30000000000000004,
            "delta": 1e-6,
            "relation": "one row of one party replaced",
            "protects": true,
            "caveat": "only while the key of the noise stays secret",
        },
        "problem": { "loss": "logistic" },
        "data": {
            "format": "csv",
            "label": "outcome",
            "positive": "yes",
            "missing": ["?", ""],
            "rows": "unit",
            "intercept": false,
            "numeric": { "age": [0.0, 90.0], "hours": { "bins": [20.0, 40.0] } },
            "categorical": {
                "sex": ["Female", "Male"],
                "clinic": ["north", "south", "east", "west", "centre"],
            },
        },
        "columns": [
            "age", "hours<20", "20≤hours<40", "hours≥40", "sex=Female", "sex=Male",
            "clinic=north", "clinic=south", "clinic=east", "clinic=west", "clinic=centre",
        ],
        "weights": 11,
    });
    // As text, since the order of the fields counts.
    assert_eq!(value.to_string(), expected.to_string());
}

#[test]
fn data_is_serialised_as_in_a_result() {
    let study = serde_json::to_value(study(EXAMPLE)).unwrap();
    let model: Value = serde_json::from_str(&model(EXAMPLE).to_json()).unwrap();
    for (key, value) in model["data"].as_object().unwrap() {
        assert_eq!(value, &study["data"][key], "{key}");
    }
}

#[test]
fn every_kind_of_schema_is_read_back() {
    let changes = [
        ("", ""),
        ("age = [0, 90]", "age = { bins = [25, 35.5, 0.1e3] }"),
        ("age = [0, 90]", "age = { bounds = [0, 1], bins = 3 }"),
        ("age = [0, 90]", "age = [-1e-300, 1e300]"),
        (
            "age = [0, 90]",
            "age = { bounds = [0, 90], other = \"missing\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [0, 90], missing = \"category\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31], splines = 8, missing = \"category\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31] }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31], bins = 7 }",
        ),
        (
            "age = [0, 90]",
            "age = { bins = [1920-01-01, 2020-12-31], other = \"missing\" }",
        ),
        ("sex = [\"Female\", \"Male\"]", "sex = [false, true]"),
        (
            "sex = [\"Female\", \"Male\"]",
            "sex = { values = [true, false], missing = \"category\" }",
        ),
        (
            "sex = [\"Female\", \"Male\"]",
            "sex = { values = [\"Female\"], missing = \"category\", other = \"missing\" }",
        ),
        (
            "age = [0, 90]",
            "\"a.ge \\\"\\\\\\t\\u007F\\u202E = é\" = [0, 90]",
        ),
        ("\"Female\"", "\"\", \"Fe\\nmale\\b\\u0001\""),
        ("intercept = false", "intercept = true"),
        ("rows = \"unit\"", "rows = \"clip\""),
        ("missing = [\"?\", \"\"]", "missing = []"),
        ("missing = [\"?\", \"\"]", "missing = [\"NA\", \"-9\"]"),
        ("path = \"rows.csv\"", "path = \"rows.parquet\""),
        ("path = \"rows.csv\"", "builtin = \"clinic\""),
        ("\"logistic\"", "\"smooth-hinge\"\nwidth = 0.3"),
        ("\"logistic\"", "\"smooth-hinge\""),
        ("\"logistic\"", "\"cut-logistic\""),
    ];
    for (old, new) in changes {
        assert!(EXAMPLE.contains(old), "{old}");
        returns(&EXAMPLE.replacen(old, new, 1));
    }
    let (_, rest) = EXAMPLE.split_once("[data.numeric]").unwrap();
    let (_, rest) = rest.split_once("[data.split]").unwrap();
    let libsvm = "path = \"a9a.svm\"\npositive = \"+1\"\ncolumns = 123\nintercept = true";
    returns(&format!("[data]\n{libsvm}\n[data.split]{rest}"));
    let adult = "builtin = \"adult\"";
    returns(&format!("[data]\n{adult}\n[data.split]{rest}"));
}

fn returns(text: &str) {
    let model = model(text);
    let again = match read(&model.to_json()) {
        Ok(again) => again,
        Err(error) => panic!("{error} in\n{}", model.to_json()),
    };
    assert_eq!(again, model);
    assert_eq!(again.schema(), &study(text).data.schema);
    assert_eq!(again.to_json(), model.to_json());
}

#[test]
fn a_model_without_a_guarantee_and_one_without_a_finite_one_are_read_back() {
    let mut end = trained(vec![0.5; 9]);
    end.guarantee = None;
    let none = ModelFile::new(&study(EXAMPLE), end.clone()).unwrap();
    assert!(!none.to_json().contains("guarantee"));
    assert_eq!(read(&none.to_json()).unwrap(), none);
    end.guarantee = Some(guarantee(f64::INFINITY));
    let infinite = ModelFile::new(&study(EXAMPLE), end).unwrap();
    assert!(infinite.to_json().contains("\"epsilon\": null"));
    assert_eq!(read(&infinite.to_json()).unwrap(), infinite);
}

proptest! {
    #[test]
    fn weights_are_read_back_to_the_bit(bits in prop::collection::vec(any::<u64>(), 9)) {
        let weights: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
        prop_assume!(weights.iter().all(|weight| weight.is_finite()));
        let model = ModelFile::new(&study(EXAMPLE), trained(weights)).unwrap();
        let again = read(&model.to_json()).unwrap();
        let bits = |model: &ModelFile| model.weights().iter().map(|w| w.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again), bits(&model));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]{}\",:a-z0-9.\\n-]{0,60}") {
        prop_assert!(read(&text).is_err());
    }

    #[test]
    fn a_model_cut_short_is_refused(share in 0.0..1.0_f64) {
        let text = model(EXAMPLE).to_json();
        let text = text.trim_end();
        let mut end = (share * text.len() as f64) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let error = read(&text[..end]).unwrap_err();
        prop_assert!(error.to_string().contains("the text ends before the model does"), "{}", error);
    }
}

#[test]
fn probabilities_are_those_that_the_loss_elicits_and_the_hinge_has_none() {
    let logistic = model(EXAMPLE);
    for score in [-800.0, -3.0, -1e-9, 0.0, 0.7, 40.0, 800.0] {
        let probability = logistic.probability(score).unwrap();
        let expected = 1.0 / (1.0 + f64::exp(-score));
        assert!(
            (probability - expected).abs() <= 1e-15,
            "{probability} at {score}"
        );
    }
    assert_eq!(logistic.probability(0.0), Some(0.5));
    let hinge = model(&EXAMPLE.replace("\"logistic\"", "\"smooth-hinge\""));
    assert_eq!(hinge.probability(0.7), None);
    let cut = model(&EXAMPLE.replace("\"logistic\"", "\"cut-logistic\""));
    assert!(cut.to_json().contains("\"loss\": \"cut-logistic\""));
    for score in [-800.0, -3.0, 0.0, 0.7, 40.0] {
        // p·L'(s) = (1 − p)·L'(−s), with slopes of at most a half.
        let slope = |z: f64| (1.0 / (1.0 + f64::exp(z))).min(0.5);
        let expected = slope(-score) / (slope(score) + slope(-score));
        let probability = cut.probability(score).unwrap();
        assert!((probability - expected).abs() <= 1e-15, "{score}");
    }
}

#[test]
fn a_model_has_one_finite_weight_a_column() {
    let new = |weights| ModelFile::new(&study(EXAMPLE), trained(weights));
    assert_eq!(
        new(vec![0.0; 8]),
        Err(BadWeights::Count {
            weights: 8,
            columns: 9
        })
    );
    let mut weights = vec![0.0; 9];
    weights[3] = f64::NAN;
    let refused = new(weights).unwrap_err().to_string();
    assert_eq!(
        refused,
        "weights[3], of column \"sex=Male\", is not a finite number"
    );
    assert_eq!(
        refusal(|model| model["weights"] = json!([1.0, 2.0])),
        "model.json: there are 2 weights for 9 columns; the file is damaged or was edited: get it again from its party"
    );
    assert!(
        refusal(|model| model["weights"][0] = Value::Null)
            .contains("weights[0], of column \"age\", is not a finite")
    );
    assert_eq!(
        refusal(|model| model["weights"][4] = json!("1.5")),
        "model.json: weights[4]: must be a number"
    );
}

#[test]
fn numbers_that_json_lacks_are_reported() {
    let text = model(EXAMPLE).to_json();
    for word in ["NaN", "Infinity", "-Infinity"] {
        let damaged = text.replacen("    -1.0,", &format!("    {word},"), 1);
        assert_ne!(damaged, text);
        let error = read(&damaged).unwrap_err().to_string();
        let line = 1 + damaged
            .lines()
            .position(|line| line.contains(word))
            .unwrap();
        assert!(error.starts_with(&format!("model.json:{line}:")), "{error}");
        assert!(
            error.contains(&format!(": {word} is not a finite number;")),
            "{error}"
        );
    }
    let large = text.replacen("    -1.0,", "    1e999,", 1);
    assert!(
        read(&large)
            .unwrap_err()
            .to_string()
            .contains("number out of range")
    );
}

#[test]
fn a_file_that_is_not_a_model_is_rejected() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    let advice = "; give the model.json that radmm node or radmm run wrote";
    assert_eq!(
        error("[1, 2]"),
        format!("model.json is not a model file: it is not a JSON object{advice}")
    );
    for foreign in [
        "{}",
        r#"{"program": "x"}"#,
        r#"{"program": {"name": "sklearn"}}"#,
    ] {
        assert_eq!(
            error(foreign),
            format!("model.json is not a model file: its program is not radmm{advice}")
        );
    }
    // Such as result.json.
    assert_eq!(
        error(r#"{"program": {"name": "radmm", "version": "0.1.0"}, "columns": []}"#),
        format!("model.json is not a model file: it has no weights{advice}")
    );
    assert_eq!(
        error("age,ill\n25,no\n"),
        "model.json:1:1: expected value; a model file is JSON, the model.json that radmm node or radmm run wrote"
    );
}

#[test]
fn a_newer_release_is_rejected_and_another_patch_is_accepted() {
    let made_by = |version: &str| {
        read(&changed(|model| {
            model["program"]["version"] = json!(version)
        }))
    };
    let this = env!("CARGO_PKG_VERSION");
    let (release, _) = this.rsplit_once('.').unwrap();
    assert_eq!(
        made_by("999.0.1").unwrap_err().to_string(),
        format!(
            "model.json was made by radmm 999.0.1, and this is {this}; use that version or a later one"
        )
    );
    let patched = format!("{release}.999");
    assert_eq!(made_by(&patched).unwrap().version(), patched);
    assert_eq!(
        made_by("new").unwrap_err().to_string(),
        "model.json: program.version: must be a version such as 1.2.3"
    );
}

#[test]
fn every_field_is_checked_by_name() {
    let fields = [
        ("study", json!(1), "must be a string"),
        (
            "study_sha256",
            json!("abc"),
            "must be 64 hexadecimal digits",
        ),
        ("party", json!(null), "must be a string"),
        ("iterations", json!(-1), "must be a whole number below 2³²"),
        ("guarantee", json!(1), "must be an object"),
        ("problem", json!("logistic"), "must be an object"),
        ("data", json!([]), "must be an object"),
        ("columns", json!("age"), "must be a list"),
        ("weights", json!(1), "must be a list"),
    ];
    for (name, value, advice) in fields {
        let said = refusal(|model| model[name] = value);
        assert_eq!(said, format!("model.json: {name}: {advice}"));
    }
    for name in [
        "study",
        "study_sha256",
        "party",
        "iterations",
        "problem",
        "data",
        "columns",
    ] {
        let said = refusal(|model| {
            model.as_object_mut().unwrap().shift_remove(name);
        });
        let expected = "is missing: the file is damaged or was edited";
        assert_eq!(said, format!("model.json: {name}: {expected}"));
    }
    let guarantee = [
        ("epsilon", json!(-0.1), "must be zero or more, or null"),
        ("delta", json!(2), "must be from 0 to 1"),
        (
            "relation",
            json!("one party"),
            "must be \"one row of one party replaced\"",
        ),
        ("protects", json!("yes"), "must be true or false"),
        ("caveat", json!(0), "must be a string"),
    ];
    for (name, value, advice) in guarantee {
        let said = refusal(|model| model["guarantee"][name] = value);
        assert_eq!(said, format!("model.json: guarantee.{name}: {advice}"));
    }
}

#[test]
fn columns_are_checked_as_in_a_study() {
    assert_eq!(
        refusal(|model| model["data"]["numeric"]["age"] = json!([90, 0])),
        "model.json: data.numeric.age: [90, 0]: must be [low, high]: the public bounds of the column, low below high"
    );
    assert_eq!(
        refusal(|model| model["data"]["numeric"]["age"] = json!([null, 0])),
        "model.json: data.numeric.age[0]: is null; the file is damaged or was edited"
    );
    assert_eq!(
        refusal(|model| model["data"]["path"] = json!("rows.csv")),
        "model.json: data: unknown key \"path\": known are \"format\", \"columns\", \"nonzeros\", \"label\", \"positive\", \"missing\", \
         \"rows\", \"intercept\", \"numeric\", \"categorical\""
    );
    assert_eq!(
        refusal(|model| model["problem"] = json!({})),
        "model.json: problem.loss: is missing: logistic, smooth-hinge or cut-logistic"
    );
    assert_eq!(
        refusal(|model| model["data"]["rows"] = json!("clap")),
        "model.json: data.rows: \"clap\": did you mean \"clip\"?"
    );
    assert_eq!(
        refusal(|model| model["columns"][2] = json!("height")),
        "model.json: columns[2]: \"height\" is not a column of data, which has \"sex=Female\" there; \
         the file is damaged or was edited"
    );
    assert_eq!(
        refusal(|model| {
            model["columns"].as_array_mut().unwrap().pop();
        }),
        "model.json: columns: there are 8 names, and data has 9 columns; the file is damaged or was edited"
    );
}

#[test]
fn the_schema_that_is_read_is_usable() {
    let text = changed(|model| {
        model["data"]["rows"] = json!("clip");
        model["data"]["numeric"]["age"] = json!([-1, 90]);
    });
    let model = read(&text).unwrap();
    assert_eq!(model.schema().rows, NormPolicy::Clip);
    let bounds = NumericScale::Bounds {
        low: -1.0,
        high: 90.0,
    };
    assert_eq!(model.schema().numeric[0].scale, bounds);
}
