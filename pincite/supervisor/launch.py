"""Become another program that dies with the supervisor. Run as a script, stdlib only.

    python -I -S launch.py SIGNAL PARENT_PID PROGRAM [ARG ...]

PR_SET_PDEATHSIG survives exec, so the program need not know of it. On systems without it (macOS)
the next `pincite up` ends what it finds in run.json.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    signal_number, parent_pid, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent_pid:  # it died before we asked
            sys.exit(1)
    os.execvp(program, sys.argv[3:])


if __name__ == "__main__":
    main()
