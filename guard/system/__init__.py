"""Everything guard asks of the operating system: processes, clocks, terminals, files, tmux."""
