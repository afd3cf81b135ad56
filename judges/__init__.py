"""The judge of free-text answers: an LLM reports what it sees in an answer, code decides the verdict from that.

`case` is what is judged, `panel` asks the models, `decision` has the rule, `guards` find what a judge must settle.
"""
