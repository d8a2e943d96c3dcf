"""What the install and uninstall commands report."""
