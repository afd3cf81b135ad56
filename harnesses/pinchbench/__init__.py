"""The PinchBench workload: tasks of the user's checkout, worked at by any agent program.

`pages` reads a task's page, `rubric` its judge's criteria. `harness` makes tasks of `harness: agent` of them, which
runs the program, and drops what can not be done here. `grade` runs a page's grader where the program's work lies.
"""
