const cache = require(process.env.GUARD_TESTS_CACHE);
const lines = (text) => (text || "").split("\n").map((line) => line.trim()).filter(Boolean);
cache.saveCache(lines(process.env.INPUT_PATH), process.env.INPUT_KEY).then(
  (id) => console.log(`saved: ${id}`),
  (error) => { console.error(error); process.exit(1); },
);
