"""`python -m guard`."""

import os
import sys


def _forget_current_folder() -> None:
    # Python looks for modules there first, and it may be a repository.
    try:
        if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
            del sys.path[0]
    except OSError:
        return


if __name__ == "__main__":
    _forget_current_folder()
    from guard.entry import main

    main()
