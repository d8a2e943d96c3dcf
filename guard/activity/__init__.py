"""Signs of activity, gathered from the log, git, files and the machine: one small collector for each source."""
