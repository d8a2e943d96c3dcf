"""Handle the hook calls of agent CLIs: observe what happens in a session, and decide whether it may stop.

An observing hook is called for every use of a tool, so the modules that it needs (`call`, `agent.payload`, `spool`, `faults`,
`plain_json`) import next to nothing.
"""
