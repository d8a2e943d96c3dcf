"""Read from an agent CLI's own files whether it trusts the hooks in a settings file; guard never writes those files."""

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from guard.errors import GuardError
from guard.install import jsonc, settings_file
from guard.install.agents import AgentCli, Scope
from guard.install.command_line import Environ

_CODEX_HINT = "open `codex` here and approve them in `/hooks`"


@dataclass(frozen=True)
class HookFinding:
    """One finding about an agent's hooks, with what to do if something is wrong."""

    text: str
    hint: str | None = None


def read_trust(
    cli: AgentCli, scope: Scope, path: Path, root: Path | None, environ: Environ
) -> HookFinding | None:
    """Tell whether the hooks in a file are trusted; None if the agent CLI asks for no trust."""
    if cli.agent == "codex":
        return _codex(cli, scope, path, root, environ)
    if scope == "user" or root is None:
        return None
    if cli.agent == "gemini":
        return _gemini(cli, root, environ)
    if cli.agent == "qwen":
        return _qwen(cli, root, environ)
    if cli.agent == "copilot":
        return _copilot(cli, root, environ)
    return None


def _codex(
    cli: AgentCli, scope: Scope, path: Path, root: Path | None, environ: Environ
) -> HookFinding | None:
    config = _toml(cli.user_folder(environ) / "config.toml")
    if _value_under(config, "features", "hooks") is False:
        return HookFinding(
            "hooks are switched off", "take `hooks = false` out of Codex's config.toml"
        )
    if scope == "project":
        level = _value_under(config, "projects", str(root), "trust_level")
        if level != "trusted":
            return HookFinding("project not trusted", "open `codex` here and trust the folder")
    states = _value_under(config, "hooks", "state")
    known = states if isinstance(states, dict) else {}
    hashes = [(known.get(key), wanted) for key, wanted in _codex_hooks(cli, path)]
    if any(isinstance(state, dict) and state.get("enabled") is False for state, _ in hashes):
        return HookFinding("switched off in Codex", "switch them on again in `/hooks`")
    trusted = [
        state.get("trusted_hash") if isinstance(state, dict) else None for state, _ in hashes
    ]
    if None in trusted:
        return HookFinding("not trusted", _CODEX_HINT)
    if any(found != wanted for found, (_, wanted) in zip(trusted, hashes, strict=True)):
        return HookFinding("changed since they were approved", _CODEX_HINT)
    return HookFinding("trusted")


def _codex_hooks(cli: AgentCli, path: Path) -> Iterator[tuple[str, str]]:
    # Codex gives each hook a key, and knows it by a hash.
    text = settings_file.read_text(path)
    hooks = jsonc.parse(text).root.data.get("hooks", {}) if text else {}
    for event, groups in hooks.items():
        label = "".join(
            f"_{letter.lower()}" if letter.isupper() else letter for letter in event
        ).lstrip("_")
        for group_number, group in enumerate(groups if isinstance(groups, list) else ()):
            for number, handler in enumerate(cli.handlers_in(group)):
                if cli.is_ours(handler):
                    yield (
                        f"{path}:{label}:{group_number}:{number}",
                        _codex_hash(label, group, handler),
                    )


def _codex_hash(label: str, group: dict[str, Any], handler: dict[str, Any]) -> str:
    kept = {key: handler[key] for key in ("command", "timeout", "type") if key in handler}
    known: dict[str, Any] = {"event_name": label, "hooks": [{"async": False, **kept}]}
    if group.get("matcher"):
        known["matcher"] = group["matcher"]
    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"


def _gemini(cli: AgentCli, root: Path, environ: Environ) -> HookFinding:
    folder = cli.user_folder(environ)
    variable = environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    if variable == "true":
        return HookFinding("trusted by GEMINI_CLI_TRUST_WORKSPACE")
    enabled = _value_under(_json(folder / "settings.json"), "security", "folderTrust", "enabled")
    if variable != "false" and enabled is False:
        return HookFinding("trusted: folder trust is switched off")
    rules = environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or folder / "trustedFolders.json"
    if variable != "false" and _is_trusted(_json(Path(rules)), root):
        return HookFinding("trusted")
    hint = "trust the folder in an interactive session, or set GEMINI_CLI_TRUST_WORKSPACE=true"
    return HookFinding("folder not trusted", hint)


def _qwen(cli: AgentCli, root: Path, environ: Environ) -> HookFinding | None:
    folder = cli.user_folder(environ)
    enabled = _value_under(_json(folder / "settings.json"), "security", "folderTrust", "enabled")
    if enabled is not True:
        return None
    if _is_trusted(_json(folder / "trustedFolders.json"), root):
        return HookFinding("trusted")
    return HookFinding("folder not trusted", "trust the folder in an interactive session")


def _copilot(cli: AgentCli, root: Path, environ: Environ) -> HookFinding:
    config = _json(cli.user_folder(environ) / "config.json")
    # Older versions write the one name, newer ones the other.
    listed = [_value_under(config, name) for name in ("trusted_folders", "trustedFolders")]
    folders = [folder for found in listed if isinstance(found, list) for folder in found]
    if any(isinstance(folder, str) and _is_within(root, folder) for folder in folders):
        return HookFinding("trusted")
    hint = "trust the folder in an interactive session, or start with `--trust-folder`"
    return HookFinding("folder not trusted", hint)


def _is_trusted(rules: Any, root: Path) -> bool:
    # The rule for the longest path that holds the folder decides.
    best, trusted = -1, False
    for folder, level in rules.items() if isinstance(rules, dict) else ():
        effective = os.path.dirname(folder) if level == "TRUST_PARENT" else folder
        if len(folder) > best and _is_within(root, effective):
            best, trusted = len(folder), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def _is_within(root: Path, folder: str) -> bool:
    try:
        return os.path.isabs(folder) and Path(os.path.realpath(root)).is_relative_to(
            os.path.realpath(folder)
        )
    except (OSError, ValueError):
        return False


def _value_under(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _json(path: Path) -> Any:
    try:
        return jsonc.parse(settings_file.read_text(path) or "{}").root.data
    except (GuardError, ValueError):
        return None


def _toml(path: Path) -> Any:
    try:
        return tomllib.loads(settings_file.read_text(path) or "")
    except (GuardError, ValueError, RecursionError):
        return None
