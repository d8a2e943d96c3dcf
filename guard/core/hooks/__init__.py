"""The hooks of the agents' own programs: what each event means, what helpers it tells of, and whether a session may stop."""
