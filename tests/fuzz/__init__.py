"""The campaign: hostile files, words and surroundings, faults, signals and races, through the command's own door."""
