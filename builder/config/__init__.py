"""What a run is asked to do: the pool, the protocol that labels depend on, and the operation that they do not.

`loading` reads a config file; `validation` turns a mistake in any file into one line that names file, line and field.
"""
