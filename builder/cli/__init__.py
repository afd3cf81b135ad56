"""Commands that look at runs, caches and configs, or begin a run from another: a file each, on `builder.cli`.

They read arguments and print; what they find out is in the module of the same matter beside this folder.
"""
