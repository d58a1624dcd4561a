"""The commands of `rsim`: thin, no physics."""
