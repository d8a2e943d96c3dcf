const fs = require("node:fs");
const cache = require(process.env.GUARD_TESTS_CACHE);
const place = process.env.GUARD_TESTS_STATE;
fs.rmSync(place, { recursive: true, force: true });
fs.cpSync(process.env.INPUT_PATH, place, { recursive: true });
cache.saveCache([place], process.env.INPUT_KEY).then(
  (id) => console.log(`saved: ${id}`),
  (error) => { console.error(error); process.exit(1); },
);
