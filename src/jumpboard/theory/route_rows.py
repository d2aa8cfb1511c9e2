"""Rows of the table `routes`: the paper's two bounds on one expansion, term by term."""

from collections.abc import Iterator, Mapping

from jumpboard.schemas.routes import ROUTES
from jumpboard.theory.member import Class, Member, Row
from jumpboard.theory.routes import NOT_APPLICABLE, Route, route_a, route_b
from jumpboard.theory.uniform import DRAFT

KINDS = {"A": "population", "B": "train"}
NUMBERS = tuple(column.name for column in ROUTES.columns if column.nullable)
NO_FRESH = "there are no fresh samples to measure the population gain on"


def route_rows(one: Member, found: Class | str, sizes: Mapping[str, int]) -> Iterator[tuple[Row, Route | None]]:
    """Both rows of an expansion, each with its bound where there is one; `found` may be the reason why there is none.
    `sizes` counts the samples of each split."""
    for route, kind in KINDS.items():
        why = found if isinstance(found, str) else ("" if kind in one.boards else NO_FRESH)
        key = {**one.key, "jumpboard": kind, "route": route, "reason": why, "insert_form": one.form, "delta": one.delta}
        if isinstance(found, Class) and not why:
            yield _computed(one, found, sizes, key)
        else:
            branch = one.selected(kind)[0] if kind in one.boards else "none"
            yield {**key, "outcome": NOT_APPLICABLE, "branch": branch, **dict.fromkeys(NUMBERS)}, None


def _computed(one: Member, found: Class, sizes: Mapping[str, int], key: Row) -> tuple[Row, Route]:
    whole, kind = found.complexity(one.loss), key["jumpboard"]
    delta, m, k = one.delta, sizes["train"], sizes["test"]
    branch, new = one.selected(kind)
    share = delta * found.weights.share
    eps_m, eps_k = whole.deviation(m, share), whole.deviation(k, share)
    draft_m, draft_k = whole.deviation(m, share, DRAFT), whole.deviation(k, share, DRAFT)
    population = key["route"] == "A"
    measured = one.gain(one.boards[kind], "fresh" if population else "test")
    mean, erm = float(measured.mean[0]), one.delta_erm(kind)
    if population:
        delta_r = float(measured.lower_limit(2 * whole.bound, 1, delta)[0])
        bounds = [route_a(delta_r, erm, eps, k, whole.bound, delta) for eps in (eps_m, draft_m)]
    else:
        delta_r = mean
        bounds = [route_b(mean, erm, *eps, delta) for eps in ((eps_m, eps_k), (draft_m, draft_k))]
    old_test, new_test = float(one.old.mean["test"][one.member]), float(new.mean["test"][one.member])
    right = bounds[0].right_hand_side(old_test)
    row = {
        **key,
        "outcome": bounds[0].outcome(old_test, new_test, delta),
        "branch": branch,
        "bound": whole.bound,
        "loss_lipschitz": whole.loss_lipschitz,
        "parameters": whole.parameters,
        "layers": whole.layers,
        "train_samples": m,
        "test_samples": k,
        "fresh_samples": sizes["fresh"] if population else None,
        "class_source": found.source,
        "class_share": found.weights.share,
        "spectral_cap": found.weights.spectral,
        "frobenius_cap": found.weights.frobenius,
        "input_radius": found.cover.radius,
        "lipschitz": whole.lipschitz,
        "measured_norm_constant": found.measured_norm_constant,
        "rademacher_m": whole.rademacher(m),
        "eps_m": eps_m,
        "eps_m_draft": draft_m,
        "eps_k": None if population else eps_k,
        "eps_k_draft": None if population else draft_k,
        "vacuity": eps_m / whole.bound,
        "old_test": old_test,
        "new_test": new_test,
        "old_fresh": one.mean(one.old, "fresh"),
        "new_fresh": one.mean(new, "fresh"),
        "delta_r_mean": mean,
        "delta_r_se": float(measured.error[0]),
        "delta_r": delta_r,
        "delta_erm": erm,
        "right_hand_side": right,
        "right_hand_side_draft": bounds[1].right_hand_side(old_test),
        "failure": bounds[0].failure,
        "holds": new_test <= right,
        "informative": right < old_test,
    }
    return row, bounds[0]
