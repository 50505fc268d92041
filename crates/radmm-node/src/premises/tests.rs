//! A site's account over all studies: what may begin, what goes on, and under which name rows are charged.

use std::fs;

use radmm::message::Message;
use radmm::public::release::{Precision, Release};
use tempfile::TempDir;

use super::*;
use crate::frame::{Frame, Hello, PROTOCOL, Signed};
use crate::ledger::Account;
use crate::link::{Credit, Event, Link, Serial};
use crate::party::tests::World;

/// Nobody is there to read.
struct Unread;

impl Link for Unread {
    fn send(&self, _: Vec<u8>) -> bool {
        true
    }

    fn close(&self) {}
}

/// Alder's folder, and everyone's keys.
struct Office {
    world: World,
    folder: TempDir,
    /// What stands in the site file beside key and state.
    noise: &'static str,
    party: Option<&'static str>,
    limit: f64,
    continues: Vec<Fingerprint>,
}

const PLENTY: f64 = 1e6;

impl Office {
    fn new() -> Self {
        let office = Self {
            world: World::new("ring", 1),
            folder: tempfile::tempdir().unwrap(),
            noise: "secret",
            party: None,
            limit: PLENTY,
            continues: Vec::new(),
        };
        office.sit(0);
        office.write_rows(40);
        office
    }

    /// Puts the key of a party into the folder.
    fn sit(&self, party: usize) {
        let path = self.folder.path().join("key.pem");
        let _ = fs::remove_file(&path);
        let key = SecretKey::from_pem(&self.world.seats[party].pem).unwrap();
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

    fn premises(&self) -> Result<Premises, PremisesError> {
        let names: Vec<String> = { self.continues.iter() }
            .map(|one| format!("\"{one}\""))
            .collect();
        let party = self.party.map(|name| format!("party = {name:?}\n"));
        let text = format!(
            "{}key = \"key.pem\"\nstate = \"state\"\nnoise = \"{}\"\n[data]\npath = \"rows.csv\"\ncontinues = [{}]\n[limit]\nepsilon = {:?}\ndelta = 1e-4\n",
            party.unwrap_or_default(),
            self.noise,
            names.join(", "),
            self.limit,
        );
        let (site, _) = SiteFile::parse(&text, "site.toml").unwrap();
        let here = self.folder.path();
        let folders = Folders {
            study: here,
            site: here,
        };
        let study = self.world.study.clone();
        Premises::new(study, site, folders, ("study.toml", "site.toml"))
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn store(&self) -> Store {
        Store::open(&self.state()).unwrap()
    }

    /// As if nothing had ever begun here.
    fn clear(&self) {
        fs::remove_dir_all(self.state()).unwrap();
    }

    fn open(&self) -> Result<(Party, Bill), PremisesError> {
        self.premises()?.open(self.store())
    }

    fn refusal(&self) -> PremisesError {
        self.open().err().unwrap()
    }

    fn bill(&self) -> Bill {
        self.premises().unwrap().bill(Some(&self.store())).unwrap()
    }

    /// Another study of the same parties on the same rows.
    fn another_study(&mut self, name: &str) {
        self.world.study.name = name.to_owned();
    }

    /// Birch and rowan say where they begin; then alder's rows are asked.
    fn ask(&self, party: &mut Party) {
        let study = &self.world.study;
        let columns = party.node().curator().columns();
        for from in [1, 4] {
            let (peer, serial) = (NodeId(from), Serial(u64::from(from)));
            let key = SecretKey::from_pem(&self.world.seats[from as usize].pem).unwrap();
            let start = instantiate::start(study, peer, columns);
            let message = Message {
                from: peer,
                iteration: 0,
                release: Release::of(start, Precision::Grid).unwrap(),
            };
            let hello = Hello {
                version: PROTOCOL,
                study: study.digest(),
                from: peer,
                at: 0,
                heard: None,
                seen: None,
                probe: false,
            };
            let say = Frame::Say(Signed::new(message, &study.digest(), &key));
            let link = Box::new(Unread);
            party.handle(Event::Up { peer, serial, link }).unwrap();
            for frame in [Frame::Hello(hello), say] {
                let event = Event::Frame {
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

    /// Opens the study, asks once, and ends.
    fn ask_once(&self) -> Release {
        let (mut party, _) = self.open().unwrap();
        self.ask(&mut party);
        party.node().model().clone()
    }
}

#[test]
fn a_study_beyond_the_limit_does_not_begin() {
    let mut office = Office::new();
    office.limit = office.bill().total.epsilon * 0.9;
    let refusal = office.refusal();
    assert!(
        matches!(&refusal, PremisesError::BeyondLimit { spent, after, .. }
            if *spent == 0.0 && *after > office.limit),
        "{refusal}"
    );
    let store = office.store();
    assert!(store.studies().is_empty());
    assert!(store.charges().unwrap().is_empty());
}

#[test]
fn every_question_is_charged_to_the_account_of_the_rows() {
    let office = Office::new();
    let (mut party, bill) = office.open().unwrap();
    assert_eq!(party.spent_on_rows()[0].epsilon, 0.0);
    office.ask(&mut party);
    let spent = party.spent_on_rows();
    assert!(spent[0].epsilon > 0.0 && spent[0].epsilon < bill.after[0].epsilon);
    drop(party);
    // What is on disk comes to the same.
    let later = office.bill();
    assert_eq!(later.before, spent);
    assert_eq!(later.after, bill.after);
}

#[test]
fn rows_are_charged_under_the_name_by_which_they_are_known() {
    let office = Office::new();
    office.ask_once();
    let hash = office.premises().unwrap().hash;
    let store = office.store();
    let name = store.fingerprint(&hash);
    let charges = store.charges().unwrap();
    assert_eq!(charges.len(), 1);
    assert_eq!((charges[0].study, charges[0].iteration), (0, 1));
    assert_eq!(charges[0].data, name);
    assert_eq!(store.studies()[0].fingerprint, name.to_string());
    drop(store);
    // So the study goes on where it was.
    let (party, _) = office.open().unwrap();
    assert_eq!(party.iteration(), 1);
}

#[test]
fn what_studies_spend_on_the_same_rows_adds_up() {
    let mut office = Office::new();
    let alone = office.bill();
    office.ask_once();
    let first = office.bill();
    office.another_study("second");
    let second = office.bill();
    // The first is one question in, and what it has not spent is not counted.
    assert_eq!(second.before, first.before);
    assert_eq!(second.total, alone.total);
    assert!(second.after[0].epsilon > alone.after[0].epsilon);
    // Enough for either alone, and not for what both come to.
    office.limit = (second.after[0].epsilon + alone.after[0].epsilon) / 2.0;
    let refusal = office.refusal();
    assert!(
        matches!(&refusal, PremisesError::BeyondLimit { spent, .. }
            if *spent == first.before[0].epsilon),
        "{refusal}"
    );
    assert_eq!(office.store().studies().len(), 1);
    office.limit = PLENTY;
    office.ask_once();
    let studies = { office.store().charges().unwrap().into_iter() }.map(|charge| charge.study);
    assert_eq!(studies.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn changed_rows_are_refused_until_somebody_says_whose_they_are() {
    let mut office = Office::new();
    office.ask_once();
    let spent = office.bill().before;
    let before = office.store().charges().unwrap()[0].data;
    office.another_study("second");
    office.write_rows(41);
    let refusal = office.refusal();
    assert!(
        matches!(&refusal, PremisesError::OtherRows { before: named, found }
            if *named == before && *found != before),
        "{refusal}"
    );
    // Somebody else's name does not help.
    office.continues = vec![Fingerprint([9; 32])];
    assert!(matches!(office.refusal(), PremisesError::OtherRows { .. }));
    office.continues = vec![before];
    assert_eq!(office.bill().before, spent);
    office.ask_once();
    let charges = office.store().charges().unwrap();
    assert_eq!(charges.len(), 2);
    assert_ne!(charges[1].data, before);
    // Whoever looks at the account from outside finds one total, over both states of the rows.
    let shown = Account::new(&office.store(), 1e-4, None).unwrap().site;
    let names = [before, charges[1].data].map(|one| one.to_string());
    assert_eq!(shown.fingerprints, names);
    let totals: Vec<Guarantee> = { shown.balance.totals.iter() }
        .map(|one| one.total)
        .collect();
    assert_eq!(totals, office.bill().before);
}

#[test]
fn rows_that_a_rehearsal_asked_are_not_asked_in_earnest() {
    let mut office = Office::new();
    office.noise = "seeded";
    drop(office.open().unwrap());
    // Nothing was asked yet: nothing is given away.
    office.another_study("real");
    office.noise = "secret";
    assert!(
        office
            .premises()
            .unwrap()
            .bill(Some(&office.store()))
            .is_ok()
    );

    office.another_study("rehearsal");
    office.noise = "seeded";
    office.ask_once();
    office.another_study("real");
    office.noise = "secret";
    let refusal = office.refusal();
    assert!(
        matches!(&refusal, PremisesError::Rehearsed { study } if study == "rehearsal"),
        "{refusal}"
    );
    // Another rehearsal gives away nothing more.
    office.noise = "seeded";
    office.ask_once();
}

#[test]
fn noise_is_the_studys_only_where_it_says_so() {
    // The same question, asked of the same rows in two folders.
    let mut office = Office::new();
    for (noise, same) in [("seeded", true), ("secret", false)] {
        office.noise = noise;
        let answers = [(), ()].map(|()| {
            let answer = office.ask_once();
            office.clear();
            answer
        });
        assert_eq!(answers[0] == answers[1], same, "{noise}");
    }
    // And in two studies of one folder.
    let first = office.ask_once();
    office.another_study("second");
    assert_ne!(office.ask_once(), first);
}

#[test]
fn a_study_goes_on_as_it_was_begun_or_not_at_all() {
    let how = |office: &Office| match office.refusal() {
        PremisesError::BegunOtherwise { how, .. } => how,
        other => panic!("{other}"),
    };
    let mut office = Office::new();
    drop(office.open().unwrap());
    office.sit(1);
    let named = how(&office);
    assert!(
        named.starts_with("as alder, not as birch, whose key is in "),
        "{named}"
    );
    office.sit(0);
    office.write_rows(41);
    assert_eq!(how(&office), "on other rows");
    office.write_rows(40);
    office.noise = "seeded";
    assert_eq!(how(&office), "with noise = \"secret\"");
    office.noise = "secret";
    drop(office.open().unwrap());
    assert_eq!(office.store().studies().len(), 1);

    office.clear();
    office.noise = "seeded";
    drop(office.open().unwrap());
    office.noise = "secret";
    assert_eq!(how(&office), "with noise = \"seeded\"");
}

#[test]
fn a_key_that_is_nobodys_takes_no_part() {
    let office = Office::new();
    let path = office.folder.path().join("key.pem");
    fs::remove_file(&path).unwrap();
    let key = SecretKey::generate().unwrap();
    key.write_new(&path).unwrap();
    let refusal = office.premises().err().unwrap();
    let identity = Identity::from(key.public());
    let PremisesError::Seat(refusal) = refusal else {
        panic!("{refusal}");
    };
    assert_eq!(
        *refusal,
        SeatError::Nobody {
            key: path,
            identity
        }
    );
    assert!(!office.state().exists());
}

#[test]
fn a_site_that_says_which_party_it_is_takes_no_other_key() {
    let mut office = Office::new();
    office.party = Some("alder");
    assert_eq!(office.premises().unwrap().name(), "alder");
    office.sit(1);
    let told = office.premises().err().unwrap().to_string();
    let key = office.folder.path().join("key.pem");
    let [alder, birch] = [0, 1].map(|party: usize| office.world.study.parties[party].key);
    assert_eq!(
        told,
        format!(
            "site.toml: party = \"alder\": key file {} has the identity {birch}, which is that of birch in the study, and alder's is {alder}; use alder's key file",
            key.display()
        )
    );
    fs::remove_file(&key).unwrap();
    SecretKey::generate().unwrap().write_new(&key).unwrap();
    let told = office.premises().err().unwrap().to_string();
    assert!(told.contains(", which is nobody's in the study"), "{told}");
    office.party = Some("elder");
    let told = office.premises().err().unwrap().to_string();
    assert_eq!(
        told,
        "site.toml: party = \"elder\": the study has no such party; it has alder, birch, cedar, maple, rowan"
    );
    assert!(!office.state().exists());
}

#[test]
fn values_beyond_bounds_and_labels_are_counted() {
    let office = Office::new();
    let path = office.folder.path().join("rows.csv");
    let rows = fs::read_to_string(&path).unwrap();
    let odd = "999,25.5,120,5.5,no,f,some,Yes\n?,25.5,120,5.5,no,f,some,yes\n";
    fs::write(&path, format!("{rows}{odd}")).unwrap();
    let premises = office.premises().unwrap();
    let seen = premises.seen().unwrap();
    assert_eq!((premises.rows(), seen.left_out), (41, 1));
    assert_eq!(seen.clipped, [("age".to_owned(), 1)].into());
    let labels = seen.labels.iter().map(|one| (one.value.as_str(), one.rows));
    let labels: Vec<(&str, usize)> = labels.collect();
    assert_eq!(labels, [("yes", 20), ("no", 20), ("Yes", 1)]);
    assert_eq!(seen.other_labels, 0);
}
