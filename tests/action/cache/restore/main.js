// A runner of GitHub's keeps its temporary folder at one place, act does not: what is cached goes by way of a place that stays.
const fs = require("node:fs");
const cache = require(process.env.GUARD_TESTS_CACHE);
const lines = (text) => (text || "").split("\n").map((line) => line.trim()).filter(Boolean);
const [path, others] = [process.env.INPUT_PATH, lines(process.env["INPUT_RESTORE-KEYS"])];
const place = process.env.GUARD_TESTS_STATE;
fs.rmSync(place, { recursive: true, force: true });
cache.restoreCache([place], process.env.INPUT_KEY, others).then(
  (found) => {
    if (found) fs.cpSync(place, path, { recursive: true });
    console.log(`restored: ${found || "nothing"}`);
  },
  (error) => { console.error(error); process.exit(1); },
);
