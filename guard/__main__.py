"""`python -m guard`."""

from guard.entry import main

if __name__ == "__main__":
    main()
