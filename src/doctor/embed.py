"""Prints a C file with the attack programs as strings: `isle` carries them, so that they are there on every host."""

from __future__ import annotations

import pathlib
import sys


def literal(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return "\n".join(f'        "{line}\\n"' for line in quoted.splitlines())


print('#include "doctor/attacks.h"\n\nconst struct attack_text attack_texts[] = {')
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    print(f'    {{"{path.stem}",\n{literal(path.read_text())}}},')
print("};\nconst unsigned n_attack_texts = sizeof attack_texts / sizeof *attack_texts;")
