"""Tell people what runs did: one document, as text, markdown and a page."""
