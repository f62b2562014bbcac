//! A bounded number of places, shared so that no one who takes them can take them all.
//!
//! While there is plenty, everybody may have as many as there are. The last quarter is for those who have few: who holds
//! a 64th of all or more gets none of it. So one client, whatever it does, leaves a quarter of the places to others.
//! It must know nothing of what the places are for.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_core::Caller;

/// One part in so many of the places is for those who have few.
const KEPT: usize = 4;
/// One part in so many of the places is as many as one may have of those.
const SHARE: usize = 64;

/// Whom a place is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// An authenticated client, from wherever it calls.
    Caller(Caller),
    /// Whoever calls from there: an IPv4 address, or the /64 of an IPv6 address, because a host has all of that.
    Address(IpAddr),
    /// Nothing is known of it.
    Unknown,
}

impl Holder {
    /// By who calls, else by where from.
    pub(crate) fn of(caller: Option<&Caller>, address: Option<IpAddr>) -> Self {
        match (caller, address) {
            (Some(caller), _) if *caller != Caller::anonymous() => Self::Caller(caller.clone()),
            (_, Some(address)) => Self::Address(match address.to_canonical() {
                IpAddr::V6(address) => {
                    let host = (1_u128 << 64) - 1;
                    IpAddr::V6((u128::from(address) & !host).into())
                }
                address @ IpAddr::V4(_) => address,
            }),
            (_, None) => Self::Unknown,
        }
    }
}

/// The places. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    /// As many as one may have when few are left.
    share: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Who has none is not in here.
    by: HashMap<Holder, usize>,
}

/// A place or several, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    holder: Holder,
    count: usize,
}

impl Room {
    /// So many places; at least one.
    pub(crate) fn of(places: usize) -> Self {
        Self::with_share(places, 1)
    }

    /// So many places, of the last of which everybody gets so many at least.
    pub(crate) fn with_share(places: usize, least: usize) -> Self {
        let places = places.max(1);
        Self(Arc::new(Shared {
            places,
            share: (places / SHARE).max(least),
            taken: Mutex::default(),
        }))
    }

    /// A place, if there is one for that holder.
    pub(crate) fn enter(&self, holder: Holder) -> Option<Place> {
        let mut place = self.none_for(holder);
        place.widen(1).then_some(place)
    }

    /// No place yet, for a holder who does not know how many it will be.
    pub(crate) fn none_for(&self, holder: Holder) -> Place {
        Place {
            room: self.clone(),
            holder,
            count: 0,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes so many more, if there are as many for this holder; else none.
    pub(crate) fn widen(&mut self, by: usize) -> bool {
        let room = &self.room;
        let mut taken = room.taken();
        let own = taken.by.get(&self.holder).copied().unwrap_or(0) + by;
        let Some(left) = room.0.places.checked_sub(taken.all + by) else {
            return false;
        };
        if left < room.0.places / KEPT && own > room.0.share {
            return false;
        }
        taken.all += by;
        taken.by.insert(self.holder.clone(), own);
        self.count += by;
        true
    }

    /// Gives so many back, or all there are.
    pub(crate) fn narrow(&mut self, by: usize) {
        let by = by.min(self.count);
        if by == 0 {
            return;
        }
        self.count -= by;
        let mut taken = self.room.taken();
        taken.all -= by;
        if let Some(own) = taken.by.get_mut(&self.holder) {
            *own -= by;
            if *own == 0 {
                taken.by.remove(&self.holder);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.narrow(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Holder {
        Holder::of(Some(&Caller::anonymous()), Some(address.parse().unwrap()))
    }

    /// As many as it gets.
    fn all_of(room: &Room, holder: &Holder) -> Vec<Place> {
        std::iter::from_fn(|| room.enter(holder.clone())).collect()
    }

    #[test]
    fn who_takes_all_it_can_leaves_a_quarter_to_others() {
        let room = Room::of(256);
        let hog = all_of(&room, &from("192.0.2.1"));
        assert_eq!(hog.len(), 192);
        assert!(room.enter(from("192.0.2.2")).is_some());
    }

    #[test]
    fn of_what_is_left_each_gets_a_share() {
        let room = Room::of(256);
        let _hog = all_of(&room, &from("192.0.2.1"));
        let others: Vec<_> = (2..=30)
            .map(|n| all_of(&room, &from(&format!("192.0.2.{n}"))))
            .collect();
        let counts: Vec<_> = others.iter().map(Vec::len).collect();
        assert_eq!(counts[..16], [4; 16]);
        assert_eq!(counts[16..], [0; 13], "there are no more places");
    }

    #[test]
    fn places_come_back_and_nobody_who_has_none_is_remembered() {
        let room = Room::of(4);
        let (one, other) = (from("192.0.2.1"), from("192.0.2.2"));
        let held = all_of(&room, &one);
        assert_eq!(held.len(), 3);
        let last = room.enter(other.clone());
        assert!(last.is_some() && room.enter(from("192.0.2.3")).is_none());
        drop(held);
        assert_eq!(all_of(&room, &other).len(), 2, "with the one it has, three");
        drop(last);
        assert_eq!(room.taken().all, 0);
        assert!(room.taken().by.is_empty());
    }

    #[test]
    fn who_wants_several_gets_all_of_them_or_none() {
        let room = Room::of(256);
        let mut hog = room.none_for(from("192.0.2.1"));
        assert!(hog.widen(190) && !hog.widen(3) && hog.widen(2));
        let mut other = room.none_for(from("192.0.2.2"));
        assert!(!other.widen(5), "more than a share of the last quarter");
        assert!(other.widen(4) && !other.widen(1));
        drop(hog);
        assert!(other.widen(188));
        drop(other);
        assert_eq!(room.taken().all, 0);
        assert!(room.taken().by.is_empty());
    }

    #[test]
    fn a_room_of_one_place_has_one_for_whoever_comes_first() {
        let room = Room::of(1);
        let place = room.enter(from("192.0.2.1"));
        assert!(place.is_some() && room.enter(from("192.0.2.2")).is_none());
    }

    #[test]
    fn a_client_is_its_name_else_its_address_and_a_host_has_all_of_a_64() {
        let web = Caller::parse("web").unwrap();
        let (here, there) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        assert_eq!(Holder::of(Some(&web), here), Holder::of(Some(&web), there));
        assert_ne!(Holder::of(None, here), Holder::of(None, there));
        assert_eq!(from("2001:db8:0:1::1"), from("2001:db8:0:1:ffff::2"));
        assert_ne!(from("2001:db8:0:1::1"), from("2001:db8:0:2::1"));
        assert_eq!(from("::ffff:192.0.2.1"), from("192.0.2.1"));
        assert_eq!(Holder::of(None, None), Holder::Unknown);
    }
}
