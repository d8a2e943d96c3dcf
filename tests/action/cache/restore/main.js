const cache = require(process.env.GUARD_TESTS_CACHE);
const lines = (text) => (text || "").split("\n").map((line) => line.trim()).filter(Boolean);
const others = lines(process.env["INPUT_RESTORE-KEYS"]);
cache.restoreCache(lines(process.env.INPUT_PATH), process.env.INPUT_KEY, others).then(
  (found) => console.log(`restored: ${found || "nothing"}`),
  (error) => { console.error(error); process.exit(1); },
);
