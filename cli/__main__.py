"""`python -m streamsieve.cli`."""

import sys

from streamsieve.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
