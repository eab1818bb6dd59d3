"""The compiled core, files and private names of other packages, as the rest uses them."""
