"""The coordinator: who works on which task of the plan, what was audited, asked, delegated, and what comes next."""
