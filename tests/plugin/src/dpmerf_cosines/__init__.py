"""A plugin of dpmerf: densities by cosine series."""
