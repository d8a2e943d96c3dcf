"""A plan whose tasks are worked on in work trees of their own, on branches of their own."""

import os
import shutil
from pathlib import Path
from typing import Any

from guard.context.invocation import Invocation
from guard.coordinator.record import find_state, record
from guard.core.coordinator.decide import load_plan
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit, submit_for_audit
from guard.core.coordinator.state import Coordinator
from guard.core.landing.report import LandingReport
from guard.core.plan.model import PlanTask
from guard.landing.land import land
from guard.landing.target import open_target
from tests.support import git, write

PLAN = "refs/heads/guard/plan/plan"


class LandingPlan:
    """Tasks that need nothing of each other, or what `needs` says."""

    def __init__(
        self,
        root: Path,
        workspace: Path,
        *names: str,
        needs: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.root, self.workspace = root, workspace
        write(root / "base.txt", "base\n")
        write(
            root / "plan.md",
            "# Plan\n\n" + "".join(f"- [ ] {name}: Add {name}\n" for name in names),
        )
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Begin")
        tasks = tuple(
            PlanTask(id=name, name=name, title=f"Add {name}", depends=(needs or {}).get(name, ()))
            for name in names
        )
        record(self.guard, load_plan(plan_file="plan.md", tasks=tasks))

    @classmethod
    def of(cls, root: Path, workspace: Path) -> "LandingPlan":
        """One that is there already."""
        planned = cls.__new__(cls)
        planned.root, planned.workspace = root, workspace
        return planned

    def copied(self, name: str) -> tuple[Path, Path]:
        """A copy of the repository and of its workspace."""
        folder = self.root.parent / name
        folder.mkdir()
        for path, copy in ((self.root, "project"), (self.workspace, "workspace")):
            shutil.copytree(path, folder / copy, symlinks=True)
        return folder / "project", folder / "workspace"

    def reloads(self, news: dict[str, dict[str, Any]]) -> None:
        """Load the plan again with other properties of some tasks."""
        tasks = (task.model_copy(update=news.get(task.id, {})) for task in self.state.tasks)
        record(self.guard, load_plan(plan_file="plan.md", tasks=tuple(tasks)))

    @property
    def guard(self) -> Invocation:
        return self.guard_in(self.root)

    def guard_in(self, root: Path) -> Invocation:
        return Invocation(repo=root, workspace_option=os.fspath(self.workspace), environ=os.environ)

    @property
    def state(self) -> Coordinator:
        found = find_state(self.guard)
        assert found is not None
        return found

    def tip(self, ref: str = PLAN) -> str:
        return git(self.root, "rev-parse", ref).strip()

    def tree(self, name: str) -> Path:
        """The task's work tree, on its own branch, which begins at the target's tip."""
        folder = self.root.parent / f"tree-{name}"
        if not folder.exists():
            begin = open_target(self.guard).head
            assert begin is not None
            branch = f"guard/task/{name}"
            there = git(self.root, "branch", "--list", branch)
            new = (branch,) if there else ("-b", branch)
            words = (os.fspath(folder), branch) if there else (*new, os.fspath(folder), begin)
            git(self.root, "worktree", "add", "-q", *words)
        return folder

    def work(self, name: str, files: dict[str, str], message: str = "") -> str:
        """Commit these files on the task's branch, and leave the work tree."""
        tree = self.tree(name)
        for path, text in files.items():
            write(tree / path, text)
        git(tree, "add", "-A")
        if git(tree, "status", "--porcelain"):
            git(tree, "commit", "-q", "-m", message or f"Work on {name}")
        return git(tree, "rev-parse", "HEAD").strip()

    def leave(self, name: str) -> None:
        folder = self.root.parent / f"tree-{name}"
        git(self.root, "worktree", "remove", "--force", os.fspath(folder))

    def passes(
        self, name: str, files: dict[str, str] | None = None, *, leaves: bool = True
    ) -> None:
        """Do the task in its work tree, pass its audit there, and remove the work tree."""
        tree = self.tree(name)
        guard = self.guard_in(tree)
        record(guard, dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
        self.work(name, files if files is not None else {f"{name}.txt": f"{name}\n"})
        record(guard, submit_for_audit(task_id=name))
        record(guard, pass_audit(task_id=name, agent_id=f"audit-{name}", evidence_summary="green"))
        if leaves:
            self.leave(name)

    def works_on(self, tree: Path, *names: str) -> None:
        """Do one task after the other in the same work tree."""
        guard = self.guard_in(tree)
        for name in names:
            record(guard, dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
            write(tree / f"{name}.txt", f"{name}\n")
            git(tree, "add", "-A")
            git(tree, "commit", "-q", "-m", f"Work on {name}")
            record(guard, submit_for_audit(task_id=name))
            record(
                guard,
                pass_audit(task_id=name, agent_id=f"audit-{name}", evidence_summary="it works"),
            )

    def lands(self, *names: str, target: str | None = None, dry: bool = False) -> LandingReport:
        return land(self.guard, names or None, target, dry=dry)

    def outcomes(self, *names: str, target: str | None = None) -> dict[str, str]:
        return {task.task_id: task.outcome for task in self.lands(*names, target=target).tasks}

    def shown(self, path: str, ref: str = PLAN) -> str:
        return git(self.root, "show", f"{ref}:{path}")

    def subjects(self, ref: str = PLAN) -> list[str]:
        return git(self.root, "log", "--first-parent", "--format=%s", ref).splitlines()
