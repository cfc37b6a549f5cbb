"""Every algorithm carried out on real vectors, to be counted: the oracle of the closed forms.

A `Network` moves messages round by round between ranks that hold numpy vectors, and counts what a stopwatch
on the α–β–γ machine would see: rounds, the bytes each rank sends, the busiest port of each round, the most
that one rank combines in each round. One element counts as one byte. Unless said otherwise a rank sends one
message and receives one in a round; the network insists on it.

Each `execute_…` takes a network and one vector per rank and returns what each rank holds at the end.
"""

import math

import numpy as np

Vectors = list[np.ndarray]


class Network:
    """Counts what algorithms do."""

    def __init__(self, n: int):
        self.n = n
        self.rounds = 0
        self.sent = np.zeros(n, int)
        self.received = np.zeros(n, int)
        self.carried = 0
        self.combined = 0
        self.combined_by_rank = np.zeros(n, int)
        self._combining = np.zeros(n, int)

    def exchange(self, messages: list[tuple[int, int, object]], *, one_port: bool = True) -> dict[int, list]:
        """One round; returns what each receiver gets, in the order of the messages."""
        self.settle()
        sends, receives = np.zeros(self.n, int), np.zeros(self.n, int)
        if one_port:
            for side in (0, 1):
                ranks = [message[side] for message in messages]
                assert len(set(ranks)) == len(ranks), "a rank uses its port twice in a round"
        arrived: dict[int, list] = {}
        for source, target, payload in messages:
            size = size_of(payload)
            sends[source] += size
            receives[target] += size
            arrived.setdefault(target, []).append(payload)
        self.rounds += 1
        self.sent += sends
        self.received += receives
        self.carried += max(sends.max(), receives.max())
        return arrived

    def add(self, rank: int, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Combining, which takes time."""
        self._combining[rank] += one.size
        self.combined_by_rank[rank] += one.size
        return one + other

    def settle(self) -> None:
        """The round's combining is over when the busiest rank's is."""
        self.combined += self._combining.max()
        self._combining[:] = 0


def size_of(payload) -> int:
    """Elements in a vector, or in all vectors of a collection."""
    if isinstance(payload, np.ndarray):
        return payload.size
    if isinstance(payload, dict):
        return sum(size_of(each) for each in payload.values())
    return sum(size_of(each) for each in payload)


# Rings.


def ring_reduce_scatter(network: Network, data: Vectors) -> Vectors:
    n = network.n
    chunks = [np.split(vector, n) for vector in data]
    for step in range(n - 1):
        # The sum for rank c sets out from rank c + 1 and arrives after n - 1 steps.
        messages = [(i, (i + 1) % n, chunks[i][(i - 1 - step) % n]) for i in range(n)]
        arrived = network.exchange(messages)
        for i in range(n):
            c = (i - 2 - step) % n
            chunks[i][c] = network.add(i, chunks[i][c], arrived[i][0])
    return [chunks[i][i] for i in range(n)]


def ring_all_gather(network: Network, data: Vectors) -> Vectors:
    n = network.n
    held = [{i: data[i]} for i in range(n)]
    for step in range(n - 1):
        arrived = network.exchange([(i, (i + 1) % n, held[i][(i - step) % n]) for i in range(n)])
        for i in range(n):
            held[i][(i - 1 - step) % n] = arrived[i][0]
    return [np.concatenate([held[i][c] for c in range(n)]) for i in range(n)]


def ring_all_reduce(network: Network, data: Vectors) -> Vectors:
    return ring_all_gather(network, ring_reduce_scatter(network, data))


def chain_broadcast(network: Network, data: Vectors, pieces: int = 1) -> Vectors:
    n = network.n
    held: list[list[np.ndarray]] = [np.split(data[0], pieces)] + [[] for _ in range(n - 1)]
    while any(len(each) < pieces for each in held):
        messages = [
            (i, i + 1, held[i][len(held[i + 1])]) for i in range(n - 1) if len(held[i]) > len(held[i + 1])
        ]
        for i, payloads in network.exchange(messages).items():
            held[i] += payloads
    return [np.concatenate(each) for each in held]


def chain_reduce(network: Network, data: Vectors, pieces: int = 1) -> Vectors:
    n = network.n
    own = [np.split(vector, pieces) for vector in data]
    done = [pieces if i == n - 1 else 0 for i in range(n)]
    gone = [0] * n
    while n > 1 and done[0] < pieces:
        ready = [i for i in range(1, n) if gone[i] < done[i]]
        arrived = network.exchange([(i, i - 1, own[i][gone[i]]) for i in ready])
        for i in ready:
            piece = gone[i]
            own[i - 1][piece] = network.add(i - 1, own[i - 1][piece], arrived[i - 1][0])
            gone[i] += 1
            done[i - 1] += 1
    return [np.concatenate(own[0])]


# Doubling and halving.


def fold(network: Network, data: Vectors) -> tuple[int, Vectors]:
    """Ranks beyond the largest power of 2 give their vector to a partner."""
    power = 1 << (network.n.bit_length() - 1)
    data, extra = list(data), range(power, network.n)
    if extra:
        arrived = network.exchange([(i, i - power, data[i]) for i in extra])
        for i in extra:
            data[i - power] = network.add(i - power, data[i - power], arrived[i - power][0])
    return power, data


def unfold(network: Network, power: int, data: Vectors) -> Vectors:
    """They get the result back."""
    extra = range(power, network.n)
    if extra:
        arrived = network.exchange([(i - power, i, data[i - power]) for i in extra])
        for i in extra:
            data[i] = arrived[i][0]
    return data


def recursive_doubling_all_reduce(network: Network, data: Vectors) -> Vectors:
    power, data = fold(network, data)
    distance = 1
    while distance < power:
        arrived = network.exchange([(i, i ^ distance, data[i]) for i in range(power)])
        for i in range(power):
            data[i] = network.add(i, data[i], arrived[i][0])
        distance *= 2
    return unfold(network, power, data)


def halving_doubling_all_reduce(network: Network, data: Vectors) -> Vectors:
    power, data = fold(network, data)
    parts: dict[int, np.ndarray] = {i: data[i] for i in range(power)}
    distance = power // 2
    while distance:
        halves = {i: np.split(parts[i], 2) for i in parts}
        # The rank with the bit keeps the upper half.
        upper = {i: int(bool(i & distance)) for i in parts}
        arrived = network.exchange([(i, i ^ distance, halves[i][1 - upper[i]]) for i in parts])
        parts = {i: network.add(i, halves[i][upper[i]], arrived[i][0]) for i in parts}
        distance //= 2
    distance = 1
    while distance < power:
        arrived = network.exchange([(i, i ^ distance, parts[i]) for i in parts])
        parts = {
            i: np.concatenate([arrived[i][0], parts[i]] if i & distance else [parts[i], arrived[i][0]])
            for i in parts
        }
        distance *= 2
    return unfold(network, power, [parts.get(i, data[i]) for i in range(network.n)])


def dissemination_all_gather(network: Network, data: Vectors) -> Vectors:
    n = network.n
    held = [[data[i]] for i in range(n)]  # rank i holds blocks i, i + 1, ...
    while len(held[0]) < n:
        distance = len(held[0])
        count = min(distance, n - distance)
        arrived = network.exchange([(i, (i - distance) % n, held[i][:count]) for i in range(n)])
        for i in range(n):
            held[i] += arrived[i][0]
    return [np.concatenate([held[i][(c - i) % n] for c in range(n)]) for i in range(n)]


def recursive_doubling_all_gather(network: Network, data: Vectors) -> Vectors:
    n = network.n
    if n & (n - 1):
        return dissemination_all_gather(network, data)
    held = [{i: data[i]} for i in range(n)]
    distance = 1
    while distance < n:
        arrived = network.exchange([(i, i ^ distance, dict(held[i])) for i in range(n)])
        for i in range(n):
            held[i] |= arrived[i][0]
        distance *= 2
    return [np.concatenate([held[i][c] for c in range(n)]) for i in range(n)]


def recursive_halving_reduce_scatter(network: Network, data: Vectors) -> Vectors:
    n = network.n
    # Rank i holds at place d a part of the sum for rank i + d.
    parts = [[np.split(data[i], n)[(i + d) % n] for d in range(n)] for i in range(n)]
    while len(parts[0]) > 1:
        distance = 1 << ((len(parts[0]) - 1).bit_length() - 1)
        arrived = network.exchange([(i, (i + distance) % n, parts[i][distance:]) for i in range(n)])
        for i in range(n):
            kept = parts[i][:distance]
            for place, part in enumerate(arrived[i][0]):
                kept[place] = network.add(i, kept[place], part)
            parts[i] = kept
    return [parts[i][0] for i in range(n)]


# Trees.


def kary_reduce(network: Network, data: Vectors, radix: int = 2) -> Vectors:
    n, data, distance = network.n, list(data), 1
    while distance < n:
        senders = [i for i in range(0, n, distance) if i % (distance * radix)]
        messages = [(i, i - i % (distance * radix), data[i]) for i in senders]
        for i, payloads in network.exchange(messages, one_port=radix == 2).items():
            for payload in payloads:
                data[i] = network.add(i, data[i], payload)
        distance *= radix
    return [data[0]]


def kary_broadcast(network: Network, data: Vectors, radix: int = 2) -> Vectors:
    n, held = network.n, {0: data[0]}
    distance = 1
    while distance * radix < n:
        distance *= radix
    while distance and n > 1:
        receivers = [i for i in range(0, n, distance) if i % (distance * radix)]
        messages = [(i - i % (distance * radix), i, held[i - i % (distance * radix)]) for i in receivers]
        for i, payloads in network.exchange(messages, one_port=radix == 2).items():
            held[i] = payloads[0]
        distance //= radix
    return [held[i] for i in range(n)]


def kary_all_reduce(network: Network, data: Vectors, radix: int = 2) -> Vectors:
    return kary_broadcast(network, kary_reduce(network, data, radix), radix)


def tree_parent(i: int, n: int) -> int | None:
    """NCCL's binary tree: 0 on top, leaves are the odd ranks; a rank's parent differs in its lowest one."""
    if i == 0:
        return None
    low = i & -i
    parent = (i ^ low) | (low << 1)
    return i ^ low if parent >= n else parent


def double_tree_parents(n: int) -> list[list[int | None]]:
    """Both trees; the second is the first mirrored (n even) or shifted by one (n odd), so that leaves become inner ranks."""
    first = [tree_parent(i, n) for i in range(n)]

    def moved(i: int) -> int:
        return n - 1 - i if n % 2 == 0 else (i + 1) % n

    second: list[int | None] = [None] * n
    for i, parent in enumerate(first):
        second[moved(i)] = None if parent is None else moved(parent)
    return [first, second]


def double_tree_all_reduce(network: Network, data: Vectors) -> Vectors:
    """Each half up and down its tree, a level a round; both trees at once, so ports are shared."""
    n = network.n
    halves = [np.split(vector, 2) for vector in data]
    if n == 1:
        return data
    trees = double_tree_parents(n)
    levels = []
    for parents in trees:
        of = {i: depth_of(parents, i) for i in range(n)}
        levels.append(of)
    deepest = max(max(of.values()) for of in levels)
    for level in range(deepest, 0, -1):
        messages = [
            (i, trees[t][i], (t, halves[i][t])) for t in (0, 1) for i in range(n) if levels[t][i] == level
        ]
        arrived = network.exchange([(i, p, Tagged(*load)) for i, p, load in messages], one_port=False)
        for i, payloads in arrived.items():
            for load in payloads:
                halves[i][load.tree] = network.add(i, halves[i][load.tree], load.vector)
    for level in range(1, deepest + 1):
        messages = [
            (trees[t][i], i, Tagged(t, halves[trees[t][i]][t]))
            for t in (0, 1)
            for i in range(n)
            if levels[t][i] == level
        ]
        for i, payloads in network.exchange(messages, one_port=False).items():
            for load in payloads:
                halves[i][load.tree] = load.vector
    return [np.concatenate(each) for each in halves]


class Tagged:
    """A vector and the tree that it belongs to."""

    def __init__(self, tree: int, vector: np.ndarray):
        self.tree, self.vector = tree, vector

    def __iter__(self):
        yield self.vector


def depth_of(parents: list[int | None], i: int) -> int:
    parent = parents[i]
    return 0 if parent is None else 1 + depth_of(parents, parent)


# All-to-all, one message, no message.


def pairwise_all_to_all(network: Network, data: Vectors) -> Vectors:
    n = network.n
    blocks = [np.split(vector, n) for vector in data]
    held = [{i: blocks[i][i]} for i in range(n)]
    for j in range(1, n):
        arrived = network.exchange([(i, (i + j) % n, blocks[i][(i + j) % n]) for i in range(n)])
        for i in range(n):
            held[i][(i - j) % n] = arrived[i][0]
    return [np.concatenate([held[i][c] for c in range(n)]) for i in range(n)]


def direct_all_to_all(network: Network, data: Vectors) -> Vectors:
    n = network.n
    blocks = [np.split(vector, n) for vector in data]
    if n > 1:
        network.exchange([(i, j, blocks[i][j]) for i in range(n) for j in range(n) if i != j], one_port=False)
    return [np.concatenate([blocks[i][c] for i in range(n)]) for c in range(n)]


def bruck_all_to_all(network: Network, data: Vectors) -> Vectors:
    n = network.n
    # Rank i holds, by distance from source to target, a block with its source.
    held = [{d: (i, np.split(data[i], n)[(i + d) % n]) for d in range(n)} for i in range(n)]
    distance = 1
    while distance < n:
        moving = [d for d in range(n) if d & distance]
        sources = {i: {d: held[i][d][0] for d in moving} for i in range(n)}
        messages = [(i, (i + distance) % n, {d: held[i][d][1] for d in moving}) for i in range(n)]
        for i, payloads in network.exchange(messages).items():
            for d in moving:
                held[i][d] = (sources[(i - distance) % n][d], payloads[0][d])
        distance *= 2
    result = []
    for i in range(n):
        by_source = {source: block for source, block in held[i].values()}
        result.append(np.concatenate([by_source[c] for c in range(n)]))
    return result


def send_recv(network: Network, data: Vectors) -> Vectors:
    n = network.n
    if n == 1:
        return data
    arrived = network.exchange([(i, (i + 1) % n, data[i]) for i in range(n)])
    return [arrived[i][0] for i in range(n)]


def dissemination_barrier(network: Network, data: Vectors) -> list[set[int]]:
    del data
    n = network.n
    known = [{i} for i in range(n)]
    distance = 1
    while distance < n:
        news = [set(each) for each in known]
        network.exchange([(i, (i + distance) % n, np.zeros(0)) for i in range(n)])
        for i in range(n):
            known[i] |= news[(i - distance) % n]
        distance *= 2
    return known


# Switches.


def switch_reduce(network: Network, data: Vectors, radix: int) -> np.ndarray:
    """Level by level; only the ranks' own sending is theirs."""
    values = list(data)
    if network.n > 1:
        network.sent += data[0].size
    while len(values) > 1:
        values = [sum(values[i : i + radix]) for i in range(0, len(values), radix)]
        network.rounds += 1
    return values[0]


def switch_levels(n: int, radix: int) -> int:
    """Of switches above n ranks."""
    levels = 0
    while n > 1:
        n, levels = math.ceil(n / radix), levels + 1
    return levels
