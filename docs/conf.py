"""Configure Sphinx, which builds the documentation; `nox -s docs` runs it."""

import sys
from importlib.util import find_spec
from pathlib import Path

import gatherum

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]  # for `rendering` and `bench`

project = "gatherum"
author = "The gatherum developers"
version = release = gatherum.__version__
project_copyright = author

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "rendering",
]
exclude_patterns = ["_build"]
root_doc = "index"
default_role = "autolink"  # `gatherum.plan` in a docstring is a link, `axis` is not
nitpicky = True
smartquotes = False  # two hyphens are an option, not a dash
# Names of other projects have no pages here, and a download of their inventories would need a
# network.
# An argument with the name of an inner module is not a reference to the module.
nitpick_ignore_regex = [("py:.*", r"(numpy|onnx|json)\..*"), ("py:obj", "indices")]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

# The signatures of gatherum.torch do not need torch or the modules that inspect it.
_ASKING = ["torch", "gatherum.torch.private", "gatherum.torch.dlpack"]
autodoc_mock_imports = [] if find_spec("torch") else _ASKING
autodoc_typehints = "none"  # the sections "Parameters" document types
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"gatherum {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # prompts and output are not copied
copybutton_prompt_is_regexp = True
html_show_sourcelink = False
pygments_style = "a11y-light"  # every token has a contrast of 4.5 or more
pygments_dark_style = "monokai"
