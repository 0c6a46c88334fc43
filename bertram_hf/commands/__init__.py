"""The commands of the `bertram` program: each module adds its own options and runs the command."""
