"""What every command gets: the configuration, the workspace, the output and ids."""
