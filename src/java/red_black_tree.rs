// SPDX-License-Identifier: Apache-2.0
//! Red-black trees in the slots of `hash_table.rs`, as `java.util.HashMap.TreeNode` builds them. A
//! node is an index into one list of nodes.

use std::cmp::Ordering;

pub const NONE: u32 = u32::MAX;
const LEFT: bool = true;
const RIGHT: bool = false;

/// Orders keys with equal hashes, as the keys' `Comparable.compareTo` does.
pub type Tie<'a> = &'a dyn Fn(u32, u32) -> Ordering;

/// Whether a node is red, and the keys of its children.
pub type Branch = (bool, [Option<u32>; 2]);

#[derive(Clone, Copy)]
pub struct Node {
    pub key: u32,
    /// The spread hash: `h ^ (h >>> 16)`.
    pub hash: i32,
    /// The children: first the right one, then the left one.
    children: [u32; 2],
    parent: u32,
    red: bool,
}

impl Node {
    pub fn alone(key: u32, hash: i32) -> Self {
        Self {
            key,
            hash,
            children: [NONE; 2],
            parent: NONE,
            red: false,
        }
    }
}

/// The nodes of all trees. A step that may change the root of a tree returns the new root.
#[derive(Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Returns the part of a node that can affect the iteration order after later changes.
    pub fn branch(&self, node: u32) -> Branch {
        let node = self.nodes[node as usize];
        let key = |child: u32| (child != NONE).then(|| self.nodes[child as usize].key);
        (node.red, node.children.map(key))
    }

    /// Whether the tree is so small that Java turns it into a chain when a node is removed.
    pub fn is_small(&self, root: u32) -> bool {
        let left = self.child(root, LEFT);
        self.child(root, RIGHT) == NONE || left == NONE || self.child(left, LEFT) == NONE
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
        self.nodes[node as usize].children[usize::from(left)]
    }

    fn set_child(&mut self, node: u32, left: bool, child: u32) {
        self.nodes[node as usize].children[usize::from(left)] = child;
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

    /// Inserts a node below the root, without a rotation of the tree. Returns the node's parent.
    pub fn hang(&mut self, root: u32, node: u32, tie: Tie) -> u32 {
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

    pub fn balance_insertion(&mut self, mut root: u32, mut node: u32) -> u32 {
        self.paint(node, true);
        while self.is_red(self.parent(node)) {
            let mut parent = self.parent(node);
            let grand = self.parent(parent);
            let left = self.child(grand, LEFT) == parent;
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

    pub fn delete(&mut self, mut root: u32, node: u32) -> u32 {
        if self.child(node, LEFT) != NONE && self.child(node, RIGHT) != NONE {
            root = self.swap_with_successor(root, node);
        }
        let has_left = self.child(node, LEFT) != NONE;
        let child = self.child(node, has_left);
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
        // A leaf stays in the tree during the rotations and is removed after them.
        if !self.is_red(node) {
            root = self.balance_deletion(root, node);
        }
        let parent = self.parent(node);
        self.set_child(parent, self.child(parent, LEFT) == node, NONE);
        root
    }

    /// Swaps `node` with the next node in key order: their places and their colours.
    fn swap_with_successor(&mut self, mut root: u32, node: u32) -> u32 {
        let (left, right) = (self.child(node, LEFT), self.child(node, RIGHT));
        let mut successor = right;
        while self.child(successor, LEFT) != NONE {
            successor = self.child(successor, LEFT);
        }
        let (red, successor_red) = (self.is_red(node), self.is_red(successor));
        self.paint(successor, red);
        self.paint(node, successor_red);
        let (below, above) = (self.child(successor, RIGHT), self.parent(successor));
        root = self.replace(root, node, successor);
        if successor == right {
            self.set_parent(node, successor);
            self.set_child(successor, RIGHT, node);
        } else {
            self.set_parent(node, above);
            self.set_child(above, LEFT, node);
            self.set_child(successor, RIGHT, right);
            self.set_parent(right, successor);
        }
        self.set_child(successor, LEFT, left);
        self.set_parent(left, successor);
        self.set_child(node, LEFT, NONE);
        self.set_child(node, RIGHT, below);
        self.set_parent(below, node);
        root
    }

    /// Puts `new` in the place of `old`, below the parent of `old`.
    fn replace(&mut self, root: u32, old: u32, new: u32) -> u32 {
        let parent = self.parent(old);
        self.set_parent(new, parent);
        if parent == NONE {
            return new;
        }
        self.set_child(parent, self.child(parent, LEFT) == old, new);
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
            let left = self.child(parent, LEFT) == node;
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

    /// Rotates the tree at `at`: `at` moves down on the given side, and its child on the other side
    /// takes its place.
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
