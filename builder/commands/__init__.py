"""The commands that look at runs and caches, or begin a run from another one: a file each, registered in `builder.cli`.

They read arguments and print; what they find out is in the module of the same matter beside this folder.
"""
