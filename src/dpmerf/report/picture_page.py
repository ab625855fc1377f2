"""What the page shows of pictures: a contact sheet beside the class balance, drawn from the model alone."""

from __future__ import annotations

import numpy as np

from dpmerf.model import Model
from dpmerf.output import gallery
from dpmerf.report.sections import ImageSection

SAMPLED = 2_000  # pictures whose classes are counted


def image_section(model: Model, seed: int = 0) -> ImageSection:
    """For a model of pictures."""
    release, label = model.release, model.release.codec.label
    image = gallery.image_of(release.plan.schema)[1]
    classes = gallery.class_names(release.plan.schema) or ("all",)
    rows = "one row per class" if label else "without labels"
    released: tuple[float, ...] | None = None
    shares: tuple[float, ...] = (1.0,)
    if label is not None:
        codes = release.codec.encode(model.sample(SAMPLED, seed=seed)).codes[label.name]
        shares = tuple(float(s) for s in np.bincount(codes.numpy(), minlength=label.size) / SAMPLED)
        for m in release.measurements:
            if m.dense is None and m.variables == (label,):
                released = tuple(float(v) for v in m.values.flatten() / release.rows_estimate)
    words = f"Synthetic pictures of {image.height}×{image.width} pixels, {rows}. None of them is a real one."
    return ImageSection(gallery.contact_sheet(model, seed=seed), words, classes, shares, released)
