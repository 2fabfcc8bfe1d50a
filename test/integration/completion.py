"""What bash offers for a word of a command line, by tools/completion."""

import pathlib
import subprocess

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "completion"


def offered(command, *words, before=""):
    """What is offered for the last word; `before`: commands in its shell."""
    quoted = " ".join(f"'{word}'" for word in words)
    function = "_" + command.replace("-", "_")
    text = (f"source '{SCRIPTS / command}'; compopt() {{ :; }}; {before}\nCOMP_WORDS=({command} {quoted}); "
            f"COMP_CWORD={len(words)}; {function}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return set(subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True,
                              timeout=60).stdout.split())
