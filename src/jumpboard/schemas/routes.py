"""Table `routes`: the paper's two bounds on the test loss of an expanded net, term by term, one row per seed, site,
arm, route and loss.

    A (jumpboard: population)    L_test(f+) <= L_test(f) - Delta_R/2 - Delta_ERM + 2 eps_M
    B (jumpboard: train)         L_test(f+) <= L_test(f) - Delta_R^test - Delta_ERM + 2 (eps_M + eps_K)

with f the old net, f~ the jumpboard of the kind, f+ the net selected by this loss (the arm's, or f~ where that is
better on training samples). Losses are means over all samples of a split. A row that is not applicable has a reason and
no numbers.
"""

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.schemas.keys import ARM, CELL, JUMPBOARD_KIND, LOSS, ROUTE, SEED, SITE


def _null(name: str, unit: str, description: str, kind: str = "float64") -> Column:
    return Column(name, kind, unit, description, nullable=True)


ROUTES = Schema(
    "routes",
    1,
    (
        *CELL,
        SEED,
        SITE,
        ARM,
        JUMPBOARD_KIND,
        ROUTE,
        LOSS,
        Column("outcome", "string", "-", "holds, violated, void (fails with more than 3 delta), or not applicable"),
        Column("reason", "string", "-", "why the route is not applicable, else empty"),
        Column("insert_form", "string", "-", "normed: Norm(z + h(z)); bare: z + h(z)"),
        Column("branch", "string", "-", "selected net: trained, or jumpboard"),
        Column("delta", "float64", "1", "failure probability of each uniform bound and of the limit of delta_r"),
        _null("bound", "loss", "B: largest value of the loss"),
        _null("loss_lipschitz", "loss per logit", "Lipschitz constant of the loss in the logits, Euclidean norm"),
        _null("parameters", "1", "d: number of parameters", "int64"),
        _null("layers", "1", "layers, input, inserted block and head included", "int64"),
        _null("train_samples", "samples", "M: training samples", "int64"),
        _null("test_samples", "samples", "K: test samples", "int64"),
        _null("fresh_samples", "samples", "fresh samples that delta_r is measured on; null for B", "int64"),
        _null("class_source", "-", "caps: of the training; powers: smallest powers of two above the norms", "string"),
        _null("class_share", "1", "share of delta that the class has among all classes"),
        _null("spectral_cap", "1", "largest spectral norm of a matrix"),
        _null("frobenius_cap", "1", "largest Frobenius norm of a layer"),
        _null("input_radius", "1", "largest norm of an input, by the law of the data"),
        _null("lipschitz", "logits per unit of parameters", "Lambda_max: largest Lipschitz constant of a layer"),
        _null("measured_norm_constant", "1", "largest Lipschitz constant of a norm of the old net on test samples"),
        _null("rademacher_m", "loss", "bound of the Rademacher average over M samples"),
        _null("eps_m", "loss", "eps_M, two-sided: ln(4/delta)"),
        _null("eps_m_draft", "loss", "eps_M as drafted, one-sided: ln(2/delta)"),
        _null("eps_k", "loss", "eps_K, two-sided; null for A"),
        _null("eps_k_draft", "loss", "eps_K as drafted; null for A"),
        _null("vacuity", "1", "eps_m / bound: 1 or more says nothing"),
        _null("old_test", "loss", "test loss of f"),
        _null("new_test", "loss", "test loss of f+"),
        _null("old_fresh", "loss", "loss of f on fresh samples"),
        _null("new_fresh", "loss", "loss of f+ on fresh samples"),
        _null("delta_r_mean", "loss", "L(f) - L(f~) on fresh samples for A, on test samples for B"),
        _null("delta_r_se", "loss", "its standard error, from paired differences"),
        _null("delta_r", "loss", "Delta_R of the bound: empirical Bernstein lower limit for A, the mean for B"),
        _null("delta_erm", "loss", "L_train(f~) - L_train(f+), at least 0"),
        _null("right_hand_side", "loss", "the bound of new_test"),
        _null("right_hand_side_draft", "loss", "the same with the drafted eps"),
        _null("failure", "1", "stated failure probability, at most 1"),
        _null("holds", "1", "new_test <= right_hand_side", "bool"),
        _null("informative", "1", "right_hand_side < old_test", "bool"),
    ),
)
