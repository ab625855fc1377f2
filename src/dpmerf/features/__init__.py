"""Feature maps φ: what is measured of a row, each with its proved norm bound."""
