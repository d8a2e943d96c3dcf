"""Decide about hook calls: what each event means, which helpers it reports, and whether a session may stop."""
