//! Turns: whose input is served next, when more input waits than can be served?
//!
//! Deficit round robin (M. Shreedhar and G. Varghese, "Efficient Fair Queueing Using Deficit Round Robin", SIGCOMM
//! 1995, §3), in levels: first between the classes, then between the holders and groups of a class, then between the
//! inputs of one holder.
//!
//! ```text
//!   root ─┬─ management, local ─┬─ user 0 ────────── socket
//!         │                     └─ user 1000 ─────── socket × 600
//!         └─ remote ─┬─ 192.0.2.1 ────────────────── socket × 2,000
//!                    ├─ 2001:db8:1::/48 ─┬─ …:1::/64 ── socket
//!                    │                   └─ …:2::/64 ── socket
//!                    └─ a listener: its senders pay together, with the weight of all of them
//! ```
//!
//! | paper | here |
//! | --- | --- |
//! | ActiveList | the ring of children of a node; a node without children is in no ring |
//! | DeficitCounter | `credit` |
//! | Quantum | [`Turns::new`]'s `quantum`, times the weight of the member |
//!
//! Where we deviate: the paper knows the size of a packet before it sends it. The cost of a read is known only
//! afterwards. So a member is served while its credit is positive, and may overdraw it by one turn, which its next
//! rounds pay for. A member that joins has a full quantum, and waits for one round of all others. A member that leaves
//! loses its credit or debt. The paper has one level. With several levels, a holder gains nothing from more sockets,
//! and a site gains nothing from more networks.
//!
//! Neither class can lock out the other, however many holders it has. While both classes want turns, each gets them in
//! proportion to its holders, but at least a quarter. (Management and local holders are one class, remote holders the
//! other.)
//!
//! Guarantee: if two members of a ring always have input waiting, their service never differs by more than a quantum
//! and two turns (times their weights). Cost: a turn looks at three or four rings, however much waits. It allocates
//! only when more waits than ever before. A ring with one waiting member does no accounting. Memory: 4 bytes for each
//! number of a holder up to the largest that ever waited, and 40 bytes and an item for each thing that waits.

use crate::holder::Class;
use crate::holder_table::{Groups, HolderId};

/// Who pays for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A holder.
    Holder(HolderId),
    /// The remote senders whose packets come together, through the listener of this number.
    Senders(usize),
}

/// The classes' rings: a class has at most so many turns for each of the other, while both want them.
const CLASS_WEIGHT_MAX: u32 = 3;

const ROOT: u32 = 0;
/// Management and local holders.
const LOCAL: u32 = 1;
const REMOTE: u32 = 2;
/// In the tables of members: none. The root is no member.
const NONE: u32 = 0;

/// See the module documentation. `T` is what has turns.
#[derive(Debug)]
pub struct Turns<T> {
    nodes: Vec<Node<T>>,
    /// Places in `nodes` to be used again.
    free: Vec<u32>,
    /// The nodes of members, by number; as long as the largest number that ever waited needs.
    of_holder: Vec<u32>,
    of_group: Vec<u32>,
    of_senders: Vec<u32>,
    groups: Groups,
    quantum: i64,
    /// Things that wait.
    len: usize,
    /// The thing whose turn it is.
    current: u32,
}

#[derive(Debug)]
struct Node<T> {
    parent: u32,
    /// The next in the ring of the parent's children.
    next: u32,
    /// The last of the own children; its `next` is the first.
    last: u32,
    children: u32,
    weight: u32,
    credit: i64,
    kind: Kind<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<T> {
    /// Root or class: they stay.
    Fixed,
    Member(Member),
    Item(T),
}

/// What joins the ring of a class or group while something of it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Group(u16),
    Payer(Payer),
}

impl<T: Copy> Turns<T> {
    /// Nothing waits. `quantum`: what one holder may cost in one round.
    pub fn new(quantum: u32, groups: &Groups) -> Self {
        let mut turns = Turns {
            nodes: Vec::new(),
            free: Vec::new(),
            of_holder: Vec::new(),
            of_group: Vec::new(),
            of_senders: Vec::new(),
            groups: groups.clone(),
            quantum: i64::from(quantum.max(1)),
            len: 0,
            current: NONE,
        };
        (ROOT..=REMOTE).for_each(|_| {
            turns.make(Kind::Fixed);
        });
        turns
    }

    /// Things that wait, the one whose turn it is included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds something that waits from now on.
    pub fn push(&mut self, payer: Payer, item: T) {
        let parent = self.member(payer);
        let node = self.make(Kind::Item(item));
        self.link(parent, node);
        self.len += 1;
    }

    /// Begins a turn: returns what has it. It keeps its place until [`Turns::end`].
    #[inline]
    pub fn begin(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let mut node = ROOT;
        loop {
            node = self.first(node);
            if let Kind::Item(item) = self.nodes[node as usize].kind {
                self.current = node;
                return Some(item);
            }
        }
    }

    /// Ends the turn of what [`Turns::begin`] returned: what the turn has cost, and whether it wants another one.
    #[inline]
    pub fn end(&mut self, cost: u32, wants_more: bool) {
        let item = std::mem::replace(&mut self.current, NONE);
        if item == NONE {
            return;
        }
        let mut node = self.nodes[item as usize].parent;
        if wants_more {
            self.nodes[node as usize].last = item;
        } else {
            self.unlink_first(node);
            self.free.push(item);
            self.len -= 1;
        }
        while node != ROOT {
            let Node { parent, children, .. } = self.nodes[node as usize];
            if children == 0 {
                self.unlink_first(parent);
                self.forget(node);
            } else if self.nodes[parent as usize].children > 1 {
                self.nodes[node as usize].credit -= i64::from(cost);
            }
            node = parent;
        }
    }

    /// Sets how many quanta a round has for the payer of the present turn, while it waits. It is 1 for who joins.
    pub fn set_weight(&mut self, weight: u32) {
        let payer = self.nodes[self.current as usize].parent;
        self.nodes[payer as usize].weight = weight.max(1);
    }

    /// The first child whose credit is positive. Those before it get a quantum and go to the end of the ring. A child
    /// without brothers needs no credit.
    #[inline]
    fn first(&mut self, parent: u32) -> u32 {
        loop {
            let Node { last, children, .. } = self.nodes[parent as usize];
            let first = self.nodes[last as usize].next;
            let node = &self.nodes[first as usize];
            if children == 1 || node.credit > 0 || matches!(node.kind, Kind::Item(_)) {
                return first;
            }
            self.nodes[first as usize].credit += self.quantum_of(first);
            self.nodes[parent as usize].last = first;
        }
    }

    fn quantum_of(&self, node: u32) -> i64 {
        let weight = match node {
            LOCAL => self.class_weight(LOCAL, REMOTE),
            REMOTE => self.class_weight(REMOTE, LOCAL),
            node => self.nodes[node as usize].weight,
        };
        self.quantum * i64::from(weight)
    }

    fn class_weight(&self, own: u32, other: u32) -> u32 {
        let [own, other] = [own, other].map(|class| self.nodes[class as usize].children);
        (own / other.max(1)).clamp(1, CLASS_WEIGHT_MAX)
    }

    /// The node of a payer, which joins the ring of its group or class if it is in none.
    #[inline]
    fn member(&mut self, payer: Payer) -> u32 {
        let known = *self.place(Member::Payer(payer));
        if known != NONE {
            return known;
        }
        let parent = match payer {
            Payer::Holder(holder) if holder.class() < Class::Remote => LOCAL,
            Payer::Holder(holder) => self.group(holder),
            Payer::Senders(_) => REMOTE,
        };
        self.join(parent, Member::Payer(payer))
    }

    /// The node of a remote holder's group, or the class if it has none.
    fn group(&mut self, holder: HolderId) -> u32 {
        let group = self.groups.of(holder);
        if group == 0 {
            return REMOTE;
        }
        let known = *self.place(Member::Group(group));
        if known == NONE { self.join(REMOTE, Member::Group(group)) } else { known }
    }

    fn join(&mut self, parent: u32, member: Member) -> u32 {
        let node = self.make(Kind::Member(member));
        *self.place(member) = node;
        self.link(parent, node);
        node
    }

    /// Where the node of a member is noted.
    fn place(&mut self, member: Member) -> &mut u32 {
        let (table, number) = match member {
            Member::Payer(Payer::Holder(holder)) => (&mut self.of_holder, holder.index()),
            Member::Payer(Payer::Senders(number)) => (&mut self.of_senders, number),
            Member::Group(group) => (&mut self.of_group, usize::from(group)),
        };
        if number >= table.len() {
            table.resize(number + 1, NONE);
        }
        &mut table[number]
    }

    fn make(&mut self, kind: Kind<T>) -> u32 {
        let node = Node { parent: ROOT, next: NONE, last: NONE, children: 0, weight: 1, credit: self.quantum, kind };
        match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32 // far fewer than 2^32 sockets
            }
        }
    }

    /// Frees the node of a member that has no children left. Classes stay, with a full quantum.
    fn forget(&mut self, node: u32) {
        match self.nodes[node as usize].kind {
            Kind::Member(member) => {
                *self.place(member) = NONE;
                self.free.push(node);
            }
            Kind::Fixed | Kind::Item(_) => self.nodes[node as usize].credit = self.quantum,
        }
    }

    /// Makes `child` the last child. A class with its first child joins the root's ring.
    fn link(&mut self, parent: u32, child: u32) {
        let Node { last, children, .. } = self.nodes[parent as usize];
        let next = if children == 0 { child } else { self.nodes[last as usize].next };
        if children > 0 {
            self.nodes[last as usize].next = child;
        }
        (self.nodes[child as usize].parent, self.nodes[child as usize].next) = (parent, next);
        (self.nodes[parent as usize].last, self.nodes[parent as usize].children) = (child, children + 1);
        if children == 0 && (parent == LOCAL || parent == REMOTE) {
            self.link(ROOT, parent);
        }
    }

    fn unlink_first(&mut self, parent: u32) {
        let last = self.nodes[parent as usize].last;
        let first = self.nodes[last as usize].next;
        self.nodes[last as usize].next = self.nodes[first as usize].next;
        self.nodes[parent as usize].children -= 1;
    }
}
