"""`python -m stepdown`: the command."""

from stepdown.builder.cli.main import main

if __name__ == "__main__":
    main(prog_name="stepdown")
