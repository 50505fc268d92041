//! The connections that may wait until they are authenticated.
//!
//! Anybody can connect, and a connection that sends nothing costs its owner nothing. So the waiting ones are bounded, apart for those
//! that have sent nothing and those in the TLS handshake: a silent connection takes no place from one that speaks. If there are too
//! many, the oldest one goes of the address that has most of them, in the network that has most of them. Whoever opens many pushes out
//! its own. An address from which a neighbour has authenticated before has places that nobody else can take.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The number of connections that may be silent or rejected, without those in reserved places.
pub(super) const MAX_SILENT: usize = 128;

/// The least number of TLS handshakes that may be in progress, without those in reserved places.
const MIN_HANDSHAKES: usize = 64;

/// The number of places, before and in the handshake, for each address from which a neighbour has authenticated. Its newest connections have them.
const RESERVED: usize = 2;

/// The number of a waiting connection.
pub(super) type Ticket = u64;

/// The stage of a connection that is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has sent nothing.
    Silent,
    /// It has begun the TLS handshake.
    Handshake,
    /// It is rejected, and only stays for its owner to read why.
    Rejected,
}

impl Stage {
    /// Returns whether the connection can become a neighbour's. All others share their places.
    fn has_begun(self) -> bool {
        self == Self::Handshake
    }
}

/// A connection that is not authenticated.
struct Waiting<T> {
    ticket: Ticket,
    address: SocketAddr,
    source: Source,
    stage: Stage,
    connection: T,
}

/// A connection that must be closed to make room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Evicted<T> {
    pub(super) address: SocketAddr,
    pub(super) stage: Stage,
    pub(super) connection: T,
}

/// The waiting connections, each with a value by which it can be closed.
pub(super) struct Admission<T> {
    /// Those of a stage are in the order in which they entered it.
    waiting: Vec<Waiting<T>>,
    /// The address from which each neighbour has authenticated last.
    neighbours: Vec<Option<u128>>,
    last_ticket: Ticket,
}

impl<T> Admission<T> {
    pub(super) fn new(neighbours: usize) -> Self {
        Self {
            waiting: Vec::new(),
            neighbours: vec![None; neighbours],
            last_ticket: 0,
        }
    }

    /// Adds a new connection. Another one may have to go.
    pub(super) fn arrive(
        &mut self,
        address: SocketAddr,
        connection: T,
    ) -> (Ticket, Option<Evicted<T>>) {
        self.last_ticket += 1;
        self.waiting.push(Waiting {
            ticket: self.last_ticket,
            address,
            source: Source::of(address.ip()),
            stage: Stage::Silent,
            connection,
        });
        (self.last_ticket, self.evict(Stage::Silent, None))
    }

    /// Records the first byte of a connection. Another one may have to go.
    pub(super) fn begin(&mut self, ticket: Ticket) -> Option<Evicted<T>> {
        let source = self.enter(ticket, Stage::Handshake)?;
        self.evict(Stage::Handshake, Some(source))
    }

    /// Records that a connection is rejected. Another one may have to go.
    pub(super) fn reject(&mut self, ticket: Ticket) -> Option<Evicted<T>> {
        self.enter(ticket, Stage::Rejected)?;
        self.evict(Stage::Rejected, None)
    }

    /// Records that a connection has proved to be a neighbour's, and waits no more.
    pub(super) fn authenticate(&mut self, ticket: Ticket, neighbour: usize) {
        if let (Some(waiting), Some(last)) =
            (self.leave(ticket), self.neighbours.get_mut(neighbour))
        {
            *last = Some(waiting.source.host);
        }
    }

    /// Removes a connection that waits no more.
    pub(super) fn close(&mut self, ticket: Ticket) {
        self.leave(ticket);
    }

    /// Returns the number of TLS handshakes that may be in progress: some for each neighbour, which may all dial at once.
    fn max_handshakes(&self) -> usize {
        MIN_HANDSHAKES.max(2 * self.neighbours.len())
    }

    /// Returns the number of TLS handshakes that one address may have in progress. All neighbours may have the same, that of a proxy.
    fn max_handshakes_per_host(&self) -> usize {
        self.max_handshakes() / 2
    }

    fn leave(&mut self, ticket: Ticket) -> Option<Waiting<T>> {
        let index = self.waiting.iter().position(|one| one.ticket == ticket)?;
        Some(self.waiting.remove(index))
    }

    /// Moves a connection to the end of a stage.
    fn enter(&mut self, ticket: Ticket, stage: Stage) -> Option<Source> {
        let waiting = self.leave(ticket)?;
        let source = waiting.source;
        self.waiting.push(Waiting { stage, ..waiting });
        Some(source)
    }

    /// Removes a connection if too many have, or have not, begun the handshake, or too many of the address of the newest.
    fn evict(&mut self, stage: Stage, newest: Option<Source>) -> Option<Evicted<T>> {
        let open = self.without_reserved(stage);
        let source = |index: &usize| self.waiting[*index].source;
        let most = match stage.has_begun() {
            true => self.max_handshakes(),
            false => MAX_SILENT,
        };
        let mut of_newest = open
            .iter()
            .filter(|index| newest.is_some_and(|newest| newest.host == source(index).host));
        let index = if of_newest.clone().count() > self.max_handshakes_per_host() {
            of_newest.next().copied()
        } else if open.len() > most {
            let (mut networks, mut hosts) = (BTreeMap::new(), BTreeMap::new());
            for index in &open {
                *networks.entry(source(index).network).or_insert(0_usize) += 1;
                *hosts.entry(source(index).host).or_insert(0_usize) += 1;
            }
            let crowd = |index: &usize| {
                let source = source(index);
                (networks[&source.network], hosts[&source.host])
            };
            // Of several equal ones, this is the first, the oldest.
            open.iter()
                .copied()
                .min_by_key(|index| Reverse(crowd(index)))
        } else {
            None
        };
        let evicted = self.waiting.remove(index?);
        Some(Evicted {
            address: evicted.address,
            stage: evicted.stage,
            connection: evicted.connection,
        })
    }

    /// Returns the indices of the connections that compete with those of a stage, without those in reserved places, oldest first.
    fn without_reserved(&self, stage: Stage) -> Vec<usize> {
        let mut left: BTreeMap<u128, usize> = BTreeMap::new();
        let known: BTreeSet<u128> = self.neighbours.iter().flatten().copied().collect();
        left.extend(known.into_iter().map(|host| (host, RESERVED)));
        let mut open: Vec<usize> = Vec::new();
        for (index, waiting) in self.waiting.iter().enumerate().rev() {
            if waiting.stage.has_begun() != stage.has_begun() {
                continue;
            }
            match left.get_mut(&waiting.source.host) {
                Some(places @ 1..) => *places -= 1,
                _ => open.push(index),
            }
        }
        open.reverse();
        open
    }
}

/// The origin of a connection, as far as one owner can be told from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    /// The network that one owner may have: 256 addresses, all of this machine's own, or an IPv6 prefix of 48 bits.
    network: u128,
    /// The address, or an IPv6 prefix of 64 bits.
    host: u128,
}

impl Source {
    fn of(address: IpAddr) -> Self {
        let (bits, network, host) = match address.to_canonical() {
            // Every program on this machine can use all of 127.0.0.0/8.
            IpAddr::V4(v4) if v4.is_loopback() => (v4.to_ipv6_mapped().to_bits(), 96 + 8, 128),
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + 24, 128),
            IpAddr::V6(v6) => (v6.to_bits(), 48, 64),
        };
        let prefix = |length: u32| bits & (u128::MAX << (128 - length));
        Self {
            network: prefix(network),
            host: prefix(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 1)
    }

    /// The connections of strangers and of one neighbour, by name.
    struct Scene {
        admission: Admission<&'static str>,
        evicted: Vec<Evicted<&'static str>>,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                admission: Admission::new(1),
                evicted: Vec::new(),
            }
        }

        fn arrive(&mut self, name: &'static str, address: &str) -> Ticket {
            let (ticket, evicted) = self.admission.arrive(at(address), name);
            self.evicted.extend(evicted);
            ticket
        }

        fn begin(&mut self, name: &'static str, address: &str) -> Ticket {
            let ticket = self.arrive(name, address);
            self.evicted.extend(self.admission.begin(ticket));
            ticket
        }

        /// Lets the neighbour authenticate once.
        fn meet(&mut self, address: &str) {
            let ticket = self.begin("neighbour", address);
            self.admission.authenticate(ticket, 0);
        }

        /// Returns whether the neighbour was never evicted.
        fn neighbour_stays(&self) -> bool {
            !self.evicted.iter().any(|one| one.connection == "neighbour")
        }

        fn count(&self, stage: Stage) -> usize {
            let waiting = self.admission.waiting.iter();
            waiting.filter(|one| one.stage == stage).count()
        }
    }

    #[test]
    fn silent_connections_take_no_place_from_one_that_has_begun() {
        let mut scene = Scene::new();
        // Even those of the same address.
        scene.begin("neighbour", "192.0.2.1");
        for _ in 0..10_000 {
            scene.arrive("stranger", "192.0.2.1");
        }
        assert!(scene.neighbour_stays());
        assert_eq!(scene.count(Stage::Silent), MAX_SILENT);
        assert_eq!(scene.evicted.len(), 10_000 - MAX_SILENT);
    }

    #[test]
    fn many_connections_of_an_address_push_out_their_own() {
        for (neighbour, strangers) in [
            ("192.0.2.1", ["198.51.100.1", "198.51.100.2"]),
            // The same network, and another address.
            ("192.0.2.1", ["192.0.2.2", "192.0.2.3"]),
            ("127.0.0.1", ["127.0.0.2", "127.77.0.3"]),
            ("2001:db8::1", ["2001:db8:1::1", "2001:db8:1:7::1"]),
            // The same prefix of 48 bits, and another one of 64.
            ("2001:db8::1", ["2001:db8:0:1::1", "2001:db8:0:2::1"]),
        ] {
            let mut scene = Scene::new();
            scene.arrive("neighbour", neighbour);
            scene.begin("neighbour", neighbour);
            for _ in 0..1000 {
                for stranger in strangers {
                    scene.begin("stranger", stranger);
                    scene.arrive("stranger", stranger);
                }
            }
            assert!(scene.neighbour_stays(), "{neighbour} and {strangers:?}");
        }
    }

    #[test]
    fn many_addresses_of_a_network_push_out_their_own() {
        let mut scene = Scene::new();
        scene.arrive("neighbour", "192.0.2.1");
        scene.begin("neighbour", "192.0.2.1");
        for round in 0..20 {
            for last in 0..=255 {
                scene.arrive("stranger", &format!("198.51.100.{last}"));
                scene.begin("stranger", &format!("2001:db8:0:{round}:{last:x}::1"));
            }
        }
        assert!(scene.neighbour_stays());
    }

    #[test]
    fn every_address_of_this_machine_is_in_one_network() {
        let mut scene = Scene::new();
        scene.arrive("neighbour", "192.0.2.1");
        for number in 0..MAX_SILENT {
            scene.arrive("stranger", &format!("127.{number}.0.1"));
        }
        assert_eq!(scene.evicted.len(), 1);
        assert!(scene.neighbour_stays());
        let mapped = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(Source::of(mapped), Source::of("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn nobody_takes_the_places_of_an_address_that_a_neighbour_has_used() {
        for known in [true, false] {
            let mut scene = Scene::new();
            if known {
                scene.meet("192.0.2.1");
            }
            scene.arrive("neighbour", "192.0.2.1");
            scene.begin("neighbour", "192.0.2.1");
            // A stranger with a network for each connection.
            for number in 0..1000 {
                let address = format!("10.{}.{}.1", number / 256, number % 256);
                scene.begin("stranger", &address);
                scene.arrive("stranger", &address);
            }
            assert_eq!(scene.neighbour_stays(), known);
            let reserved = if known { 1 } else { 0 };
            assert_eq!(scene.count(Stage::Silent), MAX_SILENT + reserved);
            assert_eq!(scene.count(Stage::Handshake), MIN_HANDSHAKES + reserved);
        }
    }

    #[test]
    fn a_neighbours_newest_connections_have_its_places() {
        let mut scene = Scene::new();
        scene.meet("192.0.2.1");
        for _ in 0..RESERVED {
            scene.begin("stranger", "192.0.2.1");
        }
        for _ in 0..RESERVED {
            scene.begin("neighbour", "192.0.2.1");
        }
        for number in 0..1000 {
            scene.begin(
                "stranger",
                &format!("10.{}.{}.1", number / 256, number % 256),
            );
        }
        assert!(scene.neighbour_stays());
        assert_eq!(scene.count(Stage::Handshake), MIN_HANDSHAKES + RESERVED);
    }

    #[test]
    fn a_neighbour_that_moves_takes_its_places_along() {
        let mut scene = Scene::new();
        scene.meet("192.0.2.1");
        scene.meet("198.51.100.1");
        let known: Vec<u128> = scene
            .admission
            .neighbours
            .iter()
            .flatten()
            .copied()
            .collect();
        let host = Source::of("198.51.100.1".parse().unwrap()).host;
        assert_eq!(known, [host]);
    }

    #[test]
    fn one_address_has_at_most_half_of_all_handshakes() {
        let mut scene = Scene::new();
        let first = scene.begin("stranger", "192.0.2.1");
        for _ in 1..MIN_HANDSHAKES / 2 {
            scene.begin("stranger", "192.0.2.1");
        }
        assert_eq!(scene.evicted, []);
        scene.begin("stranger", "192.0.2.1");
        assert_eq!(scene.evicted.len(), 1);
        assert_eq!(scene.evicted[0].stage, Stage::Handshake);
        // The oldest one is gone, and nothing more happens to it.
        assert_eq!(scene.admission.begin(first), None);
        assert_eq!(scene.count(Stage::Handshake), MIN_HANDSHAKES / 2);
    }

    #[test]
    fn all_neighbours_behind_one_proxy_can_dial_at_once() {
        let mut admission = Admission::new(200);
        for _ in 0..200 {
            let (ticket, evicted) = admission.arrive(at("192.0.2.1"), ());
            assert_eq!((evicted, admission.begin(ticket)), (None, None));
        }
    }

    #[test]
    fn a_rejected_connection_makes_room() {
        let mut scene = Scene::new();
        for _ in 0..10_000 {
            let ticket = scene.begin("stranger", "192.0.2.1");
            scene.evicted.extend(scene.admission.reject(ticket));
        }
        assert_eq!(scene.count(Stage::Handshake), 0);
        assert_eq!(scene.count(Stage::Rejected), MAX_SILENT);
        // It shares the places of silent ones, and the oldest goes.
        scene.arrive("stranger", "192.0.2.1");
        assert_eq!(scene.count(Stage::Rejected), MAX_SILENT - 1);
    }

    #[test]
    fn connections_that_are_gone_count_no_more() {
        let mut scene = Scene::new();
        for _ in 0..1000 {
            let silent = scene.arrive("stranger", "192.0.2.1");
            let begun = scene.begin("stranger", "192.0.2.1");
            scene.admission.close(silent);
            scene.admission.close(begun);
        }
        assert_eq!(scene.evicted, []);
        assert!(scene.admission.waiting.is_empty());
    }
}
