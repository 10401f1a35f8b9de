"""`python -m tfguard`."""

from tfguard.cli.start import run

if __name__ == "__main__":
    run()
