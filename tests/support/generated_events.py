# SPDX-License-Identifier: Apache-2.0
"""Events that change a generated group between two rounds, with the group's random source."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.generated_groups import MOST_MEMBERS, RandomMember, Story
from tests.support.generated_shapes import SHAPES, repeat_one


def _quiet(story: Story) -> None:
    """Changes only the order of the members."""
    story.rng.shuffle(story.members)


def _join(story: Story) -> None:
    for _ in range(story.rng.choice([1, 1, 2, 5])):
        count = len(story.members)
        if count < MOST_MEMBERS and story.room(count + 1):
            newcomer = story.new_member(story.rng.randint(0, count), count + 1)
            story.members.insert(story.rng.randint(0, count), newcomer)


def _leave(story: Story) -> None:
    for _ in range(story.rng.choice([1, 1, 2, 5])):
        if len(story.members) > 1:
            story.members.pop(story.rng.randrange(len(story.members)))


def _restart(story: Story) -> None:
    """Some members restart with a new member id and without partitions; instance ids stay."""
    for member in _some(story):
        member.member_id = next(story.member_names)
        member.owned, member.generation_id = [], None


def _resubscribe(story: Story) -> None:
    for member in _some(story):
        n = story.rng.randrange(len(story.members))
        member.topics = story.subscription(n, len(story.members))


def repeat_topics(story: Story) -> None:
    """A member lists topics twice; often, members after it get the same list."""
    rng = story.rng
    at = rng.randrange(len(story.members))
    topics = list(story.members[at].topics)
    for _ in range(rng.randint(1, 3) if topics else 0):
        repeat_one(rng, topics)
    run = rng.choice([1, 2, 3, len(story.members)])
    for member in story.members[at : at + run]:
        member.topics = list(topics)


def _change_shape(story: Story) -> None:
    story.shape = story.rng.choice(SHAPES)
    for n, member in enumerate(story.members):
        member.topics = story.subscription(n, len(story.members))


def _claim_twice(story: Story) -> None:
    """Members claim partitions of other members, with the group's or another generation."""
    for claimant in _some(story):
        other = story.rng.choice(story.members)
        stolen = story.rng.sample(other.owned, story.rng.randint(0, len(other.owned)))
        claimant.owned = (
            claimant.owned + stolen if story.rng.random() < 0.5 else stolen + claimant.owned
        )
        claimant.generation_id = story.some_generation()


def claim_beyond(story: Story) -> None:
    """Members claim partitions that do not exist."""
    rng = story.rng
    counts = {topic.name: topic.partitions for topic in story.topics}
    for member in _some(story):
        known = [topic for topic in member.topics if topic in counts] or list(counts)
        for _ in range(rng.randint(1, 3) if known else 0):
            topic = rng.choice(known)
            ghost = topic, counts[topic] + rng.randrange(3)
            member.owned.insert(rng.randint(0, len(member.owned)), ghost)
        if member.generation_id is None:
            member.generation_id = story.some_generation()


def _go_stale(story: Story) -> None:
    """Some members send a random generation, perhaps an old one; half of them claim more
    partitions.
    """
    for member in _some(story):
        member.generation_id = story.some_generation()
        if story.rng.random() < 0.5:
            member.owned += story.claims(story.rng.randint(1, 4))


def _forget_generations(story: Story) -> None:
    """No member sends a generation, as old clients do."""
    for member in story.members:
        member.generation_id = None


def _lose_partitions(story: Story) -> None:
    for member in _some(story):
        member.owned = story.rng.sample(member.owned, story.rng.randint(0, len(member.owned)))


def own_a_stride(story: Story) -> None:
    """One member gets the partitions of a topic whose numbers share a slot of a Java hash table."""
    rng = story.rng
    large = [topic for topic in story.topics if topic.partitions > 128]
    if not large:
        return
    topic, step = rng.choice(large), rng.choice([16, 32, 64, 64])
    taken = {(topic.name, p) for p in range(rng.randrange(step), topic.partitions, step)}
    for member in story.members:
        member.owned = [owned for owned in member.owned if owned not in taken]
    numbers = sorted(taken)
    rng.shuffle(numbers)
    owner = rng.choice(story.members)
    owner.owned = numbers + owner.owned if rng.random() < 0.5 else owner.owned + numbers


def _repeat_claims(story: Story) -> None:
    """Members list a partition twice."""
    for member in _some(story):
        if member.owned:
            member.owned.insert(
                story.rng.randint(0, len(member.owned)), story.rng.choice(member.owned)
            )


def _topics_change(story: Story) -> None:
    """A topic grows, shrinks, empties, vanishes or appears."""
    rng = story.rng
    members = len(story.members)
    if story.topics and rng.random() < 0.8:
        topic = rng.choice(story.topics)
        wanted = rng.choice([topic.partitions + 1, topic.partitions * 2, topic.partitions // 2, 0])
        if rng.random() < 0.2:
            story.topics.remove(topic)
        elif wanted <= 64 and wanted - topic.partitions <= story.room(members):
            topic.partitions = wanted
    elif len(story.topics) < 30:
        fresh = story.new_topic(members)
        story.topics.append(fresh)
        for member in story.members:
            if rng.random() < 0.7:
                member.topics.append(fresh.name)
    story.place_replicas()


def _racks_change(story: Story) -> None:
    story.member_racks = story.rng.choice([0, 0.5, 1])
    story.topic_racks = story.rng.choice([0.5, 1])
    story.place_replicas()
    for member in story.members:
        member.rack_id = story.member_rack()


EVENTS: tuple[Callable[[Story], None], ...] = (
    *(
        _quiet,
        _join,
        _join,
        _leave,
        _leave,
        _restart,
        _resubscribe,
        _change_shape,
        _claim_twice,
        _claim_twice,
        claim_beyond,
        repeat_topics,
    ),
    *(
        _go_stale,
        _go_stale,
        _forget_generations,
        _lose_partitions,
        _repeat_claims,
        _topics_change,
        _racks_change,
    ),
)


def _some(story: Story) -> list[RandomMember]:
    """Chooses one to three random members."""
    return story.rng.sample(story.members, min(len(story.members), story.rng.randint(1, 3)))
