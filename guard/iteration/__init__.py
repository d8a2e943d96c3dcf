"""One iteration: its baseline, its processes and output, and which work is its own."""
