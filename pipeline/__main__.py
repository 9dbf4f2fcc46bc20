"""``python -m pipeline``: the command, where its script is not on the path."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
