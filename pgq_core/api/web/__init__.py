"""The web page for dead letters: rendered here, usable without scripts, better with them."""
