"""A real control plane under chance: people who change their minds, enemies who kill, and checks from outside."""
