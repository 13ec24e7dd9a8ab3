"""`cultureval curate`: making data sets in the way of a paper."""
