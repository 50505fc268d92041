use super::sample::Example;
use super::*;

const STUDY: &str = r#"
    [data]
    path = "rows.csv"
    label = "ill"
    positive = "yes"
    [data.numeric]
    a = { bounds = [0, 1], bins = 8 }
    b = { bounds = [0, 1], bins = 5 }
    c = [0, 10]
    e = { bounds = [0, 1], splines = 6 }
    f = { bounds = [1, 100], splines = 5, spacing = "geometric" }
    [data.categorical]
    d = ["u", "v", "w"]
    [network]
    nodes = 3
    [privacy]
    epsilon = 1
    delta = 1e-6
    [run]
    seed = 3
"#;

fn study(changes: &[(&str, &str)]) -> Study {
    let mut text = STUDY.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    Study::parse(&text, "study.toml").unwrap().0
}

fn forecaster(study: &Study, sizes: &[usize]) -> Forecaster {
    Forecaster::new(study, sizes, &ForecastSource::Schema).unwrap()
}

#[test]
fn a_population_has_the_documented_majority_and_signal() {
    let forecaster = forecaster(&study(&[]), &[900, 500, 600]);
    assert_eq!(forecaster.samples.len(), SAMPLES as usize);
    for one in &forecaster.samples {
        assert!((0.66..0.74).contains(&one.majority), "{}", one.majority);
        assert!((0.82..0.88).contains(&one.no_noise), "{}", one.no_noise);
    }
}

#[test]
fn a_single_column_of_two_bins_has_a_signal_too() {
    let text = STUDY.lines().filter(|line| {
        let key = line.trim_start();
        !["b =", "c =", "e =", "f =", "d =", "[data.categorical"]
            .iter()
            .any(|one| key.starts_with(one))
    });
    let text = text
        .collect::<Vec<_>>()
        .join("\n")
        .replace("bins = 8", "bins = 2");
    let (study, _) = Study::parse(&text, "study.toml").unwrap();
    assert_eq!(study.data.schema.width(), 2);
    let forecaster = forecaster(&study, &[900, 500, 600]);
    assert_eq!(forecaster.samples.len(), SAMPLES as usize);
}

#[test]
fn more_privacy_takes_more_rows_and_results_do_not_depend_on_threads() {
    let forecast = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            let forecaster = forecaster(&study(&[]), &[900, 500, 600]);
            forecaster.forecast(&[0.2, 1.0, 5.0], &|_| ()).unwrap()
        })
    };
    let first = forecast(1);
    let text = |one: &Forecast| serde_json::to_string(one).unwrap();
    assert_eq!(text(&first), text(&forecast(3)));
    let shares = first.epsilons.iter().map(|one| one.share.mean);
    assert!(shares.is_sorted_by(|a, b| a < b), "{first:?}");
    for k in 0..SHARES.len() {
        let rows = first.epsilons.iter().map(|one| one.rows_needed[k].rows);
        assert!(rows.is_sorted_by(|a, b| a > b), "{first:?}");
    }
    for one in &first.epsilons {
        let rows = one.rows_needed.iter().map(|needed| needed.rows);
        assert!(rows.is_sorted(), "{one:?}");
    }
}

/// Returns the study on the first rows of a sample, or on these rows twice.
fn doubled(forecaster: &Forecaster, rows: usize, twice: bool) -> Experiment {
    let sample = &forecaster.samples[0].sample;
    let mut train: Vec<_> = sample.train[..rows].to_vec();
    if twice {
        train = train
            .iter()
            .flat_map(|one| [one.clone(), one.clone()])
            .collect();
    }
    let rows = train.len();
    let sample = Sample {
        train,
        test: sample.test.clone(),
    };
    forecaster.experiment(&sample, rows).unwrap()
}

#[test]
fn rows_that_count_twice_give_what_rows_that_occur_twice_give() {
    let objective = "[algorithm]\nname = \"r-admm\"\n[problem]\nloss = \"logistic\"\nweight = 500\nridge = 1\n[network]";
    for changes in [&[][..], &[("[network]", objective)]] {
        let mut forecaster = forecaster(&study(changes), &[400, 400, 400]);
        forecaster.study.run.repetitions = 40;
        let total = Guarantee {
            epsilon: 1.0,
            delta: 1e-6,
        };
        let losses = |twice: bool, factor: f64| {
            let experiment = doubled(&forecaster, 1200, twice);
            let ends = experiment.as_if_rows_counted(factor, &[total; 3]);
            let ends = ends.unwrap().unwrap();
            SampleStats::of(ends.iter().map(|end| end.held_out.unwrap().loss))
        };
        let (there, as_if, once) = (losses(true, 1.0), losses(false, 2.0), losses(false, 1.0));
        let error = |other: SampleStats| {
            ((there.deviation.powi(2) + other.deviation.powi(2)) / 40.0).sqrt()
        };
        let apart = |other: SampleStats| (other.mean - there.mean) / error(other);
        assert!(apart(as_if).abs() < 3.0, "{changes:?}: {there:?} {as_if:?}");
        assert!(apart(once) > 6.0, "{changes:?}: {there:?} {once:?}");
    }
}

#[test]
fn test_rows_are_never_trained_on() {
    let mut examples = Vec::new();
    for k in 0..1000u32 {
        examples.push(Example {
            entries: vec![(k, 1.0)],
            positive: k % 3 == 0,
        });
    }
    let rows = PublicRows::from_examples(examples);
    let Sample { train, test } = rows.sample(7);
    assert_eq!((train.len(), test.len()), (700, 300));
    let mut columns: Vec<u32> = train
        .iter()
        .chain(&test)
        .map(|one| one.entries[0].0)
        .collect();
    columns.sort_unstable();
    assert_eq!(columns, (0..1000).collect::<Vec<_>>());
}

#[test]
fn rows_are_shared_out_in_proportion_and_nobody_is_left_without() {
    assert_eq!(shared_out(100, &[50, 30, 20]), [49, 30, 21]);
    assert_eq!(shared_out(5, &[1_000_000, 1, 1]), [2, 1, 2]);
    let sizes = [5582, 7872, 5799, 1066, 9843];
    for rows in [5, 80, 999, 30_162, 2_000_000] {
        let parts = shared_out(rows, &sizes);
        assert_eq!(parts.iter().sum::<usize>(), rows);
        assert!(parts.iter().all(|part| *part > 0));
    }
}

#[test]
fn wrong_sizes_and_few_rows_are_errors() {
    let study = study(&[]);
    let error = Forecaster::new(&study, &[5], &ForecastSource::Schema).err();
    assert!(matches!(error, Some(ForecastError::Sizes { .. })));
    let few = ForecastSource::Public(PublicRows::from_examples(Vec::new()));
    let error = Forecaster::new(&study, &[50, 50, 50], &few).err();
    assert!(matches!(error, Some(ForecastError::FewRows { .. })));
}
