"""`python -m tests.chaos --minutes 30 --seed 1`."""

import sys

from tests.chaos.run import main

sys.exit(main())
