"""Make: a report from a release and a model, with real rows where there are any."""

from __future__ import annotations

import pyarrow as pa

from dpmerf.errors import ArtefactError
from dpmerf.evaluate.compare import evaluate
from dpmerf.evaluate.results import Evaluation
from dpmerf.model import Model
from dpmerf.release import Release
from dpmerf.report.page import Report
from dpmerf.report.picture_page import image_section
from dpmerf.report.sections import ImageSection

MOST_ROWS = 50_000


def make_report(
    release: Release,
    model: Model | None = None,
    synthetic: pa.Table | None = None,
    real: pa.Table | None = None,
    train: pa.Table | None = None,
    evaluation: Evaluation | None = None,
    images: ImageSection | None = None,
    quick: bool = True,
    seed: int = 0,
    quiet: bool = True,
    title: str = "Synthetic data report",
) -> Report:
    """Collect what the page shows. Without real rows everything follows from the release and is covered by it.

    Synthetic rows are drawn from the model when none are given; real rows are scored unless `evaluation` is given.
    """
    if model is not None and model.release.plan.hash != release.plan.hash:
        raise ArtefactError("the model was trained from another release. Pass the release that it came from")
    if release.plan.schema.image is not None:
        shown = images if images is not None or model is None else image_section(model, seed)
        return Report(release, model.history if model else None, images=shown, title=title)
    if synthetic is None and model is not None:
        synthetic = model.sample(max(1, min(MOST_ROWS, round(release.rows_estimate))), seed=seed)
    if real is not None and synthetic is not None and evaluation is None:
        schema = release.plan.schema.as_written
        evaluation = evaluate(synthetic, real, schema, train=train, quick=quick, seed=seed, quiet=quiet)
    history = model.history if model is not None else None
    return Report(release, history, synthetic, real, evaluation, images, title)
