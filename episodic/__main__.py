"""`python -m episodic`: the command line."""

import sys

from episodic.faces.cli import main

if __name__ == "__main__":
    sys.exit(main())
