// Loaded into each process in which `node --test` runs a test file: says whether the file came to its end, and whether
// assertions still fail there. A file that calls process.exit(0) counts as passed for node, whatever its tests would have done.
'use strict';
const context = process.env.NODE_TEST_CONTEXT;
if (context !== undefined) watch();

function watch() {
  const fs = require('node:fs');
  const path = require('node:path');
  const assert = require('node:assert');
  const runner = require('node:test');
  const settings = require('./settings.json');
  // A node that a test starts is the project's own affair.
  for (const [name, value] of Object.entries(settings.environ)) {
    if (value === null) delete process.env[name];
    else process.env[name] = value;
  }
  const {openSync, writeSync} = fs;
  const kept = [runner, assert, assert.strict].map((place) => [place, {...place}]);
  const name = `${process.pid}-${Math.random().toString(16).slice(2)}.jsonl`;
  const output = openSync(path.join(settings.reports, name), 'ax', 0o600);
  const write = (kind, fields) => writeSync(output, JSON.stringify({kind, ...fields}) + '\n');
  const main = process.argv[1] ?? '';
  write('begin', {worker: true, runner: 'node', file: path.relative(settings.folder, main)});
  write('canaries', {count: 1});

  const wrong = [
    () => assert.equal(1, 2),
    () => assert.strictEqual(1, 2),
    () => assert.deepStrictEqual({a: 1}, {a: 2}),
    () => assert.deepEqual([1], [2]),
    () => assert.ok(false),
    () => assert(false),
    () => assert.throws(() => {}),
  ];
  const fails = (call) => {
    try {
      call();
    } catch {
      return true;
    }
    return false;
  };
  const isKept = () => kept.every(([place, words]) => Object.keys(words).every((word) => place[word] === words[word]));
  process.once('beforeExit', () => {
    const isWell = wrong.every(fails) && isKept();
    write('canary', {
      role: 'fail', place: main, when: 'call', outcome: isWell ? 'failed' : 'passed', raised: isWell ? 'raised' : 'no',
    });
    const foreign = Object.keys(require.cache).filter(isForeign).map((file) => path.relative(settings.project, file));
    write('end', {exit: 0, stopped: false, foreign: foreign.sort().slice(0, 20)});
  });

  function isForeign(file) {
    if (!file.startsWith(settings.project + path.sep) || file.startsWith(settings.folder + path.sep)) return false;
    return !file.split(path.sep).includes('node_modules');
  }
}
