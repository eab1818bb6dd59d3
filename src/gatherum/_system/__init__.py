"""Access to the compiled core, regular files and private names of other packages."""
