"""`python -m hub_ext.cli`, the same as `gpu-workspaces`."""

import sys

from .app import main

sys.exit(main())
