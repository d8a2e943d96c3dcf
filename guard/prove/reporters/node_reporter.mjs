// A reporter for `node --test` that writes down what each test did, one JSON line at a time.
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';

const settings = createRequire(import.meta.url)('./settings.json');
const name = `${process.pid}-${Math.random().toString(16).slice(2)}.jsonl`;
const MOST_TEXT = 4000;
const MOST_ERRORS = 64 * 1024;
let output = null;

function write(kind, fields) {
  output ??= fs.openSync(path.join(settings.reports, name), 'ax', 0o600);
  fs.writeSync(output, JSON.stringify({kind, ...fields}) + '\n');
}

function relative(file) {
  if (!file) return null;
  const found = path.relative(settings.folder, file);
  return found.startsWith('..') ? null : found;
}

const GONE = /is not a function|is not a constructor|is not defined/;
const NOT_FOUND = /ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|does not provide an export named|ERR_PACKAGE_PATH_NOT_EXPORTED/;
const TEST_FILE = /(^|[/.-])(tests?|spec|__tests__)([/.-]|$)/;

function fault(error, own) {
  const cause = error?.cause ?? error;
  if (cause?.code === 'ERR_ASSERTION' || cause?.name === 'AssertionError') return 'assertion';
  const text = `${cause?.code ?? ''} ${cause?.message ?? cause}`;
  if (NOT_FOUND.test(text)) return 'cannot_run';
  if (!['TypeError', 'ReferenceError'].includes(cause?.name) || !GONE.test(text)) return 'error';
  // What the code itself raised, though it was there to be called, is an error.
  const frames = String(cause.stack ?? '').split('\n').filter((line) => line.includes(settings.folder));
  const file = /\(?(?:file:\/\/)?(\/[^():]*):\d+:\d+\)?$/.exec(frames[0] ?? '')?.[1];
  return file && (file === own || TEST_FILE.test(relative(file) ?? '')) ? 'cannot_run' : 'error';
}

function text(error) {
  const cause = error?.cause ?? error;
  return String(cause?.stack ?? cause?.message ?? cause ?? '').slice(-MOST_TEXT);
}

class Session {
  constructor() {
    this.names = [];
    this.seen = new Map();
    this.errors = new Map();
    this.failed = false;
  }

  id(data) {
    const file = relative(data.file);
    if (data.name === data.file || (file && data.name === file)) return file ?? data.name;
    const names = [...this.names.slice(0, data.nesting), data.name].join(' > ');
    const whole = file ? `${file}::${names}` : names;
    const count = (this.seen.get(whole) ?? 0) + 1;
    this.seen.set(whole, count);
    return count > 1 ? `${whole} (${count})` : whole;
  }

  end(data, hasFailed) {
    const error = data.details?.error;
    const isSuite = data.details?.type === 'suite';
    if (isSuite && !hasFailed) return;
    if (hasFailed && error?.failureType === 'subtestsFailed') return;
    const id = this.id(data);
    const file = relative(data.file);
    const said = this.errors.get(data.file) ?? '';
    if (hasFailed && id === file && NOT_FOUND.test(said)) {
      write('uncollected', {file, text: said.slice(-MOST_TEXT)});
      return;
    }
    const isLeftOut = data.skip !== undefined || data.todo !== undefined;
    const reason = typeof data.skip === 'string' ? data.skip : typeof data.todo === 'string' ? data.todo : '';
    let kind = '';
    if (hasFailed) kind = id === file ? (/AssertionError/.test(said) ? 'assertion' : 'error') : fault(error, data.file);
    write('phase', {
      id,
      file,
      when: 'call',
      outcome: isLeftOut ? 'skipped' : hasFailed ? 'failed' : 'passed',
      xfail: false,
      raised: hasFailed && !isLeftOut ? 'raised' : 'no',
      fault: kind,
      text: isLeftOut ? reason : hasFailed ? (id === file ? said.slice(-MOST_TEXT) : text(error)) : '',
    });
    this.failed ||= hasFailed && !isLeftOut;
  }

  hear(event) {
    const data = event.data ?? {};
    if (event.type === 'test:start') this.names[data.nesting] = data.name;
    else if (event.type === 'test:pass') this.end(data, false);
    else if (event.type === 'test:fail') this.end(data, true);
    else if (event.type === 'test:stderr') {
      this.errors.set(data.file, ((this.errors.get(data.file) ?? '') + data.message).slice(-MOST_ERRORS));
    }
  }
}

export default async function* report(source) {
  const session = new Session();
  write('begin', {worker: false, runner: 'node'});
  for await (const event of source) session.hear(event);
  write('end', {exit: session.failed ? 1 : 0, stopped: false, foreign: []});
}
