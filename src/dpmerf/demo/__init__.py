"""The simulated hospital table that ships with the program."""
