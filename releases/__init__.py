"""What leaves the house: a release's layout and gates, how runs become one, and how anybody verifies it."""
