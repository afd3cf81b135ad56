"""Published data sets: their layout and gates, how runs become one, and how anybody checks it."""
