"""What continuations of frozen prefixes came to: matched pairs, transitions, routing outcomes, predictions.

`reading` reads cells, masks and features, `pairs` matches cells, `predicting`
says how well given features foretell an outcome, `analysis` is the whole. All but `reading` is pure.
"""
