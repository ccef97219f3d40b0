//! Distances. A jump has 16 bits for its own, in 8-byte slots. What is further away is reached over *islands*:
//! jumps that stand between other code and lead on, to the target or to the next island.
//!
//! Islands stand together at *sites*, at most [`SITE_DISTANCE`] apart, preferably where nothing falls into them;
//! elsewhere a jump leads around them. Which are needed is found by trying: islands move code, which may put
//! more targets out of reach. Rounds add islands until none is missing, then remove those that are not needed,
//! which only shortens distances.

use hashbrown::HashMap;
use pktc_bpf::{Insn, slots};
use pktc_diagnostics::Span;
use pktc_lower::vcode::VBlockId;

use crate::layout::{Item, Row};
use crate::module::MachineInsn;

/// Slots between two sites at most (but for the islands themselves).
const SITE_DISTANCE: usize = 4096;

/// How far a jump goes at most. 16 bits hold twice as much, but the kernel's verifier makes several instructions of
/// some (map lookups, reads of the context) and refuses a jump that no longer fits then.
const REACH: i64 = 16_000;

/// How far off an island is made at most. Less than [`REACH`], so that it stays in reach while others are added.
const ISLAND_REACH: usize = 12_000;

/// Rounds after which the search for islands gives up.
const MOST_ROUNDS: u32 = 1000;

/// Why there are no distances.
pub(crate) enum Failure {
    /// More jumps to different places far away cross one point than islands have room there.
    TooFar,
    /// A mistake of the compiler.
    Broken(&'static str),
}

/// The machine code of a row: instructions with distances, each with its source.
pub(crate) fn resolve_distances(row: &Row) -> Result<Vec<(MachineInsn, Span)>, Failure> {
    let mut islands = Islands::new(row);
    for _ in 0..MOST_ROUNDS {
        let places = islands.places(row);
        if islands.extend(row, &places)? {
            continue;
        }
        // Closer together, a jump may reach an island that is further on, and not need the nearer one any more.
        if !islands.drop_unused(row, &places)? {
            return islands.write(row, &places);
        }
    }
    Err(Failure::TooFar)
}

fn item_slots(item: &Item) -> usize {
    match item {
        Item::Plain(insn) => slots(insn),
        Item::Goto(_) | Item::Branch(..) => 1,
    }
}

/// Where islands may stand, and which do.
struct Site {
    /// They stand before this item.
    item: usize,
    /// Whether the item before falls into them, so that a jump around them is needed.
    fallen_into: bool,
    /// What they lead to.
    targets: Vec<VBlockId>,
    /// The number of the island to each.
    numbers: HashMap<VBlockId, usize>,
}

impl Site {
    fn new(item: usize, fallen_into: bool) -> Site {
        Site { item, fallen_into, targets: Vec::new(), numbers: HashMap::new() }
    }

    fn add(&mut self, target: VBlockId) {
        self.numbers.insert(target, self.targets.len());
        self.targets.push(target);
    }

    /// Keeps the islands of which `used` says so.
    fn keep(&mut self, used: &[bool]) {
        let targets = std::mem::take(&mut self.targets);
        self.numbers.clear();
        targets.into_iter().zip(used).filter(|(_, used)| **used).for_each(|(target, _)| self.add(target));
    }

    fn slots(&self) -> usize {
        let around = usize::from(self.fallen_into && !self.targets.is_empty());
        around + self.targets.len()
    }

    /// The slot of the first island from the start of the site.
    fn first_island(&self) -> usize {
        self.slots() - self.targets.len()
    }
}

/// The slots at which everything starts, for one choice of islands.
struct Places {
    items: Vec<usize>,
    sites: Vec<usize>,
}

/// The next step on the way from a jump to its target.
#[derive(Clone, Copy)]
enum Step {
    Target,
    /// Over the island number `.1` of site `.0`.
    Island(usize, usize),
    /// Over an island that this site still lacks.
    Missing(usize),
}

struct Islands {
    sites: Vec<Site>,
}

impl Islands {
    /// Finds the sites; none have islands yet.
    fn new(row: &Row) -> Islands {
        let mut sites = Vec::new();
        let mut since = 0;
        let mut fallen_into = true;
        for (index, (item, _)) in row.items.iter().enumerate() {
            if since >= SITE_DISTANCE || (since >= SITE_DISTANCE / 2 && !fallen_into) {
                sites.push(Site::new(index, fallen_into));
                since = 0;
            }
            since += item_slots(item);
            fallen_into = !matches!(item, Item::Goto(_) | Item::Plain(Insn::Exit));
        }
        Islands { sites }
    }

    fn places(&self, row: &Row) -> Places {
        let mut places = Places { items: Vec::with_capacity(row.items.len()), sites: Vec::new() };
        let mut sites = self.sites.iter().peekable();
        let mut slot = 0;
        for (index, (item, _)) in row.items.iter().enumerate() {
            if let Some(site) = sites.next_if(|site| site.item == index) {
                places.sites.push(slot);
                slot += site.slots();
            }
            places.items.push(slot);
            slot += item_slots(item);
        }
        places
    }

    /// All jumps that there are: the slot of each and its target, first those of the row, then the islands.
    fn jumps(&self, row: &Row, places: &Places) -> Vec<(usize, VBlockId)> {
        let of_row = row.items.iter().zip(&places.items).filter_map(|((item, _), &slot)| match *item {
            Item::Goto(target) | Item::Branch(_, target) => Some((slot, target)),
            Item::Plain(_) => None,
        });
        let of_islands = self.sites.iter().zip(&places.sites).flat_map(|(site, &start)| {
            let first = start + site.first_island();
            site.targets.iter().enumerate().map(move |(index, &target)| (first + index, target))
        });
        of_row.chain(of_islands).collect()
    }

    /// Adds the islands that jumps lack; whether there were any.
    fn extend(&mut self, row: &Row, places: &Places) -> Result<bool, Failure> {
        let mut extended = false;
        for (slot, target) in self.jumps(row, places) {
            if let Step::Missing(site) = self.step(row, places, slot, target)? {
                self.sites[site].add(target);
                extended = true;
            }
        }
        Ok(extended)
    }

    /// How a jump at `slot` gets on to `target`: straight, or over the furthest island for it that it reaches,
    /// or over one to be made.
    fn step(&self, row: &Row, places: &Places, slot: usize, target: VBlockId) -> Result<Step, Failure> {
        let goal = places.items[row.starts[target]];
        if distance(slot, goal).is_some() {
            return Ok(Step::Target);
        }
        let mut missing = None;
        for index in self.sites_on_the_way(places, slot, goal) {
            let site = &self.sites[index];
            let start = places.sites[index];
            if let Some(&number) = site.numbers.get(&target) {
                if distance(slot, start + site.first_island() + number).is_some() {
                    return Ok(Step::Island(index, number));
                }
            } else if missing.is_none() && start.abs_diff(slot) <= ISLAND_REACH {
                missing = Some(index);
            }
        }
        missing.map(Step::Missing).ok_or(Failure::TooFar)
    }

    /// The sites between a jump and its goal, the furthest first; without the one that the jump is an island of.
    fn sites_on_the_way(&self, places: &Places, slot: usize, goal: usize) -> Vec<usize> {
        let first_from = |slot| places.sites.partition_point(|&start| start < slot);
        if goal > slot {
            return (first_from(slot + 1)..first_from(goal)).rev().collect();
        }
        let before = |&index: &usize| places.sites[index] + self.sites[index].slots() <= slot;
        (first_from(goal)..first_from(slot)).filter(before).collect()
    }

    /// Removes islands that no jump of the row needs, directly or over other islands: the verifier refuses code
    /// that cannot be reached. Whether there were any.
    fn drop_unused(&mut self, row: &Row, places: &Places) -> Result<bool, Failure> {
        let mut used: Vec<Vec<bool>> =
            self.sites.iter().map(|site| vec![false; site.targets.len()]).collect();
        for ((item, _), &slot) in row.items.iter().zip(&places.items) {
            let (Item::Goto(target) | Item::Branch(_, target)) = *item else { continue };
            let mut step = self.step(row, places, slot, target)?;
            while let Step::Island(site, number) = step {
                if std::mem::replace(&mut used[site][number], true) {
                    break;
                }
                let slot = places.sites[site] + self.sites[site].first_island() + number;
                step = self.step(row, places, slot, target)?;
            }
        }
        let mut dropped = false;
        for (site, used) in self.sites.iter_mut().zip(used) {
            dropped |= used.contains(&false);
            site.keep(&used);
        }
        Ok(dropped)
    }

    fn write(&self, row: &Row, places: &Places) -> Result<Vec<(MachineInsn, Span)>, Failure> {
        let mut code = Vec::with_capacity(row.items.len());
        let mut sites = self.sites.iter().zip(&places.sites).peekable();
        for (index, ((item, span), &slot)) in row.items.iter().zip(&places.items).enumerate() {
            if let Some((site, &start)) = sites.next_if(|(site, _)| site.item == index) {
                self.write_site(site, start, row, places, *span, &mut code)?;
            }
            let insn = match *item {
                Item::Plain(insn) => insn,
                Item::Goto(target) => Insn::Goto { target: self.target(row, places, slot, target)? },
                Item::Branch(test, target) => Insn::Branch {
                    condition: test.condition,
                    width: test.width,
                    left: test.left,
                    right: test.right,
                    target: self.target(row, places, slot, target)?,
                },
            };
            code.push((insn, *span));
        }
        Ok(code)
    }

    fn write_site(
        &self,
        site: &Site,
        start: usize,
        row: &Row,
        places: &Places,
        span: Span,
        code: &mut Vec<(MachineInsn, Span)>,
    ) -> Result<(), Failure> {
        if site.first_island() > 0 {
            code.push((Insn::Goto { target: site.targets.len() as i32 }, span));
        }
        for (number, &target) in site.targets.iter().enumerate() {
            let slot = start + site.first_island() + number;
            code.push((Insn::Goto { target: self.target(row, places, slot, target)? }, span));
        }
        Ok(())
    }

    /// The distance from a jump at `slot` to its target or the island on the way there.
    fn target(&self, row: &Row, places: &Places, slot: usize, target: VBlockId) -> Result<i32, Failure> {
        let goal = match self.step(row, places, slot, target)? {
            Step::Target => places.items[row.starts[target]],
            Step::Island(site, number) => places.sites[site] + self.sites[site].first_island() + number,
            Step::Missing(_) => return Err(Failure::Broken("a jump lost its island")),
        };
        distance(slot, goal).ok_or(Failure::Broken("a jump is too long"))
    }
}

/// The distance from a jump at slot `from` to slot `to`, if it is at most [`REACH`].
fn distance(from: usize, to: usize) -> Option<i32> {
    let distance = to as i64 - (from as i64 + 1);
    (distance.abs() <= REACH).then_some(distance as i32)
}
