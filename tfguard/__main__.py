"""`python -m tfguard`."""

from tfguard.cli.main import run

if __name__ == "__main__":
    run()
