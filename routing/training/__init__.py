"""Makes policies from labels: `examples` reads rows and keeps groups apart, `fitting` fits, `train` is the whole."""
