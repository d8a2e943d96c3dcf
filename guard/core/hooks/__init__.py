"""Decide about hook calls: what each event means, which helpers it tells of, and whether a session may stop."""
