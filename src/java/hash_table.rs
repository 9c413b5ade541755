// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/hash_table.py`: the iteration order of `java.util.HashMap`, with tree bins and
//! removals. This table is needed only if a slot may become a tree or if keys are removed; other
//! maps use the shortcut in `order::to_java_hash_order`.

use rustc_hash::FxHashMap;

use super::red_black_tree::{Branch, NONE, Node, Tie, Tree};

/// The number of slots of an empty `new HashMap()`.
pub const DEFAULT_SLOTS: usize = 16;

const TREEIFY_AT: usize = 8;
const UNTREEIFY_AT: usize = 6;
const MIN_TREE_TABLE: usize = 64;

/// The key order of a HashMap or HashSet; keys are numbers.
pub struct HashTable {
    slots: Vec<Slot>,
    tree: Tree,
    node_of: FxHashMap<u32, u32>,
}

/// The part of a table that can affect the iteration order after later changes. Two trees with
/// equal key order can differ in shape; then the next key that is added can get different positions
/// in them.
#[derive(Debug, PartialEq)]
pub struct State {
    slots: usize,
    keys: Vec<u32>,
    /// By key, in the order of `keys`; None for a key in a chain.
    branches: Vec<Option<Branch>>,
}

impl State {
    pub fn of_chains(slots: usize, keys: Vec<u32>) -> Self {
        let branches = vec![None; keys.len()];
        Self {
            slots,
            keys,
            branches,
        }
    }
}

/// One slot: its nodes in iteration order, and the root of its tree (None for a chain).
#[derive(Default)]
struct Slot {
    nodes: Vec<u32>,
    root: Option<u32>,
}

impl Default for HashTable {
    fn default() -> Self {
        Self::with_slots(DEFAULT_SLOTS)
    }
}

impl HashTable {
    /// Makes an empty table; `slots` must be a power of two.
    pub fn with_slots(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            tree: Tree::default(),
            node_of: FxHashMap::default(),
        }
    }

    /// Adds a key that is not in the table.
    pub fn put(&mut self, key: u32, hash: u32, tie: Tie) {
        let node = self.node(key, hash);
        let at = self.slot_of(node);
        let slot = &mut self.slots[at];
        slot.put(&mut self.tree, node, tie);
        if slot.root.is_none() && slot.nodes.len() > TREEIFY_AT {
            self.grow(at, tie);
        }
        self.node_of.insert(key, node);
        if self.is_full() {
            self.double(tie);
        }
    }

    /// Adds a key as `computeIfAbsent` does: at the front of its chain, which becomes a tree one
    /// key earlier than in `put`.
    ///
    /// A full table (more keys than three quarters of its slots) first doubles, even if the key is
    /// present.
    pub fn compute_if_absent(&mut self, key: u32, hash: u32, tie: Tie) {
        if self.is_full() {
            self.double(tie);
        }
        if self.node_of.contains_key(&key) {
            return;
        }
        let node = self.node(key, hash);
        let at = self.slot_of(node);
        let slot = &mut self.slots[at];
        if slot.root.is_some() {
            slot.put(&mut self.tree, node, tie);
        } else {
            slot.nodes.insert(0, node);
            if slot.nodes.len() >= TREEIFY_AT {
                self.grow(at, tie);
            }
        }
        self.node_of.insert(key, node);
    }

    /// Removes a key, if present; the table keeps its number of slots.
    pub fn remove(&mut self, key: u32) {
        if let Some(node) = self.node_of.remove(&key) {
            let at = self.slot_of(node);
            self.slots[at].remove(&mut self.tree, node);
        }
    }

    pub fn first(&self) -> Option<u32> {
        let slot = self.slots.iter().find(|slot| !slot.nodes.is_empty())?;
        Some(self.tree.nodes[slot.nodes[0] as usize].key)
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn state(&self) -> State {
        let nodes = self.slots.iter().flat_map(|slot| {
            let tree = slot.root.map(|_| &self.tree);
            slot.nodes.iter().map(move |&node| (tree, node))
        });
        State {
            slots: self.slots.len(),
            keys: self.keys(),
            branches: nodes.map(|(tree, node)| Some(tree?.branch(node))).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.node_of.is_empty()
    }

    pub fn keys(&self) -> Vec<u32> {
        let nodes = self.slots.iter().flat_map(|slot| &slot.nodes);
        nodes.map(|&n| self.tree.nodes[n as usize].key).collect()
    }

    fn slot_of(&self, node: u32) -> usize {
        self.tree.nodes[node as usize].hash as usize & (self.slots.len() - 1)
    }

    fn node(&mut self, key: u32, hash: u32) -> u32 {
        let spread = (hash ^ (hash >> 16)) as i32;
        self.tree.nodes.push(Node::alone(key, spread));
        self.tree.nodes.len() as u32 - 1
    }

    fn is_full(&self) -> bool {
        4 * self.node_of.len() > 3 * self.slots.len()
    }

    fn grow(&mut self, at: usize, tie: Tie) {
        if self.slots.len() < MIN_TREE_TABLE {
            self.double(tie);
        } else {
            self.slots[at].treeify(&mut self.tree, tie);
        }
    }

    fn double(&mut self, tie: Tie) {
        let bit = self.slots.len() as i32;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for slot in std::mem::take(&mut self.slots) {
            let (below, above) = slot.split(&mut self.tree, bit, tie);
            low.push(below);
            high.push(above);
        }
        low.append(&mut high);
        self.slots = low;
    }
}

impl Slot {
    fn put(&mut self, tree: &mut Tree, node: u32, tie: Tie) {
        let Some(root) = self.root else {
            self.nodes.push(node);
            return;
        };
        let parent = tree.hang(root, node, tie);
        // In the list, the node follows its parent before any rotation of the tree.
        let at = self.position(parent);
        self.nodes.insert(at + 1, node);
        let root = tree.balance_insertion(root, node);
        self.set_root(root);
    }

    fn remove(&mut self, tree: &mut Tree, node: u32) {
        let at = self.position(node);
        self.nodes.remove(at);
        let Some(root) = self.root else { return };
        if tree.is_small(root) {
            self.root = None; // a small tree becomes a chain again, in the order of `nodes`
            return;
        }
        let root = tree.delete(root, node);
        self.set_root(root);
    }

    fn treeify(&mut self, tree: &mut Tree, tie: Tie) {
        let mut root = NONE;
        for &node in &self.nodes {
            let Node { key, hash, .. } = tree.nodes[node as usize];
            tree.nodes[node as usize] = Node::alone(key, hash);
            if root == NONE {
                root = node;
            } else {
                tree.hang(root, node, tie);
                root = tree.balance_insertion(root, node);
            }
        }
        self.set_root(root);
    }

    fn split(self, tree: &mut Tree, bit: i32, tie: Tie) -> (Slot, Slot) {
        let (high, low): (Vec<u32>, Vec<u32>) = self
            .nodes
            .iter()
            .partition(|&&node| tree.nodes[node as usize].hash & bit != 0);
        let whole = low.is_empty() || high.is_empty();
        let mut halves = [low, high].map(|nodes| Slot { nodes, root: None });
        if self.root.is_some() {
            for half in &mut halves {
                if half.nodes.len() > UNTREEIFY_AT {
                    if whole {
                        half.root = self.root;
                    } else {
                        half.treeify(tree, tie);
                    }
                }
            }
        }
        let [low, high] = halves;
        (low, high)
    }

    fn set_root(&mut self, root: u32) {
        self.root = Some(root);
        let at = self.position(root);
        self.nodes[..=at].rotate_right(1);
    }

    fn position(&self, node: u32) -> usize {
        let found = self.nodes.iter().position(|&n| n == node);
        found.expect("a node is in the list of its slot")
    }
}
