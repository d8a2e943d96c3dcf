"""The store of a fleet: log, views and leases of many machines in one PostgreSQL database."""
