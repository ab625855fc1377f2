"""The documentation site: `make docs` builds it with every warning an error."""

import dpmerf

project = "dpmerf"
version = release = dpmerf.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "dpmerf"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False
