"""Give every command its configuration, workspace, output and ids."""
