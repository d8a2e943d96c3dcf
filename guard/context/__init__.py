"""What every command is given: configuration, workspace, output, ids."""
