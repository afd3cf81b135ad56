"""What a run will take, before it is begun.

`arithmetic` is pure; `sizes` finds how long seeds are; `forecast` puts both together for a config.
"""
