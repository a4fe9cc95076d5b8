# SPDX-License-Identifier: Apache-2.0
"""Lengths of sequences and numbers of tokens of experts: from the same seed the same as those of workload_ragged and
workload_experts (ragged_lengths.c, experts_routing.c), so that rivals get the jobs of gpuloom. tests/check-rivals.sh compares them."""

WORD = (1 << 64) - 1


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) & WORD
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & WORD
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & WORD
    return x ^ x >> 31


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        x, self.state = self.state, (self.state + 0x9e3779b97f4a7c15) & WORD
        return mix(x) % n

    def share(self):
        return (self.below(1 << 64) >> 11) * 2.0**-53


def lengths(law, mean, n, seed, exponent=1.0):
    random, total = Random(seed), sum((i + 1)**-exponent for i in range(n))
    whole = lambda x: min(max(1, int(x + 0.5)), 1 << 22)
    made = {'equal': lambda i: mean,
            'uniform': lambda i: 1 + random.below(2 * mean),
            'zipf': lambda i: whole(mean * n * (i + 1)**-exponent / total),
            'two': lambda i: whole(4.5 * mean if i % 8 == 0 else 0.5 * mean)}
    of = [made[law](i) for i in range(n)]
    for i in range(n, 1, -1):
        k = random.below(i)
        of[i - 1], of[k] = of[k], of[i - 1]
    return of


def counts(skew, experts, tokens, top, seed):
    """Returns the number of slots of each expert, for the skews up to `hot_top`."""
    random, exponent = Random(mix(seed ^ 0x657870657274)), 0.5 if skew == 'sqrt' else 1.0
    weights = [(i + 1)**-exponent for i in range(experts)]
    total, hot = sum(weights), max(experts // 8, top)

    def zipf():
        left = random.share() * total
        for i in range(experts - 1):
            left -= weights[i]
            if left <= 0:
                return i
        return experts - 1

    draw = {'sqrt': zipf, 'zipf': zipf,
            'hot_eighth': lambda: random.below(hot if random.share() < 0.5 else experts)}.get(skew, lambda: random.below(experts))
    of = [0] * experts
    for token in range(tokens):
        chosen = []
        for k in range(top):
            if skew == 'equal':
                choice = (token * top + k) % experts
            elif skew == 'hot_top' or (skew == 'hot_one' and k == 0):
                choice = k
            else:
                for _ in range(64):
                    choice = draw()
                    if choice not in chosen:
                        break
                while choice in chosen:
                    choice = (choice + 1) % experts
            chosen.append(choice)
            of[choice] += 1
    return of
