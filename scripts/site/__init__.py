"""What mkdocs.yml needs beyond its plugins. Start in `hooks`; `links` and `commands` are pure."""
