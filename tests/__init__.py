"""Every test of the project; see CONTRIBUTING.md for what belongs in which folder."""
