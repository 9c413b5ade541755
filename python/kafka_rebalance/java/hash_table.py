# SPDX-License-Identifier: Apache-2.0
"""The iteration order of `java.util.HashMap`, with tree bins and removals.

    table          16 slots; it doubles when it has more than 0.75 keys per slot, or when 9 keys
                   share a slot of a table with fewer than 64 slots; it never shrinks
    slot of a key  (h ^ (h >>> 16)) & (slots - 1)
    within a slot  a chain in order of insertion; when 9 keys share a slot of a table with 64 slots
                   or more, their chain becomes a red-black tree, with a list through the tree: a
                   new node follows its tree parent, and the root moves to the front of the list
                   after every change

Source   java.util.HashMap of OpenJDK 17 (putVal, computeIfAbsent, resize, TreeNode).
Mirror   `src/java/hash_table.rs`.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Generic, TypeVar

from kafka_rebalance.frozen import Mutable

DEFAULT_SLOTS = 16
"""The number of slots of a new table, unless the caller chooses another number."""

_TREEIFY_AT = 8  # `put` makes a longer chain a tree, `compute_if_absent` one of this length
_UNTREEIFY_AT = 6  # if a tree is split, a part with at most this many keys becomes a chain
_MIN_TREE_TABLE = 64

K = TypeVar("K")


class _Node(Mutable, Generic[K]):
    """A key in a slot's chain or tree."""

    key: K
    hash: int  # the spread hash, as a signed 32-bit number
    tie: Any  # a value that orders keys with equal hashes, as Comparable.compareTo does
    parent: "_Node[K] | None" = None
    red: bool = False
    children: "list[_Node[K] | None]" = field(init=False)  # in a tree: left, right

    def before(self, other: "_Node[K]") -> bool:
        return bool((self.hash, self.tie) < (other.hash, other.tie))

    def side(self) -> int:
        """Returns which child of its parent the node is: 0 for the left, 1 for the right one."""
        assert self.parent is not None
        return int(self.parent.children[1] is self)


def _node(key: K, key_hash: int, tie: Any) -> _Node[K]:
    spread = key_hash ^ (key_hash >> 16)
    return _Node(key, spread - (1 << 32) if spread >> 31 else spread, tie)


class HashTable(Generic[K]):
    """The key order of a HashMap or HashSet. `slots` is a power of two."""

    def __init__(self, slots: int = DEFAULT_SLOTS) -> None:
        self._slots: list[_Slot[K]] = [_Slot([]) for _ in range(slots)]
        self._nodes: dict[K, _Node[K]] = {}

    def put(self, key: K, key_hash: int, tie: Any) -> None:
        """Adds a key; `key_hash` is unsigned, `tie` orders keys with equal hashes."""
        if key in self._nodes:
            return
        node = _node(key, key_hash, tie)
        slot = self._slot_of(node)
        slot.put(node)
        if slot.root is None and len(slot.nodes) > _TREEIFY_AT:
            self._grow(slot)
        self._nodes[key] = node
        if self._is_full():
            self._double()

    def compute_if_absent(self, key: K, key_hash: int, tie: Any) -> None:
        """Adds a key as `computeIfAbsent` does.

        The key goes to the front of its chain, which becomes a tree one key earlier than in `put`.
        A full table is doubled first, even if the key is present.
        """
        if self._is_full():
            self._double()
        if key in self._nodes:
            return
        node = _node(key, key_hash, tie)
        slot = self._slot_of(node)
        if slot.root is not None:
            slot.put(node)
        else:
            slot.nodes.insert(0, node)
            if len(slot.nodes) >= _TREEIFY_AT:
                self._grow(slot)
        self._nodes[key] = node

    def remove(self, key: K) -> None:
        """Removes a key; the table keeps its number of slots."""
        node = self._nodes.pop(key)
        self._slot_of(node).remove(node)

    def __iter__(self) -> Iterator[K]:
        return (node.key for slot in self._slots for node in slot.nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def keys(self) -> list[K]:
        return list(self)

    def slots(self) -> int:
        return len(self._slots)

    def state(self) -> object:
        """Returns all that decides the iteration order after later changes: slots, chains, trees.

        Two trees with the same order of keys can have different shapes, and then the same new key
        can get different places in them. The result is for comparisons only.
        """
        return len(self._slots), [
            [(node.key, node.red, *map(_key, node.children)) for node in slot.nodes]
            if slot.root is not None
            else [node.key for node in slot.nodes]
            for slot in self._slots
            if slot.nodes
        ]

    def _slot_of(self, node: _Node[K]) -> "_Slot[K]":
        return self._slots[node.hash & (len(self._slots) - 1)]

    def _is_full(self) -> bool:
        return len(self._nodes) > 0.75 * len(self._slots)

    def _grow(self, slot: "_Slot[K]") -> None:
        if len(self._slots) < _MIN_TREE_TABLE:
            self._double()
        else:
            slot.treeify()

    def _double(self) -> None:
        halves = [slot.split(len(self._slots)) for slot in self._slots]
        self._slots = [low for low, _ in halves] + [high for _, high in halves]


class _Slot(Generic[K]):
    """One slot: its nodes in iteration order, and the root of its tree if the slot is a tree."""

    def __init__(self, nodes: list[_Node[K]]) -> None:
        self.nodes = nodes
        self.root: _Node[K] | None = None

    def put(self, node: _Node[K]) -> None:
        if self.root is None:
            self.nodes.append(node)
            return
        parent = _hang(self.root, node)
        # In the list, the new node follows its tree parent before the tree is rebalanced.
        self.nodes.insert(self.nodes.index(parent) + 1, node)
        self._set_root(_balance_insertion(self.root, node))

    def remove(self, node: _Node[K]) -> None:
        self.nodes.remove(node)
        root = self.root
        if root is None:
            return
        left, right = root.children
        if right is None or left is None or left.children[0] is None:
            self.root = None  # a small tree becomes a chain again, in the order of the list
            return
        self._set_root(_delete(root, node))

    def treeify(self) -> None:
        root: _Node[K] | None = None
        for node in self.nodes:
            node.parent, node.red = None, False
            if root is None:
                root, node.children = node, [None, None]
            else:
                _hang(root, node)
                root = _balance_insertion(root, node)
        assert root is not None
        self._set_root(root)

    def split(self, bit: int) -> "tuple[_Slot[K], _Slot[K]]":
        low: _Slot[K] = _Slot([node for node in self.nodes if not node.hash & bit])
        high: _Slot[K] = _Slot([node for node in self.nodes if node.hash & bit])
        if self.root is not None:
            for half, other in ((low, high), (high, low)):
                if len(half.nodes) > _UNTREEIFY_AT:
                    if other.nodes:
                        half.treeify()
                    else:
                        half.root = self.root
        return low, high

    def _set_root(self, root: _Node[K]) -> None:
        self.root = root
        self.nodes.remove(root)
        self.nodes.insert(0, root)


def _key(node: _Node[K] | None) -> K | None:
    return None if node is None else node.key


# The red-black tree. A function that may change the root returns the new root.


def _hang(root: _Node[K], node: _Node[K]) -> _Node[K]:
    """Inserts a node in the tree, without rebalancing the tree; returns the node's parent."""
    at: _Node[K] | None = root
    while at is not None:
        parent, side = at, int(not node.before(at))
        at = at.children[side]
    node.parent, node.children = parent, [None, None]
    parent.children[side] = node
    return parent


def _balance_insertion(root: _Node[K], node: _Node[K]) -> _Node[K]:
    node.red = True
    while (parent := node.parent) is not None and parent.red:
        grand = parent.parent
        assert grand is not None  # a red node is never the root
        side = parent.side()
        uncle = grand.children[1 - side]
        if uncle is not None and uncle.red:
            parent.red = uncle.red = False
            grand.red = True
            node = grand
            continue
        if parent.children[1 - side] is node:
            root = _rotate(root, parent, side)
            node, parent = parent, node
        parent.red = False
        grand.red = True
        root = _rotate(root, grand, 1 - side)
    root.red = False
    return root


def _delete(root: _Node[K], node: _Node[K]) -> _Node[K]:
    if None not in node.children:
        root = _swap_with_successor(root, node)
    child = node.children[0] or node.children[1]
    if child is not None:
        root = _replace(root, node, child)
        if child.parent is None:
            child.red = False
        return root if node.red else _balance_deletion(root, child)
    # A leaf stays in the tree during the rebalancing and is removed after it.
    if not node.red:
        root = _balance_deletion(root, node)
    assert node.parent is not None  # a tree of one node is a chain
    node.parent.children[node.side()] = None
    return root


def _swap_with_successor(root: _Node[K], node: _Node[K]) -> _Node[K]:
    """Swaps places and colours of `node` and the next node in key order; returns the root."""
    left, right = node.children
    assert left is not None
    assert right is not None
    successor = right
    while (before := successor.children[0]) is not None:
        successor = before
    successor.red, node.red = node.red, successor.red
    below, above = successor.children[1], successor.parent
    root = _replace(root, node, successor)
    if successor is right:
        node.parent, successor.children[1] = successor, node
    else:
        assert above is not None
        node.parent, above.children[0] = above, node
        successor.children[1], right.parent = right, successor
    successor.children[0], left.parent = left, successor
    node.children = [None, below]
    if below is not None:
        below.parent = node
    return root


def _replace(root: _Node[K], old: _Node[K], new: _Node[K]) -> _Node[K]:
    """Makes `new` the child of the parent of `old`, in place of `old`; returns the root."""
    new.parent = old.parent
    if old.parent is None:
        return new
    old.parent.children[old.side()] = new
    return root


def _balance_deletion(root: _Node[K], node: _Node[K]) -> _Node[K]:
    while True:
        parent = node.parent
        if parent is None:
            node.red = False
            return node
        if node.red:
            node.red = False
            return root
        side = node.side()
        sibling = parent.children[1 - side]
        if sibling is not None and sibling.red:
            sibling.red = False
            parent.red = True
            root = _rotate(root, parent, side)
            sibling = parent.children[1 - side]
        if sibling is None:
            node = parent
            continue
        near, far = sibling.children[side], sibling.children[1 - side]
        if not (near is not None and near.red) and not (far is not None and far.red):
            sibling.red = True
            node = parent
            continue
        if not (far is not None and far.red):
            assert near is not None
            near.red = False
            sibling.red = True
            root = _rotate(root, sibling, 1 - side)
            sibling, far = near, near.children[1 - side]
        sibling.red = parent.red
        if far is not None:
            far.red = False
        parent.red = False
        root = _rotate(root, parent, side)
        node = root


def _rotate(root: _Node[K], at: _Node[K], side: int) -> _Node[K]:
    """Rotates: `at` moves down on `side`, and its child on the other side takes its place."""
    up = at.children[1 - side]
    assert up is not None
    inner = up.children[side]
    root = _replace(root, at, up)
    at.children[1 - side], up.children[side] = inner, at
    if inner is not None:
        inner.parent = at
    at.parent = up
    return root
