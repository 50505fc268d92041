//! Tests of passes: the same bits wherever chunks are, and errors where they cannot be had.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::curator::bytes::{ByteWriter, checksum};
use crate::curator::rows::chunk::CHUNK_ROWS;
use crate::curator::solver::double_double::Point;
use crate::curator::{
    ChargedAnswer, ChunkStorage, Curator, CuratorConfig, HeldRows, NoiseKey, NoiseSecret,
    NormPolicy, Refusal, RowError, RowMemory, Shard, ShardBuilder,
};
use crate::exec::Sequential;
use crate::privacy::{Bound, Budget, Ledger, Mechanism, NoiseDistribution};
use crate::problem::{Loss, Problem};
use crate::protocol::metric::Metric;
use crate::protocol::query::Query;

const COLUMNS: usize = 9;

fn wave(n: usize) -> f64 {
    libm::sin(n as f64 * 78.233)
}

/// Returns rows of all storages: numbers, a group of indicators, and rare entries.
fn shard(rows: std::ops::Range<usize>) -> Shard {
    shard_within(rows, None).unwrap()
}

fn shard_within(
    rows: std::ops::Range<usize>,
    memory: Option<&RowMemory>,
) -> Result<Shard, RowError> {
    let mut builder = ShardBuilder::new(COLUMNS, NormPolicy::Unit).with_memory(memory);
    for n in rows {
        let mut entries = vec![(0, 0.3 + wave(n)), (1, wave(3 * n + 1))];
        entries.push((2 + (n % 4) as u32, 1.0));
        if n % 97 == 5 {
            entries.push((7, wave(n + 5)));
        }
        entries.push((8, 0.5));
        builder.push(&entries, wave(13 * n) > -0.2)?;
    }
    Ok(builder.finish().unwrap())
}

/// Returns the encoded chunks of so many chunks of rows, the last of which has one row.
fn encoded(chunks: usize) -> Vec<Vec<u8>> {
    let rows = (chunks - 1) * CHUNK_ROWS + 1;
    ChunkHolder::new(shard(0..rows), 0)
        .unwrap()
        .encode()
        .unwrap()
}

/// Returns all rows in this process.
fn here(chunks: &[Vec<u8>]) -> Shard {
    let mut shard = Shard::empty(COLUMNS);
    for bytes in chunks {
        let mut chunk = crate::curator::rows::chunk::Chunk::default();
        chunk.decode(bytes).unwrap();
        shard.push_chunk(chunk);
    }
    shard
}

/// Workers in this process, which can be lost.
struct TestWorkers {
    holders: Vec<ChunkHolder>,
    asked: Arc<AtomicUsize>,
    /// The number of the call that fails.
    lost_at: usize,
    /// Changes a reply.
    tamper: fn(&mut Vec<u8>),
}

impl ChunkWorkers for TestWorkers {
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed> {
        if self.asked.fetch_add(1, Ordering::Relaxed) == self.lost_at {
            return Err(PassFailed::new("worker 1 is lost; restart it"));
        }
        let reply = |request: &WorkerRequest| {
            let mut reply = self.holders[request.worker].reply(&request.bytes, &Sequential)?;
            (self.tamper)(&mut reply);
            Ok(reply)
        };
        requests.iter().map(reply).collect()
    }
}

/// Splits chunks among workers before these chunks.
fn holders(chunks: &[Vec<u8>], cuts: &[usize]) -> Vec<ChunkHolder> {
    let firsts = [&[0], cuts].concat();
    let ends = [cuts, &[chunks.len()]].concat();
    let pairs = firsts.into_iter().zip(ends);
    pairs
        .map(|(first, end)| ChunkHolder::decode(first, &chunks[first..end]).unwrap())
        .collect()
}

fn workers(holders: Vec<ChunkHolder>, lost_at: usize) -> WorkerRows {
    tampered(holders, lost_at, |_| ()).0
}

fn tampered(
    holders: Vec<ChunkHolder>,
    lost_at: usize,
    tamper: fn(&mut Vec<u8>),
) -> (WorkerRows, Arc<AtomicUsize>) {
    let descriptions: Vec<Vec<u8>> = holders.iter().map(ChunkHolder::describe).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let workers = TestWorkers {
        holders,
        asked: asked.clone(),
        lost_at,
        tamper,
    };
    (
        WorkerRows::new(&descriptions, Box::new(workers)).unwrap(),
        asked,
    )
}

fn metric() -> Arc<Metric> {
    let mut packed = Vec::new();
    for a in 0..COLUMNS {
        for b in 0..=a {
            packed.push(if a == b {
                0.1 + 0.01 * wave(a)
            } else {
                0.004 * wave(a + 7 * b)
            });
        }
    }
    Arc::new(Metric::from_gram(COLUMNS, &packed, 0.01).unwrap())
}

fn point(seed: usize) -> Point {
    let values: Vec<f64> = (0..COLUMNS).map(|k| 2.0 * wave(k + seed)).collect();
    Point::plain(&values)
}

/// Returns every kind of sum, with plain and doubled points.
fn summands() -> Vec<Summand> {
    let loss = Loss::SmoothHinge { width: 0.7 };
    let curvatures = CurvaturesAt {
        at: point(1).moved(0.3, &[1.0; COLUMNS]),
        loss,
        weight: 0.25,
    };
    let gradient = |at, loss, metric| Summand::Gradient {
        at,
        loss,
        weight: 0.3,
        metric,
    };
    vec![
        gradient(point(2), Loss::Logistic, None),
        gradient(
            point(2).doubled().moved(1e-17, &[1.0; COLUMNS]),
            Loss::CutLogistic,
            None,
        ),
        gradient(point(3), loss, Some(metric())),
        gradient(point(4), loss, Some(metric())),
        Summand::Hessian(curvatures.clone()),
        Summand::HessianDiagonal {
            curvatures: curvatures.clone(),
            start: 0.1,
        },
        Summand::HessianProduct {
            curvatures: curvatures.clone(),
            vector: point(5),
        },
        Summand::HessianProduct {
            curvatures: curvatures.clone(),
            vector: point(6),
        },
        Summand::RootCurvature(curvatures),
        Summand::Gram {
            unit: 2f64.powi(-30),
        },
        Summand::Row { weight: 2.0 },
        Summand::Loss { at: point(8), loss },
        Summand::Margin { at: point(9) },
        Summand::Label,
    ]
}

/// Returns the bits of all sums of a pass, in order.
fn bits(rows: &dyn RowPasses, pass: &Pass) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    let mut add = |sum: CompensatedSum| {
        let numbers = sum.sum.iter().chain(&sum.correction);
        all.push(numbers.map(|x| x.to_bits()).collect());
    };
    rows.run(pass, &mut add).unwrap();
    all
}

#[test]
fn chunks_with_workers_give_the_bits_of_chunks_here() {
    let chunks = encoded(11);
    let shard = here(&chunks);
    let here = LocalChunks::in_test(&shard);
    // In the middle of a part of a matrix, at its ends, and one chunk each.
    let all: Vec<usize> = (1..11).collect();
    for cuts in [&[][..], &[6], &[1, 2, 9], &[4, 8], &all] {
        let rows = workers(holders(&chunks, cuts), usize::MAX);
        for stride in [1, 3, 8] {
            for (k, summand) in summands().into_iter().enumerate() {
                let pass = Pass { summand, stride };
                assert!(
                    bits(&&rows, &pass) == bits(here, &pass),
                    "{cuts:?} {stride} {k}"
                );
            }
        }
    }
}

#[test]
fn sums_over_many_chunks_have_every_row_once() {
    // More chunks than are summed at once.
    let rows = 33 * CHUNK_ROWS + 1;
    let mut builder = ShardBuilder::new(2, NormPolicy::Clip);
    for n in 0..rows {
        builder.push(&[((n % 2) as u32, 0.5)], n % 3 == 0).unwrap();
    }
    let shard = builder.finish().unwrap();
    let here = LocalChunks::in_test(&shard);
    let pass = Pass::over_all(Summand::Row { weight: 2.0 });
    let expected = [rows.div_ceil(2), rows / 2].map(|count| count as f64);
    assert_eq!(here.total(&pass).unwrap().rounded(), expected);
    let labels = here.by_row(&Pass::over_all(Summand::Label)).unwrap();
    assert_eq!(labels.len(), rows);
}

#[test]
fn few_rows_with_a_worker_give_the_bits_of_rows_here() {
    let chunks = ChunkHolder::new(shard(0..40), 0).unwrap().encode().unwrap();
    let shard = here(&chunks);
    let rows = workers(holders(&chunks, &[]), usize::MAX);
    let weights = (0..40).map(wave).collect();
    for summand in [Summand::RowProduct, Summand::WeightedRow { weights }] {
        let pass = Pass::over_all(summand);
        assert!(bits(&&rows, &pass) == bits(LocalChunks::in_test(&shard), &pass));
    }
}

#[test]
fn a_matrix_is_passed_on_as_often_as_workers_share_a_part() {
    let chunks = encoded(16);
    let hessian = summands().swap_remove(4);
    // Two chunks to a part: in one round if no part is shared, and in two if one is.
    for (cuts, rounds) in [(&[2, 6][..], 1), (&[3], 2), (&[1, 2, 3, 4], 2)] {
        let (rows, asked) = tampered(holders(&chunks, cuts), usize::MAX, |_| ());
        bits(&&rows, &Pass::over_all(hessian.clone()));
        assert_eq!(asked.load(Ordering::Relaxed), rounds, "{cuts:?}");
    }
}

#[test]
fn rows_are_with_workers_once_and_cut_at_full_chunks() {
    let chunks = encoded(5);
    let refused = |holders: &[ChunkHolder]| {
        let descriptions: Vec<Vec<u8>> = holders.iter().map(ChunkHolder::describe).collect();
        let none = TestWorkers {
            holders: Vec::new(),
            asked: Arc::default(),
            lost_at: 0,
            tamper: |_| (),
        };
        WorkerRows::new(&descriptions, Box::new(none))
            .err()
            .map(|error| error.to_string())
    };
    let mut split = holders(&chunks, &[2, 3]);
    assert_eq!(refused(&split), None);
    split.swap(0, 2);
    assert_eq!(refused(&split), None, "in any order of the workers");
    let lost = split.remove(1);
    assert!(
        refused(&split)
            .unwrap()
            .contains("chunk 3 on, with 9 columns; expected chunk 2")
    );
    split.push(lost);
    split.push(ChunkHolder::decode(3, &chunks[3..4]).unwrap());
    assert!(refused(&split).unwrap().contains("expected chunk"));
    let short = [
        ChunkHolder::new(shard(0..100), 0).unwrap(),
        ChunkHolder::new(shard(100..200), 1).unwrap(),
    ];
    assert!(refused(&short).unwrap().contains("chunk 0 is not full"));
    assert!(refused(&[]).unwrap().contains("no workers"));
}

#[test]
fn wrong_replies_are_errors_and_no_sums() {
    let chunks = encoded(3);
    let pass = Pass::over_all(summands().swap_remove(0));
    let failed = |tamper| {
        let (rows, _) = tampered(holders(&chunks, &[1]), usize::MAX, tamper);
        let mut sums = 0;
        let failed = (&rows).run(&pass, &mut |_| sums += 1).err().unwrap();
        assert_eq!(sums, 0);
        failed.to_string()
    };
    assert!(failed(|reply| reply.truncate(40)).contains("damaged"));
    assert!(failed(|reply| reply[60] ^= 4).contains("damaged"));
    assert!(failed(|reply| reply[7] += 1).contains("version"));
    assert!(failed(Vec::clear).contains("cut off"));
}

/// A function that replies to requests in place of a worker.
struct Forged<F>(F);

impl<F: Fn(&[u8]) -> Vec<u8> + Send + Sync> ChunkWorkers for Forged<F> {
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed> {
        Ok(requests
            .iter()
            .map(|request| (self.0)(&request.bytes))
            .collect())
    }
}

#[test]
fn a_reply_is_to_its_request_and_as_long_as_the_sum() {
    let holder = || ChunkHolder::new(shard(0..40), 0).unwrap();
    let description = [holder().describe()];
    let pass = |seed| {
        Pass::over_all(Summand::Gradient {
            at: point(seed),
            loss: Loss::Logistic,
            weight: 0.3,
            metric: None,
        })
    };
    // The reply to the first request, again and again.
    let (from, kept) = (holder(), Mutex::new(None));
    let again = Forged(move |request: &[u8]| {
        let mut kept = kept.lock().unwrap();
        let reply = || from.reply(request, &Sequential).unwrap();
        kept.get_or_insert_with(reply).clone()
    });
    let rows = WorkerRows::new(&description, Box::new(again)).unwrap();
    for _ in 0..2 {
        assert_eq!((&rows).run(&pass(1), &mut |_| ()), Ok(()));
    }
    let failed = (&rows).run(&pass(2), &mut |_| ()).unwrap_err().to_string();
    assert!(failed.contains("another request"), "{failed}");

    let (length, _) = pass(1).lengths(COLUMNS, 40);
    for (found, is_right) in [(length - 1, false), (length, true), (length + 1, false)] {
        let forged = Forged(move |request: &[u8]| {
            let mut reply = ByteWriter::new(b"radmmrp1", Vec::new());
            reply.word(checksum(request));
            (0..2).for_each(|_| reply.numbers(&vec![0.5; found]));
            reply.finish()
        });
        let rows = WorkerRows::new(&description, Box::new(forged)).unwrap();
        let replied = (&rows).run(&pass(1), &mut |_| ());
        match is_right {
            true => assert_eq!(replied, Ok(())),
            false => assert!(replied.unwrap_err().to_string().contains("another length")),
        }
    }
}

#[test]
fn pooled_rows_count_by_the_weights_of_their_parties() {
    let (one, other) = (shard(0..100), shard(100..300));
    let summand = summands().swap_remove(0);
    let pass = Pass::over_all(summand);
    let of = |rows: &dyn RowPasses| rows.total(&pass).unwrap().sum;
    let cache = PassCache::default();
    let shards = [(&one, 2.0), (&other, 0.5)].into_iter();
    let pooled = of(&LocalChunks::pooled(shards, &Sequential, &cache));
    let apart = [&one, &other].map(|shard| of(LocalChunks::in_test(shard)));
    for ((found, one), other) in pooled.iter().zip(&apart[0]).zip(&apart[1]) {
        let expected = 2.0 * one + 0.5 * other;
        assert!((found - expected).abs() <= 1e-14 * (one.abs() + other.abs()));
    }
    assert!(pooled.iter().any(|x| x.abs() > 0.1));
}

#[test]
fn what_is_kept_of_rows_in_one_metric_does_not_serve_another() {
    let shard = shard(0..CHUNK_ROWS + 100);
    let in_metric = |ridge: f64| {
        let ones = (0..COLUMNS).flat_map(|a| (0..=a).map(move |b| f64::from(u8::from(a == b))));
        let packed: Vec<f64> = ones.collect();
        let metric = Metric::from_gram(COLUMNS, &packed, ridge).unwrap();
        Pass::over_all(Summand::Gradient {
            at: point(3),
            loss: Loss::Logistic,
            weight: 0.3,
            metric: Some(Arc::new(metric)),
        })
    };
    let cache = PassCache::default();
    let rows = LocalChunks::new(&shard, &Sequential, &cache);
    let (first, second) = (in_metric(0.01), in_metric(4.0));
    for pass in [&first, &second, &second, &first] {
        assert!(bits(&rows, pass) == bits(LocalChunks::in_test(&shard), pass));
    }
    assert!(bits(&rows, &first) != bits(&rows, &second));
}

#[test]
fn a_worker_replies_to_requests_about_its_own_rows_alone() {
    let chunks = encoded(4);
    let all = holders(&chunks, &[2]);
    // Restarted on rows that have changed, on other chunks, and as another worker.
    let changed = ChunkHolder::new(shard(1..CHUNK_ROWS), 0).unwrap();
    let other = ChunkHolder::decode(0, &chunks[1..3]).unwrap();
    for replacement in [changed, other] {
        let descriptions: Vec<Vec<u8>> = all.iter().map(ChunkHolder::describe).collect();
        let replaced = TestWorkers {
            holders: vec![replacement],
            asked: Arc::default(),
            lost_at: usize::MAX,
            tamper: |_| (),
        };
        let rows = WorkerRows::new(&descriptions, Box::new(replaced)).unwrap();
        let pass = Pass::over_all(Summand::Label);
        let failed = (&rows).run(&pass, &mut |_| ()).err().unwrap();
        assert!(failed.to_string().contains("other rows"), "{failed}");
    }
    for request in [&b""[..], b"radmmrq1", &[7; 100]] {
        assert!(all[0].reply(request, &Sequential).is_err());
    }
}

/// Workers that keep all requests.
struct Listening {
    holder: ChunkHolder,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl ChunkWorkers for Listening {
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed> {
        let reply = |request: &WorkerRequest| {
            self.heard.lock().unwrap().push(request.bytes.clone());
            self.holder.reply(&request.bytes, &Sequential)
        };
        requests.iter().map(reply).collect()
    }
}

/// Returns all requests that a query takes.
fn requests_of(mechanism: Mechanism, query: &Query) -> Vec<Vec<u8>> {
    let holder = ChunkHolder::decode(0, &encoded(2)).unwrap();
    let descriptions = [holder.describe()];
    let heard = Arc::default();
    let workers = Listening {
        holder,
        heard: Arc::clone(&heard),
    };
    let rows = WorkerRows::new(&descriptions, Box::new(workers)).unwrap();
    let answer = curator(rows, mechanism, empty_ledger()).answer(1, query);
    answer.unwrap();
    std::mem::take(&mut heard.lock().unwrap())
}

#[test]
fn no_request_holds_a_linear_term_or_a_secret() {
    let (mechanism, query) = queries().swap_remove(0);
    let Query::Minimise { linear, .. } = &query else {
        panic!("the first query minimises");
    };
    let requests = requests_of(mechanism, &query);
    assert!(requests.len() > 3);
    for request in &requests {
        let words = || request.windows(8);
        for number in linear {
            let bits = number.to_le_bytes();
            assert!(words().all(|word| word != bits), "{number}");
        }
        assert!(words().all(|word| word != [5; 8]), "the secret");
    }
}

#[test]
fn another_version_of_the_program_is_refused_by_a_worker() {
    let (mechanism, query) = queries().swap_remove(1);
    let mut request = requests_of(mechanism, &query).swap_remove(0);
    let holder = ChunkHolder::decode(0, &encoded(2)).unwrap();
    assert!(holder.reply(&request, &Sequential).is_ok());
    // The version follows on the header, which has a checksum of what follows.
    request[16] ^= 1;
    let sum = crate::curator::bytes::checksum(&request[16..]);
    request[8..16].copy_from_slice(&sum.to_le_bytes());
    let refused = holder.reply(&request, &Sequential).err().unwrap();
    assert!(refused.to_string().contains("another version"), "{refused}");
}

/// Returns queries that take every kind of pass, with a mechanism that answers each.
fn queries() -> Vec<(Mechanism, Query)> {
    let gaussian = NoiseDistribution::gaussian(1.0);
    let at: Vec<f64> = (0..COLUMNS).map(|k| wave(k + 40)).collect();
    let sums = Mechanism::gradient(gaussian);
    let noise = 1.0;
    vec![
        (
            Mechanism::objective(gaussian),
            Query::Minimise {
                quadratic: 0.5,
                linear: at.clone(),
                near: vec![0.0; COLUMNS],
            },
        ),
        (sums, Query::Gradient { at: at.clone() }),
        (sums, Query::GramSum { scale: 1.0, noise }),
        (sums, Query::RowSum { scale: 1.0, noise }),
        (
            sums,
            Query::GradientSum {
                at,
                scale: 1.0,
                metric: Some(metric()),
            },
        ),
    ]
}

fn curator(rows: impl Into<HeldRows>, mechanism: Mechanism, ledger: Ledger) -> Curator {
    let config = CuratorConfig {
        problem: Problem::new(Loss::Logistic, 2).with_weight(2e4),
        mechanism,
        ledger,
        noise: NoiseKey::secret(NoiseSecret::copy_of(&[5; 32])),
    };
    Curator::new(rows, config).unwrap()
}

fn empty_ledger() -> Ledger {
    Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight)
}

/// Asserts that a query gets the answer of rows in memory, and that a failure of any call to the rows' holder costs a retry
/// and nothing else. `rows` makes rows whose holder fails at a call, and the counter of its calls.
fn assert_failures_cost_a_retry(
    all: &[Vec<u8>],
    rows: impl Fn(usize) -> (HeldRows, Arc<AtomicUsize>),
) {
    for (mechanism, query) in queries() {
        let undisturbed = curator(here(all), mechanism, empty_ledger()).answer(1, &query);
        let answer = |failing: usize| {
            let (rows, calls) = rows(failing);
            let mut curator = curator(rows, mechanism, empty_ledger());
            let answer = curator.answer(1, &query);
            (answer, curator, calls.load(Ordering::Relaxed))
        };
        let (found, _, calls) = answer(usize::MAX);
        assert!(found.is_ok() && found == undisturbed, "other bits");
        assert!(calls > 0);
        for failing in 0..calls {
            let (found, mut curator, _) = answer(failing);
            let failed = matches!(found, Err(Refusal::PassFailed(_)));
            assert!(failed, "call {failing}");
            // This process answers no more: nothing else may be asked with the noise of that query.
            let again = curator.answer(1, &query);
            assert_eq!(again, Err(Refusal::AlreadyAnswered(1)));
            // The next one starts from what is on record: nothing.
            let (again, curator, _) = answer(usize::MAX);
            assert_eq!(again, undisturbed);
            assert_eq!(curator.ledger().charges(), 1);
        }
    }
}

#[test]
fn a_worker_lost_at_any_pass_costs_a_retry_and_nothing_else() {
    let chunks = encoded(5);
    assert_failures_cost_a_retry(&chunks, |lost_at| {
        let (rows, asked) = tampered(holders(&chunks, &[1, 3]), lost_at, |_| ());
        (rows.into(), asked)
    });
}

#[test]
fn a_read_that_fails_costs_a_retry_and_nothing_else() {
    assert_failures_cost_a_retry(&encoded(3), |failing| {
        let (memory, storage) = memory(0, usize::MAX);
        let rows = shard_within(0..2 * CHUNK_ROWS + 1, Some(&memory)).unwrap();
        storage.fails_at.store(failing, Ordering::Relaxed);
        (rows.into(), storage.reads.clone())
    });
}

/// Storage in memory, which can fail.
#[derive(Default)]
struct TestStorage {
    bytes: Mutex<Vec<u8>>,
    room: usize,
    reads: Arc<AtomicUsize>,
    /// The number of the read that fails.
    fails_at: AtomicUsize,
}

impl ChunkStorage for Arc<TestStorage> {
    fn append(&self, bytes: &[u8]) -> Result<u64, PassFailed> {
        let mut all = self.bytes.lock().unwrap();
        if all.len() + bytes.len() > self.room {
            return Err(PassFailed::new("the storage is full"));
        }
        let position = all.len() as u64;
        all.extend_from_slice(bytes);
        Ok(position)
    }

    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<(), PassFailed> {
        if self.reads.fetch_add(1, Ordering::Relaxed) == self.fails_at.load(Ordering::Relaxed) {
            return Err(PassFailed::new("the disk is gone"));
        }
        let all = self.bytes.lock().unwrap();
        buffer.copy_from_slice(&all[position as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Returns memory of so many bytes before a storage of so many.
fn memory(bytes: u64, room: usize) -> (RowMemory, Arc<TestStorage>) {
    let storage = Arc::new(TestStorage {
        room,
        fails_at: AtomicUsize::new(usize::MAX),
        ..TestStorage::default()
    });
    (RowMemory::new(bytes, Box::new(storage.clone())), storage)
}

#[test]
fn stored_chunks_give_the_bits_of_chunks_in_memory() {
    let rows = 0..4 * CHUNK_ROWS + 1;
    let in_memory = shard(rows.clone());
    let here = LocalChunks::in_test(&in_memory);
    let chunk = in_memory.chunks()[0].bytes() as u64;
    for (bytes, stored) in [(0, 4), (2 * chunk + chunk / 2, 2), (100 * chunk, 0)] {
        let (memory, _) = memory(bytes, usize::MAX);
        let shard = shard_within(rows.clone(), Some(&memory)).unwrap();
        let kept = (0..5).filter(|k| shard.is_in_memory(*k)).count();
        assert_eq!(kept, 5 - stored, "the last chunk is always in memory");
        for stride in [1, 3] {
            for (k, summand) in summands().into_iter().enumerate() {
                let pass = Pass { summand, stride };
                let found = bits(LocalChunks::in_test(&shard), &pass);
                assert!(found == bits(here, &pass), "{stored} {stride} {k}");
            }
        }
    }
}

#[test]
fn damaged_storage_is_an_error_and_full_storage_too() {
    let rows = 0..2 * CHUNK_ROWS + 1;
    let (unlimited, storage) = memory(0, usize::MAX);
    let shard = shard_within(rows.clone(), Some(&unlimited)).unwrap();
    let all = storage.bytes.lock().unwrap().clone();
    let passed = |bytes: Vec<u8>| {
        *storage.bytes.lock().unwrap() = bytes;
        let labels = Pass::over_all(Summand::Label);
        LocalChunks::in_test(&shard).run(&labels, &mut |_| ())
    };
    assert_eq!(passed(all.clone()), Ok(()));
    for place in [0, 7, 8, 20, all.len() / 3, all.len() - 1] {
        let mut damaged = all.clone();
        damaged[place] ^= 16;
        let error = passed(damaged).unwrap_err().to_string();
        assert!(error.contains("cannot be read back"), "{error}");
    }
    // Another chunk, whose bytes are right in themselves.
    let half = all.len() / 2;
    let (one, other) = all.split_at(half);
    assert_eq!(one.len(), other.len());
    assert!(passed([other, one].concat()).is_err());
    let (small, _) = memory(0, all.len() - 1);
    let full = shard_within(rows, Some(&small)).err();
    let cause = PassFailed::new("the storage is full");
    assert_eq!(full, Some(RowError::Storage(cause)));
}

#[test]
fn shards_share_the_memory_of_their_rows() {
    let chunk = shard(0..CHUNK_ROWS).chunks()[0].bytes() as u64;
    let (memory, _) = memory(4 * chunk + chunk / 2, usize::MAX);
    let stored = || {
        let shard = shard_within(0..3 * CHUNK_ROWS, Some(&memory)).unwrap();
        (0..3).filter(|k| !shard.is_in_memory(*k)).count()
    };
    assert_eq!([stored(), stored(), stored()], [0, 2, 3]);
}

#[test]
fn the_key_of_a_query_without_an_answer_is_kept() {
    let chunks = encoded(2);
    let (mechanism, query) = queries().swap_remove(1);
    let draw = |curator: &mut Curator, iteration| curator.answer(iteration, &query);
    let mut undisturbed = curator(here(&chunks), mechanism, empty_ledger());
    let second = |curator: &mut Curator| draw(curator, 2).unwrap().1;
    let with_same_key = second(&mut undisturbed);
    let (rows, _) = tampered(holders(&chunks, &[1]), 0, |_| ());
    let mut disturbed = curator(rows, mechanism, empty_ledger());
    assert!(draw(&mut disturbed, 1).is_err());
    // The second call is not lost, and iteration 2 is the first that this key answers.
    assert_eq!(second(&mut disturbed), with_same_key);
}

#[test]
fn a_replayed_answer_needs_no_worker() {
    let chunks = encoded(2);
    let (mechanism, query) = queries().swap_remove(0);
    let (event, release) = curator(here(&chunks), mechanism, empty_ledger())
        .answer(1, &query)
        .unwrap();
    let recorded = ChargedAnswer {
        iteration: 1,
        event,
        answer: Some(release.clone()),
    };
    let ledger = Ledger::resumed(Budget::unlimited(1e-5).unwrap(), Bound::Tight, [event]);
    let rows = workers(holders(&chunks, &[1]), 0);
    let mut resumed = curator(rows, mechanism, ledger.unwrap());
    assert_eq!(resumed.replay(1, &query, &recorded), Ok((event, release)));
    assert_eq!(resumed.ledger().charges(), 1);
}
