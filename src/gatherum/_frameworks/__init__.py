"""The registry of adapters, and the public functions as each adapter offers them."""
