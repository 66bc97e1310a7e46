"""Loads to replay: requests in each second, always the same ones."""

import math
import random

HOUR = 3600


def steady() -> list[float]:
    """Six hours of about 10 requests a second."""
    return poisson([10.0] * (6 * HOUR), 1)


def ramp() -> list[float]:
    """From 2 to 40 requests a second in two hours, and back."""
    up = [2 + 38 * second / (2 * HOUR) for second in range(2 * HOUR)]
    return poisson([*up, *reversed(up)], 2)


def spike() -> list[float]:
    """4 requests a second; each hour ten minutes of 30."""
    return poisson([30.0 if 1200 <= second % HOUR < 1800 else 4.0 for second in range(6 * HOUR)], 3)


def day() -> list[float]:
    """A day between 2 and 38 requests a second, with noise that lasts for minutes."""
    noise = random.Random(4)
    drift, rates = 0.0, []
    for second in range(24 * HOUR):
        drift += noise.gauss(0, 0.02) - drift / 600
        rates.append(max(0.0, 20 - 18 * math.cos(2 * math.pi * second / (24 * HOUR))) * math.exp(drift * 0.2))
    return poisson(rates, 4)


def on_off() -> list[float]:
    """Half an hour of 20 requests a second, an hour of none, four times."""
    return poisson([20.0 if second % 5400 < 1800 else 0.0 for second in range(6 * HOUR)], 5)


def poisson(rates: list[float], seed: int) -> list[float]:
    """Whole requests that arrive by chance at these rates."""
    chance = random.Random(seed)
    return [float(_draw(chance, rate)) for rate in rates]


def _draw(chance: random.Random, rate: float) -> int:
    limit, count, product = math.exp(-rate), 0, chance.random()
    while product > limit:
        count += 1
        product *= chance.random()
    return count


TRACES = {"steady": steady, "ramp": ramp, "spike": spike, "day": day, "on_off": on_off}
