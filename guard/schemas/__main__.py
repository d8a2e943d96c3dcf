"""Write the schemas, or with `--check` print which are not current: `python -m guard.schemas`."""

import sys

from guard.context.resources import folder
from guard.schemas.generate import generate, stale_names


def _main(words: list[str]) -> int:
    target = folder("schemas")
    if "--check" in words:
        for name in stale_names(target):
            sys.stderr.write(f"{name} is not current: run `python -m guard.schemas`\n")
        return 1 if stale_names(target) else 0
    for name in stale_names(target):
        (target / name).unlink(missing_ok=True)
    for name, text in generate().items():
        (target / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
