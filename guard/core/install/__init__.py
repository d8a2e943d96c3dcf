"""The reports of the install and uninstall commands."""
