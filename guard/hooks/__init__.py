"""Handle the hook calls of agent CLIs and of git: spool what happened, decide whether an agent may stop."""
