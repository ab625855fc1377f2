"""Inference: answers with error bars, from the released tables alone. Post-processing: no row, no cost."""
