"""Batched fits against a loop of scipy's L-BFGS, in one run: the same objective, gradient, bounds and starts.

    python benchmarks/fits.py [--resamples 20]

675 starts of the joint law E + A D^-a + B N^-w on 240 planted points, 8 depths x 6 widths x 5 seeds, noise 2 %. Both
find one optimum, or the run fails. Bar: 10 times faster. Then bootstrap resamples from the best optima: both time the
same 20 resamples, and times of 200 are scaled from these for the loop, measured for the batch. One thread, CPU seconds,
medians of three turns of the batch. Exit status 1 if the bar is missed.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from jumpboard.theory.fitting import optimise, replicate, scaled
from jumpboard.theory.forms import FloatArray, Form, form_of
from jumpboard.theory.minimise import DELTA, huber
from jumpboard.theory.resampling import resample

BAR = 10.0
SAME = 1e-6
ALL = 200


def problem() -> tuple[Form, FloatArray, FloatArray]:
    """The form, x [2, 240] and y [240]."""
    depth, width, _ = (one.ravel() for one in np.meshgrid(2.0 ** np.arange(8), 2.0 ** np.arange(3, 9), np.arange(5)))
    noise = np.exp(0.02 * np.random.default_rng(0).standard_normal(len(depth)))
    y = (0.3 + 0.9 * depth**-0.6 + 4 * width**-0.8) * noise
    x = np.stack([depth, width])
    return form_of("joint", x, y, ("depth", "width")), x, y


def looped(form: Form, x: FloatArray, y: FloatArray, starts: FloatArray, weights: FloatArray) -> float:
    """The best F of a loop over starts."""
    model, target = form.terms(x), scaled(y)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        predicted, jacobian = model(theta[None])
        residuals = predicted[0] - target
        return float(weights @ huber(residuals)), jacobian[0] @ (weights * np.clip(residuals, -DELTA, DELTA))

    bounds = list(zip(form.lower, form.upper, strict=True))
    return float(min(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).fun for start in starts))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    value = call()
    return time.process_time() - began, value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resamples", type=int, default=20)
    count = parser.parse_args().resamples
    form, x, y = problem()
    turns = [timed(lambda: optimise(form, x, y)) for _ in range(3)]
    batch, found = statistics.median(seconds for seconds, _ in turns), turns[0][1]
    loop, best = timed(lambda: looped(form, x, y, form.starts, np.ones(len(y))))
    same = abs(best - found.objective) <= SAME * found.objective
    print(f"{len(form.starts)} starts on {len(y)} points: batch {batch:.2f} s, loop {loop:.2f} s, {loop / batch:.1f}x")
    print(f"F: batch {found.objective:.9g}, loop {best:.9g}; {found.share:.1%} of the starts reach it in the batch")
    weights = resample(len(y), None, ALL, np.random.default_rng(0))
    few, _ = timed(lambda: [looped(form, x, y, found.optima, one) for one in weights[:count]])
    part, _ = timed(lambda: replicate(form, x, y, found.optima, weights[:count]))
    every, _ = timed(lambda: replicate(form, x, y, found.optima, weights))
    scale = ALL / count
    print(f"{count} resamples from {len(found.optima)} optima: batch {part:.3f} s, loop {few:.3f} s")
    print(f"{ALL} resamples: batch {every:.3f} s, loop {few * scale:.2f} s (scaled from {count})")
    return 0 if same and loop / batch >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
