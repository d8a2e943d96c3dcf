// completion-guard plugin for OpenCode. Written by `guard install opencode`; `guard uninstall opencode` removes it.
//
// It tells guard what it sees, by `guard hook opencode EVENT` with a JSON document on stdin. It never throws, and never
// holds OpenCode up for more than a moment: what guard answers is not waited for longer than that, and not acted upon.

import { spawn } from "node:child_process";

const COMMAND = "guard";
const PATIENCE_MS = 1500;
const MOST_HELPERS = 1000;
const MOST_OUTPUT = 16384;
const TOLD = ["session.created", "session.idle", "session.error", "session.deleted"];

function tell(event, folder, told) {
  return new Promise((done) => {
    try {
      const child = spawn("/bin/sh", ["-c", `${COMMAND} hook opencode ${event}`], {
        cwd: folder,
        detached: true,
        stdio: ["pipe", "ignore", "ignore"],
      });
      const timer = setTimeout(done, PATIENCE_MS);
      const over = () => {
        clearTimeout(timer);
        done();
      };
      child.on("error", over);
      child.on("exit", over);
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify({ hook_event_name: event, cwd: folder, ...told }));
      child.unref();
    } catch {
      done();
    }
  });
}

export const Guard = async (given) => {
  const folder = given?.worktree && given.worktree !== "/" ? given.worktree : given?.directory ?? process.cwd();
  // A helper has a session of its own, with a parent: it is neither the start nor the end of the agent's.
  const helpers = new Set();

  function sessionOf(event) {
    const about = event?.properties ?? {};
    const session = about.sessionID ?? about.info?.id;
    // Messages have parents too.
    const isHelper = String(event?.type).startsWith("session.") && about.info?.parentID;
    if (isHelper && helpers.size < MOST_HELPERS) helpers.add(session);
    return session;
  }

  return {
    event: async ({ event } = {}) => {
      try {
        const session = sessionOf(event);
        if (!TOLD.includes(event?.type) || helpers.has(session)) return;
        const error = event.properties?.error;
        const told = { session_id: session };
        if (event.type === "session.created") told.source = "startup";
        if (error) told.error = String(error.name ?? error.message ?? "error");
        await tell(event.type, folder, told);
      } catch {}
    },
    "chat.message": async (input) => {
      try {
        if (!helpers.has(input?.sessionID)) {
          void tell("chat.message", folder, { session_id: input?.sessionID, prompt_id: input?.messageID });
        }
      } catch {}
    },
    "tool.execute.before": async (input) => {
      try {
        void tell("tool.execute.before", folder, { session_id: input?.sessionID, tool_name: input?.tool });
      } catch {}
    },
    "tool.execute.after": async (input, result) => {
      try {
        const exit = result?.metadata?.exit;
        void tell("tool.execute.after", folder, {
          session_id: input?.sessionID,
          tool_name: input?.tool,
          tool_input: input?.args,
          tool_response: { output: String(result?.output ?? "").slice(-MOST_OUTPUT), exit_code: Number.isInteger(exit) ? exit : undefined },
        });
      } catch {}
    },
  };
};
