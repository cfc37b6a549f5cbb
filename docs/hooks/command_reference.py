"""The reference of the command line, from the commands themselves."""

from typing import Any, Literal, get_args, get_origin

from mc.cli.app import VERBS, command


def page() -> str:
    """Every verb with its arguments and options, as Markdown."""
    parts = [
        "# Commands",
        "Generated from the commands; `tailstep VERB --help` says the same. Exit codes: 0 done, 1 the run failed, 2 bad usage or "
        "bad input, 3 some cells of a sweep failed, 130 interrupted.",
    ]
    parts += [section(verb, each) for verb, each in verbs().items()]
    return "\n\n".join(parts) + "\n"


def verbs() -> dict[str, Any]:
    """The commands by name, in the order of `tailstep --help`."""
    return {verb: command(verb) for verb in VERBS}


def section(verb: str, command: Any) -> str:
    """One verb: how it is called, what it does, its parameters."""
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    words = ["tailstep", verb, *map(_argument, arguments), *(["[OPTIONS]"] if options else [])]
    parts = [f"## {verb}", f"```text\n{' '.join(words)}\n```", command.help or ""]
    if shown:
        rows = [_row(each) for each in [*arguments, *options]]
        parts.append("\n".join(["| | what | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]")
    if parameter.nargs == -1 and "..." not in name:
        name += "..."
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{_argument(parameter).strip('[]')}`" + _values(parameter, otherwise="")
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        name = names if parameter.is_flag else names + _values(parameter, otherwise=parameter.metavar or "")
    default = parameter.default
    shown = "" if default is None or default is False or default in ((), []) else f"`{default}`"
    return "| " + " | ".join(text.replace("|", "\\|") for text in (name, parameter.help or "", shown)) + " |"


def _values(parameter: Any, *, otherwise: str) -> str:
    """What may stand there: the choices of a `Literal`, else a placeholder."""
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return ": " + ", ".join(f"`{choice}`" for choice in get_args(annotation))
    words = {int: "N", float: "X", str: "TEXT"}
    text = otherwise or (words.get(annotation, "") if parameter.param_type_name == "option" else "")
    return f" {text}" if text else ""
