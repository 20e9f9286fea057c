"""`python -m pincite.cli`: how the supervisor starts the parts of the stack."""

from pincite.cli.app import main

if __name__ == "__main__":
    main()
