"""The report and the console: what is put into them, what they refuse, and what a browser shows."""
