//! What a neighbour can make a party keep in memory, and what it cannot.

use radmm_node::machine::link::UNREAD;

use crate::party::{LARGEST, Party, person};

#[test]
fn a_frame_above_the_limit_ends_the_link() {
    for sender_dials in [false, true] {
        let (strict, wordy) = (person(0), person(1));
        let mut settings = strict.settings(vec![]);
        settings.largest_frame = 1000;
        let (mut taking, mut sending) = match sender_dials {
            true => {
                settings.neighbours = vec![wordy.dialling()];
                let taking = Party::start(settings).unwrap();
                let address = taking.address();
                (taking, wordy.start(vec![strict.at(address)]))
            }
            false => {
                let sending = wordy.start(vec![strict.dialling()]);
                settings.neighbours = vec![wordy.at(sending.address())];
                (Party::start(settings).unwrap(), sending)
            }
        };
        let (_, link) = sending.up(&strict);
        assert!(link.send(vec![1; 1000]));
        taking.hears(&wordy, &[1; 1000]);
        assert!(link.send(vec![1; 1001]));
        let reason = taking.down(&wordy);
        assert!(reason.contains("more than 1000 bytes"), "{reason}");
        sending.down(&strict);
        // It may try again.
        let (_, link) = sending.up(&strict);
        assert!(link.send(vec![2; 10]));
        taking.hears(&wordy, &[2; 10]);
    }
}

#[test]
fn who_does_not_read_is_sent_no_more_and_others_are() {
    const FRAME: usize = LARGEST / 2;
    for idle_dials in [false, true] {
        let (idle, speaker, lively) = (person(0), person(1), person(2));
        let (mut idle_party, mut party) = match idle_dials {
            true => {
                let party = speaker.start(vec![idle.dialling(), lively.dialling()]);
                (idle.start(vec![speaker.at(party.address())]), party)
            }
            false => {
                let idle_party = idle.start(vec![speaker.dialling()]);
                let neighbours = vec![idle.at(idle_party.address()), lively.dialling()];
                (idle_party, speaker.start(neighbours))
            }
        };
        let (_, to_idle) = party.up(&idle);
        let mut lively_party = lively.start(vec![speaker.at(party.address())]);
        let (_, to_lively) = party.up(&lively);
        let (_, from_lively) = lively_party.up(&speaker);

        let mut unread = Vec::new();
        let mut sent = 0;
        while to_idle.send(vec![sent; FRAME]) {
            if unread.len() < UNREAD {
                unread.push(idle_party.unread(&speaker));
            }
            sent += 1;
            // Others talk in the meantime, which gives frames time to leave.
            assert!(to_lively.send(vec![sent]));
            lively_party.hears(&speaker, &[sent]);
            assert!(from_lively.send(vec![sent]));
            party.hears(&lively, &[sent]);
            assert!(sent < 40, "nothing holds the sender back");
        }
        assert_eq!(party.down(&idle), "it does not read what it is sent");
        assert_eq!(unread.len(), UNREAD);
        assert_eq!(
            idle_party.times("frame"),
            UNREAD,
            "more than agreed on is unread"
        );

        // As soon as it reads, there is a link again.
        drop(unread);
        let (_, to_idle) = party.up(&idle);
        assert!(to_idle.send(vec![99]));
        idle_party.until(|event| match event {
            radmm_node::machine::link::Event::Frame { bytes, .. } => (bytes == [99]).then_some(()),
            _ => None,
        });
    }
}
