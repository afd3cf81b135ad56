"""The judge of free-text answers: an LLM reports what it sees in an answer, and code decides the verdict from that.

`case` is what is judged, `guards` find what the answer says and no source has, `panel` asks the models, `decision`
has the rule.
"""
