//! The account of a site over all studies: which studies may start and resume, and under which fingerprint rows are charged.

use std::fs;

use radmm::privacy::Guarantee;
use radmm::problem::RowCount;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_study::instantiate;
use tempfile::TempDir;

use super::*;
use crate::evidence::AccountReport;
use crate::machine::PartyError;
use crate::machine::tests::{STUDY, World};
use crate::machine::{
    Credit, Frame, Hello, Link, LinkEvent, PROTOCOL, Party, Serial, SignedMessage,
};
use crate::store::{Adoption, RowFingerprint, Store, StoreError};

/// A link that nobody reads.
struct SilentLink;

impl Link for SilentLink {
    fn send(&self, _: Vec<u8>) -> bool {
        true
    }

    fn close(&self) {}
}

/// Alder's site, and the keys of all parties.
pub(crate) struct TestSite {
    pub(crate) world: World,
    folder: TempDir,
    /// The `noise` key of the site file.
    noise: &'static str,
    party: Option<&'static str>,
    /// Lines at the end of the site file.
    more: String,
    limit: f64,
    /// The `accounting` key of the site file.
    accounting: &'static str,
    /// The `path` key of `[data]`.
    path: &'static str,
    continues: Vec<RowFingerprint>,
}

const PLENTY: f64 = 1e6;

impl TestSite {
    pub(crate) fn new() -> Self {
        Self::of(World::new("ring", 1))
    }

    /// The site in a study that asks for gradients with Gaussian noise.
    fn of_gradients() -> Self {
        let study = STUDY
            .replace("TOPOLOGY", "ring")
            .replace("r-admm", "r-dlm")
            .replace("\"objective\"", "\"gradient\"");
        Self::of(World::of(&study, 1))
    }

    fn of(mut world: World) -> Self {
        // Alder's file has other rows than the world's alder, and not always as many.
        world.study.problem.count = RowCount::Parties;
        world
            .study
            .parties
            .iter_mut()
            .for_each(|party| party.rows = None);
        let site = Self {
            world,
            folder: tempfile::tempdir().unwrap(),
            noise: "secret",
            party: None,
            more: String::new(),
            limit: PLENTY,
            accounting: "renyi",
            path: "rows.csv",
            continues: Vec::new(),
        };
        site.install_key(0);
        site.write_rows(40);
        site
    }

    /// Puts the key of a party into the site's folder.
    fn install_key(&self, party: usize) {
        let path = self.folder.path().join("key.pem");
        let _ = fs::remove_file(&path);
        let key = SecretKey::from_pem(&self.world.hosts[party].pem).unwrap();
        key.write_new(&path).unwrap();
    }

    fn write_rows(&self, people: u32) {
        let mut text = "age,bmi,systolic,cholesterol,smoker,sex,exercise,readmitted\n".to_owned();
        for k in 0..people {
            let again = ["yes", "no"][k as usize % 2];
            text += &format!(
                "{},25.5,{},5.5,no,f,some,{again}\n",
                40 + k % 30,
                120 + k % 7
            );
        }
        fs::write(self.folder.path().join("rows.csv"), text).unwrap();
    }

    pub(crate) fn setup(&self) -> Result<PartySetup, SetupError> {
        let names: Vec<String> = { self.continues.iter() }
            .map(|one| format!("\"{one}\""))
            .collect();
        let party = self.party.map(|name| format!("party = {name:?}\n"));
        let text = format!(
            "{}metrics = \"127.0.0.1:0\"\nkey = \"key.pem\"\nstate = \"state\"\nnoise = \"{}\"\n[data]\npath = {:?}\nformat = \"csv\"\ncontinues = [{}]\n[limit]\nepsilon = {:?}\ndelta = 1e-4\naccounting = {:?}\n{}",
            party.unwrap_or_default(),
            self.noise,
            self.path,
            names.join(", "),
            self.limit,
            self.accounting,
            self.more,
        );
        let (site, _) = SiteFile::parse(&text, "site.toml").unwrap();
        let here = self.folder.path();
        let folders = Folders {
            study: here,
            site: here,
        };
        let study = self.world.study.clone();
        PartySetup::new(study, site, folders, ("study.toml", "site.toml"))
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.state()).unwrap()
    }

    /// Removes the state folder.
    fn clear(&self) {
        fs::remove_dir_all(self.state()).unwrap();
    }

    fn open(&self) -> Result<(Party, PartyBill), SetupError> {
        self.setup()?.open(self.store())
    }

    fn rejection(&self) -> SetupError {
        self.open().err().unwrap()
    }

    fn bill(&self) -> PartyBill {
        self.setup().unwrap().bill(Some(&self.store())).unwrap()
    }

    /// Switches to another study of the same parties on the same rows.
    fn another_study(&mut self, name: &str) {
        self.world.study.name = name.to_owned();
    }

    /// Delivers the initial values of birch and rowan, so that alder's rows are asked.
    pub(crate) fn ask(&self, party: &mut Party) {
        let study = &self.world.study;
        let noise = match self.noise {
            "seeded" => NoiseOrigin::Seeded,
            _ => NoiseOrigin::Secret,
        };
        let spoken = study.spoken_digest(noise);
        let columns = party.node().curator().columns();
        for from in [1, 4] {
            let (peer, serial) = (NodeId(from), Serial(u64::from(from)));
            let key = SecretKey::from_pem(&self.world.hosts[from as usize].pem).unwrap();
            let start = instantiate::start(study, peer, columns);
            let message = Message {
                from: peer,
                iteration: 0,
                release: Release::rounded(&start).unwrap(),
            };
            let hello = Hello {
                version: PROTOCOL,
                study: spoken,
                from: peer,
                at: 0,
                persisted: None,
                received: None,
                probe: false,
            };
            let say = Frame::Value(SignedMessage::new(message, &spoken, &key));
            let link = Box::new(SilentLink);
            party.handle(LinkEvent::Up { peer, serial, link }).unwrap();
            for frame in [Frame::Hello(hello), say] {
                let event = LinkEvent::Frame {
                    peer,
                    serial,
                    bytes: frame.encode(),
                    credit: Credit::new(|| ()),
                };
                party.handle(event).unwrap();
            }
        }
        assert_eq!(party.iteration(), 1);
    }

    /// Opens the study, asks the rows once, and closes it.
    fn ask_once(&self) -> Release {
        let (mut party, _) = self.open().unwrap();
        self.ask(&mut party);
        party.node().model().clone()
    }
}

#[test]
fn a_study_whose_state_was_proved_to_be_an_old_copy_never_goes_on() {
    let mut site = TestSite::new();
    site.ask_once();
    site.store().append_forgotten(0, "birch", 7).unwrap();
    let checked = site.setup().unwrap().read_store();
    let opened = site.setup().unwrap().open_store();
    for refused in [checked.map(|_| ()), opened.map(|_| ())] {
        assert!(matches!(refused, Err(StoreError::Forgotten { .. })));
    }
    // The operator vouches for the account. Other studies go on with it, and this one does not.
    Adoption::examine(&site.state(), None)
        .unwrap()
        .complete()
        .unwrap();
    let rejection = site.rejection();
    assert!(
        matches!(&rejection, SetupError::Party(PartyError::StateRolledBack { peer, iteration: 7 }) if peer == "birch"),
        "{rejection}"
    );
    // It has asked once, and counts as if it had asked all that it was going to ask.
    let planned = site.setup().unwrap().plan.len();
    assert!(planned > 1);
    assert_eq!(site.store().charges().unwrap().len(), planned);
    assert_eq!(site.bill().before, site.bill().after);
    site.another_study("another");
    site.ask_once();
    assert_eq!(site.store().charges().unwrap().len(), planned + 1);
}

#[test]
fn a_state_with_a_witness_is_not_opened_without_it() {
    let site = TestSite::new();
    let setup = || site.setup().unwrap();
    let with_witness = || {
        let mut setup = setup();
        setup.site.witness = Some("witness".to_owned());
        setup
    };
    assert!(with_witness().read_store().unwrap().is_none());
    let running = with_witness().open_store().unwrap();
    // A check reads beside a running party.
    assert!(with_witness().read_store().unwrap().is_some());
    drop(running);
    assert!(site.folder.path().join("witness").is_file());
    with_witness().read_store().unwrap();
    for refused in [
        setup().open_store().map(|_| ()),
        setup().read_store().map(|_| ()),
    ] {
        assert!(matches!(refused, Err(StoreError::WitnessUnnamed(_))));
    }
}

#[test]
fn a_study_beyond_the_limit_does_not_start() {
    let mut site = TestSite::new();
    site.limit = site.bill().total.epsilon * 0.9;
    let rejection = site.rejection();
    assert!(
        matches!(&rejection, SetupError::BeyondLimit { spent, after, .. }
            if *spent == 0.0 && *after > site.limit),
        "{rejection}"
    );
    let store = site.store();
    assert!(store.studies().is_empty());
    assert!(store.charges().unwrap().is_empty());
}

#[test]
fn every_answer_is_charged_to_the_account_of_the_rows() {
    let site = TestSite::new();
    let (mut party, bill) = site.open().unwrap();
    assert_eq!(party.spent_on_rows()[0].epsilon, 0.0);
    site.ask(&mut party);
    let spent = party.spent_on_rows();
    assert!(spent[0].epsilon > 0.0 && spent[0].epsilon < bill.after[0].epsilon);
    drop(party);
    // The journal comes to the same total.
    let later = site.bill();
    assert_eq!(later.before, spent);
    assert_eq!(later.after, bill.after);
}

#[test]
fn the_gaussian_filter_admits_gradients_and_counts_them_exactly() {
    let mut site = TestSite::of_gradients();
    let by_order = site.bill();
    site.clear();
    site.accounting = "gaussian";
    // The reserve is a hundredth of the limit, and counts as spent.
    site.limit = 1.06 * by_order.total.epsilon;
    let by_filter = site.bill();
    assert_eq!(by_filter.total, by_order.total);
    assert!(by_filter.after[0].epsilon < 1.05 * by_order.total.epsilon);
    assert!(by_filter.after[0].epsilon < by_order.after[0].epsilon);
    let (mut party, bill) = site.open().unwrap();
    site.ask(&mut party);
    let spent = party.spent_on_rows();
    assert!(spent[0].epsilon > 0.0 && spent[0].epsilon < bill.after[0].epsilon);
    drop(party);
    assert_eq!(site.bill().before, spent);
    // One more query than this study has is too much.
    site.another_study("second");
    let rejection = site.rejection();
    assert!(
        matches!(rejection, SetupError::BeyondLimit { .. }),
        "{rejection}"
    );
}

#[test]
fn the_gaussian_filter_rejects_noise_in_objectives_before_anything_is_spent() {
    let mut site = TestSite::new();
    site.accounting = "gaussian";
    let rejection = site.rejection().to_string();
    assert!(
        rejection.starts_with("site.toml: [limit]: the data set's limit epsilon = 1000000 at"),
        "{rejection}"
    );
    assert!(
        rejection
            .ends_with("give the study mechanism = \"gradient\" or \"output\"; nothing was spent"),
        "{rejection}"
    );
    assert!(site.store().studies().is_empty());
}

#[test]
fn the_rule_of_a_limit_stays_that_of_its_first_study() {
    for (first, second) in [("renyi", "gaussian"), ("gaussian", "renyi")] {
        let mut site = TestSite::of_gradients();
        site.accounting = first;
        site.ask_once();
        let before = site.bill().before;
        site.accounting = second;
        assert_eq!(
            site.rejection().to_string(),
            format!(
                "site.toml: [limit] accounting = \"{second}\": the limit of these rows is kept by accounting = \"{first}\" \
                 since it was first set, before anything was released; write that"
            )
        );
        site.accounting = first;
        site.limit = 0.9 * PLENTY;
        // The reserve of the Gaussian filter is a hundredth of the limit.
        let same = (site.bill().before[0].epsilon / before[0].epsilon - 1.0).abs() < 0.11;
        assert!(same, "{first}");
    }
}

#[test]
fn rows_are_charged_under_their_fingerprint() {
    let site = TestSite::new();
    site.ask_once();
    let hash = site.setup().unwrap().hash;
    let store = site.store();
    let name = store.row_fingerprint(&hash);
    let charges = store.charges().unwrap();
    assert_eq!(charges.len(), 1);
    assert_eq!((charges[0].study, charges[0].iteration), (0, 1));
    assert_eq!(charges[0].rows, name);
    assert_eq!(store.studies()[0].fingerprint, name.to_string());
    drop(store);
    // So the study resumes where it stopped.
    let (party, _) = site.open().unwrap();
    assert_eq!(party.iteration(), 1);
}

#[test]
fn the_losses_of_studies_on_the_same_rows_add_up() {
    let mut site = TestSite::new();
    let alone = site.bill();
    site.ask_once();
    let first = site.bill();
    site.another_study("second");
    let second = site.bill();
    // The first study has asked once, and what it has not spent is not counted.
    assert_eq!(second.before, first.before);
    assert_eq!(second.total, alone.total);
    assert!(second.after[0].epsilon > alone.after[0].epsilon);
    // Enough for either study alone, but not for both.
    site.limit = (second.after[0].epsilon + alone.after[0].epsilon) / 2.0;
    let rejection = site.rejection();
    assert!(
        matches!(&rejection, SetupError::BeyondLimit { spent, .. }
            if *spent == first.before[0].epsilon),
        "{rejection}"
    );
    assert_eq!(site.store().studies().len(), 1);
    site.limit = PLENTY;
    site.ask_once();
    let studies = { site.store().charges().unwrap().into_iter() }.map(|charge| charge.study);
    assert_eq!(studies.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn changed_rows_are_rejected_until_the_site_file_says_that_they_continue() {
    let mut site = TestSite::new();
    site.ask_once();
    let spent = site.bill().before;
    let before = site.store().charges().unwrap()[0].rows;
    site.another_study("second");
    site.write_rows(41);
    let rejection = site.rejection();
    assert!(
        matches!(&rejection, SetupError::OtherRows { before: named, found, .. }
            if *named == before && *found != before),
        "{rejection}"
    );
    // Another fingerprint does not help.
    site.continues = vec![RowFingerprint([9; 32])];
    assert!(matches!(site.rejection(), SetupError::OtherRows { .. }));
    site.continues = vec![before];
    assert_eq!(site.bill().before, spent);
    site.ask_once();
    let charges = site.store().charges().unwrap();
    assert_eq!(charges.len(), 2);
    assert_ne!(charges[1].rows, before);
    // The report of the account shows one total over both states of the rows.
    let shown = AccountReport::new(&site.store(), 1e-4, None).unwrap().site;
    let names = [before, charges[1].rows].map(|one| one.to_string());
    assert_eq!(shown.fingerprints, names);
    let totals: Vec<Guarantee> = { shown.balance.totals.iter() }
        .map(|one| one.total)
        .collect();
    assert_eq!(totals, site.bill().before);
}

#[test]
fn rows_that_a_rehearsal_asked_are_not_asked_with_secret_noise() {
    let mut site = TestSite::new();
    site.noise = "seeded";
    drop(site.open().unwrap());
    // Nothing was asked yet, so nothing was revealed.
    site.another_study("real");
    site.noise = "secret";
    assert!(site.setup().unwrap().bill(Some(&site.store())).is_ok());

    site.another_study("rehearsal");
    site.noise = "seeded";
    site.ask_once();
    site.another_study("real");
    site.noise = "secret";
    let rejection = site.rejection();
    assert!(
        matches!(&rejection, SetupError::Rehearsed { study } if study == "rehearsal"),
        "{rejection}"
    );
    // Another rehearsal reveals nothing more.
    site.noise = "seeded";
    site.ask_once();
}

#[test]
fn noise_repeats_only_if_it_is_seeded() {
    // The same question, asked of the same rows in two folders.
    let mut site = TestSite::new();
    for (noise, same) in [("seeded", true), ("secret", false)] {
        site.noise = noise;
        let answers = [(), ()].map(|()| {
            let answer = site.ask_once();
            site.clear();
            answer
        });
        assert_eq!(answers[0] == answers[1], same, "{noise}");
    }
    // The same question in two studies of one folder.
    let first = site.ask_once();
    site.another_study("second");
    assert_ne!(site.ask_once(), first);
}

#[test]
fn answers_leave_on_the_studys_tick_unless_it_is_a_rehearsal() {
    let mut site = TestSite::new();
    let tick = |site: &TestSite| site.setup().unwrap().tick();
    // Small rows: what the rule chooses at least.
    assert_eq!(tick(&site), Some(Duration::from_millis(10)));
    site.world.study.run.tick = Some(0.25);
    assert_eq!(tick(&site), Some(Duration::from_millis(250)));
    site.noise = "seeded";
    assert_eq!(tick(&site), None);
    site.noise = "secret";
    site.world.study.run.tick = Some(0.0);
    assert_eq!(tick(&site), None);
}

#[test]
fn a_study_resumes_as_it_was_started_or_not_at_all() {
    let how = |site: &TestSite| match site.rejection() {
        SetupError::StartedDifferently { how, .. } => how,
        other => panic!("{other}"),
    };
    let mut site = TestSite::new();
    drop(site.open().unwrap());
    site.install_key(1);
    let named = how(&site);
    assert!(
        named.starts_with("as alder, not as birch, whose key is in "),
        "{named}"
    );
    site.install_key(0);
    site.write_rows(41);
    assert_eq!(how(&site), "on other rows");
    site.write_rows(40);
    site.noise = "seeded";
    assert_eq!(how(&site), "with noise = \"secret\"");
    site.noise = "secret";
    drop(site.open().unwrap());
    assert_eq!(site.store().studies().len(), 1);

    site.clear();
    site.noise = "seeded";
    drop(site.open().unwrap());
    site.noise = "secret";
    assert_eq!(how(&site), "with noise = \"seeded\"");
}

#[test]
fn an_unknown_key_is_rejected() {
    let site = TestSite::new();
    let path = site.folder.path().join("key.pem");
    fs::remove_file(&path).unwrap();
    let key = SecretKey::generate().unwrap();
    key.write_new(&path).unwrap();
    let rejection = site.setup().err().unwrap();
    let identity = Identity::from(key.public());
    let SetupError::Identify(rejection) = rejection else {
        panic!("{rejection}");
    };
    assert_eq!(
        *rejection,
        IdentifyError::UnknownKey {
            key: path,
            identity
        }
    );
    assert!(!site.state().exists());
}

#[test]
fn a_site_that_names_its_party_accepts_no_other_key() {
    let mut site = TestSite::new();
    site.party = Some("alder");
    assert_eq!(site.setup().unwrap().name(), "alder");
    site.install_key(1);
    let message = site.setup().err().unwrap().to_string();
    let key = site.folder.path().join("key.pem");
    let [alder, birch] = [0, 1].map(|party: usize| site.world.study.parties[party].key);
    assert_eq!(
        message,
        format!(
            "site.toml: party = \"alder\": key file {} has the identity {birch}, which is that of birch in the study, and alder's is {alder}; use alder's key file",
            key.display()
        )
    );
    fs::remove_file(&key).unwrap();
    SecretKey::generate().unwrap().write_new(&key).unwrap();
    let message = site.setup().err().unwrap().to_string();
    assert!(
        message.contains(", which is not that of any party in the study"),
        "{message}"
    );
    site.party = Some("elder");
    let message = site.setup().err().unwrap().to_string();
    assert_eq!(
        message,
        "site.toml: party = \"elder\": the study has no such party; it has alder, birch, cedar, maple, rowan"
    );
    assert!(!site.state().exists());
}

#[test]
fn a_file_with_another_number_of_rows_than_declared_is_rejected() {
    let mut site = TestSite::new();
    for count in [RowCount::Rows, RowCount::Parties] {
        site.world.study.problem.count = count;
        let declare = |study: &mut Study, rows| {
            for party in &mut study.parties {
                party.rows = Some(rows);
            }
        };
        declare(&mut site.world.study, 40);
        assert_eq!(site.setup().unwrap().rows(), 40);
        declare(&mut site.world.study, 41);
        let path = site.folder.path().join("rows.csv");
        assert_eq!(
            site.setup().err().unwrap().to_string(),
            format!(
                "{}: 40 training rows, and the study declares rows = 41 for alder; everybody's weights and noise depend on this \
                 number. If the file is right, correct rows in the study's [[parties]] and have every party agree on the study \
                 again",
                path.display()
            )
        );
        assert!(!site.state().exists());
    }
}

#[test]
fn clipped_values_and_labels_are_counted() {
    let site = TestSite::new();
    let path = site.folder.path().join("rows.csv");
    let rows = fs::read_to_string(&path).unwrap();
    let odd = "999,25.5,120,5.5,no,f,some,Yes\n?,25.5,120,5.5,no,f,some,yes\n";
    fs::write(&path, format!("{rows}{odd}")).unwrap();
    let setup = site.setup().unwrap();
    let check = setup.data_check().unwrap();
    assert_eq!((setup.rows(), check.left_out), (41, 1));
    assert_eq!(check.lacking, [("age".to_owned(), 1)]);
    assert_eq!(check.clipped, [("age".to_owned(), 1)].into());
    let labels = check
        .labels
        .iter()
        .map(|one| (one.value.as_str(), one.rows));
    let labels: Vec<(&str, usize)> = labels.collect();
    assert_eq!(labels, [("yes", 20), ("no", 20), ("Yes", 1)]);
    assert_eq!(check.other_labels, 0);
}

#[cfg(unix)]
#[test]
fn rows_in_a_pipe_are_read_once() {
    let mut site = TestSite::new();
    let from_file = site.setup().unwrap();
    let here = site.folder.path();
    let made = std::process::Command::new("mkfifo")
        .arg(here.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let (rows, pipe) = (here.join("rows.csv"), here.join("pipe"));
    // A second reader would wait for ever.
    let writer = std::thread::spawn(move || fs::write(pipe, fs::read(rows).unwrap()));
    site.path = "pipe";
    let from_pipe = site.setup().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(from_pipe.rows(), from_file.rows());
    assert_eq!(from_pipe.hash, from_file.hash);
}

#[test]
fn only_the_study_that_its_owner_approved_runs_at_a_site() {
    let mut site = TestSite::new();
    let approved = site.world.study.sha256();
    site.more = format!("[study]\nsha256 = \"{approved}\"\n");
    site.setup().unwrap();
    site.world.study.run.seed += 1;
    let Err(error) = site.setup() else {
        panic!("another study runs");
    };
    let said = error.to_string();
    let found = site.world.study.sha256();
    assert!(
        said.starts_with(&format!(
            "site.toml: [study] sha256: this site's owner approved the study {approved}, and study.toml is {found}; "
        )) && said.ends_with("nothing was spent"),
        "{said}"
    );
    // The approval comes first: neither key nor rows are looked at.
    fs::remove_file(site.folder.path().join("key.pem")).unwrap();
    assert!(matches!(site.setup(), Err(SetupError::OtherStudy { .. })));
}
