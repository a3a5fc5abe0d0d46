"""Coverage-guided fuzzing of the decoders: `targets` has what is called, `__main__` runs it with
atheris. See CONTRIBUTING.md, "Fuzzing"."""
