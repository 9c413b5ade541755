// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/hash_table.py`: the iteration order of `java.util.HashMap`, with tree bins and
//! removals. Nodes are indices into one arena; `NONE` is no node. The table is needed only if a
//! slot may become a tree or keys are removed; otherwise `order::java_hash_order` has a shortcut.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

/// The initial number of slots, unless set otherwise.
pub const DEFAULT_SLOTS: usize = 16;

const TREEIFY_AT: usize = 8;
const UNTREEIFY_AT: usize = 6;
const MIN_TREE_TABLE: usize = 64;
const NONE: u32 = u32::MAX;

/// Orders keys with equal hashes: `Comparable.compareTo`.
pub type Tie<'a> = &'a dyn Fn(u32, u32) -> Ordering;

/// The key order of a HashMap or HashSet; keys are numbers.
pub struct HashTable {
    slots: Vec<Slot>,
    tree: Tree,
    node_of: FxHashMap<u32, u32>,
}

/// Everything on which later orders depend. Two trees with equal key order may differ in shape, and
/// then the next key takes a different place in each.
#[derive(Debug, PartialEq)]
pub struct State {
    slots: usize,
    keys: Vec<u32>,
    /// One for each key; None for a key in a chain.
    branches: Vec<Option<Branch>>,
}

/// Whether a node is red, and its left and right keys.
type Branch = (bool, Option<u32>, Option<u32>);

impl State {
    /// The state of a table whose slots are all chains.
    pub fn of_chains(slots: usize, keys: Vec<u32>) -> Self {
        let branches = vec![None; keys.len()];
        Self {
            slots,
            keys,
            branches,
        }
    }
}

#[derive(Default)]
struct Slot {
    nodes: Vec<u32>,
    root: Option<u32>,
}

#[derive(Clone, Copy)]
struct Node {
    key: u32,
    hash: i32,
    left: u32,
    right: u32,
    parent: u32,
    red: bool,
}

impl Default for HashTable {
    fn default() -> Self {
        Self::with_slots(DEFAULT_SLOTS)
    }
}

impl HashTable {
    /// An empty table; `slots` is a power of two.
    pub fn with_slots(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            tree: Tree { nodes: Vec::new() },
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

    /// Adds a key as `computeIfAbsent` does: in front of its chain, which becomes a tree one key
    /// earlier than in `put`.
    ///
    /// A full table first doubles, even if the key is present.
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

    /// The first key in iteration order.
    pub fn first(&self) -> Option<u32> {
        let slot = self.slots.iter().find(|slot| !slot.nodes.is_empty())?;
        Some(self.tree.nodes[slot.nodes[0] as usize].key)
    }

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The state, for comparison.
    pub fn state(&self) -> State {
        let nodes = self.slots.iter().flat_map(|slot| {
            let tree = slot.root.map(|_| &self.tree);
            slot.nodes.iter().map(move |&node| (tree, node))
        });
        let key = |node: u32| (node != NONE).then(|| self.tree.nodes[node as usize].key);
        State {
            slots: self.slots.len(),
            keys: self.keys(),
            branches: nodes
                .map(|(tree, node)| {
                    let node = tree?.nodes[node as usize];
                    Some((node.red, key(node.left), key(node.right)))
                })
                .collect(),
        }
    }

    /// Whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.node_of.is_empty()
    }

    /// All keys in iteration order.
    pub fn keys(&self) -> Vec<u32> {
        let nodes = self.slots.iter().flat_map(|slot| &slot.nodes);
        nodes.map(|&n| self.tree.nodes[n as usize].key).collect()
    }

    fn slot_of(&self, node: u32) -> usize {
        self.tree.nodes[node as usize].hash as usize & (self.slots.len() - 1)
    }

    fn node(&mut self, key: u32, hash: u32) -> u32 {
        self.tree.nodes.push(Node {
            key,
            hash: (hash ^ (hash >> 16)) as i32,
            left: NONE,
            right: NONE,
            parent: NONE,
            red: false,
        });
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
        // The node goes behind the node that was its parent before the rebalancing.
        let at = self.position(parent);
        self.nodes.insert(at + 1, node);
        let root = tree.balance_insertion(root, node);
        self.set_root(root);
    }

    fn remove(&mut self, tree: &mut Tree, node: u32) {
        let at = self.position(node);
        self.nodes.remove(at);
        let Some(root) = self.root else { return };
        let top = tree.nodes[root as usize];
        if top.right == NONE || top.left == NONE || tree.left(top.left) == NONE {
            self.root = None; // a small tree becomes a chain again, in the list's order
            return;
        }
        let root = tree.delete(root, node);
        self.set_root(root);
    }

    fn treeify(&mut self, tree: &mut Tree, tie: Tie) {
        let mut root = NONE;
        for &node in &self.nodes {
            let n = &mut tree.nodes[node as usize];
            (n.left, n.right, n.parent, n.red) = (NONE, NONE, NONE, false);
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

/// The red-black trees of all slots. A step that may change the root returns the new root.
struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    fn left(&self, node: u32) -> u32 {
        self.nodes[node as usize].left
    }

    fn right(&self, node: u32) -> u32 {
        self.nodes[node as usize].right
    }

    fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.nodes[node as usize].red
    }

    fn paint(&mut self, node: u32, red: bool) {
        self.nodes[node as usize].red = red;
    }

    fn child(&self, node: u32, left: bool) -> u32 {
        if left {
            self.left(node)
        } else {
            self.right(node)
        }
    }

    fn set_child(&mut self, node: u32, left: bool, child: u32) {
        let node = &mut self.nodes[node as usize];
        *(if left {
            &mut node.left
        } else {
            &mut node.right
        }) = child;
    }

    fn set_parent(&mut self, node: u32, parent: u32) {
        if node != NONE {
            self.nodes[node as usize].parent = parent;
        }
    }

    fn before(&self, a: u32, b: u32, tie: Tie) -> bool {
        let (a, b) = (self.nodes[a as usize], self.nodes[b as usize]);
        a.hash.cmp(&b.hash).then_with(|| tie(a.key, b.key)) == Ordering::Less
    }

    /// Inserts a node below the root without rebalancing; returns its parent.
    fn hang(&mut self, root: u32, node: u32, tie: Tie) -> u32 {
        let mut at = root;
        loop {
            let left = self.before(node, at, tie);
            let below = self.child(at, left);
            if below == NONE {
                self.set_child(at, left, node);
                self.set_parent(node, at);
                return at;
            }
            at = below;
        }
    }

    fn balance_insertion(&mut self, mut root: u32, mut node: u32) -> u32 {
        self.paint(node, true);
        while self.is_red(self.parent(node)) {
            let mut parent = self.parent(node);
            let grand = self.parent(parent);
            let left = self.left(grand) == parent;
            let uncle = self.child(grand, !left);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(grand, true);
                node = grand;
                continue;
            }
            if self.child(parent, !left) == node {
                root = self.rotate(root, parent, left);
                (node, parent) = (parent, node);
            }
            self.paint(parent, false);
            self.paint(grand, true);
            root = self.rotate(root, grand, !left);
        }
        self.paint(root, false);
        root
    }

    fn delete(&mut self, mut root: u32, node: u32) -> u32 {
        if self.left(node) != NONE && self.right(node) != NONE {
            root = self.swap_with_successor(root, node);
        }
        let child = if self.left(node) != NONE {
            self.left(node)
        } else {
            self.right(node)
        };
        if child != NONE {
            root = self.replace(root, node, child);
            if self.parent(child) == NONE {
                self.paint(child, false);
            }
            return if self.is_red(node) {
                root
            } else {
                self.balance_deletion(root, child)
            };
        }
        // A leaf stays in the tree during the rebalancing and is removed after it.
        if !self.is_red(node) {
            root = self.balance_deletion(root, node);
        }
        let parent = self.parent(node);
        self.set_child(parent, self.left(parent) == node, NONE);
        root
    }

    /// Swaps the places and the colours of `node` and of the next node in key order.
    fn swap_with_successor(&mut self, mut root: u32, node: u32) -> u32 {
        let (left, right) = (self.left(node), self.right(node));
        let mut successor = right;
        while self.left(successor) != NONE {
            successor = self.left(successor);
        }
        let (red, successor_red) = (self.is_red(node), self.is_red(successor));
        self.paint(successor, red);
        self.paint(node, successor_red);
        let (below, above) = (self.right(successor), self.parent(successor));
        root = self.replace(root, node, successor);
        if successor == right {
            self.set_parent(node, successor);
            self.set_child(successor, false, node);
        } else {
            self.set_parent(node, above);
            self.set_child(above, true, node);
            self.set_child(successor, false, right);
            self.set_parent(right, successor);
        }
        self.set_child(successor, true, left);
        self.set_parent(left, successor);
        self.set_child(node, true, NONE);
        self.set_child(node, false, below);
        self.set_parent(below, node);
        root
    }

    /// Puts `new` in the place of `old` below its parent.
    fn replace(&mut self, root: u32, old: u32, new: u32) -> u32 {
        let parent = self.parent(old);
        self.set_parent(new, parent);
        if parent == NONE {
            return new;
        }
        self.set_child(parent, self.left(parent) == old, new);
        root
    }

    fn balance_deletion(&mut self, mut root: u32, mut node: u32) -> u32 {
        loop {
            let parent = self.parent(node);
            if parent == NONE {
                self.paint(node, false);
                return node;
            }
            if self.is_red(node) {
                self.paint(node, false);
                return root;
            }
            let left = self.left(parent) == node;
            let mut sibling = self.child(parent, !left);
            if self.is_red(sibling) {
                self.paint(sibling, false);
                self.paint(parent, true);
                root = self.rotate(root, parent, left);
                sibling = self.child(parent, !left);
            }
            if sibling == NONE {
                node = parent;
                continue;
            }
            let near = self.child(sibling, left);
            let mut far = self.child(sibling, !left);
            if !self.is_red(near) && !self.is_red(far) {
                self.paint(sibling, true);
                node = parent;
                continue;
            }
            if !self.is_red(far) {
                self.paint(near, false);
                self.paint(sibling, true);
                root = self.rotate(root, sibling, !left);
                sibling = near;
                far = self.child(sibling, !left);
            }
            let parent_red = self.is_red(parent);
            self.paint(sibling, parent_red);
            if far != NONE {
                self.paint(far, false);
            }
            self.paint(parent, false);
            root = self.rotate(root, parent, left);
            node = root;
        }
    }

    /// Rotates: `at` goes down to the given side, and its child on the other side goes up.
    fn rotate(&mut self, mut root: u32, at: u32, left: bool) -> u32 {
        let up = self.child(at, !left);
        let inner = self.child(up, left);
        root = self.replace(root, at, up);
        self.set_child(at, !left, inner);
        self.set_child(up, left, at);
        self.set_parent(inner, at);
        self.set_parent(at, up);
        root
    }
}
