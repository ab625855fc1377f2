"""The paper's published numbers, to stand beside ours (Harder, Adamczewski and Park, AISTATS 2021; means of 5 runs)."""

from __future__ import annotations

METRICS = {"binary": ("roc_auc_hard", "pr_auc_hard"), "multiclass": ("f1_weighted",)}
NAMES = {"roc_auc_hard": "ROC", "pr_auc_hard": "PRC", "f1_weighted": "F1"}
MULTICLASS = ("covtype", "intrusion")

# Where the paper undersampled: the share of positives among the test rows of the honest protocol, and of the paper's.
# Cervical's is not stated: it is taken to be the PRC of a baseline no better than chance (DP-GAN, ROC 0.485), which can
# hardly be more than the share.
SHARES = {
    "adult": (0.23623, 0.447),
    "census": (0.06201, 0.143),
    "cervical": (0.06395, 0.183),
    "credit": (0.00181, 0.263),
}

# ROC and PRC on hard labels (so ROC is balanced accuracy), or weighted F1; ε = 1, δ = 1e-5.
TABLE1: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {
        "real": (0.73, 0.639),
        "dp-cgan": (0.509, 0.444),
        "dp-gan": (0.511, 0.445),
        "paper": (0.65, 0.564),
        "paper without noise": (0.653, 0.57),
    },
    "census": {
        "real": (0.747, 0.415),
        "dp-cgan": (0.655, 0.216),
        "dp-gan": (0.529, 0.166),
        "paper": (0.686, 0.358),
        "paper without noise": (0.692, 0.369),
    },
    "cervical": {
        "real": (0.786, 0.493),
        "dp-cgan": (0.519, 0.2),
        "dp-gan": (0.485, 0.183),
        "paper": (0.545, 0.184),
        "paper without noise": (0.896, 0.737),
    },
    "credit": {
        "real": (0.923, 0.874),
        "dp-cgan": (0.664, 0.356),
        "dp-gan": (0.435, 0.15),
        "paper": (0.772, 0.637),
        "paper without noise": (0.898, 0.774),
    },
    "epileptic": {
        "real": (0.797, 0.617),
        "dp-cgan": (0.578, 0.241),
        "dp-gan": (0.505, 0.196),
        "paper": (0.611, 0.34),
        "paper without noise": (0.616, 0.335),
    },
    "isolet": {
        "real": (0.893, 0.728),
        "dp-cgan": (0.511, 0.198),
        "dp-gan": (0.54, 0.205),
        "paper": (0.547, 0.404),
        "paper without noise": (0.733, 0.424),
    },
    "covtype": {
        "real": (0.643,),
        "dp-cgan": (0.285,),
        "dp-gan": (0.492,),
        "paper": (0.467,),
        "paper without noise": (0.513,),
    },
    "intrusion": {
        "real": (0.959,),
        "dp-cgan": (0.302,),
        "dp-gan": (0.251,),
        "paper": (0.85,),
        "paper without noise": (0.856,),
    },
}
