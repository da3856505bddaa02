"""From the nodes of a plan to the text of rules."""
