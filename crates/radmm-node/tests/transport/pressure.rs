//! Bounds on the memory that a neighbour can make a party use.

use radmm_node::machine::MAX_UNREAD_FRAMES;

use crate::party::{MAX_FRAME, TestParty, key_holder};

#[test]
fn a_frame_above_the_limit_ends_the_link() {
    for sender_dials in [false, true] {
        let (strict, wordy) = (key_holder(0), key_holder(1));
        let mut config = strict.config(vec![]);
        config.largest_frame = 1000;
        let (mut taking, mut sending) = match sender_dials {
            true => {
                config.neighbours = vec![wordy.dialling()];
                let taking = TestParty::start(config).unwrap();
                let address = taking.address();
                (taking, wordy.start(vec![strict.at(address)]))
            }
            false => {
                let sending = wordy.start(vec![strict.dialling()]);
                config.neighbours = vec![wordy.at(sending.address())];
                (TestParty::start(config).unwrap(), sending)
            }
        };
        let (_, link) = sending.up(&strict);
        assert!(link.send(vec![1; 1000]));
        taking.receives(&wordy, &[1; 1000]);
        assert!(link.send(vec![1; 1001]));
        let reason = taking.down(&wordy);
        assert!(reason.contains("more than 1000 bytes"), "{reason}");
        sending.down(&strict);
        // A new link may come up.
        let (_, link) = sending.up(&strict);
        assert!(link.send(vec![2; 10]));
        taking.receives(&wordy, &[2; 10]);
    }
}

#[test]
fn a_neighbour_that_does_not_read_loses_its_link_and_others_do_not() {
    // More than the operating system holds in the buffers of both sockets.
    const MOST: u8 = 250;
    for idle_dials in [false, true] {
        let (idle, speaker, lively) = (key_holder(0), key_holder(1), key_holder(2));
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
        while to_idle.send(vec![sent; MAX_FRAME]) {
            if unread.len() < MAX_UNREAD_FRAMES {
                unread.push(idle_party.unread(&speaker));
            }
            sent += 1;
            // Other links work in the meantime, which gives frames time to leave.
            assert!(to_lively.send(vec![sent]));
            lively_party.receives(&speaker, &[sent]);
            assert!(from_lively.send(vec![sent]));
            party.receives(&lively, &[sent]);
            assert!(sent < MOST, "nothing holds the sender back");
        }
        assert_eq!(party.down(&idle), "it does not read what it is sent");
        assert_eq!(unread.len(), MAX_UNREAD_FRAMES);
        assert_eq!(
            idle_party.count("frame"),
            MAX_UNREAD_FRAMES,
            "more frames than allowed are unread"
        );

        // As soon as it reads, a new link comes up.
        drop(unread);
        let (_, to_idle) = party.up(&idle);
        assert!(to_idle.send(vec![99]));
        idle_party.until(|event| match event {
            radmm_node::machine::LinkEvent::Frame { bytes, .. } => (bytes == [99]).then_some(()),
            _ => None,
        });
    }
}
