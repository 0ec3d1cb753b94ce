'use strict';
// The JavaScript guest: runs one snippet inside a sandbox and answers with its value.
//
// Started as `node /usr/lib/isle/javascript.cjs` with the frame socket (src/codec/frame.h) as
// descriptor 3, which Node itself keeps from children. The snippet runs as though `node snippet.js`
// had been called in the working directory: CommonJS, and only if it needs it as an async function
// or as a module. docs/results.md is the contract of the values.
//
// Whatever is used once the snippet has begun is taken here, before it can be changed; the encoder
// calls no method that a snippet can reach, but for those that the contract lets it define.

const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { isNativeError, isPromise } = require('node:util').types;

const Module = module.constructor; // node:module and node:vm are loaded where they are needed
const { describe, encodeResult, quote, RESULT_MAX_BYTES } = require('./javascript_values.cjs');

const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const [MAGIC, CODE, PARAMS, RUN, RESULT, ERROR] = [0x4c534931, 1, 2, 3, 32, 33];
const HEADER_BYTES = 20;
const MESSAGE_MAX = 4096;

// ---- the channel -------------------------------------------------------------------------------

const channel = { fd: 3, execution: 0, inode: 0, sent: false };
const { readSync, writeSync, fstatSync } = fs;
const { from: bufferFrom, alloc: bufferAlloc, byteLength } = Buffer;
const slice = uncurry(String.prototype.slice);
const writeUInt32 = uncurry(Buffer.prototype.writeUInt32LE);

function readFull(size) {
  const data = bufferAlloc(size);
  for (let have = 0; have < size; ) {
    const more = readSync(channel.fd, data, have, size - have, null);
    if (more === 0) process.exit(1); // the service is gone
    have += more;
  }
  return data;
}

// {type: payload} up to and including RUN.
function receive() {
  const frames = {};
  while (!frames[RUN]) {
    const header = readFull(HEADER_BYTES);
    if (header.readUInt32LE(0) !== MAGIC) process.exit(1);
    channel.execution = header.readUInt32LE(8);
    frames[header.readUInt32LE(4)] = readFull(header.readUInt32LE(16));
  }
  channel.inode = fstatSync(channel.fd).ino;
  return frames;
}

// The first frame is the answer; nothing is sent after it.
function send(kind, text) {
  if (channel.sent) return;
  channel.sent = true;
  const length = byteLength(text);
  const header = bufferAlloc(HEADER_BYTES);
  writeUInt32(header, MAGIC, 0);
  writeUInt32(header, kind, 4);
  writeUInt32(header, channel.execution, 8);
  writeUInt32(header, 1, 12);
  writeUInt32(header, length, 16);
  try {
    if (fstatSync(channel.fd).ino !== channel.inode) return; // another file has the number now
    writeAll(header, HEADER_BYTES);
    writeAll(bufferFrom(text), length);
  } catch {
    // Nobody listens, or closed by the snippet: the service sees that no result came.
  }
}

function writeAll(data, size) {
  for (let done = 0; done < size; ) done += writeSync(channel.fd, data, done, size - done);
}

// `more`: further members, as text: ',"path":"result.a"'.
function sendError(type, message, more) {
  const short = slice(message, 0, MESSAGE_MAX);
  send(ERROR, `{"type":${quote(type)},"message":${quote(short)}${more ?? ''}}`);
}

// ---- compiling ---------------------------------------------------------------------------------

const AsyncFunction = (async () => {}).constructor;
const CJS_PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];
const NEEDS_MODULE = [
  'Cannot use import statement outside a module',
  "Unexpected token 'export'",
  "Cannot use 'import.meta' outside a module",
];

// How the snippet must be run: 'commonjs' as it stands; 'async' as the body of an async function;
// 'module'. Code that is wrong every way is told by the error of the way it comes nearest to.
function chooseKind(source, file, tail) {
  if (file.endsWith('.mjs')) return { kind: 'module' };
  if (!/\b(?:await|import|export)\b/.test(source)) return { kind: 'commonjs' };
  const vm = require('node:vm');
  const plain = attempt(() => vm.compileFunction(source, CJS_PARAMETERS, { filename: file })).error;
  if (NEEDS_MODULE.includes(plain?.message)) return { kind: 'module' };
  // `await (x)` is also a call of a function named await: an operator, in all likelihood, where it is
  // not inside of a function. A static block, strict as it is, takes it nowhere else.
  if (!plain) {
    const inside = () => new vm.Script(`class A { static {\n${source.replace(/^#!/, '//')}\n} }`);
    if (!/\bawait\s*[([+\-/`\r\n]/.test(source) || !attempt(inside).error) return { kind: 'commonjs' };
  }
  const { value, error } = attempt(() => compileAsync(source, file, tail));
  if (value) return { kind: 'async', compiled: value };
  if (NEEDS_MODULE.includes(error.message)) return { kind: 'module' };
  if (plain?.message.startsWith('await is only valid')) throw withoutUs(error);
  return { kind: 'commonjs' };
}

function withoutUs(error) {
  error.stack = error.stack.split('\n').filter((line) => !line.includes(__filename)).join('\n');
  return error;
}

// The code between two lines of ours. That it is the body of one function, and not the end of ours
// and something else, is checked by the language's own constructor.
function compileAsync(source, file, tail) {
  const body = source.replace(/^#!/, '//');
  const text = `(async function (${CJS_PARAMETERS}) {\n${body}\n${tail}})`;
  const script = newScript(text, file, -1);
  Reflect.construct(AsyncFunction, [...CJS_PARAMETERS, body]);
  return script.runInThisContext();
}

function newScript(text, filename, lineOffset) {
  const { Script, constants } = require('node:vm');
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (/\bimport\b/.test(text)) muteLoaderNotice();
  return new Script(text, { filename, lineOffset, importModuleDynamically });
}

// With the snippet's first import() Node.js says, once, that the loader constant is experimental:
// it is ours, not the snippet's.
function muteLoaderNotice() {
  const { emitWarning } = process;
  process.emitWarning = function (warning, ...rest) {
    if (typeof warning === 'string' && warning.startsWith('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER ')) {
      process.emitWarning = emitWarning;
    } else apply(emitWarning, process, [warning, ...rest]);
  };
}

// ---- running -----------------------------------------------------------------------------------

const { apply } = Reflect;
const then = uncurry(Promise.prototype.then);
const PromiseClass = Promise;
const afterThis = setImmediate;
const microtask = queueMicrotask;
const state = { pending: true, running: false, kind: '', drained: false, error: undefined, result: 'null', calls: false, converting: false, params: undefined };

function writeFile(folder, file, data) {
  fs.mkdirSync(folder, { recursive: true });
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = fs.constants;
  const fd = fs.openSync(`${folder}/${file}`, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
  fs.writeFileSync(fd, data);
  fs.closeSync(fd);
}

// Integers that a double cannot hold arrive as BigInt.
function parseParams(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) => {
    const whole = typeof value === 'number' && !Number.isSafeInteger(value);
    return whole && /^-?\d+$/.test(source) ? BigInt(source) : value;
  });
}

// Pipes are written as they would be by any other program: all of it, before the next statement.
// (Node writes what fits, and process.exit() forgets the rest.)
function writeSynchronously(name) {
  const { get } = Object.getOwnPropertyDescriptor(process, name);
  let stream;
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      if (!stream) {
        stream = get.call(process);
        stream._handle?.setBlocking?.(true);
      }
      return stream;
    },
  });
}

// What `import` names from the snippet, it names from the working directory. Package sets
// (NODE_PATH), which only require() knows by itself, are looked through last.
function resolveImports(url, main, entry) {
  const here = pathToFileURL(main.filename).href;
  require('node:module').registerHooks({
    resolve(specifier, context, next) {
      if (entry && (specifier === url || specifier === entry)) {
        return { url, format: 'module', shortCircuit: true };
      }
      if (context.parentURL !== url) return next(specifier, context);
      try {
        return next(specifier, { ...context, parentURL: here });
      } catch (error) {
        if (error.code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^\w+:/.test(specifier)) throw error;
        const found = attempt(() => Module._resolveFilename(specifier, main));
        if (!found.value) throw error;
        return next(pathToFileURL(found.value).href, context);
      }
    },
  });
}

// {value} or {error} of an action.
function attempt(action) {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

function newMainModule(file, directory) {
  const main = new Module('.', null);
  main.filename = path.join(directory, path.basename(file)); // require() looks from here
  main.paths = Module._nodeModulePaths(directory);
  process.mainModule = main;
  process.argv[1] = file;
  return main;
}

// The value is made text as it is now. It is sent when what the main code left behind has had its
// turn, promises rejected without a handler above all: what comes first then is the answer.
function finish(value) {
  state.pending = false;
  state.converting = true;
  const { text, tooLarge, why, path: place } = encodeResult(value);
  state.converting = false;
  if (text !== undefined) {
    const wrap = state.calls && text[0] !== '{';
    state.result = wrap ? `{"result":${text}}` : text;
    afterThis(sendResult);
    return;
  }
  if (tooLarge !== undefined) {
    const message = `the result has ${tooLarge} bytes or more, above the limit of ${RESULT_MAX_BYTES}`;
    sendError('ResultTooLarge', message, `,"size":${tooLarge},"limit":${RESULT_MAX_BYTES}`);
  } else sendError('ResultError', why, `,"path":${quote(place)}`);
  process.exitCode = 1;
}

function sendResult() {
  send(RESULT, state.result);
}

// The snippet's own code has ended with a value, or a promise of one.
function settle(value) {
  let waits = isPromise(value);
  try {
    waits ||= typeof value === 'object' && value !== null && typeof value.then === 'function';
  } catch {
    // A proxy; the encoder says where.
  }
  state.pending = waits;
  if (waits) then(new PromiseClass((resolve) => resolve(value)), finish, failed);
  else finish(value);
}

const TOLD = {}; // in place of an error that Node.js has shown

// A promise that the snippet returned is left to Node.js. What ends the main code of a module is an
// uncaught error to it, and the same is the body of an async function.
function failed(error) {
  state.pending = false;
  if (error === TOLD) return;
  if (state.kind === 'commonjs') throw error;
  microtask(() => {
    throw error;
  });
}

function atDrained() {
  state.drained = state.pending;
}

function atExit(code) {
  if (channel.sent) return;
  if (state.converting) {
    sendError('ResultError', 'the program exited while its result was converted');
    process.exitCode ||= 1;
  } else if (state.pending && state.drained && (!(code & 0xff) || (code === 13 && state.kind === 'module'))) {
    // Of a module Node.js says so itself.
    const text = `Warning: Detected unsettled top-level await at ${process.argv[1]}\n`;
    if (state.kind !== 'module') writeSync(2, text);
    sendError('UnsettledAwait', 'the program waits for a promise that nothing will settle');
    process.exitCode = 13;
  } else if (state.error) sendError(state.error.type, state.error.message);
  else if (state.calls && state.pending && !(code & 0xff)) {
    writeSync(2, `${ENDED_EARLY}\n`);
    sendError('', ENDED_EARLY);
    process.exitCode = 1;
  }
  else if (!(code & 0xff) || !state.pending) sendResult(); // as the system has it
  else sendError('ExitStatus', `exit status ${code}`);
}

const listenerCount = process.listenerCount.bind(process);
const hasCaptureCallback = process.hasUncaughtExceptionCaptureCallback;

function atUncaught(error) {
  const message = attempt(() => isNativeError(error) && error.message).value;
  if (state.kind === 'module' && message === 'Illegal return statement') adviseAgainstReturn(error);
  if (state.running) state.running = state.pending = false; // the main code has ended by it
  if (listenerCount('uncaughtException') > 0 || hasCaptureCallback()) return; // the snippet goes on
  state.error = nameAndMessage(error);
  process.on('exit', () => {
    process.exitCode ||= 1; // no handler turns this into a success
  });
}

function nameAndMessage(error) {
  try {
    if (isNativeError(error)) return { type: `${error.name}`, message: `${error.message}` };
  } catch {
    // Its getters throw.
  }
  return { type: 'Error', message: describe(error) };
}

// As the entry point, which is what `import.meta.main` says; Node.js itself tells of its errors. The
// entry point is looked for where the link /code leads to, and is to be known by its name in /code.
function runModule(file, main) {
  const url = pathToFileURL(file).href;
  resolveImports(url, main, pathToFileURL(fs.realpathSync(file)).href);
  globalThis.require = Module.createRequire(main.filename);
  Module.runMain(file);
  return then(import(url), undefined, () => {
    throw TOLD;
  });
}

// The same error, so that Node.js shows the place as it does for every other one.
function adviseAgainstReturn(error) {
  const advice =
    'a top-level return cannot be used together with import and export statements: ' +
    'use `await import()`, or `export default` for the result';
  error.stack = error.stack.replace(error.message, advice);
  error.message = advice;
}

// ---- main --------------------------------------------------------------------------------------

// The line that is run when the top level has come to its end: only there can its names be seen.
const TAKE = '$isle_main';
const TAIL = `;globalThis.${TAKE}?.(typeof main === "undefined" ? undefined : main);`;

// Calls what the tail, the exports of a module or of CommonJS have for main.
function callMain(exported) {
  const { main, ended } = taken;
  if (!ended) refuse('a top-level return was reached: the outputs are what main returns');
  const found = exported.main ?? main ?? exported.default;
  if (found === undefined) refuse(NO_MAIN);
  if (typeof found !== 'function') refuse(`main is no function: it is of type ${typeof found}`);
  return found(state.params); // what the snippet made of the global is its own affair
}

const ENDED_EARLY = 'the program ended before main returned: the outputs are what main returns';
const NO_MAIN = 'the code defines no function main: the outputs are what main(inputs) returns';
const taken = { main: undefined, ended: false };

function offerTail() {
  const value = (main) => {
    taken.main = main;
    taken.ended = true;
    delete globalThis[TAKE];
  };
  Object.defineProperty(globalThis, TAKE, { value, configurable: true });
}

const exit = process.exit.bind(process);

// Ends it, with a text that is all there is to say.
function refuse(text) {
  writeSync(2, `${text}\n`);
  sendError('', text);
  exit(1);
}

function run(source, options) {
  const root = options.code_dir ?? '/code'; // a link to the folder we make; tests have their own
  const text = source.toString().replace(/^\uFEFF/, '');
  const tail = state.calls ? TAIL : '';
  const { kind, compiled } = chooseKind(text, `${root}/${options.name}`, tail);
  const { name: stem } = path.parse(options.name);
  const name = kind === 'module' ? `${stem}.mjs` : options.name;
  const file = `${root}/${name}`;
  const written = kind === 'module' && tail ? `${text}\n${tail}` : source;
  writeFile(options.code_dir ?? '/dev/shm/code', name, written);
  if (tail) offerTail();
  const main = newMainModule(file, process.cwd());
  state.kind = kind;
  if (kind === 'module') {
    const { calls } = state;
    return then(runModule(file, main), (exported) => (calls ? callMain(exported) : exported.default));
  }
  if (/\bimport\b/.test(text)) resolveImports(pathToFileURL(file).href, main);
  if (kind === 'commonjs' && !state.calls) {
    // As itself, should it be required: /code is a link, and the loader asks for what it leads to.
    Object.defineProperty(Module._cache, fs.realpathSync(file), { value: main, configurable: true, writable: true });
    Module._cache[file] = main;
    const value = main._compile(text, file, 'commonjs');
    main.loaded = true;
    return value;
  }
  const scope = [main.exports, Module.createRequire(main.filename), main, file, root];
  scope[1].main = main;
  if (!state.calls) return apply(compiled, main.exports, scope);
  const value = apply(compiled ?? compileCalling(text, file, tail), main.exports, scope);
  return kind === 'async' ? then(value, () => callMain(main.exports)) : callMain(main.exports);
}

function check(source, options) {
  const text = source.toString().replace(/^\uFEFF/, '');
  const root = options.code_dir ?? '/code';
  const file = `${root}/${options.name}`;
  const written = `${options.code_dir ?? '/dev/shm/code'}/${path.parse(file).name}.mjs`;
  const place = { file: written, url: pathToFileURL(file).href };
  fs.mkdirSync(path.dirname(written), { recursive: true });
  const compile = (kind, tail) =>
    kind === 'async' ? compileAsync(text, file, tail) : compileCalling(text, file, tail);
  return require('./javascript_check.cjs').check(text, place, () => chooseKind(text, file, ''), compile, NO_MAIN);
}

// CommonJS with a tail. What is wrong without it is told of the code as it stands.
function compileCalling(text, file, tail) {
  const { compileFunction, constants } = require('node:vm');
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (/\bimport\b/.test(text)) muteLoaderNotice();
  const options = { filename: file, importModuleDynamically };
  compileFunction(text, CJS_PARAMETERS, options);
  return compileFunction(`${text}\n${tail}`, CJS_PARAMETERS, options);
}

function serve() {
  const frames = receive();
  const options = JSON.parse(frames[RUN].toString());
  globalThis.params = state.params = parseParams(frames[PARAMS]?.toString() || '{}');
  state.calls = options.mode === 'function';
  writeSynchronously('stdout');
  writeSynchronously('stderr');
  process.on('beforeExit', atDrained);
  process.on('exit', atExit);
  process.on('uncaughtExceptionMonitor', atUncaught);
  // Under the loop, so that a snippet's stack traces do not end in this file's start.
  process.nextTick(() => {
    // No `finally`: an error that is thrown again is shown where it was made, not where it was thrown.
    state.running = true;
    const value = (options.mode === 'check' ? check : run)(frames[CODE] ?? bufferAlloc(0), options);
    state.running = state.pending = false;
    settle(value);
  });
}

serve();
