"""References of the walk operators: see tests/reference.py."""

from tests.reference_core import (
    WALK,
    WALK_TRIES,
    Stream,
    WalkDraws,
    accepts,
    bounded,
    find,
    restart_threshold,
    restarts,
    second_order,
    select_by_mass,
    stream_key,
    unit_interval,
)


def column_weights(indptr, cum_weight, v):
    """Weight of each entry of column `v`, from the running sums."""
    begin, end = indptr[v], indptr[v + 1]
    if cum_weight is None:
        return [1] * (end - begin)
    sums = [0, *cum_weight[begin:end]]
    return [sums[i + 1] - sums[i] for i in range(end - begin)]


def step_from(indptr, cum_weight, v, draw):
    """The edge of a first-order step from `v`, or -1."""
    weights = column_weights(indptr, cum_weight, v)
    if sum(weights) == 0:
        return -1
    return indptr[v] + find(weights, bounded(draw, sum(weights)))


def random_walk(
    indptr,
    indices,
    seeds,
    length,
    key,
    call_id=0,
    *,
    restart=0.0,
    cum_weight=None,
    num_threads=0,
):
    stream = stream_key(key[0], call_id, WALK)
    threshold = restart_threshold(restart)
    nodes, edges = [], []
    for walker, seed in enumerate(seeds):
        draws = WalkDraws(stream, walker)
        walk, taken = [seed], []
        for step in range(length):
            v, edge = walk[-1], -1
            if restarts(draws.restart(step), threshold):
                v = seed
            else:
                edge = step_from(indptr, cum_weight, v, draws.position(step))
            walk.append(v if edge < 0 else indices[edge])
            taken.append(edge)
        nodes.append(walk)
        edges.append(taken)
    return nodes, edges


def step_on(indptr, indices, cum_weight, law, came_from, v, draws, step):
    """The edge of a second-order step, or -1."""
    weights = column_weights(indptr, cum_weight, v)
    if sum(weights) == 0:
        return -1
    near = indices[indptr[came_from] : indptr[came_from + 1]]

    def relative(edge):
        if indices[edge] == came_from:
            return law.back
        return law.near if indices[edge] in near else law.far

    for attempt in range(WALK_TRIES):
        edge = step_from(indptr, cum_weight, v, draws.candidate(step, attempt))
        if accepts(draws.coin(step, attempt), relative(edge)):
            return edge
    masses = [w * relative(indptr[v] + i) for i, w in enumerate(weights)]
    return indptr[v] + select_by_mass(
        draws.candidate(step, WALK_TRIES), masses
    )


def node2vec_walk(
    indptr,
    indices,
    seeds,
    length,
    p,
    q,
    key,
    call_id=0,
    *,
    is_sorted=False,
    cum_weight=None,
    num_threads=0,
    ascending=None,
):
    stream, law = stream_key(key[0], call_id, WALK), second_order(p, q)
    nodes, edges = [], []
    for walker, seed in enumerate(seeds):
        draws = WalkDraws(stream, walker)
        walk, taken = [seed], []
        for step in range(length):
            if step == 0:
                edge = step_from(indptr, cum_weight, seed, draws.position(0))
            else:
                edge = step_on(
                    indptr, indices, cum_weight, law, *walk[-2:], draws, step
                )
            walk.append(walk[-1] if edge < 0 else indices[edge])
            taken.append(edge)
        nodes.append(walk)
        edges.append(taken)
    return nodes, edges


def metapath_walk(
    indptr,
    indices,
    path,
    seeds,
    key,
    call_id=0,
    *,
    restart=0.0,
    num_threads=0,
):
    stream = stream_key(key[0], call_id, WALK)
    threshold = restart_threshold(restart)
    nodes, edges = [], []
    for walker, seed in enumerate(seeds):
        draws = WalkDraws(stream, walker)
        walk, taken = [seed], []
        for step, relation in enumerate(path):
            v, edge = walk[-1], -1
            if v >= 0 and not restarts(draws.restart(step), threshold):
                edge = step_from(
                    indptr[relation], None, v, draws.position(step)
                )
            walk.append(-1 if edge < 0 else indices[relation][edge])
            taken.append(edge)
        nodes.append(walk)
        edges.append(taken)
    return nodes, edges


FRONTIER_ROOT = 0x10000


def frontier_walk(indptr, indices, seeds, length, key, call_id=0):
    draw = Stream(stream_key(key[0], call_id, WALK), FRONTIER_ROOT, 0)
    frontier, nodes, edges = list(seeds), [], []
    for step in range(length):
        choices = [
            (walker, edge)
            for walker, v in enumerate(frontier)
            for edge in range(indptr[v], indptr[v + 1])
        ]
        if not choices:
            nodes.append(-1)
            edges.append(-1)
            continue
        walker, edge = choices[bounded(draw(step), len(choices))]
        nodes.append(frontier[walker])
        edges.append(edge)
        frontier[walker] = indices[edge]
    return nodes, edges


FOREST_FIRE = 0xFFF2


def forest_fire(indptr, indices, seeds, p, key, call_id=0):
    stream = stream_key(key[0], call_id, FOREST_FIRE)
    burnt = level = set(seeds)
    while level:
        caught = set()
        for v in level:
            draw, begin = Stream(stream, 0, v), indptr[v]
            fresh = [
                edge
                for edge in range(begin, indptr[v + 1])
                if indices[edge] not in burnt
            ]
            fresh.sort(key=lambda edge: draw(1 + edge - begin))
            uniform, power = unit_interval(draw(0)), p
            for edge in fresh:
                if uniform >= power:
                    break
                caught.add(indices[edge])
                power *= p
        level = caught
        burnt = burnt | caught
    return sorted(burnt)
