"""Keep the work tree byte for byte in the shadow repository, list what is kept, and restore it."""
