"""A run's instances worked on by many machines. Only `ray_cluster` knows Ray; what else is here runs in any processes.

The head is the process of the command: it alone has the ledger, the cache, the budget and the limits, and it hands out
instances. On each node `worker` works on them with handles (`remote`) that ask the head by a `request_queue`;
`messages` has what is said, a `channel` fetches it, `head` answers it, and `dispatch` knows who has which instance in
hand.
"""
