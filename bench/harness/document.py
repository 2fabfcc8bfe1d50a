"""doc/performance.md, from the prose of the templates and the records of a run.

bench/performance.md is the beginning, bench/sections/NAME.md each section's part, bench/every_target.md the end. In them stand:

    {{machine}}        what the run was done on and with, as a table
    {{runs}}           when, and at which commit
    {{overview}}       the rows that the page begins with
    {{targets}}        the table of targets, of all sections
    {{tables}}         all tables of the section; {{table N}} only the N-th, from 1
    {{figure NAME}}    one of its figures
    {{value NAME}}     one of the texts that its values(records) gives
"""

import re

from . import targets, text

_PLACE = re.compile(r"\{\{(\w+)(?: ([\w.-]+))?\}\}")


def machine_table(result):
    machine, versions = result["machine"], result["versions"]
    rows = [["processor", f"{machine['cpu']}, {machine['cores']} cores"],
            ["memory", text.size(machine["memory_bytes"])],
            ["kernel", machine["kernel"]]]
    for name, medium in machine["media"].items():
        device = medium.get("block_device", "")
        rows.append([name, f"{medium['filesystem']} on {medium['device']}"
                     + (f" ({device})" if device else "")])
    rows += [[name, value] for name, value in versions.items() if value and name != "commit"]
    return text.markdown_table(["", ""], rows)


def runs_table(result):
    """When what was measured: a row for each run of bench/run that the records are of."""
    rows = [[run["started"], run["commit"][:12] + run["commit"][40:], ", ".join(f"{x:.2f}" for x in run["load_before"]),
             f"{run['seconds'] / 60:.0f} minutes", ", ".join(run["sections"]) if len(result["runs"]) > 1 else "all"]
            for run in result["runs"]]
    return text.markdown_table(["begun", "commit", "load before", "took", "sections"], rows)


class Document:
    """Fills the templates in."""

    def __init__(self, result, modules, figures):
        """figures: {section: {name: path from the document}}."""
        self._result = result
        self._modules = modules
        self._figures = figures

    def _records(self, section):
        return [r for r in self._result["records"] if r["section"] == section]

    def _table(self, caption, header, rows):
        return f"{caption}:\n\n{text.markdown_table(header, rows)}"

    def _of_run(self, what):
        if what == "machine":
            return machine_table(self._result)
        if what == "runs":
            return runs_table(self._result)
        if what == "overview":
            return text.markdown_table(*targets.overview(self._result["records"]))
        if what == "targets":
            return text.markdown_table(*targets.table_of_targets(self._result["records"])[1:])
        return None

    def _of_section(self, section, what, name):
        module = self._modules[section]
        records = self._records(section)
        if what == "tables":
            return "\n\n".join(self._table(*table) for table in module.tables(records))
        if what == "table":
            return self._table(*module.tables(records)[int(name) - 1])
        if what == "figure":
            if name not in self._figures[section] and self._result["parameters"]["quick"]:
                return f"({name} is not part of a quick run)"
            return f"![{name}]({self._figures[section][name]})"
        if what == "value":
            return str(module.values(records)[name])
        return None

    def fill(self, template, section=None):
        def put(match):
            what, name = match.groups()
            found = self._of_run(what)
            if found is None and section is not None:
                found = self._of_section(section, what, name)
            if found is None:
                raise KeyError(f"{match.group(0)} means nothing in {section or 'the beginning or the end'}")
            return found

        return _PLACE.sub(put, template)
