"""Hooks of mkdocs.yml beyond its plugins. Start in `hooks`; `links` and `commands` are pure."""
