"""The documents that commands print with `--format json`, one module per family. Each has its schema under `schemas/`."""
