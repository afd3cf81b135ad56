"""Commands of `stepdown` that are more than a call into the builder: one module each, registered in `builder.cli`."""
