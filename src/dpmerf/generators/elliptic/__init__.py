"""The elliptic model of very wide tables."""
