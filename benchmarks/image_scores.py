"""Image scores: the paper's twelve classifiers and a small CNN, trained on synthetic pictures, tested on real ones.

NOT COVERED by any guarantee: real test pictures are read.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpmerf.evaluate.classifiers import image_classifiers

CNN = "CNN"
CNN_STEPS = 3_000  # of 64 pictures
CHEAPEST_FIRST = (
    *("Gaussian naive Bayes", "Bernoulli naive Bayes", "LDA", "Bagging", "XGBoost", CNN, "Random forest"),
    *("Decision tree", "Logistic regression", "AdaBoost", "Gradient boosting", "MLP", "Linear SVM"),
)
TWELVE = tuple(name for name in CHEAPEST_FIRST if name != CNN)
SLUGS = {name: name.replace(" ", "-").lower() for name in CHEAPEST_FIRST}  # in keys of cells


def score(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    test_x: np.ndarray,
    test_y: np.ndarray,
    seed: int,
    cnn_steps: int = CNN_STEPS,
) -> dict[str, Any]:
    """Accuracy on real pictures of one model trained on (x, y): uint8 pictures and class numbers."""
    start = time.process_time()
    if name == CNN:
        accuracy = _cnn_accuracy(x, y, test_x, test_y, seed, cnn_steps)
    else:
        model = image_classifiers()[name](seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the paper's settings end before convergence
            accuracy = float(model.fit(_flat(x), y).score(_flat(test_x), test_y))
    return {"accuracy": round(accuracy, 4), "pictures": len(x), "cpu_seconds": round(time.process_time() - start, 1)}


def _flat(x: np.ndarray) -> np.ndarray:
    return (x.reshape(len(x), -1) / np.float32(255)).astype(np.float32)


def _small_cnn(side: int, classes: int) -> nn.Module:
    """conv 32, pool, conv 64, pool, 128 units."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * (side // 4) ** 2, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, classes),
    )


def _cnn_accuracy(x: np.ndarray, y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray, seed: int, steps: int) -> float:
    """Adam with cosine decay, a fixed number of steps whatever the number of pictures."""
    rng = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = _small_cnn(x.shape[1], int(y.max()) + 1)
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)
        pictures, labels = _tensor(x), torch.from_numpy(y).long()
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = 0.5e-3 * (1 + math.cos(math.pi * step / steps))
            pick = torch.randint(len(labels), (64,), generator=rng)
            optimiser.zero_grad()
            F.cross_entropy(net(pictures[pick].float() / 255), labels[pick]).backward()
            optimiser.step()
    net.eval()
    with torch.no_grad():
        found = torch.cat([net(part.float() / 255).argmax(dim=1) for part in _tensor(test_x).split(500)])
    return float((found.numpy() == test_y).mean())


def _tensor(x: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x))[:, None]
