"""Where crystals are: descriptions of scanners, and their import from files of other programs."""
