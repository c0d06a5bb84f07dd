//! The places of the connections of a loop.

/// Names a connection of a loop. A key is never used again, so a late wake-up finds nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    index: u32,
    generation: u32,
}

impl ConnectionKey {
    /// The key of the connection that was the so many-th in its place, both counted from 0.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The key as the number that the system returns with an event.
    pub(crate) const fn to_number(self) -> usize {
        (self.generation as usize) << 32 | self.index as usize
    }

    pub(crate) const fn from_number(number: usize) -> Self {
        Self::new(number as u32, (number >> 32) as u32)
    }
}

/// What is known about a connection since its last turn. The system reports a change once, so the driver clears a flag
/// only when there is nothing more to read or write, or when it has seen to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// The socket may have something to read.
    pub readable: bool,
    /// The peer sends no more, or the connection has failed: reads must go on until they say so.
    pub ended: bool,
    /// The connection was woken, is new to the loop, or has come back.
    pub woken: bool,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Input, or a wake-up.
    Read,
    /// Room for output, or a wake-up.
    Write,
    /// Something that the driver knows of, or a wake-up.
    Nothing,
}

pub(crate) struct Slot<C> {
    /// `None` while the connection is away.
    pub(crate) connection: Option<Box<C>>,
    generation: u32,
    pub(crate) readiness: Readiness,
    pub(crate) interest: Interest,
    /// Whether the slot belongs to a connection, which may be away.
    is_taken: bool,
    /// Whether a turn is due.
    pub(crate) is_queued: bool,
}

/// All places, and which of them are free.
pub(crate) struct Slots<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
}

impl<C> Slots<C> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives a connection a place. Its first turn has to look at everything.
    pub(crate) fn insert(&mut self, connection: Box<C>) -> ConnectionKey {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                connection: None,
                generation: 0,
                readiness: Readiness::default(),
                interest: Interest::Read,
                is_taken: false,
                is_queued: false,
            });
            (self.slots.len() - 1) as u32
        });
        let mut generation = 0;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.connection = Some(connection);
            slot.readiness = Readiness {
                readable: true,
                ended: false,
                woken: true,
            };
            slot.interest = Interest::Read;
            slot.is_taken = true;
            slot.is_queued = false;
            generation = slot.generation;
        }
        ConnectionKey::new(index, generation)
    }

    /// The place of a connection, unless the connection is gone.
    pub(crate) fn get(&mut self, key: ConnectionKey) -> Option<&mut Slot<C>> {
        self.slots
            .get_mut(key.index as usize)
            .filter(|slot| slot.is_taken && slot.generation == key.generation)
    }

    /// Frees a place.
    pub(crate) fn remove(&mut self, key: ConnectionKey) -> Option<Box<C>> {
        let slot = self.get(key)?;
        slot.is_taken = false;
        slot.generation = slot.generation.wrapping_add(1);
        let connection = slot.connection.take();
        self.free.push(key.index);
        connection
    }

    /// All connections that are not away.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Box<C>> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_used_again_is_not_found_by_its_old_key() {
        let mut slots = Slots::new();
        let first = slots.insert(Box::new('a'));
        assert_eq!(slots.remove(first), Some(Box::new('a')));
        let second = slots.insert(Box::new('b'));
        assert_eq!(second.index, first.index);
        assert!(slots.get(first).is_none() && slots.remove(first).is_none());
        assert_eq!(ConnectionKey::from_number(second.to_number()), second);
        assert!(slots.get(second).is_some());
    }
}
