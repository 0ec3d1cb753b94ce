'use strict';
// The JavaScript guest: runs one snippet inside a sandbox and answers with its value.
//
// Started as `node /usr/lib/isle/javascript.cjs` with the frame socket (src/codec/frame.h) as
// descriptor 3, which Node itself closes to children. The snippet runs as though `node snippet.js`
// had been called in the working directory: CommonJS, and only if it needs it as an async function
// or as a module. docs/results.md is the contract of the values.
//
// Whatever is used once the snippet has begun is taken here, before it can be changed; the encoder
// calls no method that a snippet can reach, but for those that the contract lets it define.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { types } = require('node:util');
const vm = require('node:vm');

const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const [MAGIC, CODE, PARAMS, RUN, RESULT, ERROR] = [0x4c534931, 1, 2, 3, 32, 33];
const HEADER_BYTES = 20;
const RESULT_MAX_BYTES = 8 << 20;
const DEPTH_MAX = 64; // containers around a value; more is refused by every reader behind us
const MESSAGE_MAX = 4096;

// ---- the channel -------------------------------------------------------------------------------

const channel = { fd: 3, execution: 0, inode: 0, sent: false };
const { readSync, writeSync, fstatSync } = fs;
const { from: bufferFrom, alloc: bufferAlloc, byteLength } = Buffer;
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

function sendError(type, message, more) {
  const fields = { __proto__: null, type, message: cut(message), ...more };
  let text = '';
  for (const name in fields) {
    const value = fields[name];
    text += `${text && ','}"${name}":${typeof value === 'number' ? value : quote(value)}`;
  }
  send(ERROR, `{${text}}`);
}

// ---- values ------------------------------------------------------------------------------------

const { keys: ownKeys } = Object;
const { isArray } = Array;
const { apply } = Reflect;
const { stringify } = JSON;
const asText = String;
const ErrorClass = Error;
const { iterator: ITERATOR, asyncIterator: ASYNC_ITERATOR } = Symbol;
const objectToString = Object.prototype.toString;
const { toJSON: dateToJSON } = Date.prototype;
const { toJSON: bufferToJSON } = Buffer.prototype;
const wellFormed = uncurry(String.prototype.toWellFormed);
const slice = uncurry(String.prototype.slice);
const getTime = uncurry(Date.prototype.getTime);
const toISO = uncurry(Date.prototype.toISOString);
const mapForEach = uncurry(Map.prototype.forEach);
const setForEach = uncurry(Set.prototype.forEach);
const regExpText = uncurry(RegExp.prototype.toString);
const toBase64 = uncurry(Buffer.prototype.base64Slice);
const typedPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const getter = (prototype, name) => uncurry(Object.getOwnPropertyDescriptor(prototype, name).get);
const typedLength = getter(typedPrototype, 'length');
const viewParts = [typedPrototype, DataView.prototype].map((prototype) => ({
  buffer: getter(prototype, 'buffer'),
  offset: getter(prototype, 'byteOffset'),
  bytes: getter(prototype, 'byteLength'),
}));
const UNBOX = [
  [types.isNumberObject, uncurry(Number.prototype.valueOf)],
  [types.isStringObject, uncurry(String.prototype.valueOf)],
  [types.isBooleanObject, uncurry(Boolean.prototype.valueOf)],
  [types.isBigIntObject, uncurry(BigInt.prototype.valueOf)],
  [types.isSymbolObject, uncurry(Symbol.prototype.valueOf)],
];
const {
  isAnyArrayBuffer, isAsyncFunction, isBoxedPrimitive, isDataView, isDate, isMap, isNativeError,
  isPromise, isRegExp, isSet, isTypedArray, isUint8Array, isWeakMap, isWeakSet,
} = types;

let left = RESULT_MAX_BYTES;
const around = { __proto__: null }; // containers we are in, by depth

class Unfit {
  constructor(why, keep) {
    this.why = why; // null: too large
    this.keep = keep ?? DEPTH_MAX; // steps of the path that say something
    this.path = '';
  }
}

function spend(size) {
  left -= size;
  if (left < 0) throw new Unfit(null);
}

function cut(text) {
  return slice(text, 0, MESSAGE_MAX);
}

// A JSON string literal. Surrogates that are no pair become U+FFFD.
function quote(text) {
  return stringify(wellFormed(text));
}

// Whatever was thrown, as text.
function describe(error) {
  try {
    if (error instanceof ErrorClass) return `${error.name}: ${error.message}`;
    return asText(error);
  } catch {
    return '(its text cannot be had)';
  }
}

// The value as JSON text; undefined for what JSON has no word for.
function encode(value, depth) {
  switch (typeof value) {
    case 'string':
      spend(value.length);
      return quote(value);
    case 'number':
      return value - value === 0 ? `${value}` : 'null'; // NaN, infinities
    case 'boolean':
      return value ? 'true' : 'false';
    case 'bigint': {
      const digits = `${value}`;
      spend(digits.length);
      return digits;
    }
    case 'object':
      return value === null ? 'null' : encodeObject(value, depth, true);
    default:
      return undefined;
  }
}

function encodeObject(value, depth, mayConvert) {
  if (depth === DEPTH_MAX) refuseDepth(value);
  around[depth] = value;
  spend(2);
  try {
    return convert(value, depth, mayConvert);
  } catch (error) {
    if (error instanceof Unfit) throw error;
    throw new Unfit(`cannot be converted: ${describe(error)}`);
  }
}

function refuseDepth(value) {
  around[DEPTH_MAX] = value;
  for (let end = 0; end <= DEPTH_MAX; end++) {
    for (let i = 0; i < end; i++) {
      if (around[i] === around[end]) throw new Unfit('circular reference', end);
    }
  }
  throw new Unfit(`nested more than ${DEPTH_MAX} levels deep`, 8);
}

// One member of the container at `depth`; errors get its step in front of their path.
function member(value, depth, step) {
  try {
    return encode(value, depth + 1);
  } catch (error) {
    throw at(error, depth, step);
  }
}

function at(error, depth, step) {
  if (error instanceof Unfit && depth < error.keep) error.path = pathStep(step) + error.path;
  return error;
}

function pathStep(step) {
  if (typeof step === 'number') return `[${step}]`;
  return isName(step) ? `.${step}` : `[${quote(slice(step, 0, 100))}]`;
}

function isName(text) {
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c === '_' || c === '$';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return text.length > 0;
}

function convert(value, depth, mayConvert) {
  if (isBoxedPrimitive(value)) return encode(unbox(value), depth);
  if (mayConvert) {
    const { toJSON } = value;
    if (typeof toJSON === 'function' && toJSON !== dateToJSON && toJSON !== bufferToJSON) {
      const plain = apply(toJSON, value, ['']);
      if (typeof plain !== 'object' || plain === null) return encode(plain, depth);
      return encodeObject(plain, depth, false);
    }
  }
  if (isUint8Array(value)) return encodeBytes(value, viewParts[0]);
  if (isDataView(value)) return encodeBytes(value, viewParts[1]);
  if (isAnyArrayBuffer(value)) return bytesText(bufferFrom(value));
  if (isTypedArray(value)) return encodeList(value, typedLength(value), depth);
  if (isArray(value)) return encodeList(value, value.length, depth);
  if (isDate(value)) return getTime(value) === getTime(value) ? quote(toISO(value)) : 'null';
  if (isMap(value)) return encodeMap(value, depth);
  if (isSet(value)) return encodeSet(value, depth);
  if (isNativeError(value) || value instanceof ErrorClass) {
    return `{"name":${quote(asText(value.name))},"message":${quote(asText(value.message))}}`;
  }
  if (isPromise(value)) throw new Unfit('a promise that was not awaited');
  if (isRegExp(value)) return quote(regExpText(value));
  if (isWeakMap(value) || isWeakSet(value)) return quote(apply(objectToString, value, []));
  if (typeof value.next === 'function') {
    if (typeof value[ASYNC_ITERATOR] === 'function') {
      throw new Unfit('an async iterator must be collected first');
    }
    if (typeof value[ITERATOR] === 'function') return encodeIterator(value, depth);
  }
  return encodeProperties(value, depth);
}

function unbox(value) {
  for (let i = 0; i < 5; i++) if (UNBOX[i][0](value)) return UNBOX[i][1](value);
  return undefined;
}

function encodeBytes(view, parts) {
  spend(parts.bytes(view));
  return bytesText(bufferFrom(parts.buffer(view), parts.offset(view), parts.bytes(view)));
}

function bytesText(buffer) {
  const text = toBase64(buffer);
  spend(text.length);
  return `{"$bytes":"${text}"}`;
}

function encodeList(list, length, depth) {
  if (length > left / 2) throw new Unfit(null);
  let text = '';
  for (let i = 0; i < length; i++) {
    text += `${i === 0 ? '' : ','}${member(list[i], depth, i) ?? 'null'}`;
  }
  return `[${text}]`;
}

function encodeSet(set, depth) {
  let text = '';
  let index = 0;
  setForEach(set, (item) => {
    text += `${index === 0 ? '' : ','}${member(item, depth, index) ?? 'null'}`;
    index++;
  });
  return `[${text}]`;
}

function encodeIterator(source, depth) {
  let text = '';
  for (let index = 0; ; index++) {
    const { done, value } = source.next();
    if (done) return `[${text}]`;
    spend(1);
    text += `${index === 0 ? '' : ','}${member(value, depth, index) ?? 'null'}`;
  }
}

function encodeMap(map, depth) {
  let text = '';
  const seen = { __proto__: null };
  mapForEach(map, (item, key) => {
    const name = keyText(key);
    const step = name ?? asText(typeof key);
    try {
      if (name === undefined) throw new Unfit(`a key of type ${typeof key} has no text`);
      if (seen[name]) throw new Unfit(`more than one key becomes ${quote(name)}`);
    } catch (error) {
      throw at(error, depth, step);
    }
    seen[name] = true;
    const member_text = member(item, depth, name);
    if (member_text !== undefined) text += `${text && ','}${quote(name)}:${member_text}`;
  });
  return `{${text}}`;
}

function keyText(key) {
  if (typeof key === 'string') return key;
  if (key === null || typeof key === 'number' || typeof key === 'boolean') return encode(key, 0);
  if (typeof key === 'bigint') return `${key}`;
  if (typeof key === 'object' && isDate(key)) {
    return getTime(key) === getTime(key) ? toISO(key) : 'null';
  }
  return undefined;
}

function encodeProperties(value, depth) {
  const names = ownKeys(value);
  if (names.length === 0) {
    const { toString } = value;
    if (typeof toString === 'function' && toString !== objectToString) {
      return quote(asText(apply(toString, value, [])));
    }
  }
  let text = '';
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    spend(name.length);
    const member_text = property(value, name, depth);
    if (member_text !== undefined) text += `${text && ','}${quote(name)}:${member_text}`;
  }
  return `{${text}}`;
}

function property(value, name, depth) {
  let item;
  try {
    item = value[name];
  } catch (error) {
    throw at(new Unfit(`cannot be read: ${describe(error)}`), depth, name);
  }
  return member(item, depth, name);
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
function chooseKind(source, file) {
  if (file.endsWith('.mjs')) return { kind: 'module' };
  if (!/\b(?:await|import|export)\b/.test(source)) return { kind: 'commonjs' };
  const plain = parseError(() => vm.compileFunction(source, CJS_PARAMETERS, { filename: file }));
  if (plain && NEEDS_MODULE.includes(plain.message)) return { kind: 'module' };
  // `await (x)` is also a call of a function named await: an operator, in all likelihood.
  if (!plain && !/\bawait\s*[([+\-/`\r\n]/.test(source)) return { kind: 'commonjs' };
  let compiled;
  const asynchronous = parseError(() => {
    compiled = compileAsync(source, file);
  });
  if (!asynchronous) return { kind: 'async', compiled };
  if (NEEDS_MODULE.includes(asynchronous.message)) return { kind: 'module' };
  if (plain && plain.message.startsWith('await is only valid')) throw asynchronous;
  return { kind: 'commonjs' };
}

function parseError(compile) {
  try {
    compile();
    return null;
  } catch (error) {
    return error;
  }
}

// The code between two lines of ours. That it is the body of one function, and not the end of ours
// and something else, is checked by the language's own constructor.
function compileAsync(source, file) {
  const body = source.replace(/^#!/, '//');
  const text = `(async function (${CJS_PARAMETERS}) {\n${body}\n})`;
  const script = quietly(() => newScript(text, file, -1));
  Reflect.construct(AsyncFunction, [...CJS_PARAMETERS, body]);
  return script.runInThisContext();
}

function newScript(text, filename, lineOffset) {
  const { USE_MAIN_CONTEXT_DEFAULT_LOADER: importModuleDynamically } = vm.constants;
  return new vm.Script(text, { filename, lineOffset, importModuleDynamically });
}

// Without the notice that the loader constant is experimental: it is ours, not the snippet's.
function quietly(action) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return action();
  } finally {
    process.emitWarning = emitWarning;
  }
}

// ---- running -----------------------------------------------------------------------------------

const then = uncurry(Promise.prototype.then);
const PromiseClass = Promise;
const state = { pending: true, drained: false, error: undefined, mode: '' };

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
function resolveImports(snippet, main) {
  const places = [pathToFileURL(snippet).href, pathToFileURL(snippet.replace(/m?js$/, 'js')).href];
  const here = pathToFileURL(main.filename).href;
  Module.registerHooks({
    resolve(specifier, context, next) {
      if (specifier === places[0]) return { url: specifier, format: 'module', shortCircuit: true };
      if (!places.includes(context.parentURL)) return next(specifier, context);
      try {
        return next(specifier, { ...context, parentURL: here });
      } catch (error) {
        if (error.code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^\w+:/.test(specifier)) throw error;
        let found;
        try {
          found = Module._resolveFilename(specifier, main);
        } catch {
          throw error;
        }
        return next(pathToFileURL(found).href, context);
      }
    },
  });
}

function newMainModule(file, directory) {
  const main = new Module('.', null);
  main.filename = path.join(directory, path.basename(file)); // require() looks from here
  main.paths = Module._nodeModulePaths(directory);
  process.mainModule = main;
  process.argv[1] = file;
  return main;
}

function finish(value) {
  state.pending = false;
  try {
    let text = encode(value, 0) ?? 'null';
    if (state.mode === 'function' && text[0] !== '{') text = `{"result":${text}}`;
    const size = byteLength(text);
    if (size <= RESULT_MAX_BYTES) return send(RESULT, text);
    tooLarge(size);
  } catch (error) {
    if (error instanceof Unfit && error.why === null) tooLarge(RESULT_MAX_BYTES + 1);
    else if (error instanceof Unfit) {
      const place = `result${error.path}`;
      sendError('ResultError', `${place}: ${error.why}`, { __proto__: null, path: place });
    } else sendError('ResultError', `result: ${describe(error)}`);
  }
  process.exitCode = 1;
}

function tooLarge(size) {
  const message = `the result has ${size} bytes or more, above the limit of ${RESULT_MAX_BYTES}`;
  sendError('ResultTooLarge', message, { __proto__: null, size, limit: RESULT_MAX_BYTES });
}

// The snippet's own code has ended with a value, or a promise of one. A rejection is left to Node.
function settle(value) {
  let waits = isPromise(value);
  try {
    waits ||= typeof value === 'object' && value !== null && typeof value.then === 'function';
  } catch {
    // A proxy; the encoder says where.
  }
  if (waits) then(new PromiseClass((resolve) => resolve(value)), finish);
  else finish(value);
}

function watchEnd() {
  process.on('beforeExit', () => {
    state.drained = state.pending;
  });
  process.on('exit', (code) => {
    if (channel.sent) return;
    if (state.pending && state.drained && !code) {
      const text = `Warning: Detected unsettled top-level await at ${process.argv[1]}\n`;
      writeSync(2, text);
      sendError('UnsettledAwait', 'the program waits for a promise that nothing will settle');
      process.exitCode = 13;
    } else if (state.error) sendError(state.error.type, state.error.message);
    else if (!code) send(RESULT, 'null');
    else sendError('ExitStatus', `exit status ${code}`);
  });
  process.on('uncaughtExceptionMonitor', (error) => {
    if (process.listenerCount('uncaughtException') > 0) return; // the snippet goes on
    const native = isNativeError(error);
    const type = native ? describeName(error) : 'Error';
    state.error = { type, message: native ? asText(error.message) : describe(error) };
    process.on('exit', () => {
      process.exitCode ||= 1; // no handler turns this into a success
    });
  });
}

function describeName(error) {
  try {
    return asText(error.name);
  } catch {
    return 'Error';
  }
}

function runModule(file, folder, source, main) {
  const url = pathToFileURL(file).href;
  resolveImports(file, main);
  globalThis.require = Module.createRequire(main.filename);
  return then(import(url), undefined, (error) => {
    if (!(error instanceof SyntaxError) || error.message !== 'Illegal return statement') throw error;
    const advice = new SyntaxError(
      'import and export cannot be used together with a top-level return: ' +
        'use `await import()`, or `export default` for the result',
    );
    advice.stack = error.stack.replace(/SyntaxError: Illegal return statement[^]*/, `${advice.name}: ${advice.message}`);
    throw advice;
  });
}

function defineGlobals(main, file) {
  const values = {
    exports: main.exports,
    require: Module.createRequire(main.filename),
    module: main,
    __filename: file,
    __dirname: path.dirname(file),
  };
  for (const name of CJS_PARAMETERS) {
    Object.defineProperty(globalThis, name, { value: values[name], writable: true, configurable: true });
  }
  return values;
}

// Workflow nodes: the code defines main(); its value is the result.
function callMain(main_function, params) {
  if (typeof main_function !== 'function') throw new TypeError('the code defines no function main');
  return main_function(params);
}

function run(source, params, options) {
  const root = options.code_dir ?? '/code';
  const file = `${root}/${options.name}`;
  const main = newMainModule(file, process.cwd());
  globalThis.params = params;
  const text = source.toString().replace(/^\uFEFF/, '');
  const { kind, compiled } = chooseKind(text, file);
  const name = kind === 'module' ? options.name.replace(/\.[^.]*$/, '') + '.mjs' : options.name;
  writeFile(options.code_dir ?? '/dev/shm/code', name, source);
  process.argv[1] = `${root}/${name}`;
  const calls = options.mode === 'function';
  if (kind === 'module') {
    const exported = runModule(`${root}/${name}`, root, text, main);
    return calls ? then(exported, (all) => callMain(all.main ?? all.default, params)) : then(exported, (all) => all.default);
  }
  if (/\bimport\b/.test(text)) resolveImports(file, main);
  if (calls) {
    defineGlobals(main, file);
    quietly(() => newScript(text, file, 0)).runInThisContext();
    return callMain(vm.runInThisContext('typeof main === "function" ? main : undefined'), params);
  }
  if (kind === 'commonjs') return main._compile(text, file, 'commonjs');
  const { exports, require } = defineAsyncScope(main);
  return apply(compiled, exports, [exports, require, main, file, root]);
}

function defineAsyncScope(main) {
  return { exports: main.exports, require: Module.createRequire(main.filename) };
}

function serve() {
  const frames = receive();
  const options = JSON.parse(frames[RUN].toString());
  const params = parseParams(frames[PARAMS]?.toString() || '{}');
  state.mode = options.mode;
  writeSynchronously('stdout');
  writeSynchronously('stderr');
  watchEnd();
  settle(run(frames[CODE] ?? bufferAlloc(0), params, options));
}

serve();
